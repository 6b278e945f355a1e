"""An endpoint on 127.0.0.1 that speaks chat completions or compaction, or fails to, as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One response. `cut` sends so many bytes of the body and hangs up, or sends the rest once `until` is set; `pause`
    waits so many seconds before each byte; `silent` says nothing at all until the endpoint is closed; `endless` sends
    the body again and again until nobody listens any more; `charset` is how the body is written."""

    status: int = 200
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: int | None = None
    until: threading.Event | None = None
    pause: float = 0
    silent: bool = False
    endless: bool = False
    charset: str = "utf-8"


def said(content: object, *, finish: str = "stop", **message: object) -> Answer:
    """A chat completion as OpenAI sends it."""
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_780_000_000,
        "model": "small",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "logprobs": None,
                "finish_reason": finish,
            }
        ],
        "usage": {
            "prompt_tokens": 91,
            "completion_tokens": 17,
            "total_tokens": 108,
            "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        },
    }
    return Answer(body=json.dumps(completion))


def compacted(*items: Body, **response: object) -> Answer:
    """A compaction as OpenAI sends it."""
    compaction = {
        "id": "resp_1",
        "object": "response.compaction",
        "created_at": 1_780_000_000,
        "output": list(items),
        "usage": {
            "input_tokens": 139,
            "input_tokens_details": {"cached_tokens": 128},
            "output_tokens": 438,
            "total_tokens": 577,
        },
        **response,
    }
    return Answer(body=json.dumps(compaction))


def refused(status: int, message: str, *, param: str | None = None, code: str | None = None, **headers: str) -> Answer:
    """An error as OpenAI sends it."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=json.dumps({"error": error}), headers=named)


class Endpoint:
    """Gives `answers` in turn, the last one for ever; one that is a function gets the request's body. `asked` are
    the bodies it got, `headers` what came with them, by names in lower case, and `paths` where, with the query.
    `reached` is set at the first. What is not asked at `path`, where there is one, is not found."""

    def __init__(self, *answers: Answer | Callable[[Body], Answer], path: str | None = "/v1/chat/completions") -> None:
        self._path = path
        self.paths: list[str] = []
        self.asked: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.reached = threading.Event()
        self._answers = answers
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, body: Body, headers: dict[str, str]) -> Answer:
        given = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append(body)
        self.headers.append(headers)
        self.paths.append(path)
        self.reached.set()
        return given if isinstance(given, Answer) else given(body)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint, closing = self, self._closing

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = endpoint.answer(self.path, body, {name.lower(): value for name, value in self.headers.items()})
                if endpoint._path is not None and self.path != endpoint._path:
                    answer = refused(404, f"Unknown request URL: POST {self.path}")
                if answer.silent:
                    closing.wait()
                    self.close_connection = True
                    return
                sent = answer.body.encode(answer.charset)
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                if not answer.endless:
                    self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.close_connection = answer.endless or (answer.cut is not None and answer.until is None)
                if answer.endless:
                    self._repeat(sent)
                    return
                self._send(sent[: answer.cut], answer.pause)
                if answer.until is not None:
                    answer.until.wait()
                    with suppress(ConnectionError):
                        self._send(sent[answer.cut :], answer.pause)

            def _repeat(self, sent: bytes) -> None:
                with suppress(ConnectionError):
                    while not closing.is_set():
                        self.wfile.write(sent)

            def _send(self, sent: bytes, pause: float) -> None:
                if not pause:
                    self.wfile.write(sent)
                    return
                for at in range(len(sent)):
                    if closing.wait(pause):
                        return
                    self.wfile.write(sent[at : at + 1])

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


@asynccontextmanager
async def connecting(make: Callable[..., Any], **usual: Any) -> AsyncGenerator[Callable[..., Any]]:
    """Gives what makes adapters at an endpoint, with options beside or in place of the usual ones, and closes them
    twice, which is allowed."""
    made: list[Any] = []

    def connect(endpoint: Endpoint, **options: Any) -> Any:
        made.append(make(**{"base_url": endpoint.url, **usual, **options}))
        return made[-1]

    yield connect
    for adapter in 2 * made:
        await adapter.aclose()
