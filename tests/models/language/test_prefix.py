import pytest
import torch

from models.language.backbone import Backbone
from models.language.labels import EMOTION, EXPRESSED, Tree
from models.language.prefix import Prefix, _mask, blank, extend
from models.language.writing import greedy

HEAD = list(range(40, 90))
ROWS = [[7, 8, 9, 10, 11, 12], [9], [20, 21, 22]]


@pytest.fixture
def tree(tiny: Backbone) -> Tree:
    return Tree([EXPRESSED, EMOTION], tiny.encode)


@torch.inference_mode()
def test_reading_from_the_cached_prefix_changes_nothing(tiny: Backbone, tree: Tree) -> None:
    cached = extend(tiny.model, Prefix(tiny.model, HEAD).rows(3), ROWS, tree)
    whole = extend(tiny.model, Prefix(tiny.model, []).rows(3), [HEAD + row for row in ROWS], tree)
    alone = torch.cat([extend(tiny.model, blank(tiny.model, 1), [HEAD + row], tree) for row in ROWS])
    torch.testing.assert_close(cached, whole, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(cached, alone, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_rows_say_what_the_model_itself_says(tiny: Backbone) -> None:
    ours = extend(tiny.model, Prefix(tiny.model, HEAD).rows(3), ROWS)[:, 0]
    theirs = torch.cat([tiny.model(torch.tensor([HEAD + row])).logits[:, -1] for row in ROWS])
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_a_prefix_is_used_again_and_again_and_stays_as_it_was(tiny: Backbone, tree: Tree) -> None:
    prefix = Prefix(tiny.model, HEAD)
    before = [keys.clone() for keys, _ in prefix.layers]
    first = extend(tiny.model, prefix.rows(3), ROWS, tree)
    greedy(tiny.model, prefix.rows(2), ROWS[:2], set(), 5)
    assert torch.equal(extend(tiny.model, prefix.rows(3), ROWS, tree), first)
    assert all(torch.equal(keys, kept) for (keys, _), kept in zip(prefix.layers, before, strict=True))


@torch.inference_mode()
def test_a_tree_is_forgotten_and_reading_goes_on_behind_the_prompt(tiny: Backbone, tree: Tree) -> None:
    context = Prefix(tiny.model, HEAD).rows(3)
    extend(tiny.model, context, ROWS, tree)
    assert context.length.tolist() == [len(HEAD) + len(row) for row in ROWS]
    after = extend(tiny.model, context, [[30, 31], [30], [33]])[:, 0]
    whole = [HEAD + row + more for row, more in zip(ROWS, [[30, 31], [30], [33]], strict=True)]
    theirs = torch.cat([tiny.model(torch.tensor([row])).logits[:, -1] for row in whole])
    torch.testing.assert_close(after, theirs, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_greedy_words_are_the_models_own_and_end_at_a_stop(tiny: Backbone) -> None:
    together = greedy(tiny.model, Prefix(tiny.model, HEAD).rows(3), ROWS, set(), 6)
    for row, written in zip(ROWS, together, strict=True):
        ids = HEAD + row
        for token in written:
            assert int(tiny.model(torch.tensor([ids])).logits[0, -1].argmax()) == token
            ids = [*ids, token]
    stop = together[0][2]
    stopped = greedy(tiny.model, Prefix(tiny.model, HEAD).rows(1), ROWS[:1], {stop}, 6)
    assert stopped == [together[0][: together[0].index(stop)]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_mask_stays_finite_where_autocast_rounds_it_to_bfloat16(dtype: torch.dtype) -> None:
    shown = torch.tensor([[False, True, True]])
    mask = _mask(shown, torch.ones(2, 2, dtype=torch.bool).tril(), dtype)
    assert (mask < 0)[0, 0].tolist() == [[True, False, True], [True, False, False]]
    assert bool(mask.to(torch.bfloat16).isfinite().all())
    assert bool((mask[mask < 0] <= torch.finfo(torch.float16).min).all())
