"""What a server is asked to answer: the words that ask, the JSON Schema that binds, the strict reading.

Every form says its shape in words too, so that it also works where a server ignores the schema. Labels stand
first and words last: a label is then weighed before the model has argued for one.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Generic, Literal, TypeVar

import msgspec

from models.language.labels import EMOTION, EXPRESSED, SENTIMENT, TRIGGER
from models.language.writing import SENTENCE
from models.remote.wire import Body
from tracker.stances import Emotion, Expressed, Sentiment

Value = TypeVar("Value")

RELEVANCE = {"off": 0.0, "partly": 0.5, "fully": 1.0}
KINDS = {word: kind for kind, word in TRIGGER.words.items()}
MOST_SENTENCES = 2  # of a rationale
EXPLAIN_TOKENS = 200


class Unreadable(RuntimeError):
    """No answer of the form asked for: the model gave another twice, or its server breaks on this alone."""


@dataclass(frozen=True)
class Form(Generic[Value]):
    """One shape of answer. `read` raises ValueError, as msgspec's errors are, for what does not have it."""

    name: str  # answers of one name go the same way
    ask: str  # the words that ask for it
    schema: Body
    read: Callable[[str], Value]
    limit: int  # tokens of an answer


class Observed(msgspec.Struct, frozen=True):
    """What was said of a turn."""

    position: Expressed
    emotion: Emotion
    sentiment: Sentiment
    relevance: Literal["off", "partly", "fully"]


class Explained(msgspec.Struct, frozen=True):
    """What was said of a flip; `source` is a turn's letter."""

    cause: Literal["facts", "feelings", "experience", "pressure"]
    source: str
    rationale: str
    evidence: tuple[str, ...] = ()


_OBSERVED = msgspec.json.Decoder(Observed)
_EXPLAINED = msgspec.json.Decoder(Explained)

OBSERVE_LABELS: Mapping[str, tuple[str, ...]] = {
    "position": tuple(EXPRESSED.words),
    "emotion": tuple(EMOTION.words),
    "sentiment": tuple(SENTIMENT.words),
    "relevance": tuple(RELEVANCE),
}

_JSON = "Answer with one JSON object and nothing else:"
_LISTED = "\n".join(f"{key}: {', '.join(labels)}." for key, labels in OBSERVE_LABELS.items())
OBSERVE_ASK = f"""\
{_JSON} {{"position": "...", "emotion": "...", "sentiment": "...", "relevance": "..."}}
{_LISTED}
relevance says how much of the new turn is about the topic."""
EXPLAIN_ASK = f"""\
{_JSON} {{"cause": "...", "source": "...", "rationale": "..."}}
cause: {", ".join(KINDS)}.
source: the letter of the turn that caused the change.
rationale: one or two short sentences that name what in the quoted turns moved the author."""
EXPLAIN_ASK_MEDIA = f"""\
{EXPLAIN_ASK}
Between source and rationale stands "evidence": a list of the parts of the new turn in which the change \
shows, each "text" or the kind of an image, sound or video there."""


def _object(properties: Body) -> Body:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _one_of(labels: Sequence[str]) -> Body:
    return {"type": "string", "enum": [*labels]}


def _read_observed(content: str) -> Observed:
    return _OBSERVED.decode(_braced(content))


OBSERVE = Form(
    name="observe",
    ask=OBSERVE_ASK,
    schema=_object({key: _one_of(labels) for key, labels in OBSERVE_LABELS.items()}),
    read=_read_observed,
    limit=128,
)


@lru_cache(maxsize=128)
def explain_form(letters: str, modalities: tuple[str, ...]) -> Form[Explained]:
    """Asks about a flip in a window of these letters, whose new turn shows in these modalities."""

    def read(content: str) -> Explained:
        said = _EXPLAINED.decode(_braced(_closed(content)))
        if said.source not in tuple(letters):
            raise ValueError("source names no turn that was shown")
        if not set(said.evidence) <= set(modalities):
            raise ValueError("evidence names what the new turn does not have")
        if not (rationale := _sentences(said.rationale)):
            raise ValueError("rationale is empty")
        return msgspec.structs.replace(said, rationale=rationale)

    labels = {"cause": _one_of([*KINDS]), "source": _one_of(letters)}
    evidence = {"evidence": {"type": "array", "items": _one_of(modalities)}} if len(modalities) > 1 else {}
    schema = _object({**labels, **evidence, "rationale": {"type": "string"}})
    return Form("explain", EXPLAIN_ASK_MEDIA if evidence else EXPLAIN_ASK, schema, read, EXPLAIN_TOKENS)


@lru_cache(maxsize=128)
def choose_form(labels: tuple[str, ...]) -> Form[str]:
    """Asks for one of these labels."""
    listed = ", ".join(json.dumps(label, ensure_ascii=False) for label in labels)
    by_word = {label.casefold(): label for label in labels}

    def read(content: str) -> str:
        found = by_word.get(_word(content).casefold())
        if found is None:
            raise ValueError("the answer is none of the labels")
        return found

    longest = max(len(label.encode()) for label in labels)
    ask = f'{_JSON} {{"answer": "..."}}\nanswer: {listed}.'
    return Form("choose", ask, _object({"answer": _one_of(labels)}), read, limit=24 + longest)


def label_at(content: str, key: str) -> int | None:
    """Where the string of `key` begins in a JSON answer. A quoted key within a string has backslashes."""
    found = re.search(rf'"{key}"\s*:\s*"', content)
    return found.end() if found else None


def _braced(content: str) -> str:
    """The JSON object of an answer, without the fence or the words that some models put around it."""
    return content[max(content.find("{"), 0) : content.rfind("}") + 1]


def _closed(content: str) -> str:
    """The answer of a model that talked until it was cut: its last string, the rationale, ended there."""
    return content if "}" in content else f'{content}"}}'


def _sentences(text: str) -> str:
    found = islice(SENTENCE.finditer(" ".join(text.split())), MOST_SENTENCES)
    return " ".join(one[0].strip() for one in found)


def _word(content: str) -> str:
    """The label of an answer: the one in its JSON, else the answer itself if it is nothing more."""
    try:
        said = msgspec.json.decode(_braced(content), type=dict[str, str])
    except msgspec.DecodeError:
        return content.strip().strip("\"'`*. \n")
    return said.get("answer", "")
