"""What `import hitherto` gives, and what it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import get_origin

import pytest

import hitherto

# Each takes long to import, and is needed only where it is used.
HEAVY = (
    "openai",
    "anthropic",
    "opentelemetry",
    "rich",
    "typer",
    "pytest",
)


def test_the_names_are_sorted_and_there() -> None:
    assert hitherto.__all__ == sorted(hitherto.__all__)
    assert len(set(hitherto.__all__)) == len(hitherto.__all__)
    for name in hitherto.__all__:
        assert not isinstance(getattr(hitherto, name), ModuleType)


def test_the_names_are_all() -> None:
    """Nothing else is public but the submodules, which an import of one another leaves there."""
    others = {name for name in vars(hitherto) if not name.startswith("_")} - set(hitherto.__all__)
    modules = {name for name in others if isinstance(getattr(hitherto, name), ModuleType)}
    assert others == modules
    for name in modules:
        assert getattr(hitherto, name).__name__ == f"hitherto.{name}"


def test_type_checkers_see_the_same_names() -> None:
    """They read the imports that a running program leaves out."""
    program = ast.parse(Path(hitherto.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(program) if isinstance(node, ast.ImportFrom) and node.module is not None]
    seen = {
        name.name: node.module for node in imports if str(node.module).startswith("hitherto.") for name in node.names
    }
    assert seen == hitherto._MODULES
    assert sorted(seen) == sorted(hitherto.__all__)


def test_each_name_says_what_it_is() -> None:
    found = {name: getattr(hitherto, name) for name in hitherto.__all__}
    assert [name for name, one in found.items() if get_origin(one) is None and not one.__doc__] == []


# What `hitherto-client` does not bring.
ENGINE = ("numpy", "Stemmer", "semantic_text_splitter", "prometheus_client", "psycopg", "platformdirs", "psutil")


@pytest.mark.parametrize(("name", "without"), [("hitherto", HEAVY), ("hitherto.http.client.remote", HEAVY + ENGINE)])
def test_the_import_is_light_and_quiet(name: str, without: tuple[str, ...]) -> None:
    """In a process of its own, where any warning is an error."""
    program = f"import sys, {name}; print(*sorted(set({without!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_a_client_that_is_not_installed() -> None:
    program = """
import asyncio, sys
sys.modules["aiohttp"] = None
from hitherto import *
import hitherto
try:
    asyncio.run(hitherto.connect("http://127.0.0.1:1").__aenter__())
except hitherto.HithertoError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "connect needs aiohttp, which is not installed: pip install 'hitherto[client]'\n"
