"""A file that is imported again, perhaps grown, after the user went on here: what is new comes, nothing is undone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto import Conversation, Memory, Message, assistant, system, user
from hitherto.core.log.message import Logged, id_hash
from hitherto.importers import ImportedConversation, ImportSummary, import_conversation, import_file
from hitherto.importers.imported import ImportedMessage, Node, conversation_of, shown_messages
from hitherto.importers.writers import log
from hitherto.importers.writers.log import ImportLog
from tests.conftest import SCOPE
from tests.importers.looked_at import tree, written
from tests.importers.test_trees import Cut, CutOff
from tests.lengths import examples


@dataclass(eq=False)
class File:
    """A conversation of a file: its messages, each with the number of the one before it, or -1, and its text."""

    messages: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    current: int = 0
    title: str | None = None

    def grow(self, *parents: int) -> None:
        for parent in parents:
            self.messages.append((parent, f"text {len(self.messages)}."))
        self.current = len(self.messages) - 1

    def change(self, number: int) -> None:
        parent, text = self.messages[number]
        self.messages[number] = (parent, f"{text} More.")

    def conversation(self) -> ImportedConversation:
        nodes = [
            Node(f"m{n}", f"m{parent}" if parent >= 0 else None, f"message {n}", user(text).with_id(f"m{n}"))
            for n, (parent, text) in enumerate(self.messages)
        ]
        made = conversation_of("test", "c", nodes, title=self.title, current=f"m{self.current}", unreadable=[])
        assert isinstance(made, ImportedConversation)
        return made


def listed(*texts: str) -> ImportedConversation:
    messages = [ImportedMessage(user(text), f"message {n}") for n, text in enumerate(texts)]
    return ImportedConversation("test", "c", messages, tree=False)


def shown(messages: Sequence[Logged]) -> list[int]:
    return [one.seq for one in messages if one.retracted_rev is None]


async def texts(chat: Conversation) -> list[str]:
    """What is shown."""
    return [one.message.text for one in await chat.messages() if one.retracted_rev is None]


@dataclass(eq=False)
class Here:
    """A conversation into which a file is imported, while its user goes on, goes back and erases."""

    chat: Conversation
    erased: set[str] = field(default_factory=set[str])

    async def do(self, what: str, where: int) -> None:
        """Something that the user does, at one of the messages."""
        messages = await self.chat.messages()
        seq = where % len(messages)
        match what:
            case "say":
                await self.chat.append(user(f"Mine {len(messages)}."))
            case "switch":
                await self.chat.switch(seq)
            case "rewind":
                last = shown(messages)
                await self.chat.rewind(to=last[seq % len(last)] if last else -1)
            case "erase":
                self.erased |= {messages[seq].message.text} - {""}
                await self.chat.erase(seq)
            case _:
                raise AssertionError(what)


DEEDS = st.lists(st.tuples(st.sampled_from(["say", "switch", "rewind", "erase"]), st.integers(0, 30)), max_size=4)


async def import_and_check(here: Here, conversation: ImportedConversation) -> None:
    """Import it, and check what each import promises."""
    chat, way = here.chat, [one.message for one in shown_messages(conversation)]
    before = await chat.messages()
    count = await import_conversation(chat, conversation)
    after, head = await chat.messages(), await chat.head()
    assert (count, [(one.message.raw, one.erased) for one in before]) == (
        len(after) - len(before),
        [(one.message.raw, one.erased) for one in after[: len(before)]],
    )
    said = [one.message.text for one in after[len(before) :]]
    assert not any(text.startswith(gone) for text in said for gone in here.erased)
    check_what_is_shown(before, after, way)
    if said and before and way[-1].text in said and shown(before) == shown(after):
        assert any("a branch that is not shown" in words for words in conversation.notes)
    check_nothing_is_lost(conversation, after)
    assert await import_conversation(chat, conversation) == 0
    now = await chat.head()
    assert (now and now.rev, await chat.messages()) == (head and head.rev, after)


def check_what_is_shown(before: Sequence[Logged], after: Sequence[Logged], way: Sequence[Message]) -> None:
    """The file's branch in a new conversation; in any other what was shown, perhaps with what is new behind it, or with
    a text that goes on in the place of its last message."""
    if not before:
        assert [one.message.text for one in after if one.retracted_rev is None] == [one.text for one in way]
        return
    old, new = shown(before), shown(after)
    if len(before) == len(after):
        assert old == new
    if new[: len(old)] != old:
        assert new[: len(old) - 1] == old[:-1]
        assert after[new[len(old) - 1]].message.text.startswith(before[old[-1]].message.text)


def check_nothing_is_lost(conversation: ImportedConversation, after: Sequence[Logged]) -> None:
    """Each message of the file is in the log, or erased, unless it is told that it was left out."""
    there = {one.message.text for one in after}
    gone, left_out = [one for one in after if one.erased], sum(one.count for one in conversation.unreadable)
    missing = [one.message for one in conversation.messages if one.message.text not in there]
    assert len(missing) <= left_out + len(gone)
    if conversation.tree:
        hashes = {one.id_hash for one in gone}
        versions = ("", *(f"~{number}" for number in range(2, 9)))
        lost = [one for one in missing if not any(id_hash(f"{one.id}{version}") in hashes for version in versions)]
        assert len(lost) <= left_out


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), ids=st.booleans())
async def test_what_the_user_did_stays(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, data: st.DataObject, ids: bool
) -> None:
    """Any tree that grows and changes, or any list that grows."""
    monkeypatch.setattr(log, "PAGE", 2)
    here, file = Here(memory.conversation(uuid4().hex, scope=SCOPE)), File()
    for _ in range(data.draw(st.integers(2, 4))):
        for _ in range(data.draw(st.integers(0 if file.messages else 1, 4))):
            last = len(file.messages) - 1
            file.grow(data.draw(st.integers(-1, last)) if ids else last)
        if ids and len(file.messages) > 1 and data.draw(st.booleans()):
            file.change(data.draw(st.integers(1, len(file.messages) - 1)))
        if ids:
            file.current = data.draw(st.integers(0, len(file.messages) - 1))
        conversation = file.conversation()
        conversation.tree = ids
        if not ids:
            conversation.messages = [
                ImportedMessage(one.message.with_id(None), one.place) for one in conversation.messages
            ]
        await import_and_check(here, conversation)
        for what, where in data.draw(DEEDS):
            await here.do(what, where)


@pytest.fixture
def chat(memory: Memory) -> Conversation:
    return memory.conversation("c", scope=SCOPE)


async def test_what_an_answer_says_by_now(chat: Conversation) -> None:
    """It comes beside what it said before, with what follows it, and is shown if that was the last that is."""
    file = File()
    file.grow(-1, 0)
    await import_conversation(chat, file.conversation())
    file.change(1)
    file.grow(1)
    newer = file.conversation()
    assert await import_conversation(chat, newer) == 2
    assert newer.notes == ["'c': 1 message with another text in the file than here; the file's came as branches beside"]
    assert await texts(chat) == ["text 0.", "text 1. More.", "text 2."]
    assert await tree(chat) == {"m0": None, "m1": "m0", "m1~2": "m0", "m2": "m1~2"}
    assert await import_conversation(chat, file.conversation()) == 0


async def test_what_an_answer_says_by_now_where_the_user_went_on(chat: Conversation) -> None:
    file = File()
    file.grow(-1, 0)
    await import_conversation(chat, file.conversation())
    await chat.append(user("Mine."))
    file.change(1)
    newer = file.conversation()
    assert await import_conversation(chat, newer) == 1
    assert await texts(chat) == ["text 0.", "text 1.", "Mine."]
    assert newer.notes[-1].endswith("to show it: hitherto branches c --switch 3")
    await chat.switch(3)
    assert await texts(chat) == ["text 0.", "text 1. More."]


async def test_what_was_erased_does_not_come_as_another_text(chat: Conversation) -> None:
    """Neither of a message that was erased, nor of one of which a later text was."""
    file = File()
    file.grow(-1, 0, 1)
    await import_conversation(chat, file.conversation())
    file.change(1)
    await import_conversation(chat, file.conversation())
    await chat.erase(["m1~2", "m2"])
    file.change(1)
    file.change(2)
    again = file.conversation()
    assert (await import_conversation(chat, again), again.unreadable) == (0, [])
    assert again.notes == ["'c': 2 messages of the file erased here, and not imported again"]


async def test_another_text_is_not_shown_in_place_of_the_last(chat: Conversation) -> None:
    """Two files can begin alike, and number their messages alike."""
    file = File()
    file.grow(-1, 0)
    await import_conversation(chat, file.conversation())
    file.messages[1] = (0, "Something else.")
    assert await import_conversation(chat, file.conversation()) == 1
    assert await texts(chat) == ["text 0.", "text 1."]


@pytest.mark.parametrize("ids", [True, False])
async def test_another_conversation_of_that_name(chat: Conversation, ids: bool) -> None:
    """Ids and a first system message are nothing that conversations have in common; a question is."""
    for answers, count in (("One.", 3), ("Two.", None)):
        messages = [system("Be brief."), user(f"Say {answers}"), assistant(answers)]
        kept = [one.with_id(str(n) if ids else None) for n, one in enumerate(messages)]
        placed = [ImportedMessage(one, "", str(n - 1) if ids and n else None) for n, one in enumerate(kept)]
        assert await import_conversation(chat, ImportedConversation("test", "c", placed, tree=ids)) == count
    assert await texts(chat) == ["Be brief.", "Say One.", "One."]


async def test_a_repeated_import_leaves_what_is_shown(chat: Conversation) -> None:
    file = File()
    file.grow(-1, 0, 0)
    await import_conversation(chat, file.conversation())
    await chat.switch(1)
    for _ in range(2):
        assert await import_conversation(chat, file.conversation()) == 0
        assert await texts(chat) == ["text 0.", "text 1."]
        await chat.rewind(to=0)
        assert await import_conversation(chat, file.conversation()) == 0
        assert await texts(chat) == ["text 0."]
        await chat.switch(1)


async def test_a_list_that_was_taken_back_and_has_grown(chat: Conversation) -> None:
    """Nothing is put behind what it does not follow."""
    await import_conversation(chat, listed("Q1", "A1", "Q2", "A2"))
    await chat.rewind(to=1)
    await chat.append(user("Mine."))
    grown = listed("Q1", "A1", "Q2", "A2", "Q3", "A3")
    assert await import_conversation(chat, grown) == 2
    assert await texts(chat) == ["Q1", "A1", "Mine."]
    assert grown.notes == [
        "'c': 2 messages came as a branch that is not shown, as another one is shown here; "
        "to show it: hitherto branches c --switch 6"
    ]
    await chat.switch(6)
    assert await texts(chat) == ["Q1", "A1", "Q2", "A2", "Q3", "A3"]
    assert await import_conversation(chat, listed("Q1", "A1", "Q2", "A2", "Q3", "A3", "Q4")) == 1
    assert (await texts(chat))[-1] == "Q4"


async def test_a_list_that_has_grown_and_was_cut_off(chat: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows at the end what was shown before."""
    monkeypatch.setattr(log, "PAGE", 1)
    await import_conversation(chat, listed("Q1", "A1", "Q2"))
    await chat.rewind(to=1)
    await chat.append(user("Mine."))
    for calls in range(8):
        with suppress(CutOff):
            await import_conversation(
                cast("Conversation", Cut(chat, calls)), listed("Q1", "A1", "Q2", "A2", "Q3", "A3")
            )
    assert await texts(chat) == ["Q1", "A1", "Mine."]
    assert len(await chat.messages()) == 7


