"""A call of doctor to an HTTP server: within a time, to that address alone, with as much as is asked for."""

import asyncio

import aiohttp

CALL_SECONDS = 3.0


async def get(url: str, most: int, key: str | None = None) -> tuple[int, bytes]:
    """The status, and the body up to about `most` bytes. Raises what aiohttp does."""
    timeout = aiohttp.ClientTimeout(total=CALL_SECONDS)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        asyncio.timeout(CALL_SECONDS),
        aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        return response.status, await _read(response, most)


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """All of it, as far as it is taken: `read` alone ends with what has arrived so far."""
    read = bytearray()
    async for chunk in response.content.iter_any():
        read += chunk
        if len(read) > most:
            break
    return bytes(read)
