"""Engine and chat against a real server: llama.cpp with the embedded model, over HTTP."""

from collections.abc import Callable

import pytest

from models import execution
from models.language.chat import Chat, talk
from models.reader import Engine, ExplainRequest, ObserveRequest, ReaderRejected, ReaderUnavailable
from models.remote.asking import WAYS, Way
from models.remote.chat import RemoteChat
from models.remote.client import RemoteClient
from models.remote.engine import RemoteEngine
from stream.doctor import remote
from stream.settings import Settings
from tests.models.language.chat_contract import ChatContract
from tests.models.remote.conftest import Open
from tests.models.remote.llama_server import KEY, MODEL
from tracker.stances import Stance

pytestmark = pytest.mark.timeout(600)  # where nothing is cached: a download of 93 MB

Ask = Callable[..., ObserveRequest]
LABELS = ("support", "oppose", "neutral", "none")
ASKED = talk("Name the position.", 'Is "I love trams, build more of them" for or against trams?')


def test_it_reads_turns_and_explains_flips(llama: RemoteClient, ask: Ask) -> None:
    engine = RemoteEngine(llama)
    assert isinstance(engine, Engine)
    asked = [ask(), ask("no way, dogs smell", "10", language="en")]
    observed = execution.observe(engine, asked)
    for seen in observed:
        shares = [share for _, share in seen.expressed.ranked()]
        assert 0.3 < shares[0] < 1.0, "log-probabilities were read"
        assert sum(share > 0 for share in shares) > 1
        assert (seen.model.name, seen.model.engine) == (MODEL, "remote")
        assert seen.model.revision
    assert [seen.model.language for seen in observed] == ["und", "en"]
    spent = llama.spent
    assert spent.cached_tokens > spent.prompt_tokens / 3, "the instruction was read once"
    assert spent.completion_tokens > 0
    [explained] = execution.explain(engine, [ExplainRequest(asked[0], observed[0], Stance.SUPPORT)])
    assert explained.trigger.turns[0] in {"1", "2", "9"}
    assert explained.rationale
    assert 0.0 < explained.trigger.confidence < 1.0


def test_a_turn_beyond_its_context_is_refused_and_its_neighbour_is_read(
    llama: RemoteClient, ask: Ask
) -> None:
    engine = RemoteEngine(llama, budget=100_000)
    asked = [ask("dog " * 3000, "8"), ask()]
    outcomes = execution.execute(lambda some: execution.observe(engine, some), asked)
    assert isinstance(outcomes[0], execution.Rejected)
    assert not isinstance(outcomes[1], execution.Rejected | execution.Failed)


class TestChat(ChatContract):
    """The contract that a backbone in this process keeps, kept over HTTP."""

    @pytest.fixture
    def chat(self, llama: RemoteClient) -> Chat:
        return RemoteChat(llama)


def test_it_chooses_and_writes(llama: RemoteClient) -> None:
    chat = RemoteChat(llama)
    [shares] = chat.choose([ASKED], LABELS)
    assert sum(shares) == pytest.approx(1.0)
    assert sum(share > 0 for share in shares) > 1
    [words] = chat.write([ASKED], 12)
    assert words
    assert words == words.strip()
    assert (chat.name, bool(chat.revision)) == (MODEL, True)


@pytest.mark.parametrize("way", [way for way in WAYS if way.schema], ids=repr)
def test_each_bound_way_works_there(llama: RemoteClient, way: Way) -> None:
    [shares] = RemoteChat(llama, (way,)).choose([ASKED], LABELS)
    assert sum(shares) == pytest.approx(1.0)
    assert (max(shares) == 1.0) is not bool(way.logprobs)


def test_a_talk_beyond_its_context_is_refused_and_others_are_read(llama: RemoteClient, ask: Ask) -> None:
    chat = RemoteChat(llama)
    with pytest.raises(ReaderRejected, match="exceed_context"):
        chat.write([talk("", "dog " * 3000)], 4)
    assert chat.write([ASKED], 4)


async def test_doctor_finds_the_server_and_its_model(llama_url: str) -> None:
    asked = Settings(reader="remote", remote_url=llama_url, remote_model=MODEL, remote_key=KEY)
    [check] = await remote.examine(asked)
    assert (check.status, check.found) == ("ok", f"{llama_url}: it has {MODEL}")


def test_a_wrong_key_refuses_no_turn(llama_url: str, opened: Open, ask: Ask) -> None:
    engine = RemoteEngine(opened(llama_url, key="another"))
    with pytest.raises(ReaderUnavailable, match=r"401.*VOLTEFACE_REMOTE_KEY") as raised:
        engine.observe([ask()])
    assert raised.value.retry_after > 1


def test_a_wrong_address_refuses_no_turn(llama_url: str, opened: Open, ask: Ask) -> None:
    engine = RemoteEngine(opened(f"{llama_url}/nowhere", key="a-key"))
    with pytest.raises(ReaderUnavailable, match=r"404.*VOLTEFACE_REMOTE_URL"):
        engine.observe([ask()])
