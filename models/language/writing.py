"""Words from a model: greedy, so the same prompt always gives the same words."""

import re
from collections.abc import Iterator, Sequence, Set

from transformers import PreTrainedModel

from models.language.backbone import Backbone
from models.language.prefix import Context, Prefix, extend
from models.language.scoring import batches

SENTENCE = re.compile(r".+?(?:[.!?](?=\s|$)|[。！？])|.+")


class Writer:
    """Writes one sentence a prompt behind a fixed instruction that it has read once."""

    def __init__(self, backbone: Backbone, instruction: str, batch_tokens: int, limit: int) -> None:
        head, self._tail = backbone.frame(instruction)
        self._backbone, self._batch_tokens, self._limit = backbone, batch_tokens, limit
        self._prefix = Prefix(backbone.model, head)

    def write(self, bodies: Sequence[str]) -> list[str]:
        """A sentence a body, in order; "" where the model has nothing to say."""
        rows = [self._backbone.encode(body) + self._tail for body in bodies]
        written: dict[int, str] = {}
        for places in batches([len(row) + self._limit for row in rows], self._batch_tokens):
            context, batch = self._prefix.rows(len(places)), [rows[place] for place in places]
            answers = greedy(self._backbone.model, context, batch, self._backbone.stops, self._limit)
            written.update(zip(places, self._sentences(answers), strict=True))
        return [written[place] for place in range(len(bodies))]

    def _sentences(self, answers: Sequence[Sequence[int]]) -> Iterator[str]:
        for tokens in answers:
            found = SENTENCE.match(self._backbone.decode(tokens).strip())
            yield found[0].strip() if found else ""


def greedy(
    model: PreTrainedModel, context: Context, rows: Sequence[Sequence[int]], stops: Set[int], limit: int
) -> list[list[int]]:
    """Read `rows` on in `context`, then at most `limit` new tokens a row, up to its first stop."""
    written: list[list[int]] = [[] for _ in rows]
    unfinished = set(range(len(rows)))
    step = [list(row) for row in rows]
    for _ in range(limit):
        tokens: list[int] = extend(model, context, step)[:, -1].argmax(dim=-1).tolist()
        unfinished -= {row for row in unfinished if tokens[row] in stops}
        if not unfinished:
            break
        for row in unfinished:
            written[row].append(tokens[row])
        step = [[token] for token in tokens]
    return written
