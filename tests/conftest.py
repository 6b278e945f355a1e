"""Shared parts of the tests: one real PostgreSQL for the whole run, an empty database for whoever asks."""

from __future__ import annotations

import gc
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from hitherto.core.scope import Scope
from hitherto.store.store import Store
from tests.databases import Databases, Server
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Browser

settings.register_profile("hitherto", max_examples=50, deadline=None)
settings.register_profile("long", settings.get_profile("hitherto"), max_examples=300)
settings.register_profile("quick", settings.get_profile("hitherto"), max_examples=10)
settings.load_profile("hitherto")

SCOPE = Scope(tenant="acme", user="u-17", agent="planner")
SHARED = Path(__file__).resolve().parents[2] / "shared"
LONG = {"test_sdk_own_tests.py", "test_conformance.py", "test_docs.py", "test_benchmarks.py", "test_types.py"}
LOCOMO = SHARED / "data" / "locomo" / "locomo10.json"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell leaves it to what it runs in the background; the programs that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection() -> None:
    """What is imported and collected stays to the end: the garbage collector need not look at it again and again."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take long come first, so that no runner has one left when the others are done."""
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture
def locomo() -> Path:
    """The LoCoMo file beside the project; the tests that need it say so when it is not there."""
    if not LOCOMO.exists():
        pytest.skip("needs ../shared/data/locomo/locomo10.json beside the project")
    return LOCOMO


@pytest.fixture(scope="session")
def server() -> Server:
    return Server.of_tests()


@pytest.fixture(scope="session")
async def databases(server: Server) -> AsyncIterator[Databases]:
    found = Databases(server)
    await found.open()
    yield found
    await found.aclose()


@pytest.fixture
def row_security() -> bool:
    """Whether databases are reached as a role for which row-level security holds."""
    return False


@pytest.fixture
async def make_database(
    databases: Databases, row_security: bool
) -> AsyncIterator[Callable[[], Coroutine[Any, Any, str]]]:
    """Gives the URL of an empty database with the schema in it, another one at each call."""
    taken: list[str] = []

    async def make() -> str:
        taken.append(await (databases.take_granted() if row_security else databases.take()))
        return databases.url(taken[-1], granted=row_security)

    yield make
    for name in taken:
        await databases.give_back(name)


@pytest.fixture
async def database(make_database: Callable[[], Coroutine[Any, Any, str]]) -> str:
    """The URL of a fresh database with the schema in it."""
    return await make_database()


@pytest.fixture
async def store(databases: Databases, row_security: bool) -> Store:
    """A store, open and empty."""
    return await databases.store(row_security=row_security)


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One for all tests of pages, each with windows of its own. Starting one takes longer than most of these tests."""
    from playwright.async_api import async_playwright

    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")  # the first takes half of the time
    if program is None:
        pytest.skip("needs chromium-headless-shell or chromium, packages of the system")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=program, timeout=PATIENCE * 1_000)
        yield opened
        await opened.close()
