"""SQLite files, each written by the program whose format it is."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ormsgpack
import pytest
from agents import SQLiteSession
from agents.extensions.memory.advanced_sqlite_session import AdvancedSQLiteSession
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from hitherto import Memory
from hitherto.errors import InvalidTranscript
from hitherto.importers import ImportSummary, import_file
from tests.conftest import SCOPE
from tests.importers.looked_at import conversations, payloads, shown, tree, unreadable

# By name, as the folder tests/llm has that of the package.
llm: Any = import_module("llm")
migrate: Any = import_module("llm.migrations").migrate
Database: Any = import_module("sqlite_utils").Database

SDK_ITEMS: list[Any] = [
    {"role": "user", "content": "Read a."},
    {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}", "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": "the text"},
    {"role": "assistant", "type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Done."}]},
]


async def test_sessions_of_the_agents_sdk(memory: Memory, tmp_path: Path) -> None:
    """It is read while its program has it open, with what stands in its log only, and is not changed."""
    file = tmp_path / "sessions.db"
    session, other = SQLiteSession("s-1", file), SQLiteSession("s-2", file)
    await session.add_items(SDK_ITEMS[:3])
    await other.add_items(SDK_ITEMS[:1])
    assert (tmp_path / "sessions.db-wal").stat().st_size
    before = file.read_bytes()
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(conversations=2, messages=4)
    assert file.read_bytes() == before
    await session.add_items(SDK_ITEMS[3:])
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(conversations=1, messages=1, skipped=1)
    logged = await memory.conversation("s-1", scope=SCOPE).messages()
    assert [one.message.payload for one in logged] == SDK_ITEMS
    assert all(datetime.now(UTC) - one.said_at < timedelta(minutes=5) for one in logged)
    assert all(one.message.said_at for one in logged)
    session.close()
    other.close()
    assert [len(payloads(one)) for one in conversations(file)] == [4, 1]


async def test_branches_of_the_agents_sdk(tmp_path: Path) -> None:
    file = tmp_path / "sessions.db"
    session = AdvancedSQLiteSession(session_id="s-1", db_path=file, create_tables=True)
    says: list[Any] = [{"role": role, "content": f"{role} {n}"} for n in range(2) for role in ("user", "assistant")]
    await session.add_items(says)
    await session.create_branch_from_turn(2)
    await session.add_items([{"role": "user", "content": "Else?"}])
    session.close()
    (one,) = conversations(file)
    assert {each.message.id: each.parent for each in one.messages} == {
        "1": None,
        "2": "1",
        "3": "2",
        "4": "3",
        "5": "2",
    }
    assert [words for _, words in shown(one)] == ["user 0", "assistant 0", "Else?"]


def checkpoint(saver: SqliteSaver, thread: str, messages: list[Any], at: str) -> None:
    made = {**empty_checkpoint(), "ts": at, "channel_values": {"messages": messages, "seen": {1, 2}}}
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    saver.put(config, made, {}, {})  # pyright: ignore[reportArgumentType] (a dict for its RunnableConfig)


async def test_checkpoints_of_langgraph(memory: Memory, tmp_path: Path) -> None:
    """The messages of the newest, each dated by the first that has it."""
    file = tmp_path / "graph.db"
    asked: list[Any] = [SystemMessage("Be kind.", id="m0"), HumanMessage("Read a.", id="m1")]
    parts: list[Any] = [
        {"type": "text", "text": "Look."},
        {"type": "image_url", "image_url": {"url": "https://x.org/y"}},
    ]
    answered = [
        *asked,
        AIMessage("", id="m2", tool_calls=[{"name": "read", "args": {"file": "a"}, "id": "c1"}]),
        ToolMessage("the text", tool_call_id="c1", id="m3"),
        AIMessage(
            [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Done."}], id="m4"
        ),
        HumanMessage(parts, id="m5"),
        {"role": "assistant", "content": "A dict.", "id": "m6"},
    ]
    with SqliteSaver.from_conn_string(str(file)) as saver:
        checkpoint(saver, "t-1", asked, "2026-01-01T09:00:00+00:00")
        checkpoint(saver, "t-1", answered, "2026-01-02T09:00:00+00:00")
        checkpoint(saver, "t-2", asked, "2026-01-03T09:00:00+00:00")
        first, second = conversations(file)
    assert (first.id, second.id) == ("t-1", "t-2")
    assert payloads(first) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Read a."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"file": "a"}'}}
            ],
        },
        {"role": "tool", "content": "the text", "tool_call_id": "c1"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "Done."},
            ],
        },
        {"role": "user", "content": parts},
        {"role": "assistant", "content": "A dict."},
    ]
    days = [one.message.said_at.day for one in first.messages if one.message.said_at]
    assert days == [1, 1, 2, 2, 2, 2, 2]
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(conversations=2, messages=9)
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(skipped=2)


def put(saver: SqliteSaver, messages: list[Any], after: str | None = None) -> str:
    """The id of a checkpoint behind another."""
    made = {**empty_checkpoint(), "channel_values": {"messages": messages}}
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": after}}
    saver.put(config, made, {}, {})  # pyright: ignore[reportArgumentType] (a dict for its RunnableConfig)
    return str(made["id"])


@pytest.mark.parametrize("with_ids", [True, False])
async def test_a_thread_that_was_trimmed_and_forked(memory: Memory, tmp_path: Path, with_ids: bool) -> None:
    """What was taken out of a state is kept; where a thread went back and on, or a message was edited, is a branch.
    What was shown here is shown still."""
    file, chat = tmp_path / "graph.db", memory.conversation("t", scope=SCOPE)

    def said(*texts: str) -> list[Any]:
        kinds = {"?": HumanMessage, ".": AIMessage}
        return [kinds[words[-1]](words, id=words if with_ids else None) for words in texts]

    with SqliteSaver.from_conn_string(str(file)) as saver:
        first = put(saver, said("a?", "b."))
        second = put(saver, said("a?", "b.", "c?", "d."), first)
        trimmed = put(saver, said("c?", "d.", "e?"), second)
        assert (await import_file(memory, file, scope=SCOPE)).messages == 5
        put(saver, said("c?", "d.", "e?", "f."), trimmed)
        put(saver, said("a?", "b.", "x?", "y."), first)
        assert (await import_file(memory, file, scope=SCOPE)).messages == 3
        if with_ids:
            put(saver, [*said("a?"), AIMessage("edited", id="b.")], first)
            assert (await import_file(memory, file, scope=SCOPE)).messages == 1
        repeated = await import_file(memory, file, scope=SCOPE)
        assert (repeated.messages, repeated.skipped) == (0, 1)
    texts = {one.message.id: one.message.text for one in await chat.messages()}
    parents = {texts[own]: before and texts[before] for own, before in (await tree(chat)).items() if own}
    assert parents == {
        **{"a?": None, "b.": "a?", "c?": "b.", "d.": "c?", "e?": "d.", "f.": "e?", "x?": "b.", "y.": "x?"},
        **({"edited": "a?"} if with_ids else {}),
    }
    shown = [one.text for one in (await chat.transcript()).entries]
    assert shown == ["a?", "b.", "c?", "d.", "e?"]


def test_a_checkpoint_runs_nothing(tmp_path: Path) -> None:
    """What the program would import and call is data here; a pickle is told and not opened."""
    file, touched = tmp_path / "graph.db", tmp_path / "touched"
    calls = ormsgpack.packb(("pathlib", "Path", [str(touched)], "touch"))
    evil = ormsgpack.packb({"channel_values": {"messages": [ormsgpack.Ext(3, calls), ormsgpack.Ext(0, calls)]}})
    with SqliteSaver.from_conn_string(str(file)) as saver:
        checkpoint(saver, "t", [], "2026-01-01T09:00:00+00:00")
        for name, kind, data in (
            ("evil", "msgpack", evil),
            ("pickled", "pickle", b"\x80\x04."),
            ("cut", "msgpack", b"\x81"),
            ("deep", "msgpack", b"\x91" * 10_000),
            ("long", "msgpack", b"\xdd\xff\xff\xff\xff"),
            ("keyed", "msgpack", b"\x81\x91\x01\x01"),
        ):
            saver.conn.execute(
                "insert into checkpoints (thread_id, checkpoint_id, type, checkpoint) values (?, '1', ?, ?)",
                (name, kind, data),
            )
        saver.conn.commit()
    told = unreadable(file)
    assert not touched.exists()
    assert any("thread 'evil', message 1" in one for one in told)
    assert any("thread 'pickled'" in one and "written as 'pickle'" in one for one in told)
    for name in ("cut", "deep", "long", "keyed"):
        assert any(f"thread {name!r}: its checkpoint '1' cannot be read" in one for one in told)


class Scripted(llm.Model):
    """A model that calls a tool first, and answers then."""

    model_id = "scripted"
    supports_tools = True
    can_stream = False
    attachment_types = frozenset({"image/png"})

    def __init__(self) -> None:
        self._asked = 0

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any = None) -> Iterator[str]:
        self._asked += 1
        if self._asked == 1:
            response.add_tool_call(llm.ToolCall(name="weather", arguments={"city": "Bonn"}, tool_call_id="call_1"))
            yield "Let me look."
        else:
            yield f"Answer {self._asked}."


def weather(city: str) -> str:
    return f"rain in {city}"


def logged_by_llm(file: Path) -> Any:
    made = Database(file)
    migrate(made)
    talk = llm.Conversation(model=Scripted())
    first = talk.chain("How is the weather?", system="Be kind.", tools=[weather])
    assert first.text() == "Let me look. Answer 2."
    first.log_to_db(made)
    picture = llm.Attachment(type="image/png", path="boat.png", content=b"\x89PNG")
    second = talk.prompt("And now?", attachments=[picture], fragments=["A fragment."])
    assert second.text() == "Answer 3."
    second.log_to_db(made)
    return made


TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "How is the weather?"},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "rain in Bonn"},
    {"role": "assistant", "content": "Answer 2."},
    {"role": "user", "content": "A fragment.\nAnd now?\n[image: boat.png]"},
    {"role": "assistant", "content": "Answer 3."},
]


async def test_threads_of_llm(memory: Memory, tmp_path: Path) -> None:
    file = tmp_path / "logs.db"
    logged_by_llm(file).close()
    (one,) = conversations(file)
    assert (one.title, payloads(one)) == ("How is the weather?", TALK)
    assert all(each.message.said_at for each in one.messages)
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(conversations=1, messages=7)
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(skipped=1)


def test_conversations_of_older_versions_of_llm(tmp_path: Path) -> None:
    """Rows as versions before the threads wrote them, in the tables that llm has kept."""
    file = tmp_path / "logs.db"
    made = Database(file)
    migrate(made)
    at = "2024-05-01T09:00:00"
    made["conversations"].insert({"id": "c1", "name": "Weather", "model": "m"})
    both = {"conversation_id": "c1", "model": "m", "system": "Be kind.", "datetime_utc": at}
    made["responses"].insert({"id": "r1", "prompt": "How is the weather?", "response": "Let me look.", **both})
    made["responses"].insert({"id": "r2", "prompt": "", "response": "Rain.", **both})
    call = {"name": "weather", "arguments": '{"city": "Bonn"}', "tool_call_id": None}
    made["tool_calls"].insert({"id": 1, "response_id": "r1", **call})
    made["tool_results"].insert(
        {"id": 1, "response_id": "r2", "name": "weather", "output": "rain", "tool_call_id": None}
    )
    made["tool_results"].transform(drop={"exception"})  # as it was at first
    made["responses"].insert({"id": "r0", "prompt": "Alone.", "response": "Yes.", "datetime_utc": at})
    made.close()
    alone, talk = conversations(file)
    assert (alone.id, [words for _, words in shown(alone)]) == ("r0", ["Alone.", "Yes."])
    assert (talk.id, talk.title) == ("c1", "Weather")
    assert [one.message.id for one in talk.messages] == ["r1-system", "r1-prompt", "r1", "r2-result-1", "r2"]
    assert payloads(talk)[2]["tool_calls"][0]["id"] == payloads(talk)[3]["tool_call_id"] == "call-1"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    other, broken = tmp_path / "other.db", tmp_path / "broken.db"
    with sqlite3.connect(other) as connection:
        connection.execute("create table boats (name text)")
        connection.execute("create view agent_messages as select 1")
    connection.close()
    with pytest.raises(InvalidTranscript, match="it has the tables boats"):
        conversations(other)
    broken.write_bytes(other.read_bytes()[:4000])
    with pytest.raises(InvalidTranscript, match="cannot be read"):
        conversations(broken)
    with sqlite3.connect(tmp_path / "bad.db") as connection:
        connection.execute("create table agent_sessions (session_id, created_at)")
        connection.execute("create table agent_messages (id integer, session_id, message_data, created_at)")
        connection.execute("insert into agent_sessions values ('s', null), (7, null)")
        connection.executemany(
            "insert into agent_messages values (?, 's', ?, 1)", [(1, "{cut"), (2, b"\xff"), (3, "[]")]
        )
    connection.close()
    told = unreadable(tmp_path / "bad.db")
    assert ["row 1" in told[1], "row 2" in told[2], "row 3" in told[3], "no name" in told[0]] == [True] * 4


@pytest.fixture(scope="module")
def good_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A file of each program."""
    folder = tmp_path_factory.mktemp("good")
    files = [folder / "sdk.db", folder / "graph.db", folder / "llm.db"]
    with sqlite3.connect(files[0]) as connection:
        connection.execute("create table agent_sessions (session_id, created_at)")
        connection.execute("create table agent_messages (id integer, session_id, message_data, created_at)")
        connection.execute("create table message_structure (session_id, message_id, branch_id, sequence_number)")
        connection.execute("insert into agent_sessions values ('s', '2026-01-01')")
        for number, item in enumerate(SDK_ITEMS, 1):
            connection.execute("insert into agent_messages values (?, 's', ?, null)", (number, json.dumps(item)))
            connection.execute("insert into message_structure values ('s', ?, 'main', ?)", (number, number))
    connection.close()
    with SqliteSaver.from_conn_string(str(files[1])) as saver:
        checkpoint(saver, "t", [HumanMessage("Hi.", id="m1"), AIMessage("Ho.", id="m2")], "2026-01-01T09:00:00+00:00")
    made = logged_by_llm(files[2])
    made["conversations"].insert({"id": "c1", "name": "Old", "model": "m"})
    made["responses"].insert({"id": "r1", "conversation_id": "c1", "prompt": "Hi.", "response": "Ho.", "system": "S"})
    made["tool_calls"].insert({"id": 1, "response_id": "r1", "name": "look", "arguments": "{}"})
    made["tool_results"].insert({"id": 1, "response_id": "r1", "name": "look", "output": "rain"})
    made.close()
    return files


