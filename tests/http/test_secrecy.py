"""What nobody else may see: messages, secrets and keys in logs and errors; and what other sites' pages may not do."""

from __future__ import annotations

import io
import logging
from typing import Any

import httpx2 as httpx
import pytest

import hitherto
from hitherto import Memory, user
from hitherto.engine.conversation import Conversation
from hitherto.errors import StoreError
from hitherto.http.operations import AGENT, LINES, PREFIX, SUBJECT, TENANT, USER
from hitherto.http.server import streams
from hitherto.store import rows
from tests.conftest import SCOPE
from tests.http.serving import serving
from tests.patience import PATIENCE

SAID = "the launch code is 4711"
HERE = f"{PREFIX}/conversations/c"
NAMES = {USER: SCOPE.user, AGENT: SCOPE.agent}


def everything_in(caplog: pytest.LogCaptureFixture) -> str:
    """All that the service has logged, as it is written, and what a handler could write of it."""
    service = [record for record in caplog.records if not record.name.startswith("http")]
    return "".join(f"{caplog.handler.format(record)} {vars(record)!r}\n" for record in service)


class TestLogsAndErrors:
    @pytest.mark.parametrize("kind", [RuntimeError, KeyError, ExceptionGroup, StoreError, TimeoutError])
    async def test_a_failure_that_quotes_a_message(
        self,
        memory: Memory,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        kind: type[Exception],
    ) -> None:
        async def fails(self: object, *messages: object, **options: object) -> None:
            quoted: Any = f"cannot store {messages!r}"
            raise kind(quoted, [ValueError(quoted)]) if kind is ExceptionGroup else kind(quoted) from ValueError(quoted)

        monkeypatch.setattr(Conversation, "append", fails)
        made = await memory.keys(SCOPE.tenant).create("tests")
        headers = {"Authorization": f"Bearer {made.secret}", **NAMES}
        caplog.set_level(logging.DEBUG)
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            body = {"messages": [{"role": "user", "content": SAID}]}
            found = await client.post(f"{HERE}/messages", headers=headers, json=body)
        assert found.status_code >= 500
        if kind is not StoreError:  # whose message is its own
            assert SAID not in found.text
            assert "A request failed" in everything_in(caplog)
        for secret in (SAID, made.secret, SCOPE.user):
            assert secret not in everything_in(caplog)

    async def test_what_is_refused(self, memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
        """Names and messages in requests of any kind, and keys that are unknown."""
        made = await memory.keys(SCOPE.tenant).create("tests")
        caplog.set_level(logging.DEBUG)
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            for secret in (made.secret, "hitherto_wrong-secret"):
                headers = {"Authorization": f"Bearer {secret}", **NAMES, SUBJECT: "sub-4711"}
                for body in ({"messages": [{"content": SAID}]}, {"messages": SAID}, {SAID: SAID}, [SAID]):
                    found = await client.post(f"{HERE}/messages", headers=headers, json=body)
                    assert found.status_code in (401, 422)
                    assert secret not in found.text
                await client.get(f"{PREFIX}/no/such/{SAID}", headers=headers)
                await client.get(f"{HERE}/view", headers=headers, params={"policy": SAID})
        for secret in (SAID, made.secret, "wrong-secret", "sub-4711"):
            assert secret not in everything_in(caplog)

    async def test_a_stream_that_breaks_off(
        self, memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        chat = memory.conversation("c", scope=SCOPE, policy=hitherto.none())
        await chat.append(user(SAID), user(SAID))
        monkeypatch.setitem(rows.PAGE, "size", 1)

        def fails(page: object) -> bytes:
            raise RuntimeError(f"cannot read {SAID}")

        monkeypatch.setattr(streams, "_joined", fails)
        made = await memory.keys(SCOPE.tenant).create("tests")
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get(f"{HERE}/messages", headers={"Authorization": f"Bearer {made.secret}", **NAMES})
        assert "A request failed" in caplog.text
        assert SAID not in everything_in(caplog)


class TestOtherSites:
    async def test_are_not_let_in(self, memory: Memory) -> None:
        asks = {
            "Origin": "https://evil.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization,content-type",
        }
        async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            found = await client.options(f"{HERE}/messages", headers=asks)
            assert found.status_code >= 400
            answers = [found, await client.get("/healthz", headers=asks), await client.get(HERE, headers=asks)]
            assert not any(name.startswith("access-control") for one in answers for name in one.headers)

    async def test_but_for_those_that_are_named(self, memory: Memory) -> None:
        made = await memory.keys(SCOPE.tenant).create("tests")
        named = "https://app.example"
        async with serving(memory, origins=[named]) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            for name in (USER, AGENT, TENANT, "authorization", "content-type", "idempotency-key"):
                asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": name.lower()}
                found = await client.options(f"{HERE}/messages", headers={"Origin": named, **asks})
                assert (found.status_code, found.headers["Access-Control-Allow-Origin"]) == (200, named)
            evil = {"Origin": "https://evil.example"}
            found = await client.options(f"{HERE}/messages", headers={**evil, "Access-Control-Request-Method": "POST"})
            assert (found.status_code, "Access-Control-Allow-Origin" in found.headers) == (400, False)
            headers = {"Authorization": f"Bearer {made.secret}", **NAMES}
            for path in (HERE, f"{HERE}/items"):  # an error, and an answer
                found = await client.get(path, headers={**headers, "Origin": named})
                assert found.headers["Access-Control-Allow-Origin"] == named
                found = await client.get(path, headers={**headers, **evil})
                assert "Access-Control-Allow-Origin" not in found.headers

    @pytest.mark.parametrize(
        "host",
        ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", "[", "[::2]", ""],
    )
    async def test_do_not_get_in_by_a_name_for_this_machine(self, memory: Memory, host: str) -> None:
        async with serving(memory, keys=False) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            found = await client.get(f"{HERE}/items", headers={**NAMES, "Host": host})
            assert found.status_code in (400, 403)
            for mine in ("localhost", "localhost:8480", "127.0.0.1:8480", "[::1]:8480", "LOCALHOST"):
                assert (await client.get(f"{HERE}/items", headers={**NAMES, "Host": mine})).status_code == 200

    @pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
    async def test_change_nothing_by_what_any_page_may_send(self, memory: Memory, kind: str | None) -> None:
        """Without keys: what needs no question first has no headers of ours and one of these types, or none."""
        local = hitherto.Scope(tenant="local", user="u", agent="a")
        chat = memory.conversation("c", scope=local)
        await chat.append(user("hello"))
        export = io.BytesIO()
        async with hitherto.open("memory:") as other:
            await other.conversation("planted", scope=local).append(user("planted"))
            await other.export_to(export, tenant="local")
        headers = {} if kind is None else {"Content-Type": kind}
        async with serving(memory, keys=False) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            found = await client.post(f"{PREFIX}/import", headers=headers, content=export.getvalue())
            assert found.status_code == 415
            for verb in ("messages", "clear", "pop", "erase", "finish", "runs", "rewind"):
                found = await client.post(f"{HERE}/{verb}", headers=headers, content=b"" if verb == "clear" else b"{}")
                assert found.status_code in (415, 422), found.text
            assert len((await memory.conversations(tenant="local")).conversations) == 1
            assert len(await chat.messages()) == 1
            found = await client.post(f"{PREFIX}/import", headers={"Content-Type": LINES}, content=export.getvalue())
            assert found.status_code == 200
