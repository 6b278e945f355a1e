"""A PostgreSQL server that a test stops, kills and starts again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from hitherto.stores.postgres import schema
from hitherto.stores.postgres.embedded import cluster
from hitherto.stores.postgres.embedded.server import EmbeddedServer
from tests.faults.waiting import until

FAST, KILL = signal.SIGINT, signal.SIGKILL
"""The ways in which a server can end: it is stopped and ends its sessions, or it dies."""


class Server:
    """One server in `directory`, with the schema in its database at `url`."""

    def __init__(self, directory: Path, use: EmbeddedServer) -> None:
        self._directory = directory
        self._use = use
        self.url = use.url

    @classmethod
    async def start(cls, directory: Path) -> Server:
        made = cls(directory, await EmbeddedServer.start(directory))
        await schema.ensure(made.url, patience=10)
        return made

    async def stop(self, how: signal.Signals) -> None:
        """Returns when no process of it is left."""
        os.kill(int((self._directory / "data" / "postmaster.pid").read_text().split()[0]), how)
        await until(lambda: not cluster.server_processes(self._directory), f"the server has ended at {how.name}")

    async def start_again(self) -> None:
        """Returns when it answers."""
        await asyncio.to_thread(cluster.ensure_running, self._directory)

    async def end(self) -> None:
        if cluster.answers(self._directory):
            await self._use.stop()
        cluster.kill(self._directory)
