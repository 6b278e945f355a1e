"""A PostgreSQL server that a test stops, kills and starts again."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Ping

from hitherto.store import schema
from hitherto.store.connections import row_security
from hitherto.store.embedded import cluster
from hitherto.store.embedded.server import SERVICE, EmbeddedServer
from tests.faults.waiting import until

FAST, KILL = signal.SIGINT, signal.SIGKILL
"""The ways in which a server can end: it is stopped and ends its sessions, or it dies."""


class Server:
    """One server in `directory`, with the schema in its database at `url`; at `service_url`, as a service's role."""

    def __init__(self, directory: Path, use: EmbeddedServer) -> None:
        self._directory = directory
        self._use = use
        self.url, self.service_url = use.url, use.service_url

    @classmethod
    async def start(cls, directory: Path) -> Server:
        made = cls(directory, await EmbeddedServer.start(directory))
        await schema.ensure(made.url, patience=10)
        await row_security.grant(made.url, SERVICE)
        return made

    async def stop(self, how: signal.Signals) -> None:
        """Returns when no process of it is left."""
        os.kill(int((self._directory / "data" / "postmaster.pid").read_text().split()[0]), how)
        await until(lambda: not cluster.server_processes(self._directory), f"the server has ended at {how.name}")

    async def start_again(self) -> None:
        """Returns when it answers."""
        await asyncio.to_thread(cluster.ensure_running, self._directory)

    async def start_closed(self) -> None:
        """Start it as a server that takes no connections, as one that recovers does, until `take_connections`."""
        (self._directory / "data" / "standby.signal").touch()
        named = f"cluster_name={cluster.mark(self._directory)}"  # so that it is known as its server, and stopped
        port = conninfo_to_dict(self.url)["port"]
        options = f"-k . -c listen_addresses= -p {port} -c hot_standby=off -c {named}"
        await asyncio.to_thread(self._pg_ctl, "start", "-W", "-l", "log", "-o", options)
        await until(lambda: cluster._ping(self._directory) == Ping.REJECT, "it refuses connections")  # pyright: ignore[reportPrivateUsage]

    async def take_connections(self) -> None:
        await asyncio.to_thread(self._pg_ctl, "promote")

    def _pg_ctl(self, *words: str) -> None:
        complaint = cluster._run("pg_ctl", *words, directory=self._directory, data="data")  # pyright: ignore[reportPrivateUsage]
        assert not complaint, complaint

    async def end(self) -> None:
        if cluster.answers(self._directory):
            await self._use.stop()
        cluster.kill(self._directory)
