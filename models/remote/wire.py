"""What an OpenAI-compatible server answers: only what is used of it, whatever else stands there.

What costs a turn nothing to lack (log-probabilities, what was spent, the fingerprint) is decoded apart: a
server whose own words for it are others still answers.
"""

import json
from typing import Annotated, Any, TypeVar

import msgspec

Part = TypeVar("Part")

Body = dict[str, Any]
THOUGHT = "</think>"  # behind it stands the answer of a model that thinks aloud
Byte = Annotated[int, msgspec.Meta(ge=0, le=255)]
Log = Annotated[float, msgspec.Meta(le=1.0)]  # above 0 by a rounding at most: another number is none
IMPOSSIBLE = -9999.0  # what JSON has no word for, minus infinity, as vLLM tells it
Count = Annotated[int, msgspec.Meta(ge=0, le=2**40)]
Status = Annotated[int, msgspec.Meta(ge=400, le=599)]
LONGEST_FINGERPRINT = 128  # it goes into every event
_NULL = msgspec.Raw(b"null")


class Said(msgspec.Struct, frozen=True):
    """The model's message; `content` is null where it refused, or only thought."""

    content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One completion."""

    message: Said
    finish_reason: str | None = None
    logprobs: msgspec.Raw = _NULL


class Cached(msgspec.Struct, frozen=True):
    """How much of a prompt the server had read before."""

    cached_tokens: Count | None = None


class Usage(msgspec.Struct, frozen=True):
    """What a call cost, in tokens."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    prompt_tokens_details: Cached | None = None

    @property
    def cached_tokens(self) -> int:
        """Of the prompt's; 0 where nobody tells."""
        details = self.prompt_tokens_details
        return (details and details.cached_tokens) or 0


class Completion(msgspec.Struct, frozen=True):
    """The answer to one call."""

    choices: list[Choice]
    usage: msgspec.Raw = _NULL
    system_fingerprint: msgspec.Raw = _NULL


class Alternative(msgspec.Struct, frozen=True):
    """A token that could have stood there; `bytes` where told, since a token may be half a letter."""

    token: str
    logprob: Log
    bytes: list[Byte] | None = None

    @property
    def said(self) -> str:
        """Its text; a byte that is no letter by itself becomes one that stands in no label."""
        return self.token if self.bytes is None else bytes(self.bytes).decode(errors="replace")


class Token(Alternative, frozen=True):
    """A token of the answer, and what else could have stood there."""

    top_logprobs: list[Alternative] = []


class Problem(msgspec.Struct, frozen=True):
    """Why a call was refused; its message may quote a turn and is left unread."""

    type: str | None = None
    code: str | int | None = None


class _Logprobs(msgspec.Struct, frozen=True):
    content: list[Token] | None = None


class _Refusal(msgspec.Struct, frozen=True):
    error: Problem


class _Coded(msgspec.Struct, frozen=True):
    code: Status


class _Excuse(msgspec.Struct, frozen=True):
    error: _Coded


_COMPLETION = msgspec.json.Decoder(Completion)
_LOGPROBS = msgspec.json.Decoder(_Logprobs | None)
_USAGE = msgspec.json.Decoder(Usage | None)
_FINGERPRINT = msgspec.json.Decoder(str | None)
_REFUSAL = msgspec.json.Decoder(_Refusal)
_EXCUSE = msgspec.json.Decoder(_Excuse)
_LONGEST_WORD = 64


def completion(body: bytes) -> Completion:
    """The answer, with a choice at least. Raises ValueError or RecursionError."""
    try:
        answer = _COMPLETION.decode(body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        answer = _COMPLETION.decode(_json(body))
    if not answer.choices:
        raise msgspec.ValidationError("no choice")
    return answer


def tokens(choice: Choice) -> list[Token]:
    """The answer's tokens; none where the server does not tell, or in a shape of its own."""
    found = _decoded(choice.logprobs, _LOGPROBS)
    return (found.content if found else None) or []


def usage(answer: Completion) -> Usage:
    """What the answer cost; nothing where the server does not tell."""
    return _decoded(answer.usage, _USAGE) or Usage()


def fingerprint(answer: Completion) -> str:
    """Which of its configurations a server says that it answered with; "" where it says none."""
    return (_decoded(answer.system_fingerprint, _FINGERPRINT) or "")[:LONGEST_FINGERPRINT]


def refusal(body: bytes) -> str:
    """A server's word for why it refused; "" where it is no plain word."""
    if (found := _decoded(body, _REFUSAL)) is None:
        return ""
    words = (found.error.code, found.error.type)
    return next((word for word in words if isinstance(word, str) and _is_plain(word)), "")


def excuse(body: bytes) -> int | None:
    """The status that an answer of 200 tells of, as proxies do of what failed behind them."""
    found = _decoded(body, _EXCUSE)
    return found.error.code if found else None


def _decoded(part: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[Part]) -> Part | None:
    try:
        return decoder.decode(part)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _json(body: bytes) -> bytes:
    """The body as JSON, of servers that write numbers as Python does: `NaN` becomes null."""
    numbers = {"-Infinity": IMPOSSIBLE}
    return msgspec.json.encode(json.loads(body, parse_constant=numbers.get))


def _is_plain(word: str) -> bool:
    # ASCII: a sentence in Chinese is "alphanumeric", too.
    return (
        len(word) <= _LONGEST_WORD
        and word.isascii()
        and word.replace("_", "").replace("-", "").replace(".", "").isalnum()
    )
