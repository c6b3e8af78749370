"""Stage 1 on random vectors and a tiny model: ImageBind's weights are not here."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from models.language import projector
from models.language.weights import Found
from models.training.alignment import Aligner
from models.training.loop import Step
from models.training.pairs import FILE, MalformedPairs, Pair, pairs
from models.training.stages import SMALL
from tests.models.training.tiny_tuning import CPU

OPTIONS = msgspec.structs.replace(SMALL.alignment, epochs=150, rate=2e-2, batch=4)
CAPTIONS = ("a dog", "a chat", "facts", "a joke")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both kinds of vector files."""
    chance = np.random.default_rng(0)
    lines = []
    for at, caption in enumerate(CAPTIONS):
        vector = chance.standard_normal(16).astype(np.float32)
        file = f"{at}.npy" if at % 2 else f"{at}.safetensors"
        if at % 2:
            np.save(tmp_path / file, vector)
        else:
            save_file({"vector": torch.from_numpy(vector)}, tmp_path / file)
        lines.append(msgspec.json.encode({"id": str(at), "vector": file, "caption": caption}))
    (tmp_path / FILE).write_bytes(b"\n".join(lines))
    return tmp_path


def test_captions_are_learned_while_the_language_model_stays(
    folder: Path, speaker: Found, tmp_path: Path
) -> None:
    taught, out = pairs(folder), tmp_path / "run"
    out.mkdir()
    aligner = Aligner(speaker, out, OPTIONS, 16, CPU)
    before = {name: values.clone() for name, values in aligner._backbone.model.state_dict().items()}
    seen: list[Step] = []
    aligner.run(taught, seen.append)
    assert seen[-1].loss < 0.8 * seen[0].loss
    after = aligner._backbone.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    with torch.no_grad():
        own = aligner.losses(taught)
        others = aligner.losses(
            [msgspec.structs.replace(one, vector=taught[at - 1].vector) for at, one in enumerate(taught)]
        )
    assert bool((own < others).all())  # it is the vector that tells the caption
    assert torch.equal(projector.load(out).layers[0].weight, aligner.network.layers[0].weight)


def test_resumed_it_is_the_same_projector(folder: Path, speaker: Found, tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def stop(step: Step) -> None:
        if step.step == 3:
            raise Stopped

    options, weights = msgspec.structs.replace(OPTIONS, epochs=3, batch=2), []
    for name, stops in (("whole", False), ("stopped", True)):
        out = tmp_path / name
        out.mkdir()
        if stops:
            with pytest.raises(Stopped):
                Aligner(speaker, out, options, 16, CPU).run(pairs(folder), stop, every=2)
        aligner = Aligner(speaker, out, options, 16, CPU)
        aligner.run(pairs(folder), every=2)
        weights.append(aligner.weights())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_rows_of_a_batch_do_not_change_each_others_loss(folder: Path, speaker: Found, tmp_path: Path) -> None:
    aligner, taught = Aligner(speaker, tmp_path, OPTIONS, 16, CPU), pairs(folder)
    longer = Pair("l", taught[0].vector, "a joke, small talk, another subject, the view of someone else")
    with torch.no_grad():
        together, alone = aligner.losses([taught[0], longer])[0], aligner.losses(taught[:1])[0]
    assert together.item() == pytest.approx(alone.item(), rel=1e-4)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"id": "1"}', "pairs.jsonl:1: Object missing required field"),
        (b'{"id": "1", "vector": "gone.npy", "caption": "x"}', r"pairs.jsonl:1: .*gone\.npy"),
        (b'{"id": "1", "vector": "good.npy", "caption": ""}', "pairs.jsonl:1: .*length >= 1"),
        (b'{"id": "1", "vector": "nan.npy", "caption": "x"}', "nan.npy holds no vector of finite numbers"),
        (b'{"id": "1", "vector": "none.npy", "caption": "x"}', "none.npy holds no vector of finite numbers"),
        (b'{"id": "1", "vector": "words.npy", "caption": "x"}', "pairs.jsonl:1: .*mend the line or its file"),
        (b'{"id": "1", "vector": "two.safetensors", "caption": "x"}', "holds 2 tensors, not one"),
        (b"", "is empty"),
    ],
)
def test_what_is_wrong_with_pairs_is_named(line: bytes, said: str, tmp_path: Path) -> None:
    numbers = {"good": [1.0, 2.0], "nan": [1.0, np.nan], "none": [], "words": ["a", "b"]}
    for name, values in numbers.items():
        np.save(tmp_path / f"{name}.npy", np.array(values))
    save_file({"a": torch.ones(2), "b": torch.ones(2)}, tmp_path / "two.safetensors")
    (tmp_path / FILE).write_bytes(line)
    with pytest.raises(MalformedPairs, match=said):
        pairs(tmp_path)


def test_a_folder_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedPairs, match=r"has no pairs\.jsonl"):
        pairs(tmp_path)
