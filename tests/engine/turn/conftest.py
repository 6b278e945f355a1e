"""Each API."""

from __future__ import annotations

import pytest

from tests.engine.turn.asking import APIS, Api


@pytest.fixture(params=APIS, ids=[one.wire for one in APIS])
def api(request: pytest.FixtureRequest) -> Api:
    return request.param
