"""Words from a model: greedy, so the same context always gives the same words."""

from collections.abc import Sequence, Set

from transformers import PreTrainedModel

from models.language.prefix import Context, extend


def write(
    model: PreTrainedModel, context: Context, rows: Sequence[Sequence[int]], stops: Set[int], limit: int
) -> list[list[int]]:
    """Read `rows` on in `context`, then at most `limit` new tokens a row, up to its first stop."""
    written: list[list[int]] = [[] for _ in rows]
    open_rows = set(range(len(rows)))
    step = [list(row) for row in rows]
    for _ in range(limit):
        tokens = extend(model, context, step)[:, -1].argmax(dim=-1).tolist()
        open_rows -= {row for row in open_rows if tokens[row] in stops}
        if not open_rows:
            break
        for row in open_rows:
            written[row].append(tokens[row])
        step = [[token] for token in tokens]
    return written