READ = {"agent_sessions", "agent_messages", "message_structure", "checkpoints", "conversations", "responses"} | {
    *("threads", "turns", "messages", "parts", "fragments", "attachments", "tool_calls", "tool_results"),
}


@given(data=st.data())
def test_any_value_in_any_column(good_files: list[Path], data: st.DataObject) -> None:
    """Columns of SQLite take any type: what can be read is, what cannot is told, and nothing else happens."""
    for good in good_files:
        with TemporaryDirectory() as folder:
            file = Path(shutil.copy(good, folder))
            with closing(sqlite3.connect(file)) as connection:
                tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
                table = data.draw(st.sampled_from(sorted(READ & {*tables})))
                columns = [name for _, name, *_ in connection.execute(f'pragma table_info("{table}")')]
                value = data.draw(
                    st.none() | st.integers(-9, 9) | st.floats() | st.binary() | st.text() | st.just("[[1]]")
                )
                column = data.draw(st.sampled_from(columns))
                with suppress(sqlite3.Error):
                    connection.execute(f'update "{table}" set "{column}" = ?', (value,))
                connection.commit()
            with suppress(InvalidTranscript):
                unreadable(file)


def test_values_that_have_no_place_in_json(tmp_path: Path) -> None:
    """Bytes among a call's arguments, and a number that SQLite cannot hold."""
    call = {"name": "read", "id": "c1", "args": {"file": b"a\xff"}}
    data = ormsgpack.packb({"channel_values": {"messages": [{"type": "ai", "content": "", "tool_calls": [call]}]}})
    with SqliteSaver.from_conn_string(str(tmp_path / "graph.db")) as saver:
        saver.setup()
        saver.conn.execute(
            "insert into checkpoints (thread_id, checkpoint_id, type, checkpoint) values ('t', '1', 'msgpack', ?)",
            (data,),
        )
        saver.conn.commit()
    (one,) = conversations(tmp_path / "graph.db")
    assert payloads(one)[0]["tool_calls"][0]["function"]["arguments"] == '{"file": "a\\ufffd"}'
    made = logged_by_llm(tmp_path / "llm.db")
    made.execute("update parts set text = null, payload = ?", [json.dumps({"text_ref": [{"fragment": 10**30}]})])
    made.conn.commit()
    made.close()
    assert any("it has no text that can be read" in words for words in unreadable(tmp_path / "llm.db"))


def test_json_of_older_checkpoints(tmp_path: Path) -> None:
    file = tmp_path / "graph.db"
    constructor = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"]}
    state = {"messages": [{**constructor, "kwargs": {"content": "Hi.", "type": "human", "id": "m1"}}]}
    data = json.dumps({"ts": "2024-01-01T09:00:00+00:00", "channel_values": state}).encode()
    with SqliteSaver.from_conn_string(str(file)) as saver:
        saver.setup()
        saver.conn.execute(
            "insert into checkpoints (thread_id, checkpoint_id, type, checkpoint) values ('t', '1', 'json', ?)", (data,)
        )
        saver.conn.commit()
    (one,) = conversations(file)
    assert payloads(one) == [{"role": "user", "content": "Hi."}]
