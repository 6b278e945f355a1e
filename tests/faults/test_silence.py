"""A network that swallows what is sent: calls and workers go on when it is back; nothing is lost, nothing is there
twice."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import hitherto
from hitherto import assistant, sliding_window, user
from hitherto.engine.conversation import Conversation
from hitherto.engine.memory import Memory
from hitherto.errors import DatabaseUnavailable, StoreError
from hitherto.store import schema
from hitherto.store.connections import silence
from tests.conftest import SCOPE
from tests.databases import Server, service_url
from tests.faults.conftest import Api, Crew
from tests.faults.promises import check
from tests.faults.proxy import Proxy
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.waiting import until
from tests.patience import PATIENCE
from tests.store.documents.test_documents import NOTE

COMMIT = b"\0commit\0"
"""The statement alone, as it is sent."""


@pytest.fixture
async def proxy(database: str) -> AsyncIterator[Proxy]:
    async with Proxy(database) as made:
        yield made


@pytest.fixture
async def memory(proxy: Proxy) -> AsyncIterator[Memory]:
    async with hitherto.open(proxy.url, pool_size=4, worker=False) as made:
        yield made


async def texts(chat: Conversation) -> list[str]:
    return [one.message.text for one in await chat.messages()]


async def fill(memory: Memory) -> list[Conversation]:
    """Eight conversations with a message each, and a pool that is full."""
    chats = [memory.conversation(f"c{n}", scope=SCOPE) for n in range(8)]
    await asyncio.gather(*(chat.append(user("before")) for chat in chats))
    return chats


async def all_connections_are_there(memory: Memory) -> None:
    chats = [memory.conversation(f"w{n}", scope=SCOPE) for n in range(4)]
    await asyncio.gather(*(chat.append(user("x")) for chat in chats))


class TestCalls:
    async def test_that_hang_go_on_and_so_do_new_ones(self, proxy: Proxy, memory: Memory) -> None:
        """Four have all connections, the others wait for one. No call but a commit notices anything."""
        chats = await fill(memory)
        proxy.swallow()
        hung = [asyncio.create_task(chat.append(user("during"))) for chat in chats[:2]]
        asked = [asyncio.create_task(chat.context("?", budget=500, recall=True)) for chat in chats[2:6]]
        await proxy.has_swallowed()
        proxy.forward()
        new = [asyncio.create_task(chat.append(user("during"))) for chat in chats[6:]]
        await asyncio.gather(*hung, *new)
        assert all(
            [one["content"] for one in made.messages] == ["before", "?"] for made in await asyncio.gather(*asked)
        )
        for chat in chats:
            assert await texts(chat) == (["before"] if chat in chats[2:6] else ["before", "during"])

    async def test_find_no_silent_connection_in_the_pool(self, proxy: Proxy, memory: Memory) -> None:
        """All are idle when the network forgets them, and nobody notices before it is back."""
        chats = await fill(memory)
        proxy.swallow()
        proxy.forward()
        await asyncio.gather(*(chat.append(user("after")) for chat in chats))
        assert [await texts(chat) for chat in chats] == [["before", "after"]] * 8

    async def test_end_while_the_network_is_away(self, proxy: Proxy) -> None:
        async with hitherto.open(proxy.url, pool_size=2, database_timeout=1, worker=False) as memory:
            chat = memory.conversation("c", scope=SCOPE)
            await chat.append(user("before"))
            proxy.swallow()
            for _ in range(2):
                with pytest.raises(DatabaseUnavailable, match="cannot connect"):
                    await chat.append(user("during"))
            proxy.forward()
            await until(lambda: appends(chat, "after"), "appends work again")
            assert await texts(chat) == ["before", "after"]

    async def test_that_are_cancelled_end_and_lose_no_connection(self, proxy: Proxy, memory: Memory) -> None:
        chats = await fill(memory)
        proxy.swallow()
        hung = [asyncio.create_task(chat.append(user("during"))) for chat in chats]
        await proxy.has_swallowed()
        for one in hung:
            one.cancel()
        assert all(
            isinstance(one, asyncio.CancelledError) for one in await asyncio.gather(*hung, return_exceptions=True)
        )
        proxy.forward()
        await all_connections_are_there(memory)
        assert [await texts(chat) for chat in chats] == [["before"]] * 8


async def appends(chat: Conversation, text: str) -> bool:
    try:
        await chat.append(user(text))
    except StoreError:
        return False
    return True


class TestACommitWhoseAnswerIsLost:
    @pytest.mark.parametrize("arrives", [True, False])
    async def test_is_told_as_unknown(self, proxy: Proxy, memory: Memory, arrives: bool) -> None:
        """And what the server still holds for it holds nobody up."""
        chat = memory.conversation("c", scope=SCOPE)
        await chat.append(user("before"))
        proxy.swallow_from(COMMIT, arrive=arrives)
        writing = asyncio.create_task(chat.append(user("during")))
        await proxy.has_swallowed()
        proxy.forward()
        with pytest.raises(DatabaseUnavailable, match="not known whether it was written: append again with the same"):
            await writing
        await chat.append(user("after"))
        assert await texts(chat) == ["before", *(["during"] if arrives else []), "after"]

    @pytest.mark.parametrize("arrives", [True, False])
    async def test_is_repeated_with_a_key(self, proxy: Proxy, memory: Memory, arrives: bool) -> None:
        """Its digest is one that this process has set off."""
        chat = memory.conversation("c", scope=SCOPE, policy=sliding_window(window=1))
        await chat.append(user("before"))
        proxy.swallow_from(COMMIT, arrive=arrives)
        writing = asyncio.create_task(chat.append(user("during"), assistant("yes"), key="k"))
        await proxy.has_swallowed()
        proxy.forward()
        done = await writing
        assert (done.start, done.end, done.replayed) == (1, 2, arrives)
        assert [one.id for one in await chat.digests()] == [one.digest for one in memory._services.queue._submitted]
        assert await texts(chat) == ["before", "during", "yes"]

    @pytest.mark.parametrize("arrives", [True, False])
    async def test_of_what_must_not_be_done_twice(self, proxy: Proxy, memory: Memory, arrives: bool) -> None:
        documents = memory._services.store.documents
        made = await documents.keep(SCOPE, NOTE)
        proxy.swallow_from(b"delete from hitherto.document", arrive=arrives)
        discarding = asyncio.create_task(documents.discard(SCOPE, made.id))
        await proxy.has_swallowed()
        proxy.forward()
        with pytest.raises(DatabaseUnavailable, match="not known"):
            await discarding
        assert await documents.discard(SCOPE, made.id) is not arrives

    async def test_is_so_behind_row_level_security(self, database: str) -> None:
        async with (
            Proxy(await service_url(database)) as proxy,
            hitherto.open(proxy.url, pool_size=4, worker=False, row_security=True) as memory,
        ):
            await self.test_is_repeated_with_a_key(proxy, memory, arrives=False)


class TestLongWork:
    async def test_of_the_server_is_waited_for(
        self, database: str, proxy: Proxy, memory: Memory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However often it is asked, it is at work: it waits for a lock."""
        answers = list[silence.Answer]()
        ask = silence.Activity.ask

        async def asks(self: silence.Activity, *words: Any, **given: Any) -> silence.Answer:
            answers.append(await ask(self, *words, **given))
            return answers[-1]

        monkeypatch.setattr(silence.Activity, "ask", asks)
        (chat, *_) = await fill(memory)
        async with await psycopg.AsyncConnection[Any].connect(database) as other:
            await other.execute("select 1 from hitherto.conversation for update")
            writing = asyncio.create_task(chat.append(user("during")))
            await until(lambda: len(answers) >= 2, "the server is asked twice")
        await writing
        assert set(answers) == {silence.Answer.WORK}
        assert await texts(chat) == ["before", "during"]

    async def test_that_the_server_works_on_for_too_long_end_and_are_not_tried_again(
        self, database: str, memory: Memory, caplog: pytest.LogCaptureFixture
    ) -> None:
        (chat, *_) = await fill(memory)
        connections = memory._services.store._connections
        connections._limit = 2
        async with await psycopg.AsyncConnection[Any].connect(database) as other:
            await other.execute("lock table hitherto.message")
            with pytest.raises(DatabaseUnavailable, match="it has been silent for"):
                await chat.messages()
            assert "all are replaced" not in caplog.text

            async def ended() -> bool:
                asked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
                return await (await other.execute(asked)).fetchone() == (0,)

            await until(ended, "the server works on it no longer")
        assert await texts(chat) == ["before"]

    async def test_of_an_export_ends_and_can_be_done_again(self, proxy: Proxy, memory: Memory) -> None:
        chats = await fill(memory)
        proxy.swallow_from(chats[3].id.encode(), arrive=True)
        exporting = asyncio.create_task(memory.export_to(io.BytesIO(), tenant=SCOPE.tenant))
        await proxy.has_swallowed()
        proxy.forward()
        with pytest.raises(DatabaseUnavailable):
            await exporting
        whole = io.BytesIO()
        await memory.export_to(whole, tenant=SCOPE.tenant)
        assert whole.getvalue().count(b'"before"') == 8