async def test_a_list_that_differs_where_messages_were_erased(chat: Conversation) -> None:
    """Of what was erased in a list nobody knows what it was: what might have it is left out, and told."""
    await import_conversation(chat, listed("Q1", "A1", "Q2"))
    await chat.erase(2)
    other = listed("Q1", "A1, complete", "Q2", "A2")
    assert await import_conversation(chat, other) == 0
    assert [(one.count, "messages were erased" in one.words) for one in other.unreadable] == [(3, True)]


async def test_ids_in_a_list_that_differs(chat: Conversation) -> None:
    """A message with another text than before comes beside it; one of an id that was erased does not come."""

    def numbered(*said: str) -> ImportedConversation:
        list_of = listed(*said)
        list_of.messages = [
            replace(one, message=one.message.with_id(f"m{n}")) for n, one in enumerate(list_of.messages)
        ]
        return list_of

    await import_conversation(chat, numbered("Q1", "A1", "Q2"))
    assert await import_conversation(chat, numbered("Q1", "A1, complete", "Q2", "A2")) == 3
    assert await tree(chat) == {"m0": None, "m1": "m0", "m2": "m1", "m1~2": "m0", "m2~2": "m1~2", "m3": "m2~2"}
    assert await texts(chat) == ["Q1", "A1", "Q2"]
    await chat.append(user("Mine.").with_id("m4"), at=0)
    await chat.erase("m4")
    await chat.switch(2)
    for said, added in ((("Q1", "A1", "Q2", "A2", "Q3"), 1), (("Q1", "A1", "Q2", "A2", "Q3", "A3"), 1)):
        longer = numbered(*said)
        assert await import_conversation(chat, longer) == added
        assert longer.notes == ["'c': 1 message of the file erased here, and not imported again"]
    assert await texts(chat) == ["Q1", "A1", "Q2", "A2", "A3"]


