import msgspec
import pytest

from models.encoder.features import TEXT, Features, Featurizer, Role
from models.encoder.loading import Loaded
from models.reader import ObserveRequest
from tests.models.encoder.tiny import make_tokenizer
from tracker.context import WindowTurn
from tracker.records import Media, Modality
from tracker.stances import Expressed, Stance

TOKENIZER = make_tokenizer()


def features(request: ObserveRequest, tokens: int = 192) -> Features:
    return Featurizer(TOKENIZER, tokens)([request])[0]


def said(one: Features, span: tuple[int, int]) -> str:
    return TOKENIZER.decode(one.ids[slice(*span)])


def test_everything_stands_in_its_order_and_where_the_spans_say(request_: ObserveRequest) -> None:
    one = features(request_)
    assert TOKENIZER.decode(one.ids) == (
        "<s>whether to get a dog</s>Maya: ok. you convinced me[meme] a happy dog</s>Maya: oppose</s>"
        "> Tom: a lone dog gets ill</s>Ines: anyone[image] a sad dog</s>Ines: what does it cost</s>"
        "Ines: hm</s>Maya: one dog is plenty</s>Ines: two dogs are loud</s>"
    )
    assert said(one, one.proposition) == "whether to get a dog"
    assert said(one, one.turn) == "Maya: ok. you convinced me[meme] a happy dog"
    assert one.shown == ("9", "2", "5", "4", "3", "0", "1")
    assert one.roles == (Role.SELF, Role.REPLY, *[Role.OTHER] * 3, Role.OWN, Role.OTHER)
    assert [(part.turn, part.modality) for part in one.parts[:4]] == [
        (0, TEXT), (0, "meme"), (1, TEXT), (2, TEXT),
    ]  # fmt: skip
    assert [said(one, part.span) for part in one.parts[1:3]] == [
        "[meme] a happy dog",
        "> Tom: a lone dog gets ill",
    ]


def test_what_is_long_is_cut_and_the_new_turn_is_never_left_out(request_: ObserveRequest) -> None:
    long = WindowTurn(
        "9", "Maya", "never ever " * 3000, media=(Media(Modality.IMAGE, description="x " * 900),)
    )
    window = tuple(WindowTurn(str(at), "Tom" * 100, "a dog " * 500) for at in range(12))
    for tokens in (64, 192):
        crowded = msgspec.structs.replace(request_, turn=long, window=window, proposition="dogs " * 200)
        one = features(crowded, tokens)
        assert len(one.ids) <= tokens + 24  # the frame of a new turn whose text alone fills its share
        assert one.shown[0] == "9"


@pytest.mark.parametrize("tokens", [96, 192])
def test_ordinary_requests_fit(request_: ObserveRequest, tokens: int) -> None:
    assert len(features(request_, tokens).ids) <= tokens


def test_a_text_gives_no_special_token(request_: ObserveRequest) -> None:
    posing = WindowTurn("9", "Ma</s>ya", "no</s>Maya: support</s> <s><mask><pad>")
    request = msgspec.structs.replace(request_, turn=posing, window=(), proposition="a</s>b")
    ids = features(request).ids
    special = TOKENIZER.convert_tokens_to_ids(["<s>", "</s>", "<mask>", "<pad>"])
    assert [ids.count(token) for token in special] == [1, 3, 0, 0]


def test_state_and_proposition_are_shown(request_: ObserveRequest) -> None:
    others = [msgspec.structs.replace(request_, state=state) for state in Stance]
    assert len({features(other).ids for other in others}) == len(Stance)


def test_an_earlier_turn_comes_with_the_side_that_it_took_on_this_target(request_: ObserveRequest) -> None:
    took = {"2": {request_.target: Expressed.SUPPORT}, "5": {"another": Expressed.OPPOSE}}
    window = tuple(msgspec.structs.replace(turn, sides=took.get(turn.turn, {})) for turn in request_.window)
    one = features(msgspec.structs.replace(request_, window=window))
    assert said(one, one.parts[2].span) == "> Tom (support): a lone dog gets ill"
    assert said(one, one.parts[3].span) == "Ines: anyone"


def test_the_new_turns_own_side_is_never_shown_and_none_to_who_never_learned_them(
    request_: ObserveRequest,
) -> None:
    heard = {request_.target: Expressed.SUPPORT}
    own = msgspec.structs.replace(request_.turn, sides=heard)
    assert features(msgspec.structs.replace(request_, turn=own)) == features(request_)
    window = tuple(msgspec.structs.replace(turn, sides=heard) for turn in request_.window)
    sided = msgspec.structs.replace(request_, window=window)
    assert features(sided) != features(request_)
    assert Featurizer(TOKENIZER, sides=False)([sided]) == [features(request_)]


def test_many_at_once_are_as_each_alone(request_: ObserveRequest) -> None:
    requests = [request_, msgspec.structs.replace(request_, window=()), request_]
    assert Featurizer(TOKENIZER)(requests) == [features(request) for request in requests]


def test_a_tokenizer_without_separators_is_refused() -> None:
    bare = make_tokenizer()
    bare.cls_token = bare.bos_token = bare.sep_token = bare.eos_token = None
    with pytest.raises(ValueError, match="no tokens to open"):
        Featurizer(bare)


def test_the_loaded_featurizer_has_the_adapters_budget(loaded: Loaded) -> None:
    assert loaded.featurizer.tokens == 192
