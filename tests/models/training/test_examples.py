import random
from collections import Counter
from collections.abc import Sequence

import msgspec

from models.datasets.open import open_dataset
from models.evaluation import runner
from models.language.rule import RuleEngine
from models.reader import ObserveRequest
from models.training.examples import Example, examples
from models.training.variation import beside, under, varied
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
    """But for the state, which is gold here and the system's own there."""
    dialogues = list(open_dataset("en", "dev"))[:3]
    recorder = Recorder()
    runner.run(dialogues, recorder)

    def keyed(requests: list[ObserveRequest]) -> dict[tuple[str, str], ObserveRequest]:
        return {
            (one.conversation, one.turn.turn): msgspec.structs.replace(one, state=Stance.UNKNOWN)
            for one in requests
        }

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


def test_no_label_is_shown() -> None:
    shown = msgspec.json.encode([one.request for one in examples([FLIPS])])
    assert b"leaks labels" not in shown


def test_another_state_changes_what_follows_from_it_alone() -> None:
    speaks, silent = examples([FLIPS])[1], examples([FLIPS])[3]
    for state in Stance:
        assert under(speaks, state).labels.after is Stance.SUPPORT
        assert under(silent, state).labels.after is state
        assert under(silent, state).request.state is state


def test_a_foreign_proposition_moves_nothing() -> None:
    labels = beside(examples([FLIPS])[5], "another matter").labels
    assert (labels.expressed, labels.after, labels.relevance) == (Expressed.NONE, Stance.SUPPORT, 0.0)
    assert labels.trigger is None
    assert labels.sources == set()


def test_chances_are_as_asked() -> None:
    chance, (example, *_) = random.Random(0), examples([FLIPS])
    made = [varied(example, chance, 0.25, ["another"], 0.1) for _ in range(4000)]
    counted = Counter(one.request.proposition for one in made)
    assert 300 < counted["another"] < 500
    states = Counter(one.request.state for one in made)
    assert all(150 < states[state] < 350 for state in Stance if state is not Stance.UNKNOWN)
    kept: Example = varied(example, chance, 0.0, [], 1.0)
    assert kept == example
