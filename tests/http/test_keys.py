"""Keys: who gets in, to what, how often; and that nobody gets to what is somebody else's."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import product
from typing import Any, cast
from uuid import uuid4

import httpx2 as httpx
import pytest

import hitherto
from hitherto import Memory, Scope, user
from hitherto.core.key import Right
from hitherto.errors import (
    Forbidden,
    InvalidInput,
    NotFound,
    ServiceUnavailable,
    TooLarge,
    TooManyRequests,
    Unauthorized,
)
from hitherto.http.operations import AGENT, OPERATIONS, PREFIX, TENANT, USER, Operation
from hitherto.http.server import callers
from tests.conftest import SCOPE
from tests.engine.test_verbs import rounds
from tests.http.serving import LIMITS, serving
from tests.patience import PATIENCE

NAMES = {USER: SCOPE.user, AGENT: SCOPE.agent}
HERE = f"{PREFIX}/conversations/c/items"


@pytest.fixture
async def service(memory: Memory) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(memory) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE, verify=False) as client:
        yield client


async def bearer(memory: Memory, *rights: Right, **limits: Any) -> dict[str, str]:
    """The headers of a request with a new key."""
    made = await memory.keys(SCOPE.tenant).create("tests", rights=rights or ["read", "write"], **limits)
    return {"Authorization": f"Bearer {made.secret}", **NAMES}


def filled(operation: Operation, **names: str) -> str:
    """A path of the operation."""
    usual = {"fact": "1", "document": "1", "run": str(uuid4()), "by": "user"}
    path = operation.path
    for name in operation.in_path:
        path = path.replace(f"{{{name}}}", names.get(name, usual.get(name, "c")))
    return PREFIX + path


class TestWhoGetsIn:
    @pytest.mark.parametrize("given", [None, "", "Bearer", "Basic aTpu", "Bearer hitherto_x", "Bearer \xff"])
    async def test_nobody_without_a_key_that_is_known(self, service: httpx.AsyncClient, given: str | None) -> None:
        secret = [] if given is None else [(b"Authorization", given.encode("latin-1"))]
        names = [(name.encode(), value.encode()) for name, value in NAMES.items()]
        found = await service.get(HERE, headers=[*names, *secret])
        assert (found.status_code, found.json()["type"]) == (401, "urn:hitherto:Unauthorized")
        assert found.headers["WWW-Authenticate"] == "Bearer"

    async def test_nobody_with_a_key_that_was_revoked(self, memory: Memory, service: httpx.AsyncClient) -> None:
        made = await memory.keys(SCOPE.tenant).create("tests")
        headers = {"Authorization": f"Bearer {made.secret}", **NAMES}
        assert (await service.get(HERE, headers=headers)).status_code == 200
        await memory.keys(SCOPE.tenant).revoke(made.key.id)
        assert (await service.get(HERE, headers=headers)).status_code == 401

    async def test_nobody_to_another_tenant(self, memory: Memory, service: httpx.AsyncClient) -> None:
        headers = await bearer(memory)
        assert (await service.get(HERE, headers={**headers, TENANT: SCOPE.tenant})).status_code == 200
        assert (await service.get(HERE, headers={**headers, TENANT: "globex"})).status_code == 403

    async def test_a_key_for_one_user_names_no_other(self, memory: Memory, service: httpx.AsyncClient) -> None:
        headers = await bearer(memory, user="ann")
        headers.pop(USER)
        await memory.conversation("c", scope=replace(SCOPE, user="ann")).append(user("hello"))
        listed = f"{PREFIX}/conversations"
        assert len((await service.get(HERE, headers=headers)).json()) == 1
        assert len((await service.get(listed, headers=headers)).json()["conversations"]) == 1
        assert (await service.get(HERE, headers={**headers, USER: "bob"})).status_code == 403
        assert (await service.get(listed, params={"user": "bob"}, headers=headers)).status_code == 403
        assert (await service.delete(f"{PREFIX}/users/ann", headers=headers)).status_code == 403

    async def test_none_is_for_one_user_and_for_the_whole_tenant(self, memory: Memory) -> None:
        with pytest.raises(InvalidInput, match="whole tenant"):
            await memory.keys(SCOPE.tenant).create("tests", user="ann", rights=["read", "admin"])

    async def test_headers_narrow_a_list_to_a_user_and_an_agent(
        self, memory: Memory, service: httpx.AsyncClient
    ) -> None:
        for whose in (replace(SCOPE, user="ann"), replace(SCOPE, user="ann", agent="other"), SCOPE):
            await memory.conversation("c", scope=whose).append(user("hello"))
        headers = {"Authorization": (await bearer(memory))["Authorization"]}

        async def listed(asked: dict[str, str], **query: str) -> list[tuple[str, str]]:
            found = await service.get(f"{PREFIX}/conversations", headers={**headers, **asked}, params=query)
            return sorted((one["scope"]["user"], one["scope"]["agent"]) for one in found.json()["conversations"])

        own, anns = (SCOPE.user, SCOPE.agent), [("ann", SCOPE.agent), ("ann", "other")]
        assert await listed({}) == sorted([own, *anns])
        assert await listed({USER: "ann"}) == await listed({}, user="ann") == sorted(anns)
        assert await listed({USER: "ann", AGENT: "other"}) == [("ann", "other")]
        assert await listed({USER: "ann"}, user=SCOPE.user) == [own]

    async def test_a_service_without_keys_refuses_one(self, memory: Memory) -> None:
        headers = await bearer(memory)
        async with serving(memory, keys=False) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            assert (await client.get(HERE, headers=headers)).status_code == 401
            assert (await client.get(HERE, headers=NAMES)).status_code == 200

    async def test_health_and_the_document_are_for_everybody(self, service: httpx.AsyncClient) -> None:
        for path in ("/healthz", "/readyz", "/openapi.json"):
            assert (await service.get(path)).status_code == 200
        assert (await service.get("/metrics")).status_code == 401


async def test_each_right_is_what_its_operations_need_and_admin_is_all(
    memory: Memory, service: httpx.AsyncClient
) -> None:
    """The right comes first: before what else a request says."""
    needed = [(one.method, filled(one), one.right) for one in OPERATIONS]
    needed += [("GET", "/metrics", Right.ADMIN), ("GET", f"{PREFIX}/export", Right.ADMIN)]
    needed += [("POST", f"{PREFIX}/import", Right.ADMIN), ("GET", f"{PREFIX}/conversations/c/messages", Right.READ)]
    needed.sort(key=lambda one: one[:2] == ("DELETE", f"{PREFIX}/tenant"))  # the keys are gone after it
    keys = {right: await bearer(memory, right) for right in Right}
    json = {"Content-Type": "application/json"}
    for (method, path, right), (mine, headers) in product(needed, keys.items()):
        content = {"content": "{}", "headers": {**headers, **json}} if method != "GET" else {"headers": headers}
        found = await service.request(method, path, **cast(Any, content))
        allowed = mine in (right, Right.ADMIN)
        assert (found.status_code != 403) == allowed, (method, path, mine, found.text)
        assert found.status_code < 500, (method, path, found.text)


class TestWhatIsSomebodyElses:
    """Of another user and of another tenant: it is not there."""

    @pytest.fixture(params=[replace(SCOPE, user="mallory"), replace(SCOPE, tenant="globex")], ids=["user", "tenant"])
    async def stranger(
        self, request: pytest.FixtureRequest, memory: Memory, service: httpx.AsyncClient
    ) -> AsyncIterator[tuple[Memory, Scope]]:
        scope: Scope = request.param
        made = await memory.keys(scope.tenant).create("tests", rights=["read", "write", "review"])
        async with hitherto.connect(str(service.base_url), key=made.secret) as remote:
            yield remote, scope

    async def test_is_not_there(self, memory: Memory, stranger: tuple[Memory, Scope]) -> None:
        chat = memory.conversation("c", scope=SCOPE, policy=hitherto.chunks(threshold=2, batch=2))
        await rounds(chat, memory, range(4))
        fact = (await memory.facts(SCOPE).add("The user lives in Lisbon.")).id
        document = (await memory.documents(SCOPE).add("Lisbon has seven hills.")).id
        run = (await memory.runs(SCOPE).begin("c")).id
        manifest = (await chat.context("Lisbon?")).manifest
        (digest, *_) = await chat.digests()
        assert await memory.wait_for_index()

        remote, scope = stranger
        theirs, facts = remote.conversation("c", scope=scope), remote.facts(scope)
        runs, documents = remote.runs(scope), remote.documents(scope)
        nothing: list[Callable[[], Any]] = [
            lambda: facts.history(fact),
            lambda: facts.sources(fact),
            lambda: facts.edit(fact, content="The user lives in Porto."),
            lambda: facts.confirm(fact),
            lambda: facts.share(fact),
            lambda: facts.delete(fact),
            lambda: runs.events(run),
            lambda: runs.add(run, {"kind": "message"}),
            lambda: runs.end(run),
            lambda: theirs.expand(digest.id),
            lambda: theirs.forget(fact),
        ]
        for verb in nothing:
            with pytest.raises(NotFound):
                await verb()
        assert await facts.get(fact) is None
        assert await documents.get(document) is None
        assert not await documents.remove(document)
        assert await runs.get(run) is None
        assert await runs.list("c") == []
        assert await theirs.info() is None
        assert await theirs.head() is None
        assert await theirs.items() == await theirs.messages() == await theirs.contexts() == []
        assert await facts.list() == await documents.list() == []
        assert (await remote.recall("Lisbon", scope=scope)).hits == ()
        assert (await remote.conversations(scope)).conversations == ()
        with pytest.raises(InvalidInput, match="manifest"):
            await theirs.rebuild(manifest)
        await theirs.delete()
        assert len(await chat.messages()) == 8
        assert (await memory.facts(SCOPE).get(fact)) is not None

    async def test_nor_are_the_members_and_the_name_of_a_subject(
        self, memory: Memory, stranger: tuple[Memory, Scope]
    ) -> None:
        members = ["zoe", "o'neil"]
        await memory.configure_subject(tenant=SCOPE.tenant, subject="legacy1", name="Rosa", members=members)
        remote, scope = stranger
        facts, chat = remote.facts(scope, subject="legacy1"), remote.conversation("c", scope=scope, subject="legacy1")
        added = await facts.add("Likes tea.")
        with pytest.raises(InvalidInput, match="no member") as refused:
            await facts.share(added.id)
        told = [str(refused.value), str(await chat.known()), str(await chat.context("Hello."))]
        assert all("Likes tea." in one for one in told[1:])
        assert not any(name in one for name in (*members, "Rosa") for one in told)


class TestAKeyThatIsRevokedInMidStream:
    async def test_cuts_the_export_off(
        self, memory: Memory, service: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(callers, "LOOK_AGAIN", 0.0)
        chat = memory.conversation("c", scope=SCOPE, policy=hitherto.none())
        for _ in range(40):
            await chat.append(*(user("x" * 50_000) for _ in range(10)))
        made = await memory.keys(SCOPE.tenant).create("tests", rights=["admin"])
        whole = io.BytesIO()
        await memory.export_to(whole, tenant=SCOPE.tenant)

        class Slow(io.BytesIO):
            def write(self, part: Any) -> int:
                if not self.tell():
                    asyncio.run_coroutine_threadsafe(memory.keys(SCOPE.tenant).revoke(made.key.id), loop).result()
                return super().write(part)

        loop, part = asyncio.get_running_loop(), Slow()
        async with hitherto.connect(str(service.base_url), key=made.secret) as remote:
            with pytest.raises((ServiceUnavailable, Unauthorized)):
                await remote.export_to(part, tenant=SCOPE.tenant)
        assert 0 < len(part.getvalue()) < len(whole.getvalue())
        part.seek(0)
        async with hitherto.open("memory:") as other:
            with pytest.raises(InvalidInput, match="cut off"):
                await other.import_from(part)


class TestLimitsOfAKey:
    async def test_its_size(self, memory: Memory, service: httpx.AsyncClient) -> None:
        headers = await bearer(memory, size=2_000)
        secret = headers["Authorization"].removeprefix("Bearer ")
        async with hitherto.connect(str(service.base_url), key=secret) as remote:
            chat = remote.conversation("c", scope=SCOPE)
            await chat.append(user("x" * 1_000))
            for size in (2_000, 20_000_000):
                with pytest.raises(TooLarge, match="2000 bytes"):
                    await chat.append(user("x" * size))
        assert len(await memory.conversation("c", scope=SCOPE).messages()) == 1

    async def test_its_seconds(self, memory: Memory, service: httpx.AsyncClient) -> None:
        headers = await bearer(memory, seconds=0.2)

        async def slow() -> AsyncIterator[bytes]:
            yield b'{"question": '
            await asyncio.sleep(1)

        json = {"Content-Type": "application/json"}
        found = await service.post(f"{PREFIX}/recall", headers={**headers, **json}, content=slow())
        assert (found.status_code, found.json()["type"]) == (408, "urn:hitherto:TimedOut")

    async def test_its_requests_a_minute(self, memory: Memory, service: httpx.AsyncClient) -> None:
        headers, other = await bearer(memory, requests=3), await bearer(memory, requests=3)
        for _ in range(3):
            assert (await service.get(HERE, headers=headers)).status_code == 200
        found = await service.get(HERE, headers=headers)
        assert (found.status_code, found.json()["type"]) == (429, "urn:hitherto:TooManyRequests")
        assert 1 <= int(found.headers["Retry-After"]) <= 60
        assert (await service.get(HERE, headers=other)).status_code == 200
        secret = headers["Authorization"].removeprefix("Bearer ")
        with pytest.raises(TooManyRequests):
            async with hitherto.connect(str(service.base_url), key=secret, timeout=0.5):
                pass

    async def test_are_not_more_than_the_service_allows(self, memory: Memory) -> None:
        headers = await bearer(memory, size=10_000, requests=100)
        limits = replace(LIMITS, size=100, requests=1)
        async with serving(memory, limits=limits) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            json = {"Content-Type": "application/json"}
            found = await client.post(f"{PREFIX}/recall", headers={**headers, **json}, content="x" * 200)
            assert found.status_code == 413
            assert (await client.get(HERE, headers=headers)).status_code == 429


async def test_a_right_that_a_key_does_not_have_is_told_by_name(memory: Memory, service: httpx.AsyncClient) -> None:
    headers = await bearer(memory, Right.READ)
    secret = headers["Authorization"].removeprefix("Bearer ")
    async with hitherto.connect(str(service.base_url), key=secret) as remote:
        with pytest.raises(Forbidden, match="'write'"):
            await remote.conversation("c", scope=SCOPE).append(user("hello"))
