"""What Kafka refuses ends in time, with the setting that mends it, and without the password."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiokafka.admin import AIOKafkaAdminClient

from stream.doctor import broker
from stream.kafka import NoBroker, running
from stream.settings import Settings
from tests.secured.authority import Authority, Certificate
from tests.secured.commands import AGENT, DEAD_LETTERS, REBUILD, RUNS, discreet, ran
from tests.secured.conftest import OTHERS, USUAL
from tests.secured.kafka_server import SecuredKafka, through

# What is wrong, and what the error must name. A capital word stands for a listener's address.
WRONG: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "password": (
        {"broker_password": "hush-wrong"},
        ("SaslAuthenticationFailed", "VOLTEFACE_BROKER_USERNAME and VOLTEFACE_BROKER_PASSWORD"),
    ),
    "user": (
        {"broker_username": "eve", "broker_sasl_mechanism": "PLAIN"},
        ("Invalid username", "VOLTEFACE_BROKER_USERNAME"),
    ),
    "no authority": ({"broker_cafile": None}, ("CERTIFICATE_VERIFY_FAILED", "VOLTEFACE_BROKER_CAFILE")),
    "other authority": (
        {"broker_cafile": "OTHER"},
        ("CERTIFICATE_VERIFY_FAILED", "VOLTEFACE_BROKER_CAFILE"),
    ),
    "other host": ({"broker": "SECURED of localhost"}, ("mismatch", "set VOLTEFACE_BROKER_CAFILE")),
    "plain to TLS": (
        {"broker_security": "plaintext"},
        ("closed", "set VOLTEFACE_BROKER_SECURITY", "now it is plaintext"),
    ),
    "TLS to plain": ({"broker": "BARE"}, ("set VOLTEFACE_BROKER_SECURITY", "now it is sasl_ssl")),
    "no SASL": ({"broker_security": "ssl"}, ("set VOLTEFACE_BROKER_SECURITY", "now it is ssl")),
    "no certificate": (
        {"broker": "MUTUAL", "broker_security": "ssl"},
        ("CERTIFICATE", "VOLTEFACE_BROKER_CERTFILE and VOLTEFACE_BROKER_KEYFILE"),
    ),
    "dead port": (
        {"broker": "kafka://127.0.0.1:1"},
        ("Connect call failed", "start it", "VOLTEFACE_BROKER"),
    ),
}
SECONDS = 15.0  # a refusal takes milliseconds; a machine at work may add to them


@pytest.fixture(params=WRONG)
def wrong(
    request: pytest.FixtureRequest, settings: Settings, secured_kafka: SecuredKafka, tmp_path: Path
) -> tuple[Settings, tuple[str, ...]]:
    given, named = WRONG[request.param]
    given = dict(given)
    if given.get("broker_cafile") == "OTHER":
        given["broker_cafile"] = Authority(tmp_path).cafile
    listener, _, host = given.get("broker", "").partition(" of ")
    if listener.isupper():
        given["broker"] = secured_kafka.at(listener).replace("127.0.0.1", host or "127.0.0.1")
    return msgspec.structs.replace(settings, **given), named


async def test_a_client_and_doctor_name_the_setting(
    wrong: tuple[Settings, tuple[str, ...]], caplog: pytest.LogCaptureFixture
) -> None:
    settings, named = wrong
    async with asyncio.timeout(SECONDS):
        with pytest.raises(NoBroker) as refusal:
            async with running(AIOKafkaAdminClient, settings):
                pass
        check = (await broker.examine(settings))[0]
    for said in (str(refusal.value), f"{check.found} {check.remedy}"):
        assert [part for part in named if part not in discreet(said)] == [], said
    assert (check.name, check.status) == ("broker", "failed")
    discreet(caplog.text)


async def test_every_command_names_it_on_its_last_line(settings: Settings) -> None:
    wrong = msgspec.structs.replace(settings, broker_password="hush-wrong")
    ended = await asyncio.gather(
        ran(wrong, AGENT), ran(wrong, REBUILD), ran(wrong, RUNS, "list"), ran(wrong, DEAD_LETTERS, "list")
    )
    for status, said in ended:
        last = said.splitlines()[-1]
        assert [part for part in ("volteface ", "VOLTEFACE_BROKER_PASSWORD") if part not in last] == [], said
        assert status == 1


async def test_no_password_is_logged_at_debug(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    plain = msgspec.structs.replace(settings, broker_sasl_mechanism="PLAIN")
    with caplog.at_level(logging.DEBUG):
        async with running(AIOKafkaAdminClient, plain) as admin:
            await admin.list_topics()
    assert "Request to" in caplog.text
    discreet(caplog.text)


@pytest.mark.parametrize("way", USUAL + OTHERS, ids="-".join)
async def test_doctor_finds_every_way(
    settings: Settings,
    secured_kafka: SecuredKafka,
    client_certificate: Certificate,
    way: tuple[str, str, str],
) -> None:
    reached = through(settings, secured_kafka, client_certificate, way)
    found = {check.name: check for check in await broker.examine(reached)}
    assert (found["broker"].status, found["idempotent producer"].status) == ("ok", "ok"), found


async def test_files_that_cannot_be_read_are_named_and_nothing_is_asked(
    settings: Settings, client_certificate: Certificate, authority: Authority, tmp_path: Path
) -> None:
    encrypted = tmp_path / "encrypted.key"
    await asyncio.to_thread(encrypt, client_certificate.keyfile, encrypted)
    certified = {"broker_certfile": client_certificate.certfile}
    for given, named in (
        (
            {"broker_cafile": tmp_path / "none.pem"},
            ("none.pem", "FileNotFoundError", "VOLTEFACE_BROKER_CAFILE"),
        ),
        ({"broker_cafile": client_certificate.keyfile}, ("client.key", "VOLTEFACE_BROKER_CAFILE")),
        (certified | {"broker_keyfile": encrypted}, ("encrypted.key", "unencrypted")),
        (certified | {"broker_keyfile": authority.cafile}, ("ca.pem", "VOLTEFACE_BROKER_KEYFILE")),
    ):
        with pytest.raises(OSError, match="->") as refusal:
            async with running(AIOKafkaAdminClient, msgspec.structs.replace(settings, **given)):
                pass
        assert [part for part in named if part not in repr(refusal.value)] == [], refusal.value


def encrypt(key: Path, to: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form

    loaded = form.load_pem_private_key(key.read_bytes(), password=None)
    locked = form.BestAvailableEncryption(b"x")
    to.write_bytes(loaded.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, locked))
