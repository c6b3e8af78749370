from stream.questions import TURNS, Questions
from tests.stream.fakes import target, turn
from tracker.records import Record


def names(pieces: list[list[Record]]) -> list[list[str]]:
    return [[getattr(record, "turn", "target") for record in piece] for piece in pieces]


def test_a_conversation_waits_after_every_fourth_turn() -> None:
    said = [turn(str(number)) for number in range(10)]
    assert names([*Questions().cut(said)]) == [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9"]]


def test_others_go_on_until_one_that_may_have_been_asked_comes() -> None:
    asked, others = [turn(str(number)) for number in range(5)], [turn(f"b{at}", room="b") for at in range(3)]
    cut = names([*Questions().cut([*asked[:4], *others, asked[4], others[0]])])
    assert cut == [["0", "1", "2", "3", "b0", "b1", "b2"], ["4", "b0"]]


def test_what_is_no_turn_is_not_counted() -> None:
    assert len([*Questions().cut([target()] * 9)]) == 1


def test_it_remembers_from_part_to_part_and_what_was_sent_before_a_stop() -> None:
    questions = Questions()
    for number in range(TURNS - 1):
        questions.sent(turn(str(number)))
    assert names([*questions.cut([turn("3")])]) == [["3"]]
    assert names([*questions.cut([turn("4"), turn("5")])]) == [[], ["4", "5"]]
