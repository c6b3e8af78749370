"""One question to a server: the best way it takes, one repair of an answer, and whose fault a refusal is.

Servers differ in what they take: a schema that binds the answer, the log-probabilities of its tokens, the
usual parameters. The ways are tried in order until one is taken, and that one is kept for the process.
"""

from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

import structlog

from models.language.chat import Message, Talk
from models.reader import ReaderRejected
from models.remote import wire
from models.remote.client import RemoteClient
from models.remote.failures import Broken, Misconfigured, Refused, remedy_for
from models.remote.forms import Form, Unreadable

Value = TypeVar("Value")

MANY, FEW = 20, 5  # tokens told beside each: the most that hosted servers take, and what most others do
THINKING_TOKENS = 4096  # room for a model that thinks first
HARMLESS = "N/A"  # a question that no filter minds
SHOWN_AGAIN = 500  # characters of an answer that is to be mended
REPAIR = "That was not the form asked for."
FILTERED = "content_filter"
OF_THE_WAY = frozenset({400, 422})  # refusals that another way may get around

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Way:
    """What is sent beside the messages."""

    schema: bool = False  # binds the answer to the form
    logprobs: int = 0  # tokens told beside each
    plain: bool = False  # neither temperature nor the older name of the limit: models that think refuse both

    def body(self, form: Form[Value]) -> wire.Body:
        """The parameters of a call."""
        schema = {"name": form.name, "strict": True, "schema": form.schema}
        bound = {"response_format": {"type": "json_schema", "json_schema": schema}} if self.schema else {}
        told = {"logprobs": True, "top_logprobs": self.logprobs} if self.logprobs else {}
        return {**_parameters(form.limit, plain=self.plain), **bound, **told}


WAYS = (
    Way(schema=True, logprobs=MANY),
    Way(schema=True, logprobs=FEW),
    Way(schema=True),
    Way(schema=True, plain=True),
    Way(logprobs=MANY),
    Way(logprobs=FEW),
    Way(),
    Way(plain=True),
)


@dataclass(frozen=True)
class Answer(Generic[Value]):
    """What was read, and what it was read from."""

    value: Value
    content: str
    tokens: list[wire.Token]
    fingerprint: str


class Asker:
    """Asks in forms. `ways`: those to try, in order; one alone is forced."""

    def __init__(self, client: RemoteClient, ways: tuple[Way, ...] = WAYS) -> None:
        self.client = client
        self._ways = ways
        self._taken: dict[str, int] = {}  # by form: the place of the way that a server took

    async def ask(self, talk: Talk, form: Form[Value]) -> Answer[Value]:
        """The answer, read. Raises Unreadable, ReaderRejected and ReaderUnavailable."""
        asked = _asking(talk, form)
        completion = await self._completed(asked, form)
        try:
            return _read(completion, form)
        except ValueError as error:
            mending = (*asked, *_mending(completion, form, error))
        _log.info("remote.repaired", form=form.name)
        completion = await self._completed(mending, form)
        try:
            return _read(completion, form)
        except ValueError as error:
            raise Unreadable(f"{form.name}: the model's answer does not have its form, twice") from error

    async def _completed(self, talk: Talk, form: Form[Value]) -> wire.Completion:
        async with self.client.question():
            try:
                return await self._taken_way(talk, form)
            except Refused as refused:
                await self._check_harmless(talk, form, refused)
                raise ReaderRejected(f"the remote server refuses it: {refused}") from None
            except Broken as broken:
                await self._check_harmless(talk, form, broken)
                raise Unreadable(f"{form.name}: the server breaks on this call alone") from broken

    async def _taken_way(self, talk: Talk, form: Form[Value]) -> wire.Completion:
        """Raises the first way's Refused where none is taken; a known way is the only one tried."""
        known = self._taken.get(form.name)
        refusals: list[Refused] = []
        for place in range(len(self._ways)) if known is None else (known,):
            try:
                completion = await self._call(talk, form, self._ways[place])
            except Refused as refused:
                refusals.append(refused)
                if refused.status not in OF_THE_WAY:
                    break
                continue
            self._take(form, place)
            return completion
        raise refusals[0]

    def _take(self, form: Form[Value], place: int) -> None:
        if form.name not in self._taken:
            self._taken[form.name] = place
            _log.info("remote.way", form=form.name, **asdict(self._ways[place]))

    async def _check_harmless(self, talk: Talk, form: Form[Value], error: Refused | Broken) -> None:
        """Raises ReaderUnavailable where the server takes no call at all: then no turn is to blame."""
        standing = talk[:1] if talk[0].role == "system" else ()
        try:
            await self._taken_way((*standing, Message("user", HARMLESS)), form)
        except Refused as refused:
            self._taken.pop(form.name, None)  # it may have been started anew, and take other ways
            message = f"the remote server refuses every call: {error}; {_remedy(refused)}"
            raise Misconfigured(message, self.client.config.config_pause) from None

    async def _call(self, talk: Talk, form: Form[Value], way: Way) -> wire.Completion:
        completion = await self.client.complete({"messages": talk, **way.body(form)})
        if completion.choices[0].finish_reason == FILTERED:
            raise Refused(200, FILTERED)
        return completion


def _remedy(refused: Refused) -> str:
    if refused.status == 403:
        return remedy_for(403)
    return "set VOLTEFACE_REMOTE_MODEL to a model it serves, or look into its log"


def _parameters(limit: int, *, plain: bool) -> wire.Body:
    """Greedy words, at most `limit` tokens of them."""
    if plain:
        return {"max_completion_tokens": limit + THINKING_TOKENS}
    return {"temperature": 0, "max_tokens": limit}


def _asking(talk: Talk, form: Form[Value]) -> Talk:
    """The form is asked for in the standing instruction, which servers keep in a cache."""
    if not form.ask:
        return talk
    first, *others = talk
    if first.role != "system":
        return (Message("system", form.ask), *talk)
    return (Message("system", f"{first.content}\n\n{form.ask}"), *others)


def _mending(completion: wire.Completion, form: Form[Value], error: Exception) -> Talk:
    """What the model said, and what was wrong with it; neither is ever logged."""
    said = _content(completion)[:SHOWN_AGAIN] or HARMLESS
    reason = str(error)[:SHOWN_AGAIN]
    return Message("assistant", said), Message("user", f"{REPAIR} {reason}.\n{form.ask}")


def _content(completion: wire.Completion) -> str:
    """What the model answered, without what it thought before."""
    return (completion.choices[0].message.content or "").rpartition(wire.THOUGHT)[2].strip()


def _read(completion: wire.Completion, form: Form[Value]) -> Answer[Value]:
    content = _content(completion)
    tokens = wire.tokens(completion.choices[0])
    try:
        value = form.read(content)
    except RecursionError as error:  # brackets without end
        raise ValueError("it is nested too deep") from error
    return Answer(value, content, tokens, wire.fingerprint(completion))
