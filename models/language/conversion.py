"""From a wheel's file to a safetensors folder, once a machine: up to 30 s, and about 1 s a load afterwards.

`save_pretrained` refuses a model read from GGUF: its state dict moves into a bare model of the same config.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from filelock import FileLock
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from models.language.quiet import quietly

LOCK_SECONDS = 600


def convert_once(gguf: Path, folder: Path) -> None:
    """Make `folder` from `gguf`, unless it is there."""
    make_once(folder, lambda partial: _convert(gguf, partial))


def make_once(folder: Path, make: Callable[[Path], None]) -> None:
    """Have `make` fill `folder`, unless it is there. Safe between processes, and whole or absent at any time.

    The folder appears by one rename; what an interrupted conversion left is removed by the next.
    """
    with FileLock(folder.with_name(f"{folder.name}.lock"), timeout=LOCK_SECONDS):
        if folder.exists():
            return
        for orphan in folder.parent.glob(f"{folder.name}.partial-*"):  # the lock is ours: nobody is at work
            shutil.rmtree(orphan)
        partial = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}.partial-"))
        try:
            make(partial)
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def _convert(gguf: Path, folder: Path) -> None:
    source = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    with quietly():
        tokenizer = AutoTokenizer.from_pretrained(**source)
        read = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
        tokenizer.save_pretrained(folder)
        _bare(read).save_pretrained(folder)


def _bare(read: PreTrainedModel) -> PreTrainedModel:
    """The same weights in a model that knows nothing of GGUF."""
    fields = read.config.to_dict()
    fields.pop("quantization_config", None)
    config = AutoConfig.for_model(**fields)
    with torch.device("meta"):  # the weights come next: no time for random ones
        bare = AutoModelForCausalLM.from_config(config)
    bare.load_state_dict(read.state_dict(), assign=True)
    bare.tie_weights()
    bare.generation_config = read.generation_config
    return bare
