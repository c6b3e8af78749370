"""Apache Kafka with a second listener that clients reach through a relay, however the first is reached."""

from collections.abc import Sequence
from pathlib import Path

from deploy.kafka.kafka import KafkaBroker


class RelayedKafka(KafkaBroker):
    """One node. Who comes by way of `relayed` is told that it stands at `advertised`: a relay's port."""

    def __init__(self, relayed: int, advertised: int) -> None:
        super().__init__()
        self._relayed, self._advertised = relayed, advertised

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        command = super()._prepare(folder, port)
        properties = folder / "server.properties"
        lines = [self._line(line) for line in properties.read_text(encoding="utf-8").splitlines()]
        properties.write_text("\n".join(lines), encoding="utf-8")
        return command

    def _line(self, line: str) -> str:
        name, _, value = line.partition("=")
        added = {
            "listeners": f"RELAYED://127.0.0.1:{self._relayed}",
            "advertised.listeners": f"RELAYED://127.0.0.1:{self._advertised}",
            "listener.security.protocol.map": "RELAYED:PLAINTEXT",
        }
        return f"{name}={value},{added[name]}" if name in added else line
