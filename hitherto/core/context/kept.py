"""Kept contexts: what a model was sent, as its manifest, for later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from hitherto.core.context.manifest import Manifest, RecalledEntry
from hitherto.core.log.message import storable
from hitherto.core.log.ranges import Ranges, joined
from hitherto.core.policy.span import Fate


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptContext:
    """A context that was kept: the conversation's `rebuild` makes it again from its `manifest`. Ids ascend as contexts
    are kept."""

    id: int
    kept_at: datetime
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRecord:
    """A manifest as a store writes it. `manifest` is its JSON text without the instructions and the tools, which are
    the same in many; `instructions` and `tools` are the JSON texts of these, None where there are none.

    `shown` are the messages of the conversation that the context showed, word for word or in a digest; the log had
    `next_seq` messages. `incoming` are the hashes of the content of the messages that were incoming (`content_hashes`):
    their seqs are not known yet. `others` are the conversations of the user that something was taken from: agent and
    name.
    """

    manifest: str
    instructions: str | None
    tools: str | None
    shown: Ranges
    next_seq: int
    incoming: tuple[bytes, ...]
    others: tuple[tuple[str, str], ...]


def content_hashes(raw: str, text: str) -> list[bytes]:
    """SHA-256 of a message's item, and of its text if it has one: by either it is found again, in whatever format it is
    appended."""
    return [hashlib.sha256(one.encode()).digest() for one in (raw, storable(text)) if one]


def record_of(manifest: Manifest, incoming: Iterable[tuple[str, str]]) -> ContextRecord:
    """The record of a manifest; `incoming` has the item's JSON text and the text of each incoming message."""
    request = manifest.request
    bare = manifest.model_copy(update={"request": request.model_copy(update={"instructions": None, "tools": []})})
    own = (manifest.agent, manifest.conversation)
    names = [(one.agent or manifest.agent, one.conversation) for one in manifest.recalled if one.conversation]
    if manifest.injected is not None:
        names.append((manifest.agent, manifest.injected.conversation))
    return ContextRecord(
        manifest=json.dumps(bare.to_json()),
        instructions=None if request.instructions is None else json.dumps(request.instructions),
        tools=json.dumps(request.tools) if request.tools else None,
        shown=joined((span.start, span.end) for span in manifest.fates if span.fate is not Fate.DROPPED),
        next_seq=manifest.next_seq,
        incoming=tuple(one for raw, text in incoming for one in content_hashes(raw, text)),
        others=tuple(sorted({name for name in names if name != own})),
    )


def manifest_of(manifest: str, instructions: str | None, tools: str | None) -> Manifest:
    """The manifest of a record's texts."""
    bare = Manifest.from_json(manifest)
    told: dict[str, object] = {
        "instructions": None if instructions is None else json.loads(instructions),
        "tools": [] if tools is None else json.loads(tools),
    }
    return bare.model_copy(update={"request": bare.request.model_copy(update=told)})


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextChanges:
    """What is different between two contexts: how many messages are shown word for word that were not (`added`), and
    the other way around (`removed`); how many things are `recalled` that were not; how many `tokens` more there are."""

    added: int
    removed: int
    recalled: int
    tokens: int


def changes_since(before: Manifest, now: Manifest) -> ContextChanges:
    """What is different between two contexts of a conversation."""
    shown, earlier = _shown(now), _shown(before)
    return ContextChanges(
        added=len(shown - earlier),
        removed=len(earlier - shown),
        recalled=len({_place(one) for one in now.recalled} - {_place(one) for one in before.recalled}),
        tokens=now.total - before.total,
    )


def _shown(manifest: Manifest) -> set[int]:
    return {seq for span in manifest.fates if span.fate is Fate.IN for seq in range(span.start, span.end + 1)}


def _place(entry: RecalledEntry) -> tuple[object, ...]:
    return entry.conversation, entry.agent, entry.start, entry.end, entry.digest, entry.document, entry.passage
