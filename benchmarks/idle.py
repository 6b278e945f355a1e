"""What a worker with nothing to do takes of the processors."""

from __future__ import annotations

import asyncio
import time

from benchmarks.fleet import Processors, backends, hands
from benchmarks.ground import Ground
from benchmarks.report import Bar, Figure, Findings

_BAR = Bar(limit=1)


async def run(ground: Ground) -> Findings:
    """A worker process, and PostgreSQL's processes for it, while no digest is due."""
    seconds = ground.size(30, quick=2)
    async with ground.database() as url, ground.admin(url) as admin, hands(("work", url)) as (worker,):
        await asyncio.sleep(min(seconds, 5))  # until it has settled down
        process, servers = Processors(), Processors()
        process.look([worker.pid])
        servers.look(await backends(admin))
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            await asyncio.sleep(1)
            servers.look(await backends(admin), anew=True)
        process.look([worker.pid])
        took = time.perf_counter() - begun
        connections = len(await backends(admin))
    return Findings(
        [
            Figure(what="idle worker, of a core", value=process.seconds / took * 100, unit="%"),
            Figure(what="and its connections' processes", value=servers.seconds / took * 100, unit="%"),
            Figure(what="both", value=(process.seconds + servers.seconds) / took * 100, unit="%", bar=_BAR),
        ],
        [f"over {took:.0f} s, {connections} connections; user and system time, which the kernel counts in hundredths."],
    )
