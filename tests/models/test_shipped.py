"""The adapter that comes with Volteface: whole, small, documented, and it reads plain turns rightly."""

import json

import pytest

from models import shipped
from models.encoder import adapter, calibration
from models.encoder.engine import EncoderEngine
from models.encoder.loading import load
from models.encoder.weights import base
from models.reader import ExplainRequest, ObserveRequest
from stream.settings import load as settings
from tests.models.encoder.conftest import CPU
from tracker.context import WindowTurn
from tracker.observations import Mark
from tracker.stances import Expressed, Stance

pytestmark = pytest.mark.timeout(600)

MOST_BYTES = 50_000_000
DOGS = "The debate concerning whether the family should adopt a second dog"
DOGS_ZH = "关于这个家是否应该再养一只狗的讨论"
DOGS_ES = "El debate sobre si la familia debería adoptar otro perro"
PLAIN = [
    (DOGS, "yes, let's adopt her, I am all for it", Expressed.SUPPORT),
    (DOGS, "no way, I am completely against a second dog", Expressed.OPPOSE),
    (DOGS_ZH, "好啊,我同意", Expressed.SUPPORT),
    (DOGS_ZH, "我坚决反对再养一只狗", Expressed.OPPOSE),
    (DOGS_ES, "estoy totalmente a favor, adoptémosla ya", Expressed.SUPPORT),
    (DOGS_ES, "ni hablar, estoy en contra", Expressed.OPPOSE),
]


@pytest.fixture(scope="module")
def engine() -> EncoderEngine:
    return EncoderEngine(load(base(), shipped.ENCODER, CPU))


def request(proposition: str, text: str, state: Stance = Stance.UNKNOWN) -> ObserveRequest:
    return ObserveRequest("room", WindowTurn("1", "Ada", text), 0, "t-1", proposition, state)


def test_it_is_small_and_has_all_that_goes_with_it() -> None:
    assert (shipped.ENCODER / adapter.WEIGHTS).stat().st_size < MOST_BYTES
    assert calibration.load(shipped.ENCODER) != calibration.Calibration()
    card = (shipped.ENCODER / "MODEL_CARD.md").read_text(encoding="utf-8")
    for heading in ("## Data", "## Licences", "## Figures", "## Limits", "## Ethics"):
        assert heading in card


def test_without_settings_it_is_what_reads_under_its_own_policy() -> None:
    found = settings({})
    assert (found.reader, found.adapter) == ("encoder", shipped.ENCODER)
    assert found.policy.name == shipped.ENCODER.name
    assert json.loads((shipped.ENCODER / adapter.CONFIG).read_bytes())["kind"] == adapter.KIND


@pytest.mark.parametrize(("proposition", "text", "expressed"), PLAIN)
def test_it_reads_plain_turns(
    engine: EncoderEngine, proposition: str, text: str, expressed: Expressed
) -> None:
    (seen,) = engine.observe([request(proposition, text)])
    assert seen.expressed.ranked()[0][0] is expressed
    assert Mark.UNTRAINED not in seen.marks


def test_it_explains_a_flip_by_turns_that_were_shown(engine: EncoderEngine) -> None:
    asked = request(DOGS, "ok, you convinced me, let's get the puppy", Stance.OPPOSE)
    (seen,) = engine.observe([asked])
    (why,) = engine.explain([ExplainRequest(asked, seen, Stance.SUPPORT)])
    assert why.trigger.turns == ("1",)
    assert why.rationale
