"""A small run of stage 2 in a process of its own: MODEL OUT [STEP]: at STEP it kills itself with SIGKILL."""

import os
import signal
import sys
from pathlib import Path

from models.language.backbone import Placement, local
from models.training.generative import Tuner
from models.training.lessons import lessons
from models.training.loop import Step
from models.training.stages import LoraOptions, ReasoningOptions
from tests.models.training.flips import explained

OPTIONS = ReasoningOptions(
    quantization="none", rate=2e-3, shape="linear", warmup=0.1, batch=3, accumulation=2, clip=1.0, epochs=2,
    lora=LoraOptions(rank=4, alpha=8, dropout=0.1), judged=2,
)  # fmt: skip
CPU = Placement("cpu", "float32", threads=1)


def run(model: Path, out: Path, kill_at: int | None = None) -> None:
    def watch(step: Step) -> None:
        if step.step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    out.mkdir(exist_ok=True)
    tuner = Tuner(local(model), out, OPTIONS, CPU)
    tuner.run(lessons(explained(4)), explained(2, "dev"), watch, every=3)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
