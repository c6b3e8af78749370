"""Apache Kafka with the listeners that production has: SASL over TLS, SASL alone, and client certificates."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from deploy.kafka import kafka
from stream.embedded.process import free_port
from stream.settings import Settings
from tests.secured.authority import Authority, Certificate

USER, PASSWORD = "ada", "hush-kafka-8"  # who may do all
# Who may do what README lists, and those who lack a right of it; all under the same password.
FEW, LACKING = "few", ("without-Create", "without-Read", "without-Write", "without-group")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PROTOCOLS = {"SECURED": "SASL_SSL", "BARE": "SASL_PLAINTEXT", "MUTUAL": "SSL"}  # by the listener's name
_MODULES = "org.apache.kafka.common.security"
_SCRAM = f"{_MODULES}.scram.ScramLoginModule required;"
_PLAIN = f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'


class SecuredKafka(kafka.KafkaBroker):
    """One node; its plain listener is for itself, and for looking whether it answers."""

    def __init__(self, authority: Authority) -> None:
        super().__init__(heap="256m")
        self._authority = authority
        self._ports = {name: free_port() for name in PROTOCOLS}

    def at(self, listener: str) -> str:
        """The address of a listener as `VOLTEFACE_BROKER` takes it."""
        return f"kafka://127.0.0.1:{self._ports[listener]}"

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        kafka.resolve()
        properties = folder / "server.properties"
        plain = map(self._line, kafka._properties(folder, port, free_port()))
        properties.write_text("\n".join((*plain, *self._security())), encoding="utf-8")
        (folder / "log4j2.properties").write_text(kafka._LOGGING, encoding="utf-8")
        tool = [*self._command(folder, "kafka.tools.StorageTool"), "format", "-t", kafka._cluster(folder)]
        users = [
            f"--add-scram={each}=[name={user},password={PASSWORD}]"
            for each in MECHANISMS[1:]
            for user in (USER, FEW, *LACKING)
        ]
        kafka._run([*tool, "-c", str(properties), *users], kafka._FORMAT_PATIENCE)
        return [*self._command(folder, "kafka.Kafka"), str(properties)]

    def _line(self, line: str) -> str:
        name = line.partition("=")[0]
        addresses = [f"{name}://127.0.0.1:{port}" for name, port in self._ports.items()]
        added = {
            "listeners": addresses,
            "advertised.listeners": addresses,
            "listener.security.protocol.map": [f"{name}:{kind}" for name, kind in PROTOCOLS.items()],
        }
        return ",".join((line, *added.get(name, ())))

    def _security(self) -> Iterator[str]:
        yield "log.cleaner.dedupe.buffer.size=8388608"  # of 128 MiB by default, half of the heap
        yield "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        yield f"super.users=User:ANONYMOUS;User:{USER};User:client"
        yield "ssl.principal.mapping.rules=RULE:^.*CN=([^,]+).*$/$1/"
        yield "ssl.keystore.type=PEM"
        yield f"ssl.keystore.location={self._authority.issue('kafka', '127.0.0.1').bothfile}"
        yield "ssl.truststore.type=PEM"
        yield f"ssl.truststore.location={self._authority.cafile}"
        yield "listener.name.mutual.ssl.client.auth=required"
        for listener in ("secured", "bare"):
            yield f"listener.name.{listener}.sasl.enabled.mechanisms={','.join(MECHANISMS)}"
            for mechanism in MECHANISMS:
                module = _PLAIN if mechanism == "PLAIN" else _SCRAM
                yield f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config={module}"


def through(
    settings: Settings, server: SecuredKafka, certificate: Certificate, way: tuple[str, str, str]
) -> Settings:
    """The settings of who reaches a server by a way: listener, security and SASL mechanism."""
    listener, security, mechanism = way
    given: dict[str, Any] = {
        "broker": server.at(listener), "broker_security": security, "broker_sasl_mechanism": mechanism
    }  # fmt: skip
    if listener == "MUTUAL":
        given |= {"broker_username": None, "broker_password": None}
        given |= {"broker_certfile": certificate.certfile, "broker_keyfile": certificate.keyfile}
    return msgspec.structs.replace(settings, **given)
