"""How a record is admitted and folded, and what never grows with a conversation."""

import datetime as dt
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given

from tests.tracker.driver import Marked, Moody, advance, empty, explanation, flips, last, play, read
from tests.tracker.strategies import (
    PROPOSITIONS,
    at,
    create,
    debate,
    declare,
    dialogues,
    observe,
    target_of,
)
from tracker.context import WINDOW_TURNS, Window
from tracker.conversation import (
    Conversation,
    Folded,
    Header,
    Rules,
    WrongObservation,
    admitted,
    explained,
    folded,
    state_before,
)
from tracker.machine import UNKNOWN, StanceState
from tracker.observations import Explanation, Mark, Model, Observation, Probabilities
from tracker.policy import Policy, Threshold
from tracker.records import (
    HolderKind,
    Reason,
    Record,
    Refused,
    TargetStatus,
)
from tracker.stances import Expressed, Stance, TransitionKind

RULES = Rules()
TARGET = target_of(PROPOSITIONS[0])
MINUTE = dt.timedelta(minutes=1)


def _after(*records: Record) -> Conversation:
    return last(play(debate(*records), reader=Marked()))


def test_a_turn_is_admitted_for_every_active_target() -> None:
    conversation = last(play([declare(text) for text in PROPOSITIONS[:3]]))
    retired = last(play([declare(PROPOSITIONS[1], "r", status=TargetStatus.RETIRED)], start=conversation))
    admission = admitted(retired, create("m-1"), None, RULES)
    assert [target.proposition for target in admission.targets] == [PROPOSITIONS[0], PROPOSITIONS[2]]
    assert admission.marks == ()


@pytest.mark.parametrize(("seconds", "late"), [(9.999, True), (10, False), (11, False)])
def test_strictly_older_than_the_newest_turn_is_late(seconds: float, late: bool) -> None:
    admission = admitted(_after(create("m-1", seconds=10)), create("m-2", seconds=seconds), None, RULES)
    assert (Mark.LATE in admission.marks) is late
    assert (admission.targets == ()) is late


def test_a_target_record_makes_no_turn_late() -> None:
    conversation = _after(declare(PROPOSITIONS[1], seconds=100))
    assert admitted(conversation, create("m-1", seconds=1), None, RULES).marks == ()


def test_a_late_turn_moves_nothing_and_does_not_set_the_clock_back() -> None:
    before = _after(create("m-1", "+1", 10))
    after = last(play([create("m-2", "-1", 5)], start=before, reader=Marked()))
    assert after.holders == before.holders
    assert after.header.newest == at(10)
    assert after.header.version == before.header.version + 1
    assert [turn.turn for turn in after.window] == ["m-1", "m-2"]


def test_a_clamped_turn_counts_at_its_receipt() -> None:
    admission = admitted(_after(), create("m-1", seconds=3600), at(0), RULES)
    assert (admission.sent_at, admission.marks) == (at(0), (Mark.CLAMPED,))
    assert len(admission.targets) == 1
    assert last(
        play([create("m-1", seconds=3600)], start=_after(), receipt=lambda _: at(0))
    ).header.newest == at(0)


@pytest.mark.parametrize("record", [create("m-1"), declare("new")], ids=["create", "target"])
def test_a_record_beyond_the_reach_is_too_late(record: Record) -> None:
    with pytest.raises(Refused) as refused:
        admitted(_after(), record, record.sent_at + RULES.clock.reach + MINUTE, RULES)
    assert refused.value.reason is Reason.TOO_LATE


@pytest.mark.parametrize(("reply_to", "marks"), [(None, ()), ("m-1", ()), ("gone", (Mark.REPLY_MISSING,))])
def test_a_reply_to_what_the_window_lacks_is_marked(reply_to: str | None, marks: tuple[Mark, ...]) -> None:
    admission = admitted(_after(create("m-1")), create("m-2", reply_to=reply_to), None, RULES)
    assert admission.marks == marks
    assert len(admission.targets) == 1


@pytest.mark.parametrize(
    ("policy", "fields"),
    [
        (Policy(), {"holder_kind": HolderKind.BOT}),
        (Policy(), {"holder_kind": HolderKind.SYSTEM}),
        (Policy(exempt_kinds=frozenset({HolderKind.MODERATOR})), {"holder_kind": HolderKind.MODERATOR}),
        (Policy(exempt_holders=frozenset({"ann"})), {}),
    ],
)
def test_exempt_turns_are_not_read_but_join_the_window(policy: Policy, fields: dict[str, Any]) -> None:
    start, turn = _after(), create("m-1", **fields)
    assert admitted(start, turn, None, Rules(policy=policy)).targets == ()
    after = last(play([turn], Rules(policy=policy), start=start))
    assert after.holders == {}
    assert [seen.turn for seen in after.window] == ["m-1"]


