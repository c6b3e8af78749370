from pathlib import Path

import msgspec
import pytest
import torch

from models.encoder import loading
from models.encoder.engine import EncoderEngine
from models.encoder.loading import Loaded
from models.execution import check_explanations, check_observations
from models.language.backbone import Placement
from models.language.registry import ReaderSettings, build_engine
from models.language.settings import InvalidSetting
from models.language.weights import Found
from models.reader import Engine, ExplainRequest, ObserveRequest
from tests.models.encoder.tiny import make_encoder
from tracker.context import WindowTurn
from tracker.observations import Evidence, Mark, Observation
from tracker.records import Media, Modality
from tracker.stances import Expressed, Stance


@pytest.fixture
def requests(request_: ObserveRequest) -> list[ObserveRequest]:
    """Of unlike lengths, states and windows."""
    picture = (Media(Modality.IMAGE, description="a dog"),)
    return [
        request_,
        msgspec.structs.replace(request_, turn=WindowTurn("9", "Maya", "never " * 400), state=Stance.UNKNOWN),
        msgspec.structs.replace(request_, turn=WindowTurn("9", "Maya", "", media=picture), window=()),
        msgspec.structs.replace(
            request_, turn=WindowTurn("9", "玛雅", "好的 🐶 ¿qué?"), state=Stance.NEUTRAL
        ),
    ]


def apart(one: Observation, other: Observation) -> float:
    return max(abs(one.expressed[label] - other.expressed[label]) for label in Expressed)


def test_it_is_an_engine_that_answers_by_the_contract(
    engine: EncoderEngine, requests: list[ObserveRequest]
) -> None:
    assert isinstance(engine, Engine)
    seen = check_observations(requests, engine.observe(requests))
    assert seen[0].model.engine == "encoder"
    assert [one.model.language for one in seen] == ["en", "und", "und", "und"]
    assert all(Mark.UNTRAINED in one.marks for one in seen)
    assert msgspec.json.decode(msgspec.json.encode(seen), type=list[Observation]) == seen
    assert engine.observe([]) == []
    assert 0 < engine.tokens(requests[0]) <= engine.loaded.featurizer.tokens
    assert engine.observe(requests) == seen


def test_alone_or_in_a_batch_the_answer_is_the_same(loaded: Loaded, requests: list[ObserveRequest]) -> None:
    together = EncoderEngine(loaded).observe(requests)
    alone = EncoderEngine(loaded, batch_tokens=1).observe(requests)
    assert max(map(apart, together, alone)) < 1e-4
    assert apart(together[0], together[1]) > 1e-3


def test_an_explanation_points_at_a_turn_shown_and_quotes_it(
    engine: EncoderEngine, requests: list[ObserveRequest]
) -> None:
    asked = [ExplainRequest(one, engine.observe([one])[0], Stance.SUPPORT) for one in requests]
    explained = check_explanations(asked, engine.explain(asked))
    for request, why in zip(requests, explained, strict=True):
        turns = {turn.turn: turn for turn in (*request.window, request.turn)}
        (source,) = why.trigger.turns
        assert why.trigger.holders == (turns[source].holder,)
        assert 0.25 <= why.trigger.confidence <= 1.0
        assert why.evidence[0].turn == "9"
        assert {one.turn for one in why.evidence} == {"9", source}
        assert why.rationale
    assert explained[2].evidence == (Evidence("9", "image"),)
    assert "[image] “a dog”" in explained[2].rationale


def test_the_registry_makes_it_on_a_folder(folder: Path) -> None:
    settings = ReaderSettings(engine="encoder", path=folder, device="cpu", threads=1)
    assert isinstance(build_engine(settings), EncoderEngine)


def test_bfloat16_only_where_it_is_native(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Placement("cpu", "bfloat16")
    monkeypatch.setattr(loading, "bf16_on_cpu", lambda: True)
    assert loading.precision(asked) == (torch.device("cpu"), torch.bfloat16)
    monkeypatch.setattr(loading, "bf16_on_cpu", lambda: False)
    with pytest.raises(InvalidSetting, match="avx512_bf16"):
        loading.precision(asked)
    assert loading.precision(Placement("cpu", "float32")) == (torch.device("cpu"), None)


def test_weights_are_kept_in_the_format_they_are_read_in(
    found: Found, loaded: Loaded, requests: list[ObserveRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "bf16_on_cpu", lambda: True)
    half = loading.load(found, placement=Placement("cpu", "bfloat16", threads=1))
    kept = {name for name, weights in half.network.named_parameters() if weights.dtype is torch.float32}
    assert {name for name in kept if name.startswith("encoder.")} == {
        "encoder.embeddings.word_embeddings.weight"
    }
    assert "pool.weight" in kept
    exact, close = (EncoderEngine(one).observe(requests) for one in (loaded, half))
    assert max(map(apart, exact, close)) < 0.02


def test_an_encoder_without_token_types_reads_in_bfloat16_too(
    tmp_path: Path, requests: list[ObserveRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "bf16_on_cpu", lambda: True)
    make_encoder(tmp_path, types=1)
    exact, close = (
        build_engine(ReaderSettings(engine="encoder", path=tmp_path, device="cpu", dtype=dtype, threads=1))
        .observe(requests)
        for dtype in ("float32", "bfloat16")
    )  # fmt: skip
    assert max(map(apart, exact, close)) < 0.02