class TestConnectionsOfTheirOwn:
    async def test_an_upgrade_that_hangs_ends(self, server: Server) -> None:
        async with await psycopg.AsyncConnection[Any].connect(server.admin_url, autocommit=True) as admin:
            await admin.execute("create database silent owner hitherto")
            async with Proxy(make_conninfo(server.url, dbname="silent")) as proxy:
                proxy.swallow_from(b"create table hitherto.message ", arrive=True)
                upgrading = asyncio.create_task(schema.ensure(proxy.url, patience=5))
                await proxy.has_swallowed()
                proxy.forward()
                with pytest.raises(DatabaseUnavailable, match="it has been silent for"):
                    await upgrading
            await schema.ensure(make_conninfo(server.url, dbname="silent"), patience=5)
            await admin.execute("drop database silent with (force)")

    async def test_one_that_listens_may_be_silent(self, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(silence, "LOOK", 0.1)
        async with await silence.connect(proxy.url, patience=5) as connection:
            await connection.execute("listen news")
            async with aclosing(connection.notifies()) as notices:
                heard = asyncio.create_task(anext(notices))
                await asyncio.sleep(0.5)
                async with await psycopg.AsyncConnection[Any].connect(proxy.url, autocommit=True) as other:
                    await other.execute("notify news, 'yes'")
                assert (await heard).payload == "yes"

    async def test_the_limit_holds_where_the_server_cannot_be_asked(
        self, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As behind a pooler, which answers for backends that change."""
        monkeypatch.setattr(silence, "_backend", lambda *_: None)
        async with await silence.connect(proxy.url, patience=5) as connection:
            connection.limit = 2
            with pytest.raises(psycopg.OperationalError, match="it has been silent for"):
                await connection.execute("select pg_sleep(3_600)")
            assert connection.closed

    def test_what_the_address_says_goes_before(self) -> None:
        said = {"connect_timeout": "7", "keepalives_idle": "60", "tcp_user_timeout": "0", "application_name": "mine"}
        made = conninfo_to_dict(silence.address(make_conninfo("postgresql://app@db/app", **said), patience=3))
        assert made.items() >= said.items()
        assert made["keepalives_count"] == "3"


class TestWorkers:
    @pytest.fixture
    async def crew(self, proxy: Proxy, model: ThinkingModel) -> AsyncIterator[Crew]:
        made = Crew(proxy.url, model)
        yield made
        await made.aclose()

    async def test_one_that_waits_finds_what_comes_afterwards(
        self, proxy: Proxy, crew: Crew, api: Api, tables: Tables, model: ThinkingModel
    ) -> None:
        worker = await crew.worker()
        proxy.swallow()
        await proxy.has_swallowed()
        proxy.forward()
        digest = await api.fire()
        await tables.wait_for_digests([digest])
        await worker.said("was lost or fell silent")
        await check(tables, api.acknowledged, model.calls, away=True)

    @pytest.mark.parametrize("arrives", [True, False])
    async def test_one_that_has_made_a_digest_writes_it_once(
        self, proxy: Proxy, crew: Crew, api: Api, tables: Tables, model: ThinkingModel, arrives: bool
    ) -> None:
        """The model is asked once: a commit that is lost is tried again, or found to have been written."""
        model.hold()
        worker = await crew.worker(lease_timeout=PATIENCE)
        digest = await api.fire()
        call = await model.asked(1)
        proxy.swallow_from(COMMIT, arrive=arrives)
        call.release()
        await proxy.has_swallowed()
        proxy.forward()
        await worker.said("Summarized messages")
        assert (await tables.digest(digest)).status == "completed"
        assert len(model.calls) == 1
        await check(tables, api.acknowledged, model.calls)

    async def test_one_whose_claim_ran_out_meanwhile_writes_nothing_twice(
        self, proxy: Proxy, crew: Crew, api: Api, tables: Tables, model: ThinkingModel
    ) -> None:
        model.hold()
        await crew.worker()
        digest = await api.fire()
        call = await model.asked(1)
        proxy.swallow()
        call.release()
        model.answer_at_once()

        async def has_run_out() -> bool:
            return await tables.one("select due_at < clock_timestamp() from hitherto.digest")

        await until(has_run_out, "the claim has run out")
        proxy.forward()
        await tables.wait_for_digests([digest])
        await check(tables, api.acknowledged, model.calls, away=True)

    @pytest.mark.parametrize(("words", "arrive"), [(b"begin isolation", True), (COMMIT, False)])
    async def test_a_process_that_dies_meanwhile_holds_nobody_up(
        self, database: str, proxy: Proxy, crew: Crew, words: bytes, arrive: bool
    ) -> None:
        """The server, which is never told, holds the conversation's row: between two round trips, and within one."""
        writer = await crew.writer("c")
        await writer.appended(1)
        proxy.swallow_from(words, arrive=arrive)
        await proxy.has_swallowed()
        await writer.kill()
        proxy.forward()
        async with hitherto.open(database, database_timeout=2, worker=False) as memory:
            chat = memory.conversation("c", scope=SCOPE)
            assert await until(lambda: appends(chat, "after"), "others append")
