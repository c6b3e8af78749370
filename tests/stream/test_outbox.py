import msgspec

from stream import outbox, waves
from stream.outbox import FLIPS, JOURNAL, STANCES, STATES, TURNS
from stream.store.memory import MemoryStore
from stream.store.port import Message
from tests.stream.fakes import CountingReader, chains, rule, target, turn
from tracker import keys
from tracker.conversation import Rules
from tracker.parsing import parse_keyed
from tracker.settlement import Outcome

KEY = keys.conversation_key("default", "a")


async def outcomes() -> list[Outcome]:
    [chain] = await chains(MemoryStore("r"), [target(), turn("1"), turn("2", "-1"), turn("3", "hm")])
    while not chain.finished:
        await waves.run([chain], rule(), Rules())
    return chain.outcomes


def topics(messages: tuple[Message, ...]) -> list[str]:
    return [message.topic for message in messages]


async def test_messages_of_an_arrival_stand_in_the_order_they_are_sent() -> None:
    sent = outbox.messages(await outcomes())
    assert {arrival: topics(messages) for arrival, messages in sent.items()} == {
        1: [JOURNAL],
        2: [JOURNAL, STATES, STANCES],
        3: [JOURNAL, STATES, STANCES, FLIPS],
        4: [JOURNAL, STATES],  # the header's row, once, with the last
    }


async def test_all_but_states_bear_the_conversations_key() -> None:
    sent = outbox.messages(await outcomes())
    flat = [message for messages in sent.values() for message in messages]
    assert {message.key for message in flat if message.topic != STATES} == {KEY}
    target_id = keys.target_id("default", "a", "whether x")
    rows = [message.key for message in flat if message.topic == STATES]
    assert rows == [keys.holder_key("default", "a", "ann", target_id)] * 2 + [KEY]


async def test_the_journal_bears_no_text_and_the_flip_is_the_same_in_both_topics() -> None:
    sent = outbox.messages(await outcomes())
    journal, state, stance, flip = sent[3]
    assert stance.value == flip.value
    assert b'"text"' not in (journal.value or b"").replace(b'"modality":"text"', b"")
    assert msgspec.json.decode(state.value or b"")["state"]["stance"] == "oppose"


async def test_the_headers_row_is_of_the_last_outcome() -> None:
    found = await outcomes()
    row = msgspec.json.decode(outbox.messages(found)[4][-1].value or b"")
    assert row["header"]["version"] == 4
    assert row["header"]["flip_sequence"] == 2


def test_nothing_gives_nothing() -> None:
    assert outbox.messages([]) == {}


async def test_a_found_target_goes_to_the_turns_topic_behind_all_that_its_turn_led_to() -> None:
    reader = CountingReader(propositions=["whether tea"])
    [chain] = await chains(MemoryStore("r"), [turn(str(number)) for number in range(1, 6)])
    while not chain.finished:
        await waves.run([chain], reader, Rules(finds=True))
    sent = outbox.messages(chain.outcomes)[4]
    assert topics(sent) == [JOURNAL, TURNS]
    [record] = chain.outcomes[3].found
    assert sent[-1] == outbox.of_record(record)
    assert parse_keyed(sent[-1].key, sent[-1].value) == record
