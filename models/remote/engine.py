"""Engine `remote`: one call a turn that answers every slot, and one a flip, to any OpenAI-compatible server.

Relevance is asked for in three words and weighed like a label. Answers are kept for a while: when a batch
fails over one call, or its caller stops waiting, what was paid for already is not asked again.
"""

from collections.abc import Sequence

import msgspec
import structlog

from models.execution import PROBE
from models.language.budget import fit
from models.language.chat import talk
from models.language.labels import LETTERS
from models.language.marks import missing
from models.language.prompts import INSTRUCTION, explain_body, lettered, observe_body, quoted
from models.language.rule import UNDETERMINED
from models.language.settings import InvalidSetting, ReaderSettings
from models.language.triggers import explained, plain_reason
from models.reader import ExplainRequest, ObserveRequest, ReaderRejected
from models.remote.asking import WAYS, Answer, Asker, Way
from models.remote.client import RemoteClient, RemoteConfig, unwrapped
from models.remote.forms import (
    KINDS,
    OBSERVE,
    OBSERVE_LABELS,
    RELEVANCE,
    Explained,
    Observed,
    Unreadable,
    explain_form,
    label_at,
)
from models.remote.kept import Kept
from models.remote.shares import shares
from tracker.observations import Evidence, Explanation, Model, Observation, Probabilities, Trigger
from tracker.stances import TriggerKind

ENGINE = "remote"
DIGITS = 6
BUDGET = 2048  # tokens that a prompt may show of a request: a window whole, mostly
BYTES_A_TOKEN = 3  # a server's tokenizer is not known here
FRAME_TOKENS = 500  # the instruction, and the answer
KEPT = 1024  # answers
KEPT_SECONDS = 900.0  # an outage's first retries; not longer, as people may be erased meanwhile
LABELS = {**OBSERVE_LABELS, "cause": tuple(KINDS)}

_log = structlog.get_logger(__name__)


class RemoteEngine:
    """Reads turns with a server's model; not safe between threads, as no engine is."""

    def __init__(self, client: RemoteClient, budget: int = BUDGET, ways: tuple[Way, ...] = WAYS) -> None:
        self._client, self._budget = client, budget
        self._asker = Asker(client, ways)
        self._observations = Kept(self._observed, KEPT, KEPT_SECONDS)
        self._explanations = Kept(self._explained, KEPT, KEPT_SECONDS)
        self._revision = ""

    @property
    def model(self) -> Model:
        """Who reads, whatever the language; the revision is the server's fingerprint."""
        return self._model(UNDETERMINED)

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order. Raises Unreadable where the model gives none of that form."""
        return unwrapped(self._client.each(requests, self._observation))

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order; a plain one where the model gives none of that form."""
        return unwrapped(self._client.each(requests, self._explanations))

    def tokens(self, request: ObserveRequest) -> int:
        """About how many tokens a request costs."""
        texts = (request.proposition, request.turn.text, *(turn.text for turn in request.window))
        return min(sum(map(_estimated, texts)), self._budget) + FRAME_TOKENS

    def close(self) -> None:
        """Give connections and thread back."""
        self._client.close()

    async def _observation(self, request: ObserveRequest) -> Observation:
        # Who sends the probe asks whether turns are read now: no answer of before tells.
        return await (self._observed if request == PROBE else self._observations)(request)

    async def _observed(self, request: ObserveRequest) -> Observation:
        answer = await self._asker.ask(talk(INSTRUCTION, observe_body(self._fitted(request))), OBSERVE)
        self._revision = answer.fingerprint
        said, turn = answer.value, request.turn
        position = _weighed(answer, "position", said.position)
        relevance = _weighed(answer, "relevance", said.relevance)
        relevant = sum(RELEVANCE[word] * share for word, share in relevance.items())
        return Observation(
            turn=turn.turn,
            revision=request.revision,
            target=request.target,
            holder=turn.holder,
            expressed=Probabilities(**{label: round(share, DIGITS) for label, share in position.items()}),
            emotion=said.emotion,
            sentiment=said.sentiment,
            relevance=min(1.0, round(relevant, DIGITS)),
            read_under=request.state,
            model=self._model(turn.language or UNDETERMINED),
            marks=missing(request),
        )

    async def _explained(self, request: ExplainRequest) -> Explanation:
        shown = self._fitted(request.observed)
        form = explain_form(LETTERS[: len(shown.window) + 1], _modalities(shown))
        try:
            answer = await self._asker.ask(talk(INSTRUCTION, explain_body(shown, request.after)), form)
        except (Unreadable, ReaderRejected) as error:  # the flip stands, whether or not it can be explained
            _log.warning("remote.unexplained", error=type(error).__name__)
            return _plainly(request)
        return _explanation(request, shown, answer)

    def _fitted(self, request: ObserveRequest) -> ObserveRequest:
        return fit(request, self._budget, _estimated)

    def _model(self, language: str) -> Model:
        return Model(self._client.config.model, self._revision, ENGINE, language)


