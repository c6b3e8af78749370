"""A server that plays what no real one does on demand; it proves nothing about any real server.

`answers` are used up in order, then `default`. Each is a text, or a function of the call's body that gives
(status, headers, body), or None to cut the connection.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Raw = tuple[int, dict[str, str], bytes]
Play = Callable[[dict[str, Any]], Raw | None]

UNLIKELY = "zebra"
OBSERVED = '{"position": "support", "emotion": "joy", "sentiment": "positive", "relevance": "fully"}'


def completion(content: str | None, **more: Any) -> Raw:
    """A usual answer."""
    logprobs, finish = more.pop("logprobs", None), more.pop("finish_reason", "stop")
    choice = {
        "message": {"role": "assistant", "content": content},
        "finish_reason": finish,
        "logprobs": logprobs,
    }
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 60},
    }
    body = {"id": "x", "choices": [choice], "usage": usage, "system_fingerprint": "fp-1"} | more
    return 200, {}, json.dumps(body).encode()


def refused(status: int, code: str = "invalid_request_error", **headers: str) -> Play:
    """An answer that refuses, and quotes the turn as servers do."""
    body = json.dumps({"error": {"message": "quoted words of a turn", "type": code, "code": status}})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: (status, named, body.encode())


def slow(seconds: float) -> Play:
    def play(_: dict[str, Any]) -> Raw:
        time.sleep(seconds)
        return completion(OBSERVED)

    return play


def cut(_: dict[str, Any]) -> None:
    """Closes the connection in the middle of a call."""


def token(said: str, *others: tuple[str, float], logprob: float = -0.1) -> dict[str, Any]:
    """A token as vLLM and OpenAI tell it, in a list so long that its last is next to impossible."""

    def one(text: str, share: float) -> dict[str, Any]:
        return {"token": text, "logprob": share, "bytes": list(text.encode())}

    told = [(said, logprob), *others, (UNLIKELY, -30.0)]
    return one(said, logprob) | {"top_logprobs": [one(*other) for other in told]}


class FaultyServer:
    """Plays answers; remembers every call's headers and body, and how many were under way at once."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.times: list[float] = []
        self.answers: list[str | Play] = []
        self.default: str | Play = OBSERVED
        self.most = self._now = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> "FaultyServer":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(10)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [body for _, body in self.calls]

    def play(self, headers: dict[str, str], body: dict[str, Any]) -> Raw | None:
        with self._lock:
            self.calls.append((headers, body))
            self.times.append(time.monotonic())
            self._now += 1
            self.most = max(self.most, self._now)
            answer = self.answers.pop(0) if self.answers else self.default
        try:
            return completion(answer) if isinstance(answer, str) else answer(body)
        finally:
            with self._lock:
                self._now -= 1


def _handler(server: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            played = server.play(dict(self.headers), body | {"path": self.path})
            if played is None:
                self.close_connection = True
                return
            status, headers, said = played
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(said))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *args: object) -> None:
            pass

        def handle(self) -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # timed out on purpose
                super().handle()

    return Handler
