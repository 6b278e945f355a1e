"""What an operator sees of the requests: in the log, and at /metrics."""

from __future__ import annotations

import logging

import httpx2 as httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import hitherto
from hitherto.errors import DatabaseUnavailable
from hitherto.http.operations import AGENT, PREFIX, USER
from hitherto.store.keys import KeyStore
from tests.conftest import SCOPE
from tests.http.serving import serving
from tests.patience import PATIENCE

HEAD = PREFIX + "/conversations/{conversation}/head"


async def test_each_request_is_counted_and_what_fails_is_logged(
    database: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    async with hitherto.open(database) as memory:
        made = await memory.keys(SCOPE.tenant).create("tests", rights=["admin"])
        headers = {"Authorization": f"Bearer {made.secret}", USER: SCOPE.user, AGENT: SCOPE.agent}
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as client:
            path = HEAD.format(conversation="a-name")
            await client.patch(f"{PREFIX}/conversations/a-name", json={"title": "A title"})
            assert (await client.get(path)).status_code == 200
            assert (await client.get(HEAD.format(conversation="another"))).status_code == 404
            assert (await client.get("/no/such/a-name")).status_code == 404
            assert (await client.request("PURGE", path)).status_code == 405
            assert (await client.get(path, headers={"Authorization": ""})).status_code == 401
            told = (await client.get("/metrics")).text
            with monkeypatch.context() as changed:
                changed.setattr(type(memory._services.store.keys), KeyStore.find.__name__, away)
                assert (await client.get(path)).status_code == 503
    families = text_string_to_metric_families(told)
    samples = [one for family in families for one in family.samples if one.name == "hitherto_request_seconds_count"]
    counted = {tuple(one.labels[name] for name in ("method", "path", "status")): one.value for one in samples}
    of_conversation = PREFIX + "/conversations/{conversation}"
    assert counted == {
        ("PATCH", of_conversation, "204"): 1,
        ("GET", HEAD, "200"): 1,
        ("GET", HEAD, "404"): 1,
        ("", "", "404"): 1,
        ("", HEAD, "405"): 1,
        ("", "", "401"): 1,
    }
    lines = [(one.levelname, one.getMessage()) for one in caplog.records if one.name == "hitherto.http"]
    refused = [(level, line.split(" in ")[0], line.split(" ms")[-1]) for level, line in lines if " ms" in line]
    assert refused == [
        ("INFO", f"GET {HEAD}: 404", ": NotFound"),
        ("INFO", "GET: 404", ""),
        ("INFO", f"PURGE {HEAD}: 405", ""),
        ("INFO", "GET: 401", ": Unauthorized"),
        ("WARNING", "GET: 503", ": DatabaseUnavailable (no database at db.internal)"),
    ]


async def away(*_: object) -> None:
    raise DatabaseUnavailable("no database at db.internal")
