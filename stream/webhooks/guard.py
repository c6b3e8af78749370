"""Who may be sent to: addresses on the public internet, whatever a host name leads to at that moment (SSRF).

The addresses are checked where the connection is made, not before: a name may be resolved anew in between.
"""

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

LONGEST_URL = 2000
SCHEMES = ("https",)
OPEN_SCHEMES = ("https", "http")  # where private networks are allowed, too


class Forbidden(ValueError):
    """A receiver that may not be sent to; says why, and the remedy."""


def check(url: str, *, private: bool = False) -> URL:
    """The receiver's address. Raises Forbidden.

    `private`: the operator allows plain HTTP and addresses of private networks, for receivers beside it.
    """
    schemes = OPEN_SCHEMES if private else SCHEMES
    try:
        parsed = URL(url)
        host, port = parsed.host, parsed.port
    except ValueError:
        raise Forbidden("url: it is no URL; write https://host/path") from None
    if parsed.scheme not in schemes or not host or port is None or len(url) > LONGEST_URL:
        raise Forbidden(f"url: write {' or '.join(f'{each}://host/path' for each in schemes)}, not longer")
    if parsed.user is not None or parsed.password is not None or parsed.fragment:
        raise Forbidden("url: it has neither user nor fragment; the signature says who sends")
    if not private and (literal := _address(host)) is not None and not public(literal):
        raise Forbidden("url: its address is not on the public internet")
    return parsed


class PublicResolver(AbstractResolver):
    """Resolves names to public addresses alone."""

    def __init__(self) -> None:
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses that may be sent to. Raises OSError where there is none."""
        found = await self._inner.resolve(host, port, family)
        allowed = [each for each in found if public(ipaddress.ip_address(each["host"]))]
        if not allowed:
            raise OSError(None, f"{len(found)} addresses, none of them on the public internet")
        return allowed

    async def close(self) -> None:
        """Nothing is held."""
        await self._inner.close()


def public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is on the public internet, also where it stands inside another one."""
    return address.is_global and not address.is_multicast and all(map(public, _within(address)))


def _within(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Sequence[ipaddress.IPv4Address]:
    """IPv4 addresses to which an IPv6 address leads: mapped, 6to4 (RFC 3056), Teredo, NAT64 (RFC 6052)."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    teredo = address.teredo or ()
    nat64 = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
    return [each for each in (address.ipv4_mapped, address.sixtofour, nat64, *teredo) if each is not None]


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def _address(host: str) -> Any:
    """The address that a host is, not as its name; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return _ancient(host)


def _ancient(host: str) -> Any:
    """Forms that the C library reads as addresses: 127.1, 0x7f000001, 2130706433."""
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, UnicodeEncodeError):
        return None
