"""Helpers of the cases: sample messages, units of work, and digests."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hitherto.core.changes import Changes
from hitherto.core.digests.digest import DigestOutcome, DigestWork, Item, Needs, NewDigest, RewrittenDigest
from hitherto.core.log.append import extended
from hitherto.core.log.conversations import ConversationFilter, ConversationInfo, MessageRange, Receipt
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.head import Head, OpenCall
from hitherto.core.log.message import CHAT, Kind, Logged, Message, Role
from hitherto.core.log.ranges import Ranges
from hitherto.core.scope import Scope
from hitherto.store.store import Store

SCOPE = Scope(tenant="acme", user="u-17", agent="planner")
LONG_AGO = datetime(2001, 2, 3, 4, 5, 6, 789, tzinfo=UTC)

AT_ONCE = timedelta(0)
"""A lease that ends as soon as it begins, or no wait."""

HOUR = timedelta(hours=1)
"""Longer than any test takes."""

STAGE = "0123456789abcdef"
OTHER_STAGE = "fedcba9876543210"


def _message(role: Role, kind: Kind, text: str, **item: Any) -> Message:
    raw = json.dumps({"role": role.value, **item})
    return Message(raw=raw, wire=CHAT, role=role, kind=kind, text=text)


def user(text: str = "What now?") -> Message:
    return _message(Role.USER, Kind.TEXT, text, content=text)


def assistant(text: str = "Go on.") -> Message:
    return _message(Role.ASSISTANT, Kind.TEXT, text, content=text)


def system(text: str = "Be brief.") -> Message:
    return _message(Role.SYSTEM, Kind.TEXT, text, content=text)


def reasoning(text: str = "Let me think.") -> Message:
    return _message(Role.ASSISTANT, Kind.REASONING, text, reasoning=text)


def compaction(text: str = "") -> Message:
    return _message(Role.ASSISTANT, Kind.COMPACTION, text, encrypted="x")


def call(*ids: str, tool: str = "look_up") -> Message:
    made = _message(Role.ASSISTANT, Kind.TOOL_CALL, "", calls=ids)
    return replace(made, calls=ids, tools=tuple(tool for _ in ids))


def result(id: str, text: str = "42") -> Message:
    return replace(_message(Role.TOOL, Kind.TOOL_RESULT, text, id=id, content=text), answers=(id,))


def dialogue(rounds: int) -> list[Message]:
    """`rounds` questions, each followed by its answer."""
    return [message for n in range(rounds) for message in (user(f"question {n}"), assistant(f"answer {n}"))]


def chances(seed: int) -> random.Random:
    """The same random choices for the same seed."""
    return random.Random(seed)


def any_messages(chance: random.Random, count: int) -> list[Message]:
    """A batch of all kinds of messages; every tool result has its call in the same batch."""
    made: list[Message] = []
    waiting: list[str] = []
    for n in range(count):
        if waiting and chance.random() < 0.5:
            made.append(result(waiting.pop(chance.randrange(len(waiting)))))
            continue
        maker = chance.choice([user, user, assistant, assistant, system, reasoning, compaction, call])
        if maker is call:
            waiting.append(f"call-{chance.getrandbits(64)}")
            made.append(call(waiting[-1]))
        else:
            made.append(maker(f"{n}"))
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one unit of work wrote: its messages, the head it committed, and the ids of the digests it set off."""

    logged: tuple[Logged, ...]
    head: Head
    fired: tuple[int, ...]


async def write(
    store: Store,
    name: str,
    *messages: Message,
    scope: Scope = SCOPE,
    tokens: Sequence[int] | None = None,
    key: str | None = None,
    fire: Sequence[NewDigest] = (),
    outcomes: Sequence[DigestOutcome] = (),
    erase: Ranges = (),
    rewritten: Sequence[RewrittenDigest] = (),
    supersede: Sequence[int] = (),
    same_rev: bool = False,
    **after: Any,
) -> Written:
    """One unit of work, committed. A message has 10 tokens unless `tokens` says otherwise; with a `key`, a receipt is
    written; `same_rev` leaves the revision as it is; `after` replaces fields of the head that is committed."""
    async with store.write(scope, name, key=key) as unit:
        logged, head = (), replace(unit.head, rev=unit.head.rev + (0 if same_rev else 1))
        if messages:
            logged, head = extended(unit.head, messages, tokens or [10] * len(messages))
        if erase:
            head = replace(head, erased=(*head.erased, *erase))
        head = replace(head, **after)
        receipt = None
        if key is not None:
            receipt = Receipt(
                start=unit.head.next_seq, end=head.last_seq, rev=head.rev, fingerprint=fingerprint_of(key)
            )
        changes = Changes(
            head=head,
            messages=logged,
            key=key,
            receipt=receipt,
            fire=tuple(fire),
            outcomes=tuple(outcomes),
            erase=erase,
            rewritten=tuple(rewritten),
            supersede=tuple(supersede),
        )
        fired = await unit.commit(changes)
    return Written(logged=logged, head=head, fired=fired)


