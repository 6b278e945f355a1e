"""Any tree of messages: the same tree in the log, whether it comes at once, in parts, or is cut off and goes on."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto import Call, Conversation, Memory, Message, assistant, tool_result, user
from hitherto.importers import ImportedConversation, Unreadable, import_conversation
from hitherto.importers.imported import Node, conversation_of, shown_messages
from hitherto.importers.writers import log
from tests.conftest import SCOPE
from tests.importers.looked_at import tree
from tests.lengths import examples

KINDS = ("user", "assistant", "call", "result")

Drawn = list[tuple[int, str]]
"""Of each message the number of one before it, or -1, and what it is."""


@st.composite
def drawn_trees(draw: st.DrawFn) -> Drawn:
    size = draw(st.integers(1, 12))
    return [(draw(st.integers(-1, number - 1)), draw(st.sampled_from(KINDS))) for number in range(size)]


def message(number: int, kind: str, before: int) -> Message:
    """A result answers the message before it, which need not be a call."""
    match kind:
        case "call":
            made = assistant(calls=[Call(id=f"call-{number}", name="look")])
        case "result":
            made = tool_result(f"call-{before}", f"text {number}")
        case "user":
            made = user(f"text {number}")
        case _:
            made = assistant(f"text {number}")
    return made.with_id(f"m{number}")


def conversation(drawn: Drawn, current: int) -> ImportedConversation:
    nodes = [
        Node(f"m{number}", f"m{before}" if before >= 0 else None, f"message {number}", message(number, kind, before))
        for number, (before, kind) in enumerate(drawn)
    ]
    found = conversation_of("test", "c", nodes, title="Any", current=f"m{current}", unreadable=[])
    assert isinstance(found, ImportedConversation)
    return found


class CutOff(Exception):
    """The process that imported is gone."""


class Cut:
    """A conversation whose process is gone after so many calls that write."""

    def __init__(self, chat: Conversation, calls: int) -> None:
        self._chat, self._left = chat, calls

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._chat, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            if name in ("append", "switch", "rewind", "configure"):
                if not self._left:
                    raise CutOff
                self._left -= 1
            return await verb(*arguments, **named)

        return call


async def check(chat: Conversation, drawn: Drawn, current: int) -> None:
    found = conversation(drawn, current)
    assert await tree(chat) == {one.message.id: one.parent for one in found.messages}
    live = [one.message for one in await chat.messages() if one.retracted_rev is None]
    assert [one.id for one in live] == [one.message.id for one in shown_messages(found)]
    for one in live:
        number = int((one.id or "")[1:])
        before, kind = drawn[number]
        assert f"text {number}" in one.text or one.calls
        assert (one.role.value == "tool") == (kind == "result" and before >= 0 and drawn[before][1] == "call")
    assert await import_conversation(chat, conversation(drawn, current)) == 0
    assert found.unreadable == []


@settings(max_examples=examples(6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=drawn_trees(), data=st.data())
async def test_any_tree(memory: Memory, monkeypatch: pytest.MonkeyPatch, drawn: Drawn, data: st.DataObject) -> None:
    monkeypatch.setattr(log, "PAGE", 2)
    current = data.draw(st.integers(0, len(drawn) - 1))
    whole, cut, grown = (memory.conversation(uuid4().hex, scope=SCOPE) for _ in range(3))
    assert await import_conversation(whole, conversation(drawn, current)) == len(drawn)
    await check(whole, drawn, current)
    for calls in range(data.draw(st.integers(0, 8)), 20):
        try:
            cutting = cast("Conversation", Cut(cut, calls))
            await import_conversation(cutting, conversation(drawn, current))
        except CutOff:
            continue
        break
    await check(cut, drawn, current)
    some = data.draw(st.integers(1, len(drawn)))
    await import_conversation(grown, conversation(drawn[:some], data.draw(st.integers(0, some - 1))))
    await import_conversation(grown, conversation(drawn, current))
    assert await tree(grown) == {one.message.id: one.parent for one in conversation(drawn, current).messages}


@settings(max_examples=examples(6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=drawn_trees(), data=st.data())
async def test_an_import_of_more_that_was_cut_off(memory: Memory, drawn: Drawn, data: st.DataObject) -> None:
    """It shows at the end what it would have shown if it had not been cut off."""
    some, at = data.draw(st.integers(1, len(drawn))), data.draw(st.integers(0, 20))
    current = data.draw(st.integers(0, len(drawn) - 1))
    shown: list[list[str | None]] = []
    for cut in (False, True):
        chat = memory.conversation(uuid4().hex, scope=SCOPE)
        await import_conversation(chat, conversation(drawn[:some], some - 1))
        await chat.switch(at % some)
        for calls in range(12 if cut else 0):
            with suppress(CutOff):
                await import_conversation(cast("Conversation", Cut(chat, calls)), conversation(drawn, current))
        await import_conversation(chat, conversation(drawn, current))
        shown.append([one.message.id for one in await chat.messages() if one.retracted_rev is None])
        assert (info := await chat.info()) is not None
        assert "unfinished" not in info.metadata.get("import", {})
    assert shown[0] == shown[1]


async def test_what_was_said_since_an_import_was_cut_off_stays_shown(memory: Memory) -> None:
    chat, drawn = memory.conversation("c", scope=SCOPE), [(-1, "user"), (0, "assistant"), (0, "assistant")]
    with suppress(CutOff):
        await import_conversation(cast("Conversation", Cut(chat, 2)), conversation(drawn, 1))
    assert [one.message.id for one in await chat.messages()] == ["m0", "m2"]
    await chat.append(user("Mine."))
    assert await import_conversation(chat, conversation(drawn, 1)) == 1
    assert (await chat.transcript()).entries[-1].text == "Mine."


nodes = st.lists(
    st.builds(
        lambda own, parent, says: Node(own, parent, f"at {own}", user("Hi.").with_id(own) if says else None),
        st.sampled_from("abcdef"),
        st.none() | st.sampled_from("abcdefgh"),
        st.booleans(),
    )
)


@given(nodes, st.none() | st.sampled_from("abcdefgh"))
def test_any_nodes_make_a_tree(listed: list[Node], current: str | None) -> None:
    """Circles, parents that are missing, ids that come twice, several beginnings: each message is there once, behind
    its parent, and what cannot be placed is told."""
    told: list[Unreadable] = []
    found = conversation_of("test", "c", listed, title=None, current=current, unreadable=told)
    assert isinstance(found, ImportedConversation)
    placed = list(found.messages)
    ids = [one.message.id for one in placed]
    first = {node.id: node for node in reversed(listed)}
    assert sorted(filter(None, ids)) == sorted(one for one, node in first.items() if node.message is not None)
    for number, one in enumerate(placed):
        assert one.parent is None or one.parent in ids[:number]
    assert found.current is None or found.current in ids
    circles = [one for one in told if "circle" in one.words]
    straight = all(node.parent is None or node.parent < node.id for node in first.values())
    assert not (circles and straight)
    assert bool(shown_messages(found)) == bool(placed)


async def test_two_branches_answer_one_call(memory: Memory) -> None:
    chat, drawn = memory.conversation("c", scope=SCOPE), [(-1, "user"), (0, "call"), (1, "result"), (1, "result")]
    await import_conversation(chat, conversation(drawn, 3))
    await check(chat, drawn, 3)


def test_two_messages_with_one_id() -> None:
    """A line that was written twice is one; another message is told."""
    told: list[Unreadable] = []
    given = [Node("a", None, text, user(text).with_id("a")) for text in ("Hi.", "Hi.", "Ho.")]
    found = conversation_of("test", "c", given, title=None, current=None, unreadable=told)
    assert isinstance(found, ImportedConversation)
    assert [one.message.text for one in found.messages] == ["Hi."]
    assert [one.words for one in told] == ["Ho.: its id 'a' is another message's too"]


async def test_another_conversation_of_that_name_is_left_alone(memory: Memory) -> None:
    chat = memory.conversation("c", scope=SCOPE)
    await chat.append(user("Mine."))
    assert await import_conversation(chat, conversation([(-1, "user")], 0)) is None
    assert len(await chat.messages()) == 1


async def test_what_was_erased_does_not_come_back(memory: Memory) -> None:
    chat, drawn = memory.conversation("c", scope=SCOPE), [(-1, "user"), (0, "assistant"), (0, "assistant")]
    await import_conversation(chat, conversation(drawn, 1))
    await chat.erase("m1")
    again = conversation(drawn, 1)
    assert (await import_conversation(chat, again), again.unreadable) == (0, [])
    assert len(await chat.messages()) == 3


async def test_what_was_said_since_stays_shown(memory: Memory) -> None:
    chat, drawn = memory.conversation("c", scope=SCOPE), [(-1, "user"), (0, "assistant"), (0, "assistant")]
    await import_conversation(chat, conversation(drawn, 1))
    await chat.append(user("And now?"), at=0)
    assert await import_conversation(chat, conversation(drawn, 1)) == 0
    assert (await chat.transcript()).entries[-1].text == "And now?"


async def test_what_is_new_in_the_middle_is_a_branch(memory: Memory) -> None:
    """A message that could not be read before has no place in what was imported since."""
    chat, say = memory.conversation("c", scope=SCOPE), user("Hi.")
    ends = [Node("a", None, "1", say.with_id("a")), Node("c", "a", "3", say.with_id("c"))]
    between = [ends[0], Node("b", "a", "2", say.with_id("b")), Node("c", "b", "3", say.with_id("c"))]
    for listed in (ends, between):
        found = conversation_of("test", "c", listed, title=None, current="c", unreadable=[])
        assert isinstance(found, ImportedConversation)
        await import_conversation(chat, found)
        assert found.unreadable == []
    assert "1 message came as a branch that is not shown" in found.notes[0]
    assert await tree(chat) == {"a": None, "c": "a", "b": "a"}
    assert [one.id for one in (await chat.transcript()).entries] == ["a", "c"]
