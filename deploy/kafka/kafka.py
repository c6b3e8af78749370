"""A real Apache Kafka on this machine, for tests and trials: one KRaft node whose data go when it stops.

    python deploy/kafka/kafka.py [PORT]

prints the bootstrap address and stays until Ctrl-C. Needs Java 17 and, the first time, Maven, which copies
the jars into lib/.
"""

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

# Of a script only its own folder is on the path, not the checkout's root.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from stream.embedded.broker import Broker, answers_kafka
from stream.embedded.process import ServiceUnavailable, free_port, program_on_path

LIBRARY = Path(__file__).resolve().parent / "lib"
_POM = LIBRARY.with_name("pom.xml")
_STAMP = ".complete"
_LOCK = ".lock"
_MAVEN_PATIENCE = 600.0
_FORMAT_PATIENCE = 60.0
_NODE = 1
_LOGGING = """\
rootLogger.level=WARN
rootLogger.appenderRef.console.ref=console
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%d %p %c: %m%n
"""
# One node holds every internal topic, few partitions start fast, and a test sees a dead member, a compaction
# or the node back after a kill within seconds. What decides a record's fate (time, size) stays default.
_FOR_ONE_NODE = """\
auto.create.topics.enable=false
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
log.cleaner.backoff.ms=500
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""


class KafkaBroker(Broker):
    """One Kafka node, broker and controller; restart() keeps its topics and offsets, stop() does not."""

    title: ClassVar[str] = "Apache Kafka"
    patience: ClassVar[float] = 90.0
    grace: ClassVar[float] = 20.0

    def __init__(self, port: int | None = None, heap: str = "512m", library: Path = LIBRARY) -> None:
        super().__init__(port)
        self._heap = heap
        self._library = library

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        if reason := available(self._library):
            raise ServiceUnavailable(reason)
        resolve(self._library)
        properties = folder / "server.properties"
        properties.write_text("\n".join(_properties(folder, port, free_port())), encoding="utf-8")
        (folder / "log4j2.properties").write_text(_LOGGING, encoding="utf-8")
        if not (folder / "data").exists():
            tool = self._command(folder, "kafka.tools.StorageTool")
            _run([*tool, "format", "-t", _cluster(folder), "-c", str(properties)], _FORMAT_PATIENCE)
        return [*self._command(folder, "kafka.Kafka"), str(properties)]

    def _command(self, folder: Path, program: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
        return [str(_java()), f"-Xmx{self._heap}", logging, "-cp", f"{self._library}/*", program]

    def _answers(self, folder: Path, port: int) -> bool:
        return answers_kafka(port, _cluster(folder))


def available(library: Path = LIBRARY) -> str | None:
    """Why no Kafka can be started here, or None."""
    if _java() is None:
        return "Apache Kafka needs Java 17: no `java` in JAVA_HOME or on PATH (`apt install default-jre`)"
    if program_on_path("mvn") is None and not _complete(library):
        return f"Apache Kafka's jars are not in {library} and there is no `mvn` on PATH (`apt install maven`)"
    return None


def resolve(library: Path = LIBRARY) -> None:
    """Copies the jars that pom.xml names into the library where they are missing; two at once are safe."""
    library.mkdir(parents=True, exist_ok=True)
    with (library / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _complete(library):
            return
        for jar in library.glob("*.jar"):
            jar.unlink()
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={library.absolute()}"]
        # Maven inherits the lock: it may outlive this process.
        _run(["mvn", "-q", "-B", "-f", str(_POM), *copy], _MAVEN_PATIENCE, lock.fileno())
        (library / _STAMP).write_text(_digest(), encoding="utf-8")


def _complete(library: Path) -> bool:
    stamp = library / _STAMP
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == _digest()


def _digest() -> str:
    return hashlib.sha256(_POM.read_bytes()).hexdigest()


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    inside = Path(home) / "bin" / "java" if home else None
    return inside if inside and os.access(inside, os.X_OK) else program_on_path("java")


def _cluster(folder: Path) -> str:
    """A cluster id of the form Kafka takes, one for each started server."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:22]


def _properties(folder: Path, port: int, controller: int) -> Iterator[str]:
    yield f"node.id={_NODE}"
    yield "process.roles=broker,controller"
    yield f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"
    yield f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}"
    yield "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    yield "controller.listener.names=CONTROLLER"
    yield f"controller.quorum.voters={_NODE}@127.0.0.1:{controller}"
    yield f"log.dirs={folder / 'data'}"
    yield _FOR_ONE_NODE


def _run(command: Sequence[str], patience: float, *locks: int) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=patience, check=False, pass_fds=locks
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServiceUnavailable(f"{command[0]} failed: {error}") from error
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise ServiceUnavailable(f"{command[0]} failed with status {done.returncode}:\n{said}")


def main(arguments: Sequence[str]) -> int:
    """Runs a broker in the foreground; status 1 where it ends by itself."""
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    with KafkaBroker(int(arguments[0]) if arguments else None) as broker:
        sys.stdout.write(f"{broker.bootstrap}\n")
        sys.stdout.flush()
        while broker.running():
            if stopped.wait(0.5):
                return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
