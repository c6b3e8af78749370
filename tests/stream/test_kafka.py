"""How clients are set up, begun and ended."""

import asyncio
import socket
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, NotEnoughReplicasError

from stream import kafka
from stream.admin import Admin
from stream.kafka import NoBroker, client_options, faust_credentials, in_words, running
from stream.settings import Settings

SASL: dict[str, Any] = {
    "broker_sasl_mechanism": "SCRAM-SHA-512",
    "broker_username": "ada",
    "broker_password": "pw",
}


def test_a_plain_connection_has_no_credentials() -> None:
    assert client_options(Settings(broker="kafka://a:1;b:2")) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "PLAINTEXT",
        "request_timeout_ms": 30_000,
    }
    assert faust_credentials(Settings()) is None


@pytest.mark.parametrize("security", ["ssl", "sasl_plaintext", "sasl_ssl"])
def test_each_security_brings_what_it_needs_and_no_more(security: Any) -> None:
    settings = Settings(broker_security=security, **SASL)
    options = client_options(settings)
    assert options["security_protocol"] == security.upper()
    sasl = {name: value for name, value in options.items() if name.startswith("sasl")}
    assert sasl == (
        {
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "ada",
            "sasl_plain_password": "pw",
        }
        if "sasl" in security
        else {}
    )
    context = options.get("ssl_context")
    assert (context is not None) is ("ssl" in security.removeprefix("sasl"))
    if context is not None:
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_faust_is_given_the_same() -> None:
    assert isinstance(faust_credentials(Settings(broker_security="ssl")), faust.SSLCredentials)
    found = faust_credentials(Settings(broker_security="sasl_ssl", **SASL))
    assert (found.username, found.password, found.mechanism.value) == ("ada", "pw", "SCRAM-SHA-512")
    assert isinstance(found.ssl_context, ssl.SSLContext)


@pytest.mark.parametrize("named", [{"broker_cafile": "ca.pem"}, {"broker_certfile": "cert.pem"}])
def test_a_file_that_is_no_certificate_is_named(named: dict[str, str], tmp_path: Path) -> None:
    [(setting, name)] = named.items()
    given: dict[str, Any] = {setting: tmp_path / name}
    with pytest.raises(OSError, match=name):
        client_options(Settings(broker_security="ssl", **given))


class Client:
    """A client that hangs where it is told to."""

    def __init__(self, *, hangs: str = "", **options: Any) -> None:
        self.hangs, self.options, self.stopped = hangs, options, False
        self._client = SimpleNamespace(_request_timeout_ms=options["request_timeout_ms"])

    async def start(self) -> None:
        await self._hang("start")

    async def stop(self) -> None:
        self.stopped = True
        await self._hang("stop")

    async def _hang(self, at: str) -> None:
        if self.hangs == at:
            await asyncio.Event().wait()


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "REQUEST_TIMEOUT_SECONDS", 0.01)
    monkeypatch.setattr(kafka, "STOP_TIMEOUT_SECONDS", 0.01)


async def test_a_client_gets_its_options_and_is_stopped_whatever_happens() -> None:
    with pytest.raises(KeyError):
        async with running(Client, Settings(), linger_ms=3) as client:
            assert client.options == {**client_options(Settings()), "linger_ms": 3}
            raise KeyError
    assert client.stopped


@pytest.mark.usefixtures("_quick")
async def test_a_start_that_hangs_ends_in_time_and_is_stopped() -> None:
    made: list[Client] = []

    def client(**options: Any) -> Client:
        made.append(Client(hangs="start", **options))
        return made[0]

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5), running(client, Settings()):
            pass
    assert made[0].stopped


@pytest.mark.usefixtures("_quick")
async def test_a_stop_that_hangs_or_fails_hides_nothing() -> None:
    class Failing(Client):
        async def stop(self) -> None:
            raise KafkaConnectionError

    for kind in (Client, Failing):
        async with asyncio.timeout(5):
            async with running(kind, Settings(), hangs="stop"):
                pass


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NoBroker("here: refused", "set it"), "here: refused -> set it"),
        (OSError("ca.pem: no such file -> set FILE"), "ca.pem: no such file -> set FILE"),
        (TimeoutError(), "TimeoutError(); is the broker reachable?"),
        (NotEnoughReplicasError(), "NotEnoughReplicasError()"),
    ],
)
def test_words_end_with_what_to_do(error: Exception, words: str) -> None:
    assert in_words(error) == words


async def test_an_address_that_stands_still_leaves_time_for_the_others(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "BOOTSTRAP_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        settings = Settings(broker=f"kafka://127.0.0.1:{mute.getsockname()[1]};{broker}")
        for kind in (Admin, AIOKafkaProducer):
            async with asyncio.timeout(10), running(kind, settings) as client:
                inner = client.client if hasattr(client, "client") else client._client
                assert inner._request_timeout_ms == kafka.REQUEST_TIMEOUT_SECONDS * 1000
