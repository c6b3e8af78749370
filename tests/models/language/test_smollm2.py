"""The real embedded model, end to end: resolved, converted once a machine, read with."""

from collections.abc import Callable

import pytest
import torch

from models.language.backbone import Backbone, Placement, load, local
from models.language.generative import GenerativeEngine, Limits
from models.language.prompts import INSTRUCTION
from models.language.weights import SMOLLM2, resolve
from models.language.wheels import cache_folder
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.observations import Mark, Observation
from tracker.records import Media, Modality
from tracker.stances import Expressed, Stance

pytestmark = pytest.mark.timeout(600)  # where nothing is cached: a download of 93 MB and a conversion

Ask = Callable[..., ObserveRequest]


def apart(one: Observation, other: Observation) -> float:
    return max(abs(one.expressed[label] - other.expressed[label]) for label in Expressed)


@pytest.fixture(scope="module")
def engine(smollm2: Backbone) -> GenerativeEngine:
    return GenerativeEngine(smollm2)


@torch.inference_mode()
def test_the_weights_can_speak(smollm2: Backbone) -> None:
    head, tail = smollm2.frame("You are a helpful AI assistant named SmolLM, trained by Hugging Face")
    ids = torch.tensor([head + smollm2.encode("What is the capital of France?") + tail])
    assert "Paris" in smollm2.decode(
        smollm2.model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.shape[1] :]
    )


def test_cached_and_uncached_alone_and_together_agree(
    smollm2: Backbone, engine: GenerativeEngine, ask: Ask
) -> None:
    requests = [ask(), ask("no, one is enough", state=Stance.SUPPORT, window=())]
    together = engine.observe(requests)
    uncached = GenerativeEngine(smollm2, cached=False).observe(requests)
    assert max(map(apart, together, uncached)) < 1e-4
    assert apart(engine.observe(requests[:1])[0], together[0]) < 1e-4
    assert together[0].model.name == SMOLLM2.name
    assert together[0].marks == (Mark.UNTRAINED,)


def test_a_flip_gets_a_sentence(engine: GenerativeEngine, ask: Ask) -> None:
    request = ExplainRequest(ask(), engine.observe([ask()])[0], Stance.SUPPORT)
    (explanation,) = engine.explain([request])
    assert explanation.trigger.turns == ("2",)
    assert len(explanation.rationale.split()) > 3
    assert engine.explain([request]) == [explanation]


@pytest.mark.parametrize("budget", [160, 640])
def test_a_prompt_stays_within_its_budget_whatever_is_written(
    smollm2: Backbone, ask: Ask, budget: int
) -> None:
    engine = GenerativeEngine(smollm2, Limits(budget))
    for text in ('"\n' * 5000, "好" * 5000, "🐶" * 4000, "word " * 3000):
        window = tuple(WindowTurn(str(index), f"h{index % 3}", text[:2000]) for index in range(12))
        media = (Media(Modality.IMAGE, description=text[:1000]),) * 8
        body = engine.body(ask(text, window=window, media=media))
        assert len(smollm2.encode(body)) <= budget


def test_bfloat16_stays_within_a_tenth(engine: GenerativeEngine, ask: Ask) -> None:
    found = resolve(SMOLLM2, cache=cache_folder())
    half = GenerativeEngine(load(found, placement=Placement("cpu", "bfloat16", 2)))
    requests = [ask(), ask("no, one is enough", window=())]
    assert max(map(apart, engine.observe(requests), half.observe(requests))) < 0.1


def test_the_instruction_is_the_same_tokens_every_time(smollm2: Backbone) -> None:
    assert smollm2.frame(INSTRUCTION) == smollm2.frame(INSTRUCTION)
    assert (
        local(resolve(SMOLLM2, cache=cache_folder()).folder).revision
        == local(resolve(SMOLLM2, cache=cache_folder()).folder).revision
    )
