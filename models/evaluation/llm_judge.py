"""The LLM judge of both papers, on any OpenAI-compatible server: cached, timed, and never in the way.

StanceFlip appendix D.3 judges targets and rationales, PanoSent appendix F.1.1 implicit terms. A question
whose call fails, times out or brings neither YES nor NO is answered by containment (D.3), never cached.
"""

import hashlib
import json
import os
import urllib.request
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from models.evaluation.judge import Field, Question, contained

GIVE_UP_AFTER = 5  # calls in a row that fail: a server that is down must not cost a timeout a question
CACHE_NAME = "api_match_cache.json"
SYSTEM = "You are a helpful assistant for evaluating text similarity. Respond ONLY with 'YES' or 'NO'."
PAIR = (
    "Dialogue Context: {context}\nPredicted {field}: {predicted}\nGold {field}: {gold}\n"
    "Is the Predicted {field} semantically equivalent to, contained within, or does it refer to the core"
    " entity/proposition of the Gold {field}?"
)
TERM = (
    "Given the context of the dialogue, do '{predicted}' and '{gold}' have similar meanings?\n\n"
    "Dialogue: {context}"
)


class LLMSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the judge is; `base_url` ends before /chat/completions."""

    base_url: str
    model: str = "gpt-4o-mini"
    api_key: str | None = None
    timeout: float = 30.0  # seconds a call
    parallel: int = 8
    cache: Path = Path(CACHE_NAME)


def prompt(question: Question) -> str:
    """The user message: D.3's for targets, the same for rationales (D.3 gives none), F.1.1's for terms."""
    shape = TERM if question.field is Field.TERM else PAIR
    return shape.format(
        field=question.field.value.capitalize(),
        predicted=question.predicted,
        gold=question.gold,
        context=question.context,
    )


class LLMJudge:
    """Asks a server; `asked`, `cached` and `fallbacks` say how its answers came to be."""

    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._cache = Cache(settings.cache)
        self._failures = 0
        self.asked = self.cached = self.fallbacks = 0

    @property
    def name(self) -> str:
        """The model, and how much of the answers are not its own."""
        fallen = f", {self.fallbacks} of {self.asked} by containment" if self.fallbacks else ""
        return f"{self._settings.model}{fallen}"

    def same(self, questions: Sequence[Question]) -> list[bool]:
        """One answer a question, in order; what the server said is saved before this returns."""
        keys = [_key(self._settings.model, prompt(question)) for question in questions]
        missing = {key: asked for key, asked in zip(keys, questions, strict=True) if key not in self._cache}
        self._failures = 0
        fresh = self._answers(missing)
        self._cache.keep({key: answer for key, answer in fresh.items() if answer is not None})
        self.asked += len(missing)
        self.cached += len(questions) - len(missing)
        self.fallbacks += sum(answer is None for answer in fresh.values())
        return [self._answer(key, asked) for key, asked in zip(keys, questions, strict=True)]

    def _answer(self, key: str, question: Question) -> bool:
        known = self._cache.get(key)
        return contained(question.predicted, question.gold) if known is None else known

    def _answers(self, questions: Mapping[str, Question]) -> dict[str, bool | None]:
        with ThreadPoolExecutor(max_workers=self._settings.parallel) as pool:
            return dict(zip(questions, pool.map(self._ask, questions.values()), strict=True))

    def _ask(self, question: Question) -> bool | None:
        """YES or NO, None where the server gives neither."""
        if self._failures >= GIVE_UP_AFTER:
            return None
        try:
            with urllib.request.urlopen(self._request(question), timeout=self._settings.timeout) as reply:
                said = json.load(reply)["choices"][0]["message"]["content"]
        except (OSError, ValueError, LookupError, TypeError):  # URLError and timeouts are OSErrors
            self._failures += 1
            return None
        self._failures = 0
        return _verdict(said) if isinstance(said, str) else None

    def _request(self, question: Question) -> urllib.request.Request:
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt(question)}]
        body = {"model": self._settings.model, "messages": messages, "temperature": 0, "max_tokens": 3}
        headers = {"Content-Type": "application/json"}
        if self._settings.api_key:
            headers["Authorization"] = f"Bearer {self._settings.api_key}"
        url = self._settings.base_url.rstrip("/") + "/chat/completions"
        return urllib.request.Request(url, json.dumps(body).encode(), headers)


class Cache:
    """Answers by key in one JSON file, replaced as a whole so that a crash never leaves half of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, bool] = (
            msgspec.json.decode(path.read_bytes(), type=dict[str, bool]) if path.exists() else {}
        )

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def get(self, key: str) -> bool | None:
        """The answer, if it is known."""
        return self._known.get(key)

    def keep(self, answers: Mapping[str, bool]) -> None:
        """Add answers and save."""
        if not answers:
            return
        self._known.update(answers)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        half = self._path.with_suffix(f".{os.getpid()}.tmp")
        half.write_bytes(msgspec.json.encode(self._known, order="sorted"))
        half.replace(self._path)


def _key(model: str, asked: str) -> str:
    return hashlib.sha256(f"{model}\0{asked}".encode()).hexdigest()


def _verdict(said: str) -> bool | None:
    word = said.strip().strip("\"'*.").upper()
    if word.startswith("YES"):
        return True
    return False if word.startswith("NO") else None
