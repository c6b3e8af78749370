"""How Kafka is reached: one set of client settings for aiokafka and for Faust."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import faust
from aiokafka.errors import KafkaError

from stream.settings import Settings

REQUEST_TIMEOUT_SECONDS = 30.0
STOP_TIMEOUT_SECONDS = 2.0


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

    Raises KafkaError, TimeoutError and OSError where it does not start.
    """
    client = kind(**client_options(settings) | options)
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            await client.start()
        yield client
    finally:
        with suppress(KafkaError, TimeoutError, OSError):
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS):
                await (client.close() if hasattr(client, "close") else client.stop())


def ssl_context(settings: Settings) -> ssl.SSLContext:
    """The TLS context of the brokers: their authorities, and the client's certificate where one is set.

    Raises OSError.
    """
    cafile, certfile, keyfile = settings.broker_cafile, settings.broker_certfile, settings.broker_keyfile
    try:
        context = ssl.create_default_context(cafile=str(cafile) if cafile else None)
        if certfile:
            context.load_cert_chain(str(certfile), str(keyfile) if keyfile else None)
    except OSError as error:
        error.filename = ", ".join(str(file) for file in (cafile, certfile, keyfile) if file)  # it names none
        raise
    return context


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
