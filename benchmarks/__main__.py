"""Run the benchmarks: `python -m benchmarks [--only NAME]… [--quick | --full] [--json [FILE]]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks import (
    append,
    branches,
    calls,
    contexts,
    erasing,
    facts,
    history,
    idle,
    inspector,
    known,
    length,
    memory,
    planning,
    recall,
    replay,
    scale,
    service,
    soak,
    synchronous,
    throughput,
    trips,
    views,
    wake,
)
from benchmarks.ground import Ground
from benchmarks.report import Findings, show, to_json

BENCHMARKS: dict[str, Callable[[Ground], Awaitable[Findings]]] = {
    "append": append.run,
    "branches": branches.run,
    "calls": calls.run,
    "planning": planning.run,
    "length": length.run,
    "views": views.run,
    "history": history.run,
    "scale": scale.run,
    "contexts": contexts.run,
    "replay": replay.run,
    "synchronous": synchronous.run,
    "service": service.run,
    "trips": trips.run,
    "wake": wake.run,
    "throughput": throughput.run,
    "idle": idle.run,
    "memory": memory.run,
    "recall": recall.run,
    "facts": facts.run,
    "known": known.run,
    "erasing": erasing.run,
    "inspector": inspector.run,
    "soak": soak.run,
}


def main() -> None:
    """The entry point. A bar that is missed is shown and is no failure: time is the machine's, not the code's alone."""
    arguments = _arguments()
    for name in [name for name in os.environ if name.startswith("HITHERTO_")]:
        del os.environ[name]  # nobody's settings count here
    size = "a smoke run: sizes are cut down, the figures mean nothing" if arguments.quick else "full sizes"
    if not arguments.quick and not arguments.full:
        size += ", but for the soak"
    found, machine = asyncio.run(
        _run(
            arguments.only or list(BENCHMARKS),
            quick=arguments.quick,
            full=arguments.full,
            size=None if arguments.json == "-" else size,
        )
    )
    if arguments.json is not None:
        said = json.dumps({"machine": machine, "quick": arguments.quick, "figures": to_json(found)}, indent=2) + "\n"
        if arguments.json == "-":
            sys.stdout.write(said)
        else:
            Path(arguments.json).write_text(said, encoding="utf-8")


def _arguments() -> Any:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Hitherto's benchmarks, as ratios.")
    parser.add_argument(
        "--only", action="append", choices=list(BENCHMARKS), metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}"
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, and no more")
    sizes.add_argument("--full", action="store_true", help="the soak at its full size too, which takes minutes")
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="write JSON, to standard output by default"
    )
    return parser.parse_args()


async def _run(names: list[str], *, quick: bool, full: bool, size: str | None) -> tuple[dict[str, Findings], str]:
    """What each benchmark found, which is printed as it comes unless `size` is None, and on what it ran."""
    found: dict[str, Findings] = {}
    async with Ground.open(quick=quick, full=full) as ground:
        async with ground.admin() as connection:
            row = await (await connection.execute("show server_version")).fetchone()
        assert row is not None
        machine = f"Python {platform.python_version()}, PostgreSQL {row[0]}, {os.cpu_count()} cores"
        if size is not None:
            sys.stdout.write(f"{machine}; {size}\n")
        for name in names:
            begun = time.monotonic()
            found[name] = await BENCHMARKS[name](ground)
            sys.stderr.write(f"{name}: done in {time.monotonic() - begun:.0f} s\n")
            if size is not None:
                show(name, found[name])
    return found, machine


if __name__ == "__main__":
    main()
