"""A small training run in a process of its own: ENCODER OUT [STEP]: at STEP it kills itself with SIGKILL."""

import os
import signal
import sys
from pathlib import Path

from models.language.backbone import Placement, local
from models.training.encoder import Trainer
from models.training.examples import examples
from models.training.loop import Step
from models.training.options import EncoderOptions
from tests.models.training.talks import corpus

OPTIONS = EncoderOptions(epochs=2, batch=4, rate=1e-3, tokens=96)


def run(encoder: Path, out: Path, kill_at: int | None) -> None:
    def watch(step: Step) -> None:
        if step.step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    out.mkdir(exist_ok=True)
    trainer = Trainer(local(encoder), out, OPTIONS, Placement("cpu", "float32", threads=2))
    trainer.run(examples(corpus(16)), corpus(4, "dev"), watch, every=7)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
