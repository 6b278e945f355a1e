"""What a whole corpus takes in memory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from benchmarks.ground import BUDGET, Ground
from benchmarks.report import Bar, Figure, Findings

_BAR = Bar(limit=300)
_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data" / "locomo" / "locomo10.json"

_HITHERTO = "from hitherto.cli import main; main()"

# A process of its own in between: Linux counts what a parent had in memory at the fork as its child's, and this one has
# next to nothing. Its standard output is the replay's, and one more line.
_LAUNCHER = """
import json, os, sys
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(status), "peak": usage.ru_maxrss}) + chr(10))
"""


async def run(ground: Ground) -> Findings:
    """The most memory that `hitherto replay` of LoCoMo had at once, in its own process."""
    file = Path(os.environ.get("LOCOMO", _BESIDE))
    if not await asyncio.to_thread(file.exists):
        return Findings(notes=["left out: there is no LoCoMo file; say where locomo10.json is with LOCOMO=FILE."])
    async with ground.database() as url:
        command = [sys.executable, "-c", _HITHERTO, "replay", str(file), "--budget", str(BUDGET), "--json"]
        command += ["--database", url, *(("--conversation", "conv-26") if ground.quick else ())]
        launcher = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _LAUNCHER, *command), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await launcher.communicate()
    *printed, last = said.decode().splitlines()
    ended = json.loads(last)
    if ended["code"] != 0:
        return Findings(notes=[f"failed: the replay ended with code {ended['code']}; what it said stands above."])
    replay = json.loads(printed[-1])
    messages = sum(one["messages"] for one in replay["conversations"])
    unit = 1_000 if sys.platform.startswith("linux") else 1  # of ru_maxrss: KiB there, bytes on macOS
    megabytes = ended["peak"] * unit * (1.024 if unit > 1 else 1) / 1e6
    return Findings(
        [Figure(what="peak of `hitherto replay` of LoCoMo", value=megabytes, unit="MB", bar=_BAR)],
        [
            f"resident set of the replaying process alone, PostgreSQL not counted; {messages:,} messages in "
            f"{len(replay['conversations'])} conversations took {replay['seconds']:.0f} s."
        ],
    )