def test_all_marks_of_one_record_are_kept() -> None:
    turn = create("m-2", seconds=3600, reply_to="gone")
    admission = admitted(_after(create("m-1", seconds=30)), turn, at(0), RULES)
    assert admission.marks == (Mark.CLAMPED, Mark.LATE, Mark.REPLY_MISSING)


def test_state_before_of_a_stranger_is_unknown() -> None:
    assert state_before(_after(), "nobody", TARGET.id) == UNKNOWN


@pytest.mark.parametrize(
    "wrong",
    [{"turn": "m-9"}, {"revision": 1}, {"holder": "bo"}, {"target": "t-9"}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_an_answer_about_something_else_is_not_folded(wrong: dict[str, Any]) -> None:
    conversation = _after()
    admission = admitted(conversation, create("m-1"), None, RULES)
    right = observe(target=TARGET.id)
    assert len(folded(conversation, admission, [right], RULES)) == 1
    with pytest.raises(WrongObservation, match=f"another {next(iter(wrong))} than"):
        folded(conversation, admission, [msgspec.structs.replace(right, **wrong)], RULES)


@pytest.mark.parametrize("count", [0, 2])
def test_one_observation_a_target_no_less_no_more(count: int) -> None:
    conversation = _after()
    admission = admitted(conversation, create("m-1"), None, RULES)
    with pytest.raises(ValueError, match="zip"):
        folded(conversation, admission, [observe(target=TARGET.id)] * count, RULES)


def test_a_target_record_folds_nothing() -> None:
    admission = admitted(_after(), declare("new"), None, RULES)
    assert folded(_after(), admission, [], RULES) == ()


def _flip() -> tuple[Conversation, Folded]:
    conversation = _after(create("m-1", "+1"))
    turn = create("m-2", "-1")
    admission = admitted(conversation, turn, None, RULES)
    (fold,) = folded(conversation, admission, read(conversation, admission, Marked()), RULES)
    assert fold.transition.kind is TransitionKind.FLIP
    return conversation, fold


def _refined(fold: Folded, expressed: Expressed, **rest: Any) -> Explanation:
    again = observe(expressed, turn="m-2", target=TARGET.id, read_under=Stance.SUPPORT, **rest)
    return explanation(fold, again)


@pytest.mark.parametrize(
    ("expressed", "kind", "after"),
    [
        (Expressed.NEUTRAL, TransitionKind.FLIP, StanceState(Stance.NEUTRAL, "m-2", 1.0, 1)),
        (Expressed.OPPOSE, TransitionKind.FLIP, StanceState(Stance.OPPOSE, "m-2", 1.0, 1)),
        (Expressed.NONE, TransitionKind.PERSISTENCE, StanceState(Stance.SUPPORT, "m-1", 1.0)),
        (Expressed.SUPPORT, TransitionKind.PERSISTENCE, StanceState(Stance.SUPPORT, "m-1", 1.0)),
    ],
)
def test_a_refined_observation_folds_once_from_the_state_before(
    expressed: Expressed, kind: TransitionKind, after: StanceState
) -> None:
    conversation, fold = _flip()
    refined = _refined(fold, expressed)
    again = explained(conversation, fold, refined, RULES)
    assert (again.before, again.after, again.transition.kind) == (fold.before, after, kind)
    assert again.observation == refined.refined
    assert (again.explanation is refined) is (kind is TransitionKind.FLIP)


def test_a_refined_answer_about_somebody_else_is_not_folded() -> None:
    conversation, fold = _flip()
    with pytest.raises(WrongObservation):
        explained(conversation, fold, _refined(fold, Expressed.NEUTRAL, holder="bo"), RULES)


def test_an_explanation_leaves_the_flip_as_it_is() -> None:
    conversation, fold = _flip()
    told = explanation(fold)
    assert explained(conversation, fold, told, RULES) == msgspec.structs.replace(fold, explanation=told)


DEFAULT, SURE = Policy(), Policy(name="sure", establish=Threshold(0.9), flip=Threshold(0.9))
PARTED = Rules(policy=DEFAULT, policies={"zh": SURE})
LIKELY = Probabilities(support=0.2, oppose=0.8)


def spoken(language: str, expressed: Probabilities = LIKELY, **rest: Any) -> Observation:
    return observe(expressed, target=TARGET.id, model=Model("m", "1", "encoder", language), **rest)


@pytest.mark.parametrize(
    ("language", "marks", "judging"),
    [
        ("zh", (), SURE),
        ("zh-Hant", (Mark.UNTRAINED,), SURE),
        ("zh", (Mark.UNTRAINED, Mark.FALLBACK), DEFAULT),  # the default read in its place
        ("en", (), DEFAULT),
        ("und", (), DEFAULT),
    ],
)
def test_an_observation_is_judged_by_the_policy_of_the_reader_that_made_it(
    language: str, marks: tuple[Mark, ...], judging: Policy
) -> None:
    conversation = _after()
    admission = admitted(conversation, create("m-1"), None, PARTED)
    observation = spoken(language, marks=marks)
    assert PARTED.judging(observation) is judging
    (fold,) = folded(conversation, admission, [observation], PARTED)
    assert fold.after.stance is (Stance.OPPOSE if judging is DEFAULT else Stance.UNKNOWN)


@pytest.mark.parametrize(
    ("marks", "kind"),
    [((), TransitionKind.PERSISTENCE), ((Mark.FALLBACK,), TransitionKind.FLIP)],
)
def test_a_refined_observation_is_judged_by_who_made_it(
    marks: tuple[Mark, ...], kind: TransitionKind
) -> None:
    conversation, fold = _flip()
    refined = spoken("zh", turn="m-2", read_under=Stance.SUPPORT, marks=marks)
    again = explained(conversation, fold, explanation(fold, refined), PARTED)
    assert again.transition.kind is kind


def test_exemptions_of_a_reader_by_language_exempt_nobody() -> None:
    rules = Rules(policies={"en": Policy(exempt_holders=frozenset({"ann"}))})
    assert len(admitted(_after(), create("m-1", language="en"), None, rules).targets) == 1


@given(dialogues())
def test_a_definite_stance_never_becomes_unknown(records: list[Record]) -> None:
    outcomes = play(records)
    for before, outcome in zip([empty(), *(done.conversation for done in outcomes)], outcomes, strict=False):
        for moved in outcome.states:
            was = state_before(before, moved.holder, moved.target)
            assert moved.state.stance is not Stance.UNKNOWN or was.stance is Stance.UNKNOWN


def _long(turns: int) -> Conversation:
    """Two holders who flip at every turn of theirs."""
    texts = ("+1", "-1")
    records = [create(f"m-{n:05}", texts[n // 2 % 2], n, ("ann", "bo")[n % 2]) for n in range(turns)]
    return _after(*records)


def _calls(work: Callable[[], object]) -> int:
    """How many Python functions `work` calls."""
    count = 0

    def seen(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_a_turn_costs_the_same_and_a_conversation_is_as_large_at_turn_20_and_at_turn_5000() -> None:
    short, long = _long(20), _long(5000)
    turn = create("next", "+1", 6000)  # a flip
    advance(short, turn, RULES, Marked())  # fills what caches there are
    calls = [_calls(partial(advance, start, turn, RULES, Marked())) for start in (short, long)]
    assert calls[0] == calls[1]
    sizes = [len(msgspec.json.encode(conversation)) for conversation in (short, long)]
    assert abs(sizes[1] - sizes[0]) < 40  # more digits in the same numbers
    assert len(long.window) == WINDOW_TURNS
    assert set(long.holders) == {"ann", "bo"}


def test_only_loaded_holders_are_held() -> None:
    loaded = msgspec.structs.replace(_after(create("m-1", holder="bo")), holders={})
    after = last(play([create("m-2", holder="ann", seconds=1)], start=loaded, reader=Marked()))
    assert set(after.holders) == {"ann"}


@pytest.mark.parametrize("codec", [msgspec.json, msgspec.msgpack])
@given(records=dialogues())
def test_header_and_window_survive_the_store(codec: Any, records: list[Record]) -> None:
    conversation = last(play(records))
    assert codec.decode(codec.encode(conversation.header), type=Header) == conversation.header
    assert codec.decode(codec.encode(conversation.window), type=Window) == conversation.window


def test_a_conversation_is_not_touched_by_what_comes_after_it() -> None:
    before = _after(create("m-1", "+1"))
    copy = msgspec.json.encode(before)
    assert flips(advance(before, create("m-2", "-1", 1), RULES, Marked())) == ["ann"]
    play([create("m-3", "never", 2)], start=before, reader=Moody())
    assert msgspec.json.encode(before) == copy
