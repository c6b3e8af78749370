"""How Kafka is reached: one set of client settings for aiokafka and for Faust, and what mends a refusal.

aiokafka's error names the addresses alone; why none of them took us, it only logs. So one who was not taken
asks each broker once more and is told, with the setting that mends it.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import faust
from aiokafka.conn import create_conn
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from stream import header_names
from stream.settings import Settings

header_names.install()

REQUEST_TIMEOUT_SECONDS = 30.0
BOOTSTRAP_SECONDS = 8.0  # of each address: one that stands still must leave time for the others
STOP_TIMEOUT_SECONDS = 2.0
CAUSE_SECONDS = 10.0  # to ask once more

_START = "start it (`volteface up` runs one), or set VOLTEFACE_BROKER"
_USER = (
    "set VOLTEFACE_BROKER_USERNAME and VOLTEFACE_BROKER_PASSWORD as the brokers know them for SASL mechanism"
)
_RIGHTS = "allow this user what README's section on secured servers lists for Kafka"
_SILENCE = (
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    OSError,
    RequestTimedOutError,
    TimeoutError,
)
_DENIED = (ClusterAuthorizationFailedError, GroupAuthorizationFailedError, TopicAuthorizationFailedError)
_TRUST = (
    "set VOLTEFACE_BROKER_CAFILE to a PEM file of the authority that signs the brokers, and in "
    "VOLTEFACE_BROKER the host names that their certificates bear"
)


class NoBroker(KafkaConnectionError):  # type: ignore[misc]  # aiokafka ships no types
    """No broker takes this client: what it met, and the remedy."""

    def __init__(self, found: str, remedy: str) -> None:
        super().__init__(f"{found} -> {remedy}")
        self.found, self.remedy = found, remedy


def in_words(error: Exception) -> str:
    """What kept the broker's answer away, with the remedy where it is known."""
    if isinstance(error, NoBroker):
        return f"{error.found} -> {error.remedy}"
    if remedy := denied(error):
        return f"{error}{remedy}"
    if " -> " in str(error):
        return str(error)
    return f"{error!r}; is the broker reachable?" if isinstance(error, _SILENCE) else repr(error)


def denied(error: object) -> str:
    """What to say behind an error that is for want of a right; "" behind any other."""
    return f" -> {_RIGHTS}" if isinstance(error, _DENIED) else ""


