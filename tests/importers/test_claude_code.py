"""Claude Code's transcripts, by lines of the shape that they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hitherto import Memory
from hitherto.importers import ImportSummary, import_file
from tests.conftest import SCOPE
from tests.importers.looked_at import conversations, shown, tree, unreadable, written


def line(uuid: str, parent: str | None, kind: str, content: object, **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content} | ({"id": fields.pop("api")} if "api" in fields else {})
    at = "2026-01-20T11:57:17.716Z"
    told = {"isSidechain": False, "sessionId": "s-1", "timestamp": at, "cwd": "/code", **fields}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "message": message, **told}


def call(id: str) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": id}}]


def result(id: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": id, "content": f"the text of {id}"}]


WORK = [
    {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
    {"type": "ai-title", "aiTitle": "Read two files", "sessionId": "s-1"},
    line("u1", None, "user", "Read a and b."),
    line("u2", "u1", "user", "Caveat: the messages below", isMeta=True),
    line("a1", "u2", "assistant", [{"type": "thinking", "thinking": "Hm.", "signature": "s"}], api="msg_1"),
    line("a2", "a1", "assistant", call("t1"), api="msg_1"),
    line("a3", "a2", "assistant", call("t2"), api="msg_1"),
    line("r1", "a2", "user", result("t1")),
    line("r2", "a3", "user", result("t2")),
    line("x1", "s0", "user", "Find the tests.", isSidechain=True),
    line("x2", "x1", "assistant", [{"type": "text", "text": "In tests/."}], isSidechain=True, api="msg_9"),
    line("a4", "r2", "assistant", [{"type": "text", "text": "Done."}], api="msg_2"),
    {"type": "system", "uuid": "b1", "parentUuid": None, "logicalParentUuid": "a4", "sessionId": "s-1"},
    line("u3", "b1", "user", "A summary of it all.", isCompactSummary=True),
    line("u4", "u3", "user", "Which did you read?"),
    line("u5", "a4", "user", "Thanks."),
]


async def test_steps_with_several_calls_are_no_branches(memory: Memory, tmp_path: Path) -> None:
    """The file has each result behind its own call; a prompt that was edited is a branch."""
    file = written(tmp_path / "s-1.jsonl", WORK)
    main, side = conversations(file)
    assert (main.id, main.title, side.id, side.title) == ("s-1", "Read two files", "s-1-x1", "Read two files (x1)")
    parents = {one.message.id: one.parent for one in main.messages}
    way = {"u1": None, "a1": "u1", "a2": "a1", "a3": "a2", "r1": "a3", "r2": "r1", "a4": "r2"}
    assert parents == {**way, "u4": "a4", "u5": "a4"}
    assert shown(main)[-2:] == [("assistant", "Done."), ("user", "Thanks.")]
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(conversations=2, messages=11)
    assert await import_file(memory, tmp_path, scope=SCOPE) == ImportSummary(skipped=2)
    chat = memory.conversation("s-1", scope=SCOPE)
    assert await tree(chat) == parents
    request = (await chat.context("And now?", budget=4_000, wire="anthropic")).messages
    assert [block["type"] for block in request[3]["content"]] == ["tool_result", "tool_result"]


async def test_a_transcript_that_goes_on(memory: Memory, tmp_path: Path) -> None:
    for count in range(1, len(WORK) + 1):
        await import_file(memory, written(tmp_path / "s-1.jsonl", [*WORK[2:][:count]]), scope=SCOPE)
    (main, _) = conversations(tmp_path / "s-1.jsonl")
    assert await tree(memory.conversation("s-1", scope=SCOPE)) == {one.message.id: one.parent for one in main.messages}


def test_a_transcript_that_was_recorded() -> None:
    """Claude Code 2.1.332 wrote it, for a scripted model that calls two tools at once, and went on with it. Other lines
    and other fields are left out here, but for some."""
    (one,) = conversations(Path(__file__).with_name("claude-code.jsonl"))
    assert [(role, text.splitlines()[0][:12]) for role, text in shown(one)] == [
        ("user", "Read the two"),
        ("assistant", "I read both."),
        ("assistant", "[calls Read("),
        ("assistant", "[calls Read("),
        ("tool", "1\tthe first "),
        ("tool", "1\tthe second"),
        ("assistant", "The boat is "),
        ("user", "And once mor"),
        ("assistant", "The boat is "),
    ]
    assert len(list(one.messages)) == 9, "there are no branches"
    assert all(each.message.said_at for each in one.messages)


def test_whose_title_it_is(tmp_path: Path) -> None:
    """A summary may be that of a conversation in another file, and lines may come from one that was gone on with."""
    lines = [
        {"type": "summary", "summary": "Of another.", "leafUuid": "z9"},
        {"type": "summary", "summary": "Of this.", "leafUuid": "u1"},
        line("u0", None, "user", "Before.", sessionId="s-0"),
        line("u1", "u0", "user", "Now."),
    ]
    (one,) = conversations(written(tmp_path / "s-1.jsonl", lines))
    assert (one.id, one.title) == ("s-1", "Of this.")


def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", [*WORK[:3], line("z", "u1", "assistant", [{"type": "tool_use"}])])
    file.write_text(file.read_text() + "\n\n{cut o")
    first, second = unreadable(file)
    assert "line 4: " in first
    assert "line 6: this is no JSON object" in second


async def test_a_line_that_is_broken_and_mended(memory: Memory, tmp_path: Path) -> None:
    """What follows it goes on from the line before, and it comes when it can be read, behind that one."""
    lines = [
        line("u1", None, "user", "Hi."),
        line("a1", "u1", "assistant", "Yes?"),
        line("u2", "a1", "user", "And now?"),
        line("a2", "u2", "assistant", "Later."),
    ]
    file, chat = written(tmp_path / "s-1.jsonl", lines), memory.conversation("s-1", scope=SCOPE)
    whole = file.read_text()
    file.write_text(whole.replace('"uuid": "a1"', "", 1).replace('"parentUuid": "u1",', "{", 1))
    summary = await import_file(memory, file, scope=SCOPE)
    assert (summary.messages, summary.left_out) == (3, 1)
    assert "line 2: this is no JSON object" in summary.unreadable[1]
    assert "line 3: the message before it, 'a1', cannot be read; it follows the one before it" in summary.unreadable[0]
    assert [one.id for one in (await chat.transcript()).entries] == ["u1", "u2", "a2"]
    file.write_text(whole)
    assert (await import_file(memory, file, scope=SCOPE)).messages == 1
    assert await import_file(memory, file, scope=SCOPE) == ImportSummary(skipped=1)
    assert await tree(chat) == {"u1": None, "u2": "u1", "a2": "u2", "a1": "u1"}
    assert [one.id for one in (await chat.transcript()).entries] == ["u1", "u2", "a2"]
