"""A real model behind a real server, for `make test-llm`; without it there are no tests here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.llm.served import Served

_FIGURES = pytest.StashKey[list[str]]()

collect_ignore_glob = [] if "LLAMA_PYTHON" in os.environ else ["test_*.py"]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The 135M model, answering. `LLAMA_PYTHON` is the Python that the server and the model are installed for."""
    with Served(Path(os.environ["LLAMA_PYTHON"]), log=tmp_path_factory.mktemp("llm") / "server.log") as running:
        yield running


@pytest.fixture
def figures(pytestconfig: pytest.Config) -> list[str]:
    """Lines that are shown after the run, whether it passes or not."""
    return pytestconfig.stash.setdefault(_FIGURES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_FIGURES, []):
        terminalreporter.write_line(line)
