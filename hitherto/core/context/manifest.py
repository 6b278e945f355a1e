"""The receipt of a context: what became of every message, what is kept of it, and what changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hitherto.core.context.recalled import RecallReasonName
from hitherto.core.log.message import storable
from hitherto.core.log.ranges import Ranges, joined
from hitherto.core.policy.span import Fate, Span
from hitherto.core.recall.filter import EntryKindName
from hitherto.errors import InvalidInput


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Injected(_Frozen):
    """Where memory of an earlier conversation of the scope came from: one digest, of which at most `limit` tokens were
    taken."""

    conversation: str
    digest: int
    limit: int


class RecalledEntry(_Frozen):
    """One thing that was recalled. `why` says what asked for it: "request", "policy" or "cross_session"
    (`RecallReason`). `kind` is "message", "digest" or "passage"; it stands for the messages `start` to `end` of
    `conversation`, which belongs to the scope's user and to `agent`. `passage` is its place in `document`. `title` is
    the one by which its heading names another conversation. `score` (0 to 1) is its relevance, `tokens` what its line
    takes by itself. `characters` are the ranges of its text (end exclusive) that are shown, empty where all of it is;
    the text of several messages is theirs, a line break between each two."""

    why: RecallReasonName
    kind: EntryKindName
    conversation: str | None = None
    agent: str | None = None
    start: int | None = None
    end: int | None = None
    digest: int | None = None
    document: int | None = None
    passage: int | None = None
    title: str | None = None
    score: float
    tokens: int
    characters: list[tuple[int, int]] = []


class ShownFact(_Frozen):
    """One fact that is shown, as it was at `version`; `shared` as its line says."""

    fact: int
    version: int
    shared: bool


class FactsShown(_Frozen):
    """The facts that are shown about `subject` (its id, "" for the user; `name` is its name), at the end of the
    instructions ("system") or in front of the incoming message ("incoming"). `shown` has them in the order in which
    they stand; it is empty where there was no room for one. `newer` are those in front of the incoming message that
    were learned since the ones in the instructions were taken. `known` is the number of all facts; if it is larger,
    these were chosen for the incoming message."""

    subject: str
    name: str
    place: Literal["system", "incoming"]
    known: int
    shown: list[ShownFact]
    newer: list[ShownFact] = []


class SavedItems(_Frozen):
    """That a session's items were shown and not a request: the newest `limit` of them (None: all), within `budget`
    tokens (None: whatever they are), for `model`."""

    budget: int | None
    limit: int | None
    model: str | None


class SavedRequest(_Frozen):
    """The caller's request: enough, with the rev, to build the context again. `incoming` are pairs of a wire format and
    an item's JSON text; `tools` are the schemas' JSON texts; `model` is the model that tokens were counted for,
    `family` that of the opaque items that could be sent. `recall_tokens` and `facts_room` were set aside for recalled
    content and for facts. `cache_breakpoints` is whether the request was made with them, `join_neighbors` whether
    neighbors of one role are one message, `days` are those of the incoming messages if user messages begin with their
    day. `upto` is the message with which the conversation ends, where that was not its last. `items` is there for what
    a session of an SDK was shown: items that went to the model with the SDK's own instructions and input."""

    incoming: list[tuple[str, str]]
    instructions: str | None
    tools: list[str]
    model: str | None = None
    family: str | None = None
    recall_tokens: int = 0
    facts_room: int = 0
    cache_breakpoints: bool = False
    join_neighbors: bool = False
    days: list[date] | None = None
    upto: int | None = None
    items: SavedItems | None = None


PolicyFrom = Literal["request", "conversation", "agent", "memory", "default"]
"""Whose policy counts, from the strongest: the request's, the conversation's, its agent's, the memory's, nobody's."""

Tokens = Annotated[int, Field(ge=0)]


