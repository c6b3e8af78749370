"""The client against a server that plays faults: what is asked again, what is not, and who is to blame."""

import threading
import time
from typing import Any

import pytest

from models.reader import ReaderUnavailable
from models.remote import wire
from models.remote.client import RemoteClient, RemoteConfig, unwrapped
from models.remote.failures import Refused
from models.remote.spent import Spent
from tests.models.remote.conftest import Open
from tests.models.remote.faulty_server import OBSERVED, FaultyServer, completion, cut, refused, slow


def complete(client: RemoteClient, *bodies: dict[str, Any]) -> list[wire.Completion]:
    return unwrapped(client.each(bodies or ({},), client.complete))


def test_what_is_sent(server: FaultyServer, opened: Open) -> None:
    complete(opened(server.url, model="adapter-1", key="s3cret"), {"max_tokens": 3})
    [(headers, body)] = server.calls
    assert headers["Authorization"] == "Bearer s3cret"
    assert body == {"path": "/v1/chat/completions", "model": "adapter-1", "max_tokens": 3}


def test_without_a_key_none_is_sent(server: FaultyServer, opened: Open) -> None:
    complete(opened(server.url + "/"))
    [(headers, body)] = server.calls
    assert "Authorization" not in headers
    assert body["path"] == "/v1/chat/completions"


@pytest.mark.parametrize(
    "fault",
    [
        refused(429),
        refused(500),
        refused(503),
        cut,
        lambda _: (200, {}, b"<html>"),
        lambda _: (200, {}, b'{"choices": []}'),
    ],
)
def test_a_passing_fault_is_asked_again(server: FaultyServer, opened: Open, fault: Any) -> None:
    server.answers = [fault, fault]
    [answer] = complete(opened(server.url))
    assert answer.choices[0].message.content == OBSERVED
    assert len(server.calls) == 3


@pytest.mark.parametrize("fault", [refused(503), cut])
def test_a_lasting_fault_is_an_outage(server: FaultyServer, opened: Open, fault: Any) -> None:
    server.default = fault
    with pytest.raises(ReaderUnavailable) as raised:
        complete(opened(server.url, attempts=3))
    assert len(server.calls) == 3
    assert "quoted words" not in str(raised.value)


def test_nobody_listens(opened: Open) -> None:
    with pytest.raises(ReaderUnavailable):
        complete(opened("http://127.0.0.1:1/v1"))


def test_all_calls_are_quiet_for_as_long_as_the_server_asks(server: FaultyServer, opened: Open) -> None:
    server.answers = [refused(429, Retry_After="1")]
    client = opened(server.url, parallel=1)
    complete(client, {}, {})
    assert server.times[1] - server.times[0] >= 1.0
    assert len(server.calls) == 3


def test_quiet_beyond_a_calls_time_is_an_outage_that_says_how_long(
    server: FaultyServer, opened: Open
) -> None:
    server.default = refused(429, Retry_After="20")
    client = opened(server.url, seconds=2)
    with pytest.raises(ReaderUnavailable) as raised:
        complete(client)
    assert raised.value.retry_after == 20
    with pytest.raises(ReaderUnavailable) as raised:
        complete(client)
    assert raised.value.retry_after == pytest.approx(20, abs=1)
    assert len(server.calls) == 1


def test_a_slow_answer_is_an_outage_in_time_and_ends_the_others(server: FaultyServer, opened: Open) -> None:
    server.answers = [slow(3.0)]
    server.default = slow(30.0)
    began = time.monotonic()
    with pytest.raises(ReaderUnavailable, match="no answer within"):
        complete(opened(server.url, seconds=0.3, parallel=2), *[{}] * 6)
    assert time.monotonic() - began < 2.0
    assert len(server.calls) == 2


@pytest.mark.parametrize(
    ("status", "named"),
    [
        (401, "VOLTEFACE_REMOTE_KEY"),
        (402, "VOLTEFACE_REMOTE_KEY"),
        (404, "VOLTEFACE_REMOTE_MODEL"),
        (301, "VOLTEFACE_REMOTE_URL"),
        (405, "VOLTEFACE_REMOTE_URL"),
    ],
)
def test_a_wrong_setting_is_named_and_waited_for(
    server: FaultyServer, opened: Open, status: int, named: str
) -> None:
    server.default = refused(status, "model_not_found")
    with pytest.raises(ReaderUnavailable, match=f"{status}, model_not_found.*{named}") as raised:
        complete(opened(server.url))
    assert raised.value.retry_after == RemoteConfig(url="", model="").config_pause
    assert len(server.calls) == 1