def fingerprint_of(key: str) -> str:
    """The fingerprint that `write` puts into the receipt of a key."""
    return f"of {key.encode('unicode_escape').decode()}"


async def fire(
    store: Store,
    name: str,
    start: int,
    end: int,
    *,
    scope: Scope = SCOPE,
    stage: str = STAGE,
    base: int | None = None,
    needs: Needs | None = None,
) -> int:
    """Set off a digest; its id."""
    row = replace(digest_of(start, end, stage=stage, base=base), needs=needs)
    written = await write(store, name, scope=scope, fire=[row], same_rev=True)
    (made,) = written.fired
    return made


async def digested(
    store: Store, name: str, start: int, end: int, *items: Item, stage: str = STAGE, base: int | None = None
) -> int:
    """Set off a digest and complete it with these items; its id."""
    made = await fire(store, name, start, end, stage=stage, base=base)
    text = "\n".join(item.text for item in items)
    await write(store, name, outcomes=[DigestOutcome(digest=made, items=items, text=text, tokens=len(text))])
    return made


async def claimed(store: Store, digest: int, *, lease: timedelta = HOUR, tenant: str = SCOPE.tenant) -> DigestWork:
    """Claim a digest that is due; the work on it."""
    work = await store.claim(tenant, digest, lease=lease)
    assert work is not None, f"the digest {digest} is due"
    return work


async def clear(store: Store, name: str) -> None:
    """Hide all messages so far, as `Conversation.clear` does."""
    async with store.write(SCOPE, name) as unit:
        head = unit.head
        hide = NewDigest(
            stage="clear",
            spec="{}",
            action=DigestAction.CLEAR,
            start=head.view_start,
            end=head.last_seq,
            base=None,
            completed=True,
        )
        after = replace(head, rev=head.rev + 1, view_start=head.next_seq, view_sums=head.sums, awaited=())
        fenced = tuple(DigestOutcome(digest=one.id, superseded=True) for one in head.running)
        await unit.commit(Changes(head=after, fire=(hide,), outcomes=fenced))


ENDS = {
    "completed": DigestOutcome(digest=0, items=(Item("a", ((0, 0),)),), text="a", tokens=1, model="m"),
    "failed": DigestOutcome(digest=0, error="the model is down"),
    "superseded": DigestOutcome(digest=0, superseded=True, error="cleared"),
}


def ending(how: str, digest: int) -> DigestOutcome:
    """The outcome `ENDS[how]`, for that digest."""
    return replace(ENDS[how], digest=digest)


def digest_of(start: int, end: int, *, stage: str = STAGE, base: int | None = None) -> NewDigest:
    return NewDigest(stage=stage, spec='{"n": 1}', action=DigestAction.SUMMARIZE, start=start, end=end, base=base)


async def head_of(store: Store, name: str, *, scope: Scope = SCOPE) -> Head:
    """The newest head of an existing conversation."""
    head = await store.head(scope, name)
    assert head is not None, f"the conversation {name!r} is there"
    return head


async def log_of(store: Store, name: str, *, scope: Scope = SCOPE) -> list[Logged]:
    """The whole log of an existing conversation."""
    head = await head_of(store, name, scope=scope)
    return await store.messages(scope, name, head.ref, MessageRange(start=0, stop=head.next_seq))


def timeless(head: Head | None) -> dict[str, object] | None:
    """What every head has, without its clock readings, which differ from read to read."""
    left_out = ("now", "clock", "open_calls", "messages_rev")
    return None if head is None else {name: value for name, value in vars(head).items() if name not in left_out}


async def conversations(store: Store, scope: Scope = SCOPE) -> list[ConversationInfo]:
    """The scope's conversations, as they are listed."""
    found, _ = await store.listed(ConversationFilter.of(scope), limit=1_000)
    return found


async def snapshot(store: Store, name: str, *, scope: Scope = SCOPE) -> tuple[object, ...]:
    """Everything the store returns about a conversation, to compare before and after."""
    head = await store.head(scope, name)
    log = [] if head is None else await log_of(store, name, scope=scope)
    return timeless(head), log, await store.digests(scope, name), await conversations(store, scope)


async def open_calls(store: Store, name: str, *, scope: Scope = SCOPE) -> Mapping[str, OpenCall]:
    """All tool calls of the conversation that have no result, by id."""
    async with store.export.snapshot() as reader:
        kept = await reader.conversation(scope, name)
    return {} if kept is None else kept[0].head.open_calls
