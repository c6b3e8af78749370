"""The port Chat in memory: answers are looked up by words that stand in what is asked."""

from collections.abc import Mapping, Sequence

from models.language.chat import Talk


class ScriptedChat:
    """Answers by the first key that the last message holds: a label to choose, words to write.

    Where none does, the first label and no words. A value may be a list: an answer a time, the last for ever.
    """

    name, revision = "scripted", "1"

    def __init__(self, answers: Mapping[str, str | list[str]] | None = None) -> None:
        self.answers = {
            key: [said] if isinstance(said, str) else said for key, said in (answers or {}).items()
        }
        self.asked: list[Talk] = []
        self.written: list[Talk] = []

    def write(self, talks: Sequence[Talk], limit: int) -> list[str]:
        """Words of the script, cut to `limit` of them."""
        self.asked += talks
        self.written += talks
        return [" ".join(self._answer(talk, "").split()[:limit]) for talk in talks]

    def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
        """1 for the script's label; even shares where it names none of these."""
        self.asked += talks
        return [self._shares(self._answer(talk, labels[0]), labels) for talk in talks]

    def _answer(self, talk: Talk, default: str) -> str:
        for key, said in self.answers.items():
            if key in talk[-1].content:
                return said.pop(0) if len(said) > 1 else said[0]
        return default

    def _shares(self, answer: str, labels: Sequence[str]) -> list[float]:
        if answer not in labels:
            return [1 / len(labels)] * len(labels)
        return [float(label == answer) for label in labels]
