"""What the tests of facts share: Rosa, whom a family remembers; a model that takes down what a user says of her; and
what contexts show of that."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import hitherto
from hitherto import Context, Conversation, Fact, Memory, Scope, assistant, chunks, user
from hitherto.core.context.manifest import FactsShown, ShownFact
from hitherto.core.plain_text import END, one_line
from hitherto.ports.models import Prompt
from hitherto.providers.scripted import Scripted, ScriptedFact, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY
from tests.memories import open_on

ANA = Scope(tenant="acme", user="ana", agent="memorial")
BEN = replace(ANA, user="ben")
CAT = replace(ANA, user="cat")
"""Ana and Ben are members of the subject `ROSA`, Cat is not."""

ROSA = "legacy-7"
HEADING = "Known facts about Rosa from conversations:"
HERS = "Known facts about "
"""How a block of facts begins, whomever it is about."""

EVERY_TURN = chunks(threshold=2, batch=2, context=2)
"""Each turn but the last becomes a chunk."""

Answer = Callable[[Prompt], str]


@dataclass(frozen=True, slots=True)
class Says:
    """What a user says, word for word, and the fact in it; `again` and `instead` are the contents of a known fact that
    it repeats, or takes the place of."""

    text: str
    category: str
    content: str
    again: str | None = None
    instead: str | None = None


def material(prompt: Prompt) -> list[dict[str, Any]]:
    """What a model is shown to work on, as it can read it itself."""
    return [json.loads(line) for line in prompt.user.splitlines() if line.startswith("{")]


def listener(*told: Says) -> Answer:
    """A model that knows nothing but the prompt's text: it sums up what it is shown, and takes down as facts what the
    user, and nobody else, says of what is in `told`."""

    def answer(prompt: Prompt) -> str:
        shown = material(prompt)
        numbers = {one["content"]: one["known"] for one in shown if "known" in one}
        said = [one for one in shown if "seq" in one]
        facts: list[ScriptedFact] = []
        for one in said:
            for what in told:
                if one["role"] == "user" and what.text in one["text"]:
                    relation, other = "new", None
                    for word, content in (("repeats", what.again), ("replaces", what.instead)):
                        if content in numbers:
                            relation, other = word, content
                    known = 0 if other is None else numbers[other]
                    facts.append(ScriptedFact(what.category, what.content, [one["seq"]], 0.9, relation, known))
        text = " ".join(one["text"] for one in said if one["role"] == "user")
        wanted = facts if "facts" in prompt.schema["properties"] else None
        return items((text, [one["seq"] for one in said]), facts=wanted)

    return answer


@asynccontextmanager
async def opened(store: Store, *told: Says, model: Scripted | None = None, **given: Any) -> AsyncGenerator[Memory]:
    """A memory on `store` in which Rosa is known by her name and to her family."""
    options: dict[str, Any] = {**ONE_TRY, "embedder": "none", "policy": EVERY_TURN, **given}
    async with open_on(store, model=model or Scripted(then=listener(*told)), **options) as memory:
        await memory.configure_subject(tenant=ANA.tenant, subject=ROSA, name="Rosa", members=[ANA.user, BEN.user])
        yield memory


Opened = Callable[..., AbstractAsyncContextManager[Memory]]


async def dialogue(
    memory: Memory, name: str, *texts: str, scope: Scope = ANA, subject: str | None = ROSA, **options: Any
) -> Conversation:
    """A conversation in which the user says `texts`, and one thing more, so that under `EVERY_TURN` all of them are
    digested: text n is seq 2n."""
    chat = memory.conversation(name, scope=scope, subject=subject, **options)
    for text in (*texts, "That is all."):
        await chat.append(user(text), assistant("I see."))
        await memory.wait_for_digests()
    return chat


async def redigested(memory: Memory, name: str, text: str, *, policy: hitherto.Policy | None = None) -> Conversation:
    """A conversation in which the user says `text` first, in a chunk that was made in vain: as a later message of it
    was taken back, `text` is shown to the model once more, perhaps under another policy."""
    chat = memory.conversation(name, scope=ANA, subject=ROSA, policy=chunks(threshold=4, batch=4, context=2))
    await chat.append(user(text), assistant("I see."), user("Well."), assistant("Yes."), user("Hm."))
    await memory.wait_for_digests()
    for _ in range(2):
        await chat.pop()
    if policy is not None:
        await chat.configure(policy=policy, create=True)
    await chat.append(assistant("No."), user("And?"), assistant("Yes."), user("Go on."))
    await memory.wait_for_digests()
    assert [(row.start, row.status.value) for row in await chat.digests()] == [(0, "superseded"), (0, "completed")]
    return chat


async def contents(memory: Memory, scope: Scope = ANA, **wanted: Any) -> list[str]:
    """What the facts of a user say, his own and those that are shared with him."""
    return [one.content for one in await memory.facts(scope).list(**wanted)]


async def fact(memory: Memory, content: str, scope: Scope = ANA) -> Fact:
    """The one fact of the user's, in whatever state, that says so."""
    (found,) = [one for one in await memory.facts(scope).list(state=None) if one.content == content]
    return found


