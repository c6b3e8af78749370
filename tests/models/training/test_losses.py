import pytest
import torch

from models.encoder import adapter
from models.encoder.batching import collate
from models.encoder.features import Featurizer
from models.encoder.loading import encoder
from models.encoder.network import EXPRESSED, Outputs
from models.language.weights import Found
from models.training.examples import Labels, examples
from models.training.losses import losses, total
from models.training.options import Weights
from tests.models.encoder.tiny import make_tokenizer
from tests.models.training.talks import talk
from tracker.stances import Expressed, Stance

EXAMPLES = examples([talk("x", Stance.SUPPORT, Stance.OPPOSE)])
FEATURES = Featurizer(make_tokenizer())([one.request for one in EXAMPLES])
HEADS = set(Weights.__struct_fields__)


@pytest.fixture
def outputs(found: Found) -> Outputs:
    return adapter.fresh(encoder(found.folder))(collate(FEATURES, 1))


def test_each_head_is_the_mean_over_what_has_its_label(outputs: Outputs) -> None:
    made = losses(outputs, FEATURES, [one.labels for one in EXAMPLES])
    assert set(made) == HEADS
    flip = outputs.trigger[3].log_softmax(-1)
    assert made["trigger"].item() == pytest.approx(-flip[0].item(), abs=1e-5)
    right = [at for at, part in enumerate(FEATURES[3].parts) if FEATURES[3].shown[part.turn] == "2"]
    pointed = outputs.pointer[3].softmax(-1)[right].sum().log()
    assert made["pointer"].item() == pytest.approx(-pointed.item(), abs=1e-5)
    assert made["relevance"].item() == pytest.approx(
        -outputs.relevance[[1, 3]].sigmoid().log().mean().item(), abs=1e-5
    )
    assert total(made, Weights()).item() == pytest.approx(
        sum(getattr(Weights(), head) * value.item() for head, value in made.items()), abs=1e-4
    )


def test_what_nobody_labelled_teaches_nothing_and_stays_finite(outputs: Outputs) -> None:
    made = losses(outputs, FEATURES, [Labels()] * len(FEATURES))
    assert all(value.item() == 0.0 for value in made.values())
    total(made, Weights()).backward()


def test_a_trigger_that_is_not_shown_teaches_the_pointer_nothing(outputs: Outputs) -> None:
    gone = Labels(sources=frozenset({"99"}))
    made = losses(outputs, FEATURES, [gone] * len(FEATURES))
    assert made["pointer"].item() == 0.0
    torch.stack(list(made.values())).sum().backward()


def test_every_turn_shown_teaches_its_side(outputs: Outputs) -> None:
    labels = [Labels(sides={"2": Expressed.NONE, "99": Expressed.NEUTRAL}) for _ in EXAMPLES]
    made = losses(outputs, FEATURES, labels)["sides"]
    logits = [
        outputs.sides[row, at]
        for row, features in enumerate(FEATURES)
        for at, part in enumerate(features.parts)
        if features.shown[part.turn] == "2"
    ]
    assert len(logits) == 2  # turn 2 itself, and turn 3 after it
    none = EXPRESSED.index(Expressed.NONE)
    missed = [-one.log_softmax(-1)[none].item() for one in logits]
    assert made.item() == pytest.approx(sum(missed) / len(missed), abs=1e-5)
