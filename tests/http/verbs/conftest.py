"""Each memory that a test opens is one over HTTP, of a client whose service has the opened one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import hitherto
from hitherto import Memory
from hitherto.wiring import Opening
from tests import memories
from tests.http.serving import over_http

_in_process = hitherto.open


@asynccontextmanager
async def _over_http(opening: Opening) -> AsyncGenerator[Memory]:
    async with opening as opened, over_http(opened) as remote:
        yield remote


@pytest.fixture(scope="module", autouse=True)
def everything_is_over_http() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hitherto, "open", lambda *given, **options: _over_http(_in_process(*given, **options)))
        patched.setattr(memories, "over", _over_http)
        yield


def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> list[pytest.Item] | None:
    """Of the tests of a module that names some in `KEPT`, those are run."""
    kept = getattr(collector.getparent(pytest.Module).obj, "KEPT", None)
    return [] if kept is not None and name.startswith("test_") and name not in kept else None