def sources(one: Fact) -> list[tuple[str, int]]:
    return [(said.conversation, said.seq) for said in one.evidence]


def system_of(context: Context) -> str:
    """The instructions of a request, in whichever format it is; "" without any."""
    if "messages" in context.request and "system" not in context.request:
        first = context.messages[0]
        return str(first["content"]) if first["role"] == "system" else ""
    said = context.request.get("instructions") or context.request.get("system") or ""
    return said if isinstance(said, str) else "".join(block["text"] for block in said)


def ahead_of(context: Context) -> str:
    """The text of the message in front of the incoming one; "" without any."""
    said = [text_of(item) for item in context.messages]
    return said[-2] if len(said) > 1 else ""


def text_of(item: dict[str, Any]) -> str:
    """What an item of any format says."""
    content = item.get("content")
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(part.get("text", "") for part in content)


def shown_by(context: Context) -> FactsShown | None:
    """What the manifest says of the facts that are shown; None where none is, for want of facts or of room."""
    says = context.manifest.facts
    assert says is None or says.known > 0
    return says if says is not None and says.shown else None


def known_to(context: Context) -> list[str]:
    """The lines of facts that a request shows. A block stands where the manifest says, once, and whole, and one of
    newer facts in front of the incoming message; there is none where the manifest has none."""
    says = shown_by(context)
    texts = [system_of(context), *(text_of(item) for item in context.messages if item.get("role") != "system")]
    blocks = 0 if says is None else 1 + bool(says.newer)
    assert sum(line.startswith(HERS) for text in texts for line in text.split("\n")) == blocks
    assert (says is not None) == ("facts" in context.manifest.sections)
    if says is None:
        return []
    assert len(says.shown) + len(says.newer) <= says.known
    assert context.manifest.sections["facts"] > 0
    system, heading = says.place == "system", block_heading(says.name)
    ahead = next((text for text in reversed(texts[1:]) if heading in text), "")  # what is recalled stands behind it
    lines = _block(system_of(context) if system else ahead, says.name, says.shown, alone=not system)
    return lines + (_block(ahead, says.name, says.newer, alone=True) if says.newer else [])


def _block(text: str, name: str, shown: list[ShownFact], *, alone: bool) -> list[str]:
    before, heading, block = text.rpartition(f"{block_heading(name)}\n")
    assert heading
    assert not before or (not alone and before.endswith("\n\n"))
    facts, closing, after = block.partition(f"\n{END}")
    lines = facts.split("\n")
    assert closing
    assert not after or (not alone and after.startswith("\n\n")), "a digest in the instructions"
    assert len(lines) == len(shown)
    assert [one.fact for one in shown] == sorted(one.fact for one in shown), "in order of extraction"
    assert [line.endswith(" (shared)") for line in lines] == [one.shared for one in shown]
    assert all(line.startswith("- [") and line.endswith((" (shared)", " (personal)")) for line in lines)
    return lines


def block_heading(name: str) -> str:
    return f"{HERS}{one_line(name)} from conversations:"
