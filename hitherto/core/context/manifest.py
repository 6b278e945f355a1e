"""The receipt of a context: what became of every message, what every section costs, and how to build it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hitherto.core.context.recalled import RecallReasonName
from hitherto.core.policy.span import Span
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
    `conversation`, which belongs to the scope's user and to `agent`. `passage` is its place in `document`. `score` (0
    to 1) is its relevance, `tokens` what its line takes by itself. `characters` are the ranges of its text (end
    exclusive) that are shown, empty where all of it is; the text of several messages is theirs, a line break between
    each two."""

    why: RecallReasonName
    kind: EntryKindName
    conversation: str | None = None
    agent: str | None = None
    start: int | None = None
    end: int | None = None
    digest: int | None = None
    document: int | None = None
    passage: int | None = None
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
    they stand; it is empty where there was no room for one. `known` is the number of all facts; if it is larger, these
    were chosen for the incoming message."""

    subject: str
    name: str
    place: Literal["system", "incoming"]
    known: int
    shown: list[ShownFact]


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
    content and for facts. `cache_breakpoints` is whether the request was made with them. `items` is there for what a
    session of an SDK was shown: items that went to the model with the SDK's own instructions and input."""

    incoming: list[tuple[str, str]]
    instructions: str | None
    tools: list[str]
    model: str | None = None
    family: str | None = None
    recall_tokens: int = 0
    facts_room: int = 0
    cache_breakpoints: bool = False
    items: SavedItems | None = None


PolicyFrom = Literal["request", "conversation", "agent", "memory", "default"]
"""Whose policy counts, from the strongest: the request's, the conversation's, its agent's, the memory's, nobody's."""

Tokens = Annotated[int, Field(ge=0)]


class Manifest(_Frozen):
    """The receipt of one context.

    `fates` cover the log's seqs 0 … next_seq-1 in order, each exactly once; their number grows with the number of
    fates, not of messages. `sections` (tokens by section, as counted on the payload as sent) add up to `total`, and
    `total` + `reserve` is at most `budget`. `encoding` names the token counter, `exact` says whether it is the model's
    own tokenizer. `missing` names what was left out because a part was down. `sha256` is that of the payload's JSON.
    `policy` is the policy's JSON as it stood and `policy_from` says whose it was, `rev` is the conversation's revision.
    `digest` is the id of the summary shown, `opaque` that of the opaque item, `injected` says where memory of an
    earlier conversation came from, `facts` which facts are shown, `recalled` what was found for the incoming message
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