async def test_another_id_is_not_taken_for_one_that_was_erased(chat: Conversation) -> None:
    def ending(id: str) -> ImportedConversation:
        messages = [user("Q1").with_id("m0"), user("Q2").with_id(id)]
        return ImportedConversation("test", "c", [ImportedMessage(one, "") for one in messages], tree=False)

    await import_conversation(chat, ending("m1"))
    await chat.erase("m1")
    other = ending("m2")
    assert (await import_conversation(chat, other), len(other.unreadable)) == (0, 1)


@pytest.mark.parametrize("ids", [True, False])
async def test_what_follows_cleared_messages(chat: Conversation, ids: bool) -> None:
    """The end of what was cleared goes on; anything else behind it is left out, and told."""

    def file(*parents: int) -> ImportedConversation:
        if not ids:
            return listed(*(f"text {n}." for n in range(len(parents))))
        made = File()
        made.grow(*parents)
        return made.conversation()

    await import_conversation(chat, file(-1, 0))
    await chat.clear()
    assert await import_conversation(chat, file(-1, 0, 1)) == 1
    assert [entry.text for entry in (await chat.transcript()).entries] == ["text 2."]
    await chat.rewind(to=1)
    await chat.append(user("Mine."))
    await chat.clear()
    again = file(-1, 0, 1, 2)
    assert await import_conversation(chat, again) == 0
    assert [one.words for one in again.unreadable] == ["message 3: it follows what was cleared here: left out"]
    assert [*(await chat.transcript()).entries] == []


