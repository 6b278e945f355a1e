"""Facts: single statements about a subject, with sources, an owner and a state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from hitherto.core.plain_text import normalized, one_line

CATEGORIES = ("personality", "hobby", "relationship", "milestone", "occupation", "preference", "habit", "other")
"""The default categories; an application may define others (the setting `fact_categories`). Prompts and checks take
them from here."""

OTHER = "other"
"""The category of a fact whose given category is not defined."""

LONGEST_FACT = 500
"""Characters of a fact's content: one sentence."""

MOST_MEMBERS = 10_000
"""Members of a subject."""

MOST_EVIDENCE = 100
"""The most messages that are named of those that say a fact."""

LONGEST_CATEGORY = 50
"""Characters of a category."""

MOST_OF_A_TURN = 5
"""Facts that an agent can remember in one turn, and so many that it can forget."""

MOST_OF_A_DAY = 50
"""Facts that an agent can remember of one user within 24 hours, and so many that it can forget."""


class Visibility(StrEnum):
    """Who is shown a fact: its owner alone, or all members of its subject."""

    PRIVATE = "private"
    SHARED = "shared"


class FactState(StrEnum):
    """The state of a fact. CURRENT: it holds. SUPERSEDED: another one took its place. WITHDRAWN: the messages it rested
    on were retracted. DELETED: nothing but its id, category and dates is left."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    DELETED = "deleted"


class FactAction(StrEnum):
    """What happened to a fact, in its history."""

    EXTRACTED = "extracted"
    REMEMBERED = "remembered"
    ADDED = "added"
    REPEATED = "repeated"
    EDITED = "edited"
    CONFIRMED = "confirmed"
    RESTORED = "restored"
    SHARED = "shared"
    UNSHARED = "unshared"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What facts are about: a person, a project, or anything else that the application names. `members` are the users
    among whom its facts can be shared."""

    id: str
    name: str
    members: tuple[str, ...] = ()

    def seen_by(self, user: str) -> Subject:
        """The subject as it is told to a user: where it has members and the user is none of them, without these, and
        with its id as its name."""
        return Subject(id=self.id, name=self.id) if self.members and user not in self.members else self


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message that says a fact: message `seq` of `conversation` (of the owner's scope), said at `said_at`."""

    conversation: str
    seq: int
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A stored fact. `user` and `agent` own it.

    `confidence` is from 0 to 1; a fact that a person added, edited or confirmed has 1 and is `confirmed`. `repeated`
    counts how often it was said again. `version` grows with every change of what it says or of who sees it. `evidence`
    are the messages that say it, oldest first, of many the first 100; it is empty for a fact that was added by hand,
    and once its conversation is deleted. From `ended_at` on the fact no longer holds; `superseded_by` is the fact that
    took its place, as long as that exists. `metadata` has as "category" the category that was given, if that is not a
    defined one.

    To anybody but the owner `evidence` is empty, and `confidence`, `confirmed` and `repeated` are None (a store always
    gives these three).
    """

    id: int
    user: str
    agent: str
    subject: str
    category: str
    content: str
    visibility: Visibility
    state: FactState
    confidence: float | None
    confirmed: bool | None
    repeated: int | None
    version: int
    metadata: dict[str, Any]
    extracted_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    superseded_by: int | None = None
    evidence: tuple[Evidence, ...] = ()

    @property
    def line(self) -> str:
        """It as a prompt says it, always on one line."""
        return fact_line(self.category, self.content, shared=self.visibility is Visibility.SHARED)


def fact_line(category: str, content: str, *, shared: bool) -> str:
    return f"- [{one_line(category)}] {one_line(content)} ({'shared' if shared else 'personal'})"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvent:
    """One entry of a fact's history: from then on the fact was at `version`, with this content, category and
    visibility. `by` is the user who did it, None if nobody did (a digest, or the agent that remembered it). For a
    deleted fact, `content` is "" in every entry."""

    action: FactAction
    at: datetime
    by: str | None
    version: int
    category: str
    content: str
    visibility: Visibility


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A current fact, as merging needs it. `said_at` is when it was last said, or when a person last said that it holds
    (by adding, editing, confirming or restoring it); None where that is not known. `confirmed`: a person said that it
    holds."""

    id: int
    category: str
    content: str
    confidence: float
    said_at: datetime | None = None
    confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedFact:
    """A statement that a model found in the messages `seqs` (ascending, at least one). `repeats` and `replaces` are ids
    of known facts that it repeats or replaces, if the model said so."""

    category: str
    content: str
    seqs: tuple[int, ...]
    confidence: float
    repeats: int | None = None
    replaces: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A fact to be written. `fingerprint` identifies its content: a user has at most one current fact of a fingerprint
    about a subject. `tokens` are the canonical ones of its content. It ends the facts `supersedes`, and with
    `single_valued` all other current facts of its category about the subject."""

    category: str
    content: str
    fingerprint: str
    tokens: int
    confidence: float
    seqs: tuple[int, ...] = ()
    supersedes: tuple[int, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    single_valued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedFact:
    """A known fact that was said again, in the messages `seqs`. `confidence` is its new one, `category` its new one
    (None: unchanged). With `single_valued`, it ends all other current facts of its category about the subject."""

    fact: int
    seqs: tuple[int, ...]
    confidence: float
    category: str | None = None
    single_valued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFacts:
    """What was learned with a digest about a `subject`: `facts` are new, `repeated` were known."""

    subject: str
    facts: tuple[NewFact, ...] = ()
    repeated: tuple[RepeatedFact, ...] = ()


def fingerprint_of_fact(text: str) -> str:
    """SHA-256, in hex, of the text without differences that do not matter to a reader: case, width, spacing, invisible
    characters, the kind of quotation marks and dashes, and stops at the end (not a question mark)."""
    folded = " ".join(_leveled(text).casefold().split()).rstrip(" .!,;:…。")
    return sha256(folded.encode("utf-8", "surrogatepass")).hexdigest()


def _leveled(text: str) -> str:
    text = _INVISIBLE.sub("", text)
    if text.isascii():
        return text
    return normalized("NFKC", text.translate(_TYPED))


_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1b\x7f\u00ad\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff]+")
_TYPED = str.maketrans({**dict.fromkeys("’‘ʼ＇`´", "'"), **dict.fromkeys("“”„«»", '"'), **dict.fromkeys("‐‑–—", "-")})


def strengthened(confidence: float, again: float) -> float:
    """The confidence in a statement that was made twice, with these two confidences, taken as independent."""
    return round(1.0 - (1.0 - confidence) * (1.0 - again), 6)


def category_of(given: str, categories: tuple[str, ...]) -> tuple[str, Mapping[str, str]]:
    """The defined category that is meant (case, spaces, dashes and underscores make no difference), or "other", with
    the given one as metadata."""
    wanted = _plain(given)
    for category in categories:
        if _plain(category) == wanted:
            return category, {}
    return OTHER, {} if wanted == OTHER else {"category": given[:LONGEST_CATEGORY]}


def _plain(category: str) -> str:
    return " ".join(category.replace("_", " ").replace("-", " ").split()).casefold()
