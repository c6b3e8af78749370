from models.encoder.features import Featurizer
from models.training.examples import examples
from models.training.options import EncoderOptions
from models.training.schedule import Schedule
from tests.models.encoder.tiny import make_tokenizer
from tests.models.training.talks import corpus

EXAMPLES = examples(corpus(120))
OPTIONS = EncoderOptions(batch=3, epochs=2)
UNVARIED = dict.fromkeys(
    ("drawn", "foreign", "turned", "bare", "declared", "thinned", "misread", "unread", "masked"), 0.0
)


def schedule(**changes: object) -> Schedule:
    fields = {"batch": 3, "epochs": 2} | changes
    return Schedule(EXAMPLES, Featurizer(make_tokenizer()), EncoderOptions(**fields))


def test_any_step_can_be_started_from() -> None:
    made = schedule()
    whole = list(made.batches(0))
    assert len(whole) == made.steps == 2 * made.epoch_steps
    for start in (1, 31, 32, 33, made.epoch_steps - 1, made.epoch_steps, made.epoch_steps + 40, made.steps):
        assert list(schedule().batches(start)) == whole[start:]


def test_every_example_comes_once_an_epoch_and_epochs_differ() -> None:
    made = schedule(**UNVARIED)
    whole = [one for features, _ in made.batches(0) for one in features]
    first, second = whole[: len(EXAMPLES)], whole[len(EXAMPLES) :]
    assert first != second
    assert sorted(one.ids for one in first) == sorted(one.ids for one in second)
    alone = Featurizer(make_tokenizer())([one.request for one in EXAMPLES])
    assert sorted(one.ids for one in first) == sorted(one.ids for one in alone)


def test_batches_hold_like_lengths() -> None:
    spread = [max(lengths) - min(lengths) for lengths in
              ([len(one.ids) for one in features] for features, _ in schedule().batches(0))]  # fmt: skip
    every = [len(one.ids) for features, _ in schedule().batches(0) for one in features]
    assert sum(spread) / len(spread) < (max(every) - min(every)) / 4


def test_a_seed_is_an_order() -> None:
    assert list(schedule(seed=1).batches(0)) != list(schedule(seed=2).batches(0))
    assert OPTIONS.seed == 0


def test_words_are_hidden_as_often_as_asked() -> None:
    unknown = Featurizer(make_tokenizer()).unknown

    def hidden(share: float) -> int:
        made = schedule(**(UNVARIED | {"masked": share}))
        return sum(one.ids.count(unknown) for features, _ in made.batches(0) for one in features)

    assert hidden(0.0) < hidden(0.1) < hidden(0.4)