async def test_a_deleted_conversation_comes_back(chat: Conversation) -> None:
    file = File(title="Any")
    file.grow(-1, 0)
    await import_conversation(chat, file.conversation())
    await chat.delete()
    assert await import_conversation(chat, file.conversation()) == 2


async def test_messages_without_a_time_have_that_of_the_one_before(memory: Memory, tmp_path: Path) -> None:
    lines = [{"role": "user", "content": text} for text in ("One", "Two", "Three")]
    dated = [{**lines[0], "at": "2026-05-08T13:30:00Z"}, lines[1], {**lines[2], "at": "2026-05-09T13:30:00Z"}]
    await import_file(memory, written(tmp_path / "c.jsonl", dated), scope=SCOPE)
    messages = await memory.conversation("c", scope=SCOPE).messages()
    assert [one.said_at.day for one in messages] == [8, 8, 9]


async def title_of(chat: Conversation) -> str | None:
    info = await chat.info()
    return info and info.title


@pytest.mark.parametrize("ids", [True, False])
async def test_titles(chat: Conversation, ids: bool) -> None:
    """A new one is taken as long as nobody gave another one here."""
    file = File()
    file.grow(-1)

    async def title_after_import(title: str | None) -> str | None:
        file.title = title
        conversation = file.conversation() if ids else replace(listed("Hi."), title=title)
        await import_conversation(chat, conversation)
        return await title_of(chat)

    for title, expected in (("Old", "Old"), ("New", "New"), (None, "New"), ("Newer", "Newer")):
        assert await title_after_import(title) == expected
    await chat.configure(title="Mine")
    assert await title_after_import("Newest") == "Mine"


