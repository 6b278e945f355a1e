"""Hitherto's own server, for the commands of a file of tests."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hitherto.store import schema
from hitherto.store.embedded.server import EmbeddedServer
from tests.acceptance.cli.commands import Cli, Home, processes_in


@pytest.fixture(scope="module")
async def home() -> AsyncIterator[Home]:
    """It runs already, with the schema: each command is its second user."""
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    server = await EmbeddedServer.start(folder / "pg")
    await schema.ensure(server.url, patience=10)
    yield Home(folder / "pg", server.url)
    await server.stop()
    assert processes_in(folder) == []
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cli(home: Home) -> Cli:
    return Cli(home.directory)