class _Discreet(logging.Filter):
    """At debug aiokafka logs its requests, and in one of them stands the password."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "SaslAuthenticate" not in record.getMessage()


logging.getLogger("aiokafka.conn").addFilter(_Discreet())


def client_options(settings: Settings) -> dict[str, Any]:
    """Keyword arguments of every aiokafka client."""
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "security_protocol": settings.broker_security.upper(),
        "request_timeout_ms": int(REQUEST_TIMEOUT_SECONDS * 1000),
    }
    if "ssl" in settings.broker_security:
        options["ssl_context"] = ssl_context(settings)
    if "sasl" in settings.broker_security:
        options["sasl_mechanism"] = settings.broker_sasl_mechanism
        options["sasl_plain_username"] = settings.broker_username
        options["sasl_plain_password"] = settings.broker_password
    return options


@asynccontextmanager
async def running(kind: Callable[..., Any], settings: Settings, **options: Any) -> AsyncIterator[Any]:
    """A client of aiokafka, started in time, and stopped in time however it went.

    Raises NoBroker and other KafkaErrors, TimeoutError and OSError where it does not start.
    """
    reach = client_options(settings)
    client = kind(**reach | options)
    try:
        await _start(client, settings, reach)
        yield client
    finally:
        with suppress(KafkaError, TimeoutError, OSError):
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                await (client.close() if hasattr(client, "close") else client.stop())


async def _start(client: Any, settings: Settings, reach: Mapping[str, Any]) -> None:
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            await begin(client)
    except KafkaConnectionError as error:
        raise await _told(settings, reach) from error


async def begin(client: Any) -> None:
    """Start a client of aiokafka, which asks its addresses one after the other, each in its own time."""
    inner = client.client if hasattr(client, "client") else client._client
    whole = inner._request_timeout_ms
    inner._request_timeout_ms = int(BOOTSTRAP_SECONDS * 1000)
    try:
        await client.start()
    finally:
        inner._request_timeout_ms = whole


async def _told(settings: Settings, reach: Mapping[str, Any]) -> NoBroker:
    """What the brokers say to a client that starts; that of the first one whose words tell the remedy."""
    servers = settings.bootstrap_servers
    options = {name: value for name, value in reach.items() if name != "bootstrap_servers"}
    refusals = await asyncio.gather(*(_refusal(server, options) for server in servers))
    met = [*zip(servers, refusals, strict=True)]
    server, refusal = next((each for each in met if _remedy(each[1], settings) != _START), met[0])
    if refusal is None:
        return NoBroker(f"{server}: it did not answer, and does now", "try again")
    said = f"{type(refusal).__name__}: {refusal}" if isinstance(refusal, OSError) else str(refusal)
    said = said.split(": <AIOKafka", maxsplit=1)[0].rstrip(" :")
    return NoBroker(f"{server}: {said}", _remedy(refusal, settings))


async def _refusal(server: str, options: Mapping[str, Any]) -> BaseException | None:
    """What a new connection to a broker meets; None where all is well."""
    host, _, port = server.rpartition(":")
    try:
        async with asyncio.timeout(CAUSE_SECONDS):
            connection = await create_conn(host.strip("[]"), int(port), **options)
            try:
                await connection.send(MetadataRequest([]))
            finally:
                await connection.close()
    except (KafkaError, OSError) as error:
        return error.__cause__ if isinstance(error.__cause__, OSError) else error
    return None


def _remedy(refusal: BaseException | None, settings: Settings) -> str:
    """What to set, by what a broker did."""
    if isinstance(refusal, SaslAuthenticationFailed):
        return f"{_USER} {settings.broker_sasl_mechanism} (VOLTEFACE_BROKER_SASL_MECHANISM)"
    if isinstance(refusal, UnsupportedSaslMechanismError):
        return "set VOLTEFACE_BROKER_SASL_MECHANISM to one of these"
    if isinstance(refusal, ssl.SSLCertVerificationError):
        return _TRUST
    if isinstance(refusal, ssl.SSLError) and "ALERT" in str(refusal):
        return "set VOLTEFACE_BROKER_CERTFILE and VOLTEFACE_BROKER_KEYFILE to a certificate that they trust"
    hung_up = isinstance(refusal, KafkaConnectionError) and isinstance(refusal.__cause__, EOFError)
    if hung_up or isinstance(refusal, ssl.SSLError | ConnectionResetError | IllegalSaslStateError):
        return f"set VOLTEFACE_BROKER_SECURITY to what this port speaks; now it is {settings.broker_security}"
    return _START


def ssl_context(settings: Settings) -> ssl.SSLContext:
    """The TLS context of the brokers: their authorities, and the client's certificate where one is set.

    Raises OSError.
    """
    cafile, certfile, keyfile = settings.broker_cafile, settings.broker_certfile, settings.broker_keyfile
    try:
        context = ssl.create_default_context(cafile=str(cafile) if cafile else None)
    except OSError as error:
        raise _unreadable(error, "VOLTEFACE_BROKER_CAFILE to a PEM file", cafile) from error
    if certfile:
        try:
            # Without a password one that is needed would be asked for on the terminal.
            context.load_cert_chain(str(certfile), str(keyfile) if keyfile else None, password="")
        except OSError as error:
            remedy = (
                "VOLTEFACE_BROKER_CERTFILE and VOLTEFACE_BROKER_KEYFILE to PEM files, the key unencrypted"
            )
            raise _unreadable(error, remedy, certfile, keyfile) from error
    return context


def _unreadable(error: OSError, remedy: str, *files: Path | None) -> OSError:
    said = f"{type(error).__name__}: {error.strerror or error}"  # it names no file
    return OSError(f"{', '.join(map(str, files))}: {said} -> set {remedy}")


def faust_credentials(settings: Settings) -> Any:
    """The same for Faust; None where the connection is plain."""
    context = ssl_context(settings) if "ssl" in settings.broker_security else None
    if "sasl" in settings.broker_security:
        return faust.SASLCredentials(
            username=settings.broker_username,
            password=settings.broker_password,
            mechanism=settings.broker_sasl_mechanism,
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context else None
