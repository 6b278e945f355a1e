"""A model on 127.0.0.1 that thinks for as long as a test wants."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from hitherto.providers.scripted import items
from tests.faults.waiting import until
from tests.providers.models.endpoint import Answer, said

_SAID = re.compile(r"^(\S+)/\S+ (?:asks|answers)$")
"""A message of these tests: which conversation it belongs to, and its key."""


@dataclass(eq=False)
class Call:
    """One call: whose key came with it, when it came (`time.monotonic`), and which messages it showed as new."""

    key: str
    at: float
    conversation: str | None
    seqs: tuple[int, ...]
    answered: Answer | None = None
    _told: threading.Event = field(default_factory=threading.Event)

    def release(self, answer: Answer | str = "They talk.") -> None:
        """Let a held call have its answer."""
        self.answered = answer if isinstance(answer, Answer) else said(items(answer))
        self._told.set()

    def wait(self) -> Answer:
        self._told.wait()
        assert self.answered is not None
        return self.answered


class ThinkingModel:
    """Speaks OpenAI's chat completions. `calls` are those it got, in order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._holding = False
        self._answers: list[Answer] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ThinkingModel:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for call in self.calls:
            if call.answered is None:
                call.release()

    def hold(self) -> None:
        """Calls from now on get no answer until they are released."""
        self._holding = True

    def answer_at_once(self, *answers: Answer) -> None:
        """Calls from now on are answered as they come: with `answers` in turn, then with a summary."""
        with self._lock:
            self._holding, self._answers = False, list(answers)

    async def asked(self, count: int) -> Call:
        """The call of that number, counted from 1, once it is there."""
        await until(lambda: len(self.calls) >= count, f"call {count} of the model")
        return self.calls[count - 1]

    def of(self, *keys: str) -> list[Call]:
        return [call for call in self.calls if call.key in keys]

    def _take(self, key: str, body: dict[str, Any]) -> Call:
        conversation, seqs = _shown(body["messages"][1]["content"])
        call = Call(key, time.monotonic(), conversation, seqs)
        with self._lock:
            self.calls.append(call)
            if not self._holding:
                call.release(self._answers.pop(0) if self._answers else said(items("They talk.")))
        return call

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = model._take(self.headers["Authorization"].removeprefix("Bearer "), body).wait()
                sent = answer.body.encode()
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Length": str(len(sent))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # who asked may have been killed
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType] (typeshed wants sockets)


def _shown(prompt: str) -> tuple[str | None, tuple[int, ...]]:
    """The new messages of a prompt: their conversation, where it says so, and their seqs."""
    lines = prompt.partition("New messages:\n")[2].splitlines()
    shown: Sequence[dict[str, Any]] = [json.loads(line) for line in lines]
    named = [found[1] for line in shown if (found := _SAID.match(line["text"]))]
    return named[0] if named else None, tuple(line["seq"] for line in shown)
