"""The port Chat on a server: words as they come, a choice weighed by the tokens that the server tells of."""

from collections.abc import Sequence
from typing import TypeVar

from models.language.chat import Talk
from models.remote.asking import WAYS, Answer, Asker, Way
from models.remote.client import RemoteClient, unwrapped
from models.remote.forms import Form, choose_form, label_at
from models.remote.shares import shares

Value = TypeVar("Value")

WORDS = (Way(), Way(plain=True))


class RemoteChat:
    """Talks with a server's model. Raises ReaderUnavailable, and ReaderRejected where a talk is refused."""

    def __init__(self, client: RemoteClient, ways: tuple[Way, ...] = WAYS) -> None:
        self._client = client
        self._asker, self._writer = Asker(client, ways), Asker(client, WORDS)
        self._revision = ""

    @property
    def name(self) -> str:
        """The model's name."""
        return self._client.config.model

    @property
    def revision(self) -> str:
        """The server's fingerprint; "" where it tells none, and before it answered."""
        return self._revision

    def write(self, talks: Sequence[Talk], limit: int) -> list[str]:
        """Words, at most `limit` tokens, stripped; "" where the model has nothing to say."""
        form = Form(name="write", ask="", schema={}, read=str.strip, limit=limit)

        async def written(talk: Talk) -> str:
            return self._noted(await self._writer.ask(talk, form)).value

        return unwrapped(self._client.each(talks, written))

    def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
        """A probability a label, summing to 1; where the server tells none, 1 for the one named."""
        if len(labels) == 1:
            return [[1.0] for _ in talks]  # nothing to ask
        form = choose_form(tuple(labels))

        async def chosen(talk: Talk) -> list[float]:
            answer = self._noted(await self._asker.ask(talk, form))
            at = label_at(answer.content, "answer") or 0  # a bare label stands at the beginning
            found = shares(answer.tokens, answer.content, at, labels, answer.value)
            return [found[label] for label in labels]

        return unwrapped(self._client.each(talks, chosen))

    def close(self) -> None:
        """Give connections and thread back."""
        self._client.close()

    def _noted(self, answer: Answer[Value]) -> Answer[Value]:
        self._revision = answer.fingerprint
        return answer
