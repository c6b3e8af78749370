"""A worker in a process of its own: python -m tests.models.worker.served PORT GRACE."""

import sys

from models.worker.server import WorkerConfig, run
from tests.models.worker.fakes import FakeEngine

if __name__ == "__main__":
    port, grace = int(sys.argv[1]), float(sys.argv[2])
    config = WorkerConfig(port=port, grace=grace)
    sys.exit(run(FakeEngine, config, on_listening=lambda port: print("port", port, flush=True)))
