"""A causal language model with its tokenizer, from any Hugging Face folder, with or without an adapter."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from models.hardware import bf16_on_cpu
from models.language.quiet import quietly
from models.language.settings import InvalidSetting, default_threads
from models.language.weights import Found, is_complete

PLACEHOLDER = "\N{OBJECT REPLACEMENT CHARACTER}"
HEAD_BYTES = 1 << 20


@dataclass(frozen=True)
class Placement:
    """Where a model runs, in which precision, on how many threads."""

    device: str = "auto"
    dtype: str = "auto"
    threads: int | None = None

    def resolved(self) -> tuple[torch.device, torch.dtype]:
        """The device and precision meant. Raises InvalidSetting for a device that is not there."""
        cuda = torch.cuda.is_available()
        if self.device.startswith("cuda") and not cuda:
            raise InvalidSetting("device", f"{self.device!r}, but torch sees no GPU", "use auto or cpu")
        device = torch.device(("cuda" if cuda else "cpu") if self.device == "auto" else self.device)
        if self.dtype == "auto":
            fast = device.type == "cuda" or bf16_on_cpu()
            return device, torch.bfloat16 if fast else torch.float32
        dtype: torch.dtype = getattr(torch, self.dtype)
        return device, dtype

    def apply_threads(self) -> None:
        """Bound torch's threads, for the whole process: its default takes every core from the stream."""
        torch.set_num_threads(self.threads or default_threads())


class Backbone:
    """A loaded model: what encodes text for it, and what it is called in an observation."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        revision: str,
        untrained: bool,
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.name, self.revision, self.untrained = name, revision, untrained

    @property
    def device(self) -> torch.device:
        """Where its inputs must be."""
        device: torch.device = self.model.device
        return device

    @cached_property
    def stops(self) -> frozenset[int]:
        """The tokens that end an answer."""
        named = self.model.generation_config.eos_token_id
        ends = named if isinstance(named, list) else [named, self.tokenizer.eos_token_id]
        return frozenset(token for token in ends if token is not None)

    @property
    def positions(self) -> int:
        """How many tokens the model can attend to."""
        return int(getattr(self.model.config, "max_position_embeddings", 1 << 30))

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text: what looks like a special token in it is text like any other."""
        return self._ids(text, split_special_tokens=True)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def frame(self, instruction: str) -> tuple[list[int], list[int]]:
        """Token ids before and after a prompt's body: the chat template, with `instruction` first."""
        head, tail = self.pieces(instruction, ["user"])
        return head, tail

    def pieces(self, instruction: str, roles: Sequence[str]) -> list[list[int]]:
        """Token ids before, between and after what these roles say, one piece more than roles.

        A template without a system role gets the instruction in the first turn; no template, plain text.
        """
        opening = f"{instruction}\n\n" if instruction else ""
        if not self.tokenizer.chat_template:
            return [self._ids(text) for text in (opening, *["\n\n"] * len(roles))]
        said = [{"role": role, "content": PLACEHOLDER} for role in roles]
        try:
            system = [{"role": "system", "content": instruction}] if instruction else []
            rendered = self._rendered([*system, *said])
        except TemplateError:
            rendered = self._rendered([said[0] | {"content": opening + PLACEHOLDER}, *said[1:]])
        return [self._ids(text) for text in rendered.split(PLACEHOLDER)]

    def _rendered(self, messages: list[dict[str, str]]) -> str:
        rendered = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return str(rendered)

    def _ids(self, text: str, **options: Any) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, **options)["input_ids"]
        return ids


def load(found: Found, adapter: Path | None = None, placement: Placement | None = None) -> Backbone:
    """The model in `found`, an adapter merged into it. Raises InvalidSetting."""
    placement = placement or Placement()
    placement.apply_threads()
    device, dtype = placement.resolved()
    if dtype is torch.int8:
        raise InvalidSetting("dtype", "int8, which only engine encoder reads in", "use auto, or that engine")
    with quietly():
        tokenizer = AutoTokenizer.from_pretrained(found.folder)
        model = AutoModelForCausalLM.from_pretrained(found.folder, dtype=dtype, attn_implementation="sdpa")
        if adapter is not None:
            model = _adapted(model, adapter)
    revision = found.revision if adapter is None else f"{found.revision}+{fingerprint(adapter)}"
    return Backbone(model.to(device).eval(), tokenizer, found.name, revision, untrained=adapter is None)


def local(folder: Path) -> Found:
    """A model folder that settings name. Raises InvalidSetting where it holds no model."""
    if not is_complete(folder):
        raise InvalidSetting(
            "path", f"{folder} holds no model", "name a Hugging Face folder with safetensors"
        )
    return Found(folder, folder.name, fingerprint(folder))


def fingerprint(folder: Path) -> str:
    """12 hex digits over the weights' names, sizes, first and last MiB: enough to tell models apart, fast."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(f"{path.name}/{path.stat().st_size}/".encode())
        with path.open("rb") as file:
            digest.update(file.read(HEAD_BYTES))
            file.seek(-min(HEAD_BYTES, path.stat().st_size), os.SEEK_END)
            digest.update(file.read())
    return digest.hexdigest()[:12]


def _adapted(model: PreTrainedModel, adapter: Path) -> PreTrainedModel:
    """The adapter merged: no cost a layer, and the prefix cache belongs to just this pair."""
    if not (adapter / "adapter_config.json").exists():
        raise InvalidSetting(
            "adapter", f"{adapter} has no adapter_config.json", "name a folder saved by peft"
        )
    from peft import PeftModel  # noqa: PLC0415  # takes seconds to import; most starts have no adapter

    return PeftModel.from_pretrained(model, adapter).merge_and_unload()