async def test_what_the_summary_counts(memory: Memory, tmp_path: Path) -> None:
    """What is new; what was there; what could not be read, and not be kept, with the reasons."""
    one = [{"role": "user", "content": "Hi."}, {"role": "wizard", "content": "Ho."}, {"role": "user", "content": "Hm."}]
    file = written(tmp_path / "c.json", [one, [{"role": "user", "content": "Well?"}], [], one[:1]])
    summary = await import_file(memory, file, scope=SCOPE)
    assert (summary.conversations, summary.messages, summary.skipped, summary.left_out) == (3, 4, 0, 2)
    assert "has the role 'wizard'" in summary.unreadable[0]
    assert "c-2 is no list of messages" in summary.unreadable[1]
    await memory.conversation("c-3", scope=SCOPE).clear()
    await memory.conversation("c-3", scope=SCOPE).append(user("Mine."))
    await memory.conversation("c-1", scope=SCOPE).erase(0)
    more = [{"role": "user", "content": text} for text in ("Hi.", "A", "B", "C")]
    grown = written(tmp_path / "c.json", [one, [{"role": "user", "content": "Well?"}], [], more])
    summary = await import_file(memory, grown, scope=SCOPE)
    assert replace(summary, unreadable=(), notes=()) == ImportSummary(skipped=3, left_out=5)
    assert summary.unreadable[-1].endswith("message 2 (and 2 behind it): it follows what was cleared here: left out")
    assert summary.notes == ("'c-1': 1 message of the file erased here, and not imported again",)


async def test_two_imports_at_once(chat: Conversation) -> None:
    """Of a list that differs: one of them is told, and nothing is there twice."""
    await import_conversation(chat, listed("Q1", "A1", "Q2"))
    differing = [listed("Q1", "other", "Q3") for _ in range(2)]
    await asyncio.gather(*(import_conversation(chat, one) for one in differing))
    there = [one.message.text for one in await chat.messages()]
    assert sorted(there) == ["A1", "Q1", "Q2", "Q3", "other"]


@pytest.mark.parametrize("ids", [True, False])
async def test_one_who_writes_meanwhile_is_told(chat: Conversation, monkeypatch: pytest.MonkeyPatch, ids: bool) -> None:
    """In the words of who imports."""
    append = ImportLog.append

    async def late(self: ImportLog, page: Sequence[Message], at: int) -> list[int]:
        await chat.append(user("Mine."))
        return await append(self, page, at)

    monkeypatch.setattr(ImportLog, "append", late)
    file = File()
    file.grow(-1, 0)
    conversation = file.conversation() if ids else listed("text 0.", "text 1.")
    assert await import_conversation(chat, conversation) == 0
    assert [one.words for one in conversation.unreadable] == [
        "message 0 (and 1 behind it): another import, or a program, wrote here meanwhile; run this import again"
    ]
