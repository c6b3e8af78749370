"""What an OpenAI-compatible server answers: only what is used of it, whatever else stands there."""

from typing import Annotated, Any

import msgspec

Body = dict[str, Any]
THOUGHT = "</think>"  # behind it stands the answer of a model that thinks aloud
Byte = Annotated[int, msgspec.Meta(ge=0, le=255)]
Log = Annotated[float, msgspec.Meta(le=1.0)]  # above 0 by a rounding at most: another number is none


class Said(msgspec.Struct, frozen=True):
    """The model's message; `content` is null where it refused, or only thought."""

    content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One completion. Log-probabilities are decoded apart: their shape differs by server."""

    message: Said
    finish_reason: str | None = None
    logprobs: msgspec.Raw = msgspec.Raw(b"null")


class CachedTokens(msgspec.Struct, frozen=True):
    """How much of a prompt the server had read before."""

    cached_tokens: int | None = None


class Usage(msgspec.Struct, frozen=True):
    """What a call cost, in tokens."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: CachedTokens | None = None


class Completion(msgspec.Struct, frozen=True):
    """The answer to one call."""

    choices: list[Choice]
    usage: Usage | None = None
    system_fingerprint: str | None = None


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


_COMPLETION = msgspec.json.Decoder(Completion)
_LOGPROBS = msgspec.json.Decoder(_Logprobs | None)
_REFUSAL = msgspec.json.Decoder(_Refusal)
_LONGEST_WORD = 64


def completion(body: bytes) -> Completion:
    """The answer, with a choice at least. Raises msgspec.DecodeError or UnicodeDecodeError."""
    answer = _COMPLETION.decode(body)
    if not answer.choices:
        raise msgspec.ValidationError("no choice")
    return answer


def tokens(choice: Choice) -> list[Token]:
    """The answer's tokens; none where the server does not tell, or in a shape of its own."""
    try:
        found = _LOGPROBS.decode(choice.logprobs)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    return (found.content if found else None) or []


def refusal(body: bytes) -> str:
    """A server's word for why it refused; "" where it is no plain word."""
    try:
        problem = _REFUSAL.decode(body).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    words = (problem.code, problem.type)
    return next((word for word in words if isinstance(word, str) and _is_plain(word)), "")


def _is_plain(word: str) -> bool:
    # ASCII: a sentence in Chinese is "alphanumeric", too.
    return (
        len(word) <= _LONGEST_WORD
        and word.isascii()
        and word.replace("_", "").replace("-", "").replace(".", "").isalnum()
    )