@pytest.mark.parametrize("status", [400, 403, 413, 422])
def test_what_may_be_one_calls_own_fault_is_told_to_who_asked(
    server: FaultyServer, opened: Open, status: int
) -> None:
    server.answers = [refused(status, "context_length_exceeded")]
    client = opened(server.url, parallel=1)
    bad, good = client.each([{}, {}], client.complete)
    assert isinstance(bad, Refused)
    assert str(bad) == f"status {status}, context_length_exceeded"
    assert isinstance(good, wire.Completion)


def test_a_servers_word_that_is_a_sentence_is_not_repeated(server: FaultyServer, opened: Open) -> None:
    server.answers = [refused(400, "the prompt 'I love trams' is too long"), refused(400, "我一直都喜欢电车")]
    client = opened(server.url)
    for bad in (*client.each([{}], client.complete), *client.each([{}], client.complete)):
        assert str(bad) == "status 400"


def test_an_answer_without_end_is_cut(server: FaultyServer, opened: Open) -> None:
    server.default = "x" * 10_000
    with pytest.raises(ReaderUnavailable, match="more than 5000 bytes"):
        complete(opened(server.url, answer_bytes=5000))


def test_calls_under_way_are_bounded(server: FaultyServer, opened: Open) -> None:
    server.default = slow(0.05)
    complete(opened(server.url, parallel=3), *[{}] * 12)
    assert len(server.calls) == 12
    assert server.most == 3


def test_calls_a_minute_are_bounded(server: FaultyServer, opened: Open) -> None:
    complete(opened(server.url, per_minute=600), *[{}] * 5)
    assert server.times[-1] - server.times[0] >= 0.35


def test_a_pace_that_is_slower_than_a_call_may_take_still_reads_all(
    server: FaultyServer, opened: Open
) -> None:
    assert len(complete(opened(server.url, per_minute=120, seconds=0.4), *[{}] * 4)) == 4


def test_calls_that_ended_in_line_cost_the_next_ones_no_time(server: FaultyServer, opened: Open) -> None:
    client = opened(server.url, per_minute=200, batch_seconds=1.0)
    with pytest.raises(ReaderUnavailable, match="not read whole"):
        complete(client, *[{}] * 16)
    assert complete(client), "within its own second, though eight stood in line"


def test_no_servers_word_is_taken_for_ever(server: FaultyServer, opened: Open) -> None:
    server.answers = [refused(429, Retry_After="9" * 400)]
    client = opened(server.url, longest_quiet=0.3, seconds=0.2)
    with pytest.raises(ReaderUnavailable) as raised:
        complete(client)
    assert raised.value.retry_after == 0.3
    time.sleep(0.3)
    assert complete(client)


def test_what_was_spent_is_counted(server: FaultyServer, opened: Open) -> None:
    server.answers = [OBSERVED, lambda _: completion(OBSERVED, usage=None), refused(500), OBSERVED]
    client = opened(server.url, parallel=1)
    complete(client, {}, {}, {})
    assert client.spent == Spent(calls=3, prompt_tokens=200, cached_tokens=120, completion_tokens=20)


def test_a_batch_has_a_time_of_its_own(server: FaultyServer, opened: Open) -> None:
    server.default = slow(5.0)
    with pytest.raises(ReaderUnavailable, match="not read whole"):
        complete(opened(server.url, batch_seconds=0.2))


def test_closing_ends_the_thread_and_later_calls(server: FaultyServer, opened: Open) -> None:
    before = threading.active_count()
    client = opened(server.url)
    complete(client)
    client.close()
    client.close()
    with pytest.raises(ReaderUnavailable, match="closed"):
        complete(client)
    names = [thread.name for thread in threading.enumerate()]
    assert threading.active_count() <= before + 1, names  # the played server's own


def test_closing_ends_what_is_under_way(server: FaultyServer, opened: Open) -> None:
    server.default = slow(5.0)
    client = opened(server.url, attempts=1)
    ended: list[Exception] = []

    def ask() -> None:
        with pytest.raises(ReaderUnavailable) as raised:
            complete(client, {}, {})
        ended.append(raised.value)

    asking = threading.Thread(target=ask)
    asking.start()
    while not server.calls:
        time.sleep(0.01)
    client.close()
    asking.join(2.0)
    assert len(ended) == 1


def test_no_key_is_printed() -> None:
    assert "s3cret" not in repr(RemoteConfig(url="http://h", model="m", key="s3cret"))
