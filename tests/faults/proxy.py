"""A network before a server that swallows what is sent, and tells neither side."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.faults.waiting import until


class Proxy:
    """Listens on 127.0.0.1 before the server at `database`; `url` is its address.

    Connections that were there when something was swallowed, or were made meanwhile, stay silent when the network is
    back; and the server is never told that a client has closed one.
    """

    def __init__(self, database: str) -> None:
        asked = conninfo_to_dict(database)
        self._database, self._socket = database, f"{asked['host']}/.s.PGSQL.{asked['port']}"
        self._flows = list[_Flow]()
        self._silent = False
        self._words: bytes | None = None
        self._arrive = False
        self.swallowed = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = make_conninfo(self._database, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._server.close()
        for flow in self._flows:
            flow.task.cancel()
        await asyncio.gather(*(flow.task for flow in self._flows), return_exceptions=True)

    def swallow(self) -> None:
        """From now on whatever is sent is lost."""
        self._silent, self.swallowed = True, False
        for flow in self._flows:
            flow.loses_questions = flow.loses_answers = True

    def swallow_from(self, words: bytes, *, arrive: bool) -> None:
        """As `swallow`, from when a client sends these words. They arrive or not; their answer does not."""
        self._words, self._arrive = words, arrive

    async def has_swallowed(self) -> None:
        """Returns once something is lost."""
        await until(lambda: self.swallowed, "the network swallows something")

    def forward(self) -> None:
        """The network is back."""
        self._silent = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        flow = _Flow(self, task, lost=self._silent)
        self._flows.append(flow)
        try:
            answers, questions = await asyncio.open_unix_connection(self._socket)
        except OSError:  # the server is away
            writer.transport.abort()
            return
        try:
            with suppress(ConnectionError, asyncio.CancelledError):
                await asyncio.gather(flow.pump(reader, questions), flow.pump_back(answers, writer))
        finally:
            for one in (writer, questions):
                one.transport.abort()

    def listen(self, flow: _Flow, sent: bytes) -> None:
        """Look for the words that are waited for."""
        if self._words is not None and self._words in sent:
            self._words = None
            self.swallow()
            flow.loses_questions = not self._arrive


class _Flow:
    """The bytes of one connection."""

    def __init__(self, proxy: Proxy, task: asyncio.Task[None], *, lost: bool) -> None:
        self._proxy, self.task = proxy, task
        self.loses_questions = self.loses_answers = lost

    async def pump(self, reader: asyncio.StreamReader, questions: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            self._proxy.listen(self, data)
            if self.loses_questions:
                self._proxy.swallowed = True
            else:
                questions.write(data)
                await questions.drain()
                self.loses_questions = self.loses_answers
        if not self.loses_answers:
            questions.close()

    async def pump_back(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await answers.read(65_536):
            if self.loses_answers:
                self._proxy.swallowed = True
            else:
                writer.write(data)
                await writer.drain()
        if not self.loses_answers:
            writer.close()
