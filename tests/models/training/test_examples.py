from collections.abc import Sequence

import msgspec

from models.datasets.open import open_dataset
from models.evaluation import runner
from models.language.rule import RuleEngine
from models.reader import ObserveRequest
from models.training.examples import examples, mover
from tests.models.training.talks import talk
from tracker.observations import Observation
from tracker.stances import Expressed, Stance, TriggerKind

FLIPS = talk("x", Stance.SUPPORT, Stance.UNKNOWN, Stance.OPPOSE)


class Recorder(RuleEngine):
    """Keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ObserveRequest] = []

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        self.asked += requests
        return super().observe(requests)


def test_requests_are_those_of_the_stream() -> None:
    """But for states and sides, which are gold here and the system's own there."""
    dialogues = list(open_dataset("en", "dev"))[:3]
    recorder = Recorder()
    runner.run(dialogues, recorder)

    def keyed(requests: list[ObserveRequest]) -> dict[tuple[str, str], ObserveRequest]:
        return {(one.conversation, one.turn.turn): told(one) for one in requests}

    def told(one: ObserveRequest) -> ObserveRequest:
        window = tuple(msgspec.structs.replace(turn, sides={}) for turn in one.window)
        return msgspec.structs.replace(one, state=Stance.UNKNOWN, window=window)

    assert keyed([one.request for one in examples(dialogues)]) == keyed(recorder.asked)


def test_states_are_gold_and_labels_those_of_the_turn() -> None:
    made = examples([FLIPS])
    maya = [one for one in made if one.request.turn.holder == "Maya"]
    assert [one.request.state for one in maya] == [Stance.UNKNOWN, Stance.SUPPORT, Stance.SUPPORT]
    assert [one.labels.after for one in maya] == [Stance.SUPPORT, Stance.SUPPORT, Stance.OPPOSE]
    assert [one.labels.relevance for one in maya] == [1.0, None, 1.0]
    assert maya[2].labels.trigger is TriggerKind.FACTUAL_LOGICAL
    assert maya[2].labels.sources == {"4"}
    assert maya[0].labels.sources == set()
    none, support, oppose = Expressed.NONE, Expressed.SUPPORT, Expressed.OPPOSE
    assert [turn.sides for turn in maya[1].request.window] == [{}, {maya[0].request.target: support}, {}]
    assert maya[0].labels.sides == {"0": none, "1": support}
    assert list(maya[2].labels.sides.values()) == [none, support, none, none, none, oppose]


def test_no_label_is_shown() -> None:
    shown = msgspec.json.encode([one.request for one in examples([FLIPS])])
    assert b"leaks labels" not in shown


def test_the_first_trigger_turn_that_is_shown_moved_the_holder() -> None:
    request = examples([FLIPS])[-1].request
    found = mover(request, ["gone", *(turn.turn for turn in request.window)])
    assert found is not None
    assert found == request.window[0] != request.window[-1]
    assert mover(request, ["gone"]) is None
