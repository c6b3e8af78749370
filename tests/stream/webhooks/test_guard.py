import asyncio
import ipaddress
import socket
from typing import Any

import pytest

from stream.webhooks import guard
from stream.webhooks.guard import Forbidden, PublicResolver, check, public

PUBLIC = ["93.184.216.34", "8.8.8.8", "2606:4700::1111"]
OTHERS = [
    "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1",
    "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_internet(address: str) -> None:
    assert public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", OTHERS)
def test_what_is_not_the_public_internet(address: str) -> None:
    assert not public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "", "nonsense", "ftp://example.org/", "http://example.org/", "https://", "https:///path", "https://a:b@example.org/",
        "https://example.org/#part", "https://example.org:port/", "https://[::1", "https://127.0.0.1/", "https://[::1]/",
        "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0177.0.0.1/", "https://169.254.169.254/",
        "https://example.org/" + "x" * 2000, "file:///etc/passwd", "//example.org/",
    ],
)  # fmt: skip
def test_what_is_no_receiver(url: str) -> None:
    with pytest.raises(Forbidden, match=r"^url: "):
        check(url)


def test_a_receiver() -> None:
    assert str(check("https://hooks.example.org:8443/in?x=1")) == "https://hooks.example.org:8443/in?x=1"
    assert check("http://127.0.0.1:80/in", private=True).port == 80
    with pytest.raises(Forbidden):
        check("ftp://127.0.0.1/in", private=True)


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names lead to."""
    names: dict[str, list[str]] = {}

    async def found(self: object, host: str, port: int, family: Any) -> list[dict[str, Any]]:
        return [
            {"hostname": host, "host": each, "port": port, "family": family, "proto": 0, "flags": 0}
            for each in names[host]
        ]

    monkeypatch.setattr(guard.ThreadedResolver, "resolve", found)
    return names


async def test_a_name_leads_to_its_public_addresses_alone(named: dict[str, list[str]]) -> None:
    named["mixed"] = ["10.0.0.1", "93.184.216.34", "::1"]
    found = await PublicResolver().resolve("mixed", 443, socket.AF_UNSPEC)
    assert [each["host"] for each in found] == ["93.184.216.34"]


@pytest.mark.parametrize("address", OTHERS)
async def test_a_name_that_leads_inside_leads_nowhere(named: dict[str, list[str]], address: str) -> None:
    named["inside"] = [address]
    async with asyncio.timeout(5):
        with pytest.raises(OSError, match="none of them on the public internet"):
            await PublicResolver().resolve("inside", 443, socket.AF_UNSPEC)