def client_from(settings: ReaderSettings) -> RemoteClient:
    """A client of the server that settings name. Raises InvalidSetting."""
    if not settings.remote_url or not settings.remote_model:
        lacking = "remote_model" if settings.remote_url else "remote_url"
        raise InvalidSetting(lacking, "unset", "engine remote needs a server's address and a model's name")
    _check_key(settings.remote_url, settings.remote_key)
    config = RemoteConfig(
        url=settings.remote_url,
        model=settings.remote_model,
        key=settings.remote_key,
        parallel=settings.remote_parallel,
        per_minute=settings.remote_per_minute,
        seconds=settings.remote_seconds,
        batch_seconds=max(RemoteConfig.batch_seconds, 2 * settings.remote_seconds),
    )
    try:
        return RemoteClient(config)
    except ValueError as error:
        raise InvalidSetting("remote_url", str(error), "set the server's address, up to /v1") from None


def _check_key(url: str, key: str | None) -> None:
    """Refuses what would fail every call: a header takes no line break, and a server only one proof."""
    if key is None:
        return
    if not key.isascii() or not key.isprintable() or key != key.strip():
        raise InvalidSetting("remote_key", "what no header takes stands in it", "set the bare key")
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise InvalidSetting("remote_url", "a name or password beside a key", "set one of the two")


def _estimated(text: str) -> int:
    return len(quoted(text).encode(errors="replace")) // BYTES_A_TOKEN + 1


def _weighed(answer: Answer[Observed] | Answer[Explained], key: str, named: str) -> dict[str, float]:
    labels, at = LABELS[key], label_at(answer.content, key)
    if at is None:
        return {label: float(label == named) for label in labels}
    return shares(answer.tokens, answer.content, at, labels, named)


def _modalities(request: ObserveRequest) -> tuple[str, ...]:
    """What the new turn shows in."""
    seen = [item.modality.value for item in request.turn.media if item.description]
    return tuple(dict.fromkeys(["text"] * bool(request.turn.text or not seen) + seen))


def _explanation(request: ExplainRequest, shown: ObserveRequest, answer: Answer[Explained]) -> Explanation:
    said, mover = answer.value, lettered(shown)[answer.value.source]
    confidence = round(_weighed(answer, "cause", said.cause)[said.cause], DIGITS)
    trigger = Trigger(TriggerKind(KINDS[said.cause]), (mover.turn,), (mover.holder,), confidence)
    made = explained(request.observed, trigger, said.rationale)
    evidence = tuple(Evidence(shown.turn.turn, part) for part in dict.fromkeys(said.evidence))
    return msgspec.structs.replace(made, evidence=evidence or made.evidence)


def _plainly(request: ExplainRequest) -> Explanation:
    """What is known without a model's words; confidence 0, since nobody weighed the kind."""
    observed = request.observed
    mover = observed.reply or observed.turn
    trigger = Trigger(TriggerKind.FACTUAL_LOGICAL, (mover.turn,), (mover.holder,), 0.0)
    return explained(observed, trigger, plain_reason(observed, request.after, mover.turn))
