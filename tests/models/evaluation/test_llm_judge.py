"""The LLM judge against a real HTTP server on this machine."""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from models.evaluation import llm_judge
from models.evaluation.judge import Field, Question
from models.evaluation.llm_judge import GIVE_UP_AFTER, LLMJudge, LLMSettings, prompt

SAME, OTHER = (
    Question(Field.TARGET, "trams", "streetcars", "A: hi"),
    Question(Field.TARGET, "x", "yxz", "A: hi"),
)


class Server:
    """Answers as told; remembers every request's path, headers and body."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answer: Callable[[str], str | int] = lambda asked: "YES"
        self.delay = 0.0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, dict(self.headers), body))
                time.sleep(server.delay)
                said = server.answer(body["messages"][-1]["content"])
                self.send_response(said if isinstance(said, int) else 200)
                self.end_headers()
                content = {"choices": [{"message": {"content": said}}]}
                self.wfile.write(json.dumps(content).encode())

            def log_message(self, *args: object) -> None:
                pass

            def handle(self) -> None:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # timed out on purpose
                    super().handle()

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    yield started
    started.close()


@pytest.fixture
def judge(server: Server, tmp_path: Path) -> LLMJudge:
    return made(server, tmp_path)


def made(server: Server, tmp_path: Path, **given: Any) -> LLMJudge:
    settings = {"base_url": server.url, "model": "m", "cache": tmp_path / "cache" / "api_match_cache.json"}
    return LLMJudge(LLMSettings(**(settings | given)))


def test_yes_and_no(server: Server, judge: LLMJudge) -> None:
    server.answer = lambda asked: "YES" if "streetcars" in asked else " no.\n"
    assert judge.same([SAME, OTHER]) == [True, False]
    assert (judge.asked, judge.cached, judge.fallbacks) == (2, 0, 0)
    assert judge.name == "m"


def test_what_is_asked(server: Server, tmp_path: Path) -> None:
    made(server, tmp_path, api_key="secret").same([SAME])
    path, headers, body = server.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert (body["model"], body["temperature"]) == ("m", 0)
    assert body["messages"] == [
        {"role": "system", "content": llm_judge.SYSTEM},
        {"role": "user", "content": prompt(SAME)},
    ]
    assert prompt(SAME) == (
        "Dialogue Context: A: hi\nPredicted Target: trams\nGold Target: streetcars\nIs the Predicted Target"
        " semantically equivalent to, contained within, or does it refer to the core entity/proposition of"
        " the Gold Target?"
    )


def test_each_field_has_its_prompt() -> None:
    assert "Predicted Rationale: a" in prompt(Question(Field.RATIONALE, "a", "b", "c"))
    term = prompt(Question(Field.TERM, "a", "b", "c"))
    assert term.startswith("Given the context of the dialogue, do 'a' and 'b' have similar meanings?")
    assert term.endswith("c")


def test_answers_outlive_the_process(server: Server, judge: LLMJudge, tmp_path: Path) -> None:
    assert judge.same([SAME]) == [True]
    server.answer = lambda asked: "NO"
    again = made(server, tmp_path)
    assert again.same([SAME]) == [True]
    assert (again.asked, again.cached, len(server.requests)) == (0, 1, 1)
    assert made(server, tmp_path, model="other").same([SAME]) == [False]
    assert list((tmp_path / "cache").iterdir()) == [tmp_path / "cache" / "api_match_cache.json"]


@pytest.mark.parametrize("answer", [500, 429, "maybe", ""])
def test_what_is_no_answer_falls_back_to_containment_and_is_asked_again(
    server: Server, judge: LLMJudge, answer: str | int
) -> None:
    server.answer = lambda asked: answer
    assert judge.same([SAME, OTHER]) == [False, True]
    assert judge.fallbacks == 2
    assert judge.name == "m, 2 of 2 by containment"
    server.answer = lambda asked: "YES"
    assert judge.same([SAME, OTHER]) == [True, True]


def test_a_slow_server_falls_back(server: Server, tmp_path: Path) -> None:
    server.delay = 0.5
    slow = made(server, tmp_path, timeout=0.05)
    assert slow.same([SAME, OTHER]) == [False, True]
    assert slow.fallbacks == 2


def test_a_body_that_is_no_completion_falls_back(server: Server, tmp_path: Path) -> None:
    server.answer = lambda asked: None
    assert made(server, tmp_path).same([OTHER]) == [True]


def test_a_dead_server_is_given_up(server: Server, tmp_path: Path) -> None:
    server.answer = lambda asked: 500
    many = [Question(Field.TARGET, str(place), "none", "c") for place in range(30)]
    assert made(server, tmp_path, parallel=1).same(many) == [False] * 30
    assert len(server.requests) == GIVE_UP_AFTER


def test_nobody_listens(tmp_path: Path) -> None:
    settings = LLMSettings(base_url="http://127.0.0.1:1", cache=tmp_path / "c.json")
    assert LLMJudge(settings).same([SAME, OTHER]) == [False, True]
    assert not (tmp_path / "c.json").exists()
