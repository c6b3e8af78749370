"""The engine against a server that is broken, hostile or another thing: bounded, named, no leak."""

import asyncio
import gzip
import logging
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import structlog

from models.language.settings import InvalidSetting, ReaderSettings
from models.reader import ObserveRequest, ReaderRejected, ReaderUnavailable
from models.remote.engine import RemoteEngine, client_from
from models.remote.forms import Unreadable
from tests import tcp
from tests.models.remote.conftest import Open
from tests.models.remote.faulty_server import OBSERVED, FaultyServer, completion, refused

Ask = Callable[..., ObserveRequest]

KEY, TURN = "s3cret-key", "words of one turn"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n"


@asynccontextmanager
async def saying(*parts: bytes) -> AsyncIterator[str]:
    """A server that sends these bytes to whoever comes, and hangs up."""

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:  # of an answer beyond what is taken the rest is never read
            writer.write(part)
            await writer.drain()

    async with tcp.serving(say) as port:
        yield f"http://127.0.0.1:{port}/v1"


async def outage(url: str, opened: Open, ask: Ask) -> ReaderUnavailable:
    engine = RemoteEngine(opened(url, key=KEY, attempts=2, seconds=20.0, answer_bytes=200_000))
    with pytest.raises(ReaderUnavailable) as raised:
        await asyncio.to_thread(engine.observe, [ask(TURN)])
    told = "".join(traceback.format_exception(raised.value))
    assert KEY not in told
    assert TURN not in told
    return raised.value


@pytest.mark.parametrize(
    "parts",
    [
        [b""],
        [b"\x16\x03\x01\x02\x00\x01\x00"],
        [b"SSH-2.0-OpenSSH_9.6\r\n"],
        [HEAD + b"\r\n" + b'{"choices": ['],
        [HEAD + b"X: " + b"x" * 100_000 + b"\r\n\r\n"],
        [HEAD + b"Content-Encoding: gzip\r\n\r\n" + b"no gzip at all" * 100],
        [HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"],
        [b"HTTP/1.1 999 Whatever\r\nContent-Length: 0\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b'data: {"choices": []}\n\n'],
    ],
    ids=lambda parts: str(parts[0])[-40:],
)
async def test_what_speaks_no_http_or_half_of_it_is_an_outage(
    opened: Open, ask: Ask, parts: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as logs:
        async with saying(*parts) as url:
            await outage(url, opened, ask)
    assert KEY not in f"{logs}{caplog.text}"
    assert TURN not in f"{logs}{caplog.text}"


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_without_end_is_cut_though_it_was_packed(
    opened: Open, ask: Ask, packed: bool
) -> None:
    body = gzip.compress(b" " * 300_000_000, 1) if packed else b" " * 5_000_000
    head = b"HTTP/1.1 200 OK\r\n" + (b"Content-Encoding: gzip\r\n" if packed else b"")
    async with saying(head + b"\r\n", *(body[at : at + 65536] for at in range(0, len(body), 65536))) as url:
        assert "more than 200000 bytes" in str(await outage(url, opened, ask))


async def test_a_server_that_does_not_speak_tls_is_an_outage(
    server: FaultyServer, opened: Open, ask: Ask
) -> None:
    assert "SSL" in str(await outage(server.url.replace("http://", "https://"), opened, ask))


def test_a_redirect_is_not_followed_with_the_key(server: FaultyServer, opened: Open, ask: Ask) -> None:
    other = server.url.replace("127.0.0.1", "localhost")
    server.default = refused(307, Location=f"{other}/chat/completions")
    with pytest.raises(ReaderUnavailable, match="VOLTEFACE_REMOTE_URL"):
        RemoteEngine(opened(server.url, key=KEY)).observe([ask()])
    assert len(server.calls) == 1


def test_another_content_type_is_read_all_the_same(server: FaultyServer, opened: Open, ask: Ask) -> None:
    status, _, body = completion(OBSERVED)
    server.default = lambda _: (status, {"Content-Type": "text/html; charset=latin-1"}, body)
    assert RemoteEngine(opened(server.url)).observe([ask()])


@pytest.mark.parametrize(
    ("code", "error"), [(400, ReaderRejected), (429, ReaderUnavailable), (401, ReaderUnavailable)]
)
def test_an_error_in_an_answer_of_200_is_that_error(
    server: FaultyServer, opened: Open, ask: Ask, code: int, error: type[Exception]
) -> None:
    said = b'{"error": {"code": %d, "message": "quoted words"}}' % code
    server.default = lambda body: (
        (200, {}, said) if "vile" in body["messages"][-1]["content"] else completion(OBSERVED)
    )
    with pytest.raises(error, match=str(code)) as raised:
        RemoteEngine(opened(server.url, attempts=1)).observe([ask("vile")])
    assert "quoted" not in str(raised.value)


def test_an_answer_of_nothing_but_brackets_is_no_answer_of_its_form(
    server: FaultyServer, opened: Open, ask: Ask
) -> None:
    deep = OBSERVED[:-1] + ', "more": ' + "[" * 20_000 + "]" * 20_000 + "}"
    server.answers = [deep]
    assert RemoteEngine(opened(server.url)).observe([ask()]), "asked again, as for any other form"
    server.default = deep
    with pytest.raises(Unreadable):
        RemoteEngine(opened(server.url)).observe([ask()])


def test_a_server_that_says_the_key_again_is_not_repeated(
    server: FaultyServer, opened: Open, ask: Ask
) -> None:
    server.default = refused(401, f"bad_{KEY}")
    with structlog.testing.capture_logs() as logs, pytest.raises(ReaderUnavailable, match="401") as raised:
        RemoteEngine(opened(server.url, key=KEY)).observe([ask()])
    assert KEY not in f"{logs}{raised.value}"


@pytest.mark.parametrize("key", ["a-key\n", " a-key", "a\r\nX-Other: 1", "ключ", "a\x00b"])
def test_a_key_that_no_header_takes_is_refused_when_the_engine_is_made(key: str) -> None:
    with pytest.raises(InvalidSetting, match="remote_key") as raised:
        client_from(ReaderSettings(remote_url="http://h/v1", remote_model="m", remote_key=key))
    assert key.strip() not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://maya:pa55@h/v1", KEY),
        ("ftp://maya:pa55@h/v1", None),
        ("h:8000/v1", None),
        ("http://[h", None),
    ],
)
def test_an_address_that_serves_no_call_is_refused_when_the_engine_is_made(url: str, key: str | None) -> None:
    with pytest.raises(InvalidSetting, match="remote_url") as raised:
        client_from(ReaderSettings(remote_url=url, remote_model="m", remote_key=key))
    assert "pa55" not in str(raised.value)
    assert KEY not in str(raised.value)