class Manifest(_Frozen):
    """The receipt of one context.

    `fates` cover the log's seqs 0 … next_seq-1 in order, each exactly once; their number grows with the number of
    fates, not of messages. `incoming_fates` say which incoming messages were left out or shortened, with the seqs that
    they have if they are appended. `sections` (tokens by section, as counted on the payload as sent) add up to `total`,
    and `total` + `reserve` is at most `budget`. `encoding` names the token counter, `exact` says whether it is the
    model's own tokenizer. `missing` names what was left out because a part was down. `sha256` is that of the payload's
    JSON. `policy` is the policy's JSON as it stood and `policy_from` says whose it was, `rev` is the conversation's
    revision. `digest` is the id of the summary shown, `opaque` that of the opaque item, `injected` says where memory of
    an earlier conversation came from, `facts` which facts are shown, `recalled` what was found for the incoming message
    and shown, `left_out` what was found and had no room, each with the tokens of its best passage.
    """

    version: Literal[1] = 1
    tenant: str
    user: str
    agent: str
    conversation: str
    rev: int
    next_seq: int
    policy: dict[str, Any]
    policy_from: PolicyFrom = "default"
    wire: str
    encoding: str
    exact: bool
    budget: Tokens
    reserve: Tokens
    total: Tokens
    sections: dict[str, Tokens]
    fates: list[Span]
    incoming_fates: list[Span] = []
    digest: int | None
    opaque: int | None = None
    injected: Injected | None = None
    facts: FactsShown | None = None
    recalled: list[RecalledEntry] = []
    left_out: list[RecalledEntry] = []
    missing: list[str] = []
    request: SavedRequest
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `from_json` reads them back equal."""
        found = self.model_dump(mode="json")
        if self.request.items is None:  # a request's, as almost all are
            del found["request"]["items"]
        if self.request.upto is None:  # likewise
            del found["request"]["upto"]
        return found

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | str) -> Manifest:
        """The manifest that `to_json` wrote, as a mapping or as JSON text. Raises InvalidInput naming the field."""
        try:
            return cls.model_validate(json.loads(value) if isinstance(value, str) else value)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"the manifest is not JSON: {error}") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "manifest"
            raise InvalidInput(f"the manifest's field {where} is unusable: {first['msg']}") from error


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
    their seqs are not known yet. `others` are the conversations of the user that something was taken from, by agent and
    name, each with the messages that were.
    """

    manifest: str
    instructions: str | None
    tools: str | None
    shown: Ranges
    next_seq: int
    incoming: tuple[bytes, ...]
    others: Mapping[tuple[str, str], Ranges]


def content_hashes(raw: str, text: str) -> list[bytes]:
    """SHA-256 of a message's item, and of its text if it has one: by either it is found again, in whatever format it is
    appended."""
    return [hashlib.sha256(one.encode()).digest() for one in (raw, storable(text)) if one]


def record_of(manifest: Manifest, incoming: Iterable[tuple[str, str]]) -> ContextRecord:
    """The record of a manifest; `incoming` has the item's JSON text and the text of each incoming message."""
    request = manifest.request
    bare = manifest.model_copy(update={"request": request.model_copy(update={"instructions": None, "tools": []})})
    own = (manifest.agent, manifest.conversation)
    taken: dict[tuple[str, str], Ranges] = {}
    if manifest.injected is not None:
        taken[manifest.agent, manifest.injected.conversation] = ()
    for one in manifest.recalled:
        if one.conversation:
            name = (one.agent or manifest.agent, one.conversation)
            taken.setdefault(name, ())
            if one.kind == "message" and one.start is not None and one.end is not None:
                taken[name] = joined((*taken[name], (one.start, one.end)))
    return ContextRecord(
        manifest=json.dumps(bare.to_json()),
        instructions=None if request.instructions is None else json.dumps(request.instructions),
        tools=json.dumps(request.tools) if request.tools else None,
        shown=joined((span.start, span.end) for span in manifest.fates if span.fate is not Fate.DROPPED),
        next_seq=manifest.next_seq,
        incoming=tuple(one for raw, text in incoming for one in content_hashes(raw, text)),
        others={name: taken[name] for name in sorted(taken) if name != own},
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
