import pytest

from stream.chain import grouped, need
from stream.store.memory import MemoryStore
from stream.store.port import ConversationKey
from tests.stream.fakes import chains, items, target, turn
from tracker.conversation import Rules
from tracker.records import Reason, Refused
from tracker.settlement import settled

A = ConversationKey("default", "a")


def test_items_are_grouped_by_tenant_and_conversation_in_order() -> None:
    given = [turn("1"), turn("2", room="b"), turn("3", tenant="other"), turn("4")]
    found = grouped(items(given))
    assert {(key.tenant, key.name): [item.index for item in of_it] for key, of_it in found.items()} == {
        ("default", "a"): [0, 3],
        ("default", "b"): [1],
        ("other", "a"): [2],
    }


def test_only_the_batchs_holders_records_and_turns_are_asked_for() -> None:
    asked = need(A, items([target(), turn("1"), turn("2", holder="bob"), turn("3", holder="bob", id="own")]))
    assert asked.holders == {"ann", "bob"}
    assert asked.records == {target().id, "create/1/0", "create/2/0", "own"}
    assert asked.turns == {"1", "2", "3"}


async def test_repeated_and_refused_items_are_done_on_the_way() -> None:
    [chain] = await chains(
        MemoryStore("r"), [turn("1"), turn("1"), turn("1", id="another"), turn("2", reply_to="1")]
    )
    rules = Rules()
    admission = chain.admit(rules)
    assert admission is not None
    chain.settle(settled(chain.conversation, admission, [], rules))
    second = chain.admit(rules)
    assert second is not None
    assert second.record == turn("2", reply_to="1")
    assert second.marks == ()
    assert [(refusal.index, refusal.refused.reason) for refusal in chain.refusals] == [
        (2, Reason.REPEATED_TURN)
    ]
    assert chain.done == 3
    chain.settle(settled(chain.conversation, second, [], rules))
    assert chain.finished
    assert chain.admit(rules) is None


async def test_a_commit_holds_all_that_changed_and_nothing_else() -> None:
    [chain] = await chains(MemoryStore("r"), [target(), turn("1"), turn("1")])
    rules = Rules()
    while (admission := chain.admit(rules)) is not None:
        chain.settle(settled(chain.conversation, admission, [], rules))
    commit = chain.commit(None)
    assert (commit.expected, commit.header.version) == (0, 2)
    assert [entry.id for entry in commit.entries] == [target().id, "create/1/0"]
    assert sorted(commit.outbox) == [1, 2]
    assert not commit.holders


@pytest.mark.parametrize("reason", [Reason.FAILED, Reason.TOO_LATE])
async def test_a_refusal_puts_one_item_aside(reason: Reason) -> None:
    [chain] = await chains(MemoryStore("r"), [turn("1"), turn("2")])
    chain.refuse(Refused(reason, "turn", "got", "remedy"))
    assert chain.item.record == turn("2")
    assert not chain.outcomes
