"""Keys and ids: injective escaping, canonical Kafka keys, and names that cannot break a Redis hash tag."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker import keys

# Names that hold every separator of every key beside ordinary letters.
names = st.text(
    st.one_of(st.sampled_from("/%{}:.~-_ \x00é猫"), st.characters(exclude_categories=["Cs"])), max_size=8
)

PARTS = ("tenant", "run", "room", "holder", "t-1", "m-1", 3, "flipped", "support", "oppose", "create/m-1/3")


@given(names, names)
def test_escaping_is_injective(one: str, other: str) -> None:
    assert (keys.escape(one) == keys.escape(other)) is (one == other)
    assert re.fullmatch(r"[A-Za-z0-9._~%-]*", keys.escape(one))


@given(st.lists(names, min_size=1, max_size=4), st.lists(names, min_size=1, max_size=4))
def test_joining_is_injective(one: list[str], other: list[str]) -> None:
    assert (keys.joined(*one) == keys.joined(*other)) is (one == other)


@given(names, names)
def test_a_conversation_key_reads_back(tenant: str, conversation: str) -> None:
    assert keys.parse_conversation_key(keys.conversation_key(tenant, conversation)) == (tenant, conversation)


@given(st.binary(max_size=20) | st.from_regex(rb"[a-c%2fF/]{0,8}", fullmatch=True))
def test_any_bytes_are_a_canonical_key_or_refused(raw: bytes) -> None:
    try:
        tenant, conversation = keys.parse_conversation_key(raw)
    except keys.MalformedKey:
        return
    assert keys.conversation_key(tenant, conversation) == raw


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"room", id="no-tenant"),
        pytest.param(b"a/b/c", id="three-parts"),
        pytest.param(b"a/%2f", id="small-hex"),
        pytest.param(b"a/%61", id="escaped-letter"),
        pytest.param(b"a/b c", id="bare-space"),
        pytest.param(b"a/%ff", id="not-utf8"),
        pytest.param(b"a/%zz", id="not-hex"),
    ],
)
def test_a_key_that_is_not_canonical_is_malformed(raw: bytes) -> None:
    with pytest.raises(keys.MalformedKey, match="percent-encoded"):
        keys.parse_conversation_key(raw)


def test_a_thread_is_a_conversation_of_its_own() -> None:
    assert keys.conversation_key("default", "channel/thread") == b"default/channel%2Fthread"


@given(names, names, names)
def test_no_name_breaks_the_redis_hash_tag(run: str, tenant: str, conversation: str) -> None:
    key = keys.redis_key("volteface", run, tenant, conversation, "ledger")
    tag = key[key.index("{") + 1 : key.index("}")]  # what Redis Cluster hashes: the first { to the next }
    assert tag == keys.joined(tenant, conversation)
    assert key.count("{") == key.count("}") == 1


@given(names, names)
def test_a_conversations_redis_keys_share_their_hash_tag(tenant: str, conversation: str) -> None:
    made = [keys.redis_key("volteface", "live", tenant, conversation, part) for part in ("header", "ledger")]
    assert len({key[key.index("{") : key.index("}")] for key in made}) == 1
    assert len(set(made)) == 2


@pytest.mark.parametrize("position", range(len(PARTS)))
def test_an_event_id_differs_when_any_part_differs(position: int) -> None:
    changed = list(PARTS)
    changed[position] = 4 if position == 6 else "another"
    assert keys.event_id(*PARTS) != keys.event_id(*changed)  # type: ignore[arg-type]


@given(names, names, names, names)
def test_an_event_id_keeps_its_parts_apart(a: str, b: str, c: str, d: str) -> None:
    one = keys.event_id(a, b, *PARTS[2:])
    other = keys.event_id(c, d, *PARTS[2:])
    assert (one == other) is ((a, b) == (c, d))


def test_ids_have_the_documented_shape_and_never_change() -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", keys.event_id(*PARTS))
    assert keys.target_id("default", "room-7", "The debate") == keys.target_id(
        "default", "room-7", "The debate"
    )
    assert re.fullmatch(r"t-[0-9a-f]{12}", keys.target_id("default", "room-7", "The debate"))
    assert keys.record_id("create", "m/1", 0) == "create/m%2F1/0"
    assert keys.event_source("default", "live", "room 7") == "volteface/default/live/room%207"


def test_a_target_id_depends_on_tenant_conversation_and_proposition() -> None:
    made = {keys.target_id(*parts) for parts in itertools.product(("a", "b"), repeat=3)}
    assert len(made) == 8


def test_a_run_has_topics_and_state_keys_of_its_own() -> None:
    assert keys.topic("volteface", "live", "turns") == "volteface.turns"
    assert keys.topic("volteface", "trial", "turns") == "volteface.trial.turns"
    assert keys.holder_key("default", "room", "u/1", "t-1") == b"default/room/u%2F1/t-1"
