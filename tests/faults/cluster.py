"""Apache Kafka as production runs it, small: three nodes, three replicas, two of them in sync or no ack."""

import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from deploy.kafka import kafka
from stream.embedded.broker import answers_kafka
from stream.embedded.process import free_port

NODES = 3
PROPERTIES = """\
node.id={node}
process.roles=broker,controller
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters={voters}
log.dirs={data}
auto.create.topics.enable=false
min.insync.replicas=2
default.replication.factor=3
offsets.topic.replication.factor=3
offsets.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
"""


class Node(kafka.KafkaBroker):
    """One of the nodes; all know each other's controllers from the start."""

    patience: ClassVar[float] = 180.0

    def __init__(self, node: int, controllers: Sequence[int], cluster: str) -> None:
        super().__init__(free_port(), heap="256m")
        self._node, self._controllers, self._id = node, controllers, cluster

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        kafka.resolve()
        voters = (f"{node}@127.0.0.1:{port}" for node, port in enumerate(self._controllers, 1))
        properties = folder / "server.properties"
        properties.write_text(
            PROPERTIES.format(
                node=self._node,
                port=port,
                controller=self._controllers[self._node - 1],
                voters=",".join(voters),
                data=folder / "data",
            ),
            encoding="utf-8",
        )
        if not (folder / "data").exists():
            tool = self._command(folder, "kafka.tools.StorageTool")
            kafka._run([*tool, "format", "-t", self._id, "-c", str(properties)], kafka._FORMAT_PATIENCE)
        return [*self._command(folder, "kafka.Kafka"), str(properties)]

    def _answers(self, folder: Path, port: int) -> bool:
        return answers_kafka(port, self._id)


class Cluster:
    """Three nodes, started together: none answers before two are there."""

    def __init__(self) -> None:
        controllers, cluster = [free_port() for _ in range(NODES)], secrets.token_hex(11)
        self.nodes = [Node(node, controllers, cluster) for node in range(1, NODES + 1)]

    @property
    def url(self) -> str:
        """The address as `VOLTEFACE_BROKER` takes it."""
        return "kafka://" + ";".join(node.bootstrap for node in self.nodes)

    def __enter__(self) -> Self:
        with ThreadPoolExecutor(NODES) as threads:
            list(threads.map(Node.start, self.nodes))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ThreadPoolExecutor(NODES) as threads:
            list(threads.map(Node.stop, self.nodes))
