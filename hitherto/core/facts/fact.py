"""Facts: single statements about a subject, with their sources, their owner and their life."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from hitherto.core.normalization import normalized

CATEGORIES = ("personality", "hobby", "relationship", "milestone", "occupation", "preference", "habit", "other")
"""The default categories; an application may define others (the setting `fact_categories`)."""

OTHER = "other"
"""What a fact falls to whose category is none of those that are defined."""

LONGEST_FACT = 500
"""Characters of a fact's content: one sentence."""

LONGEST_CATEGORY = 50
"""Characters of a category."""


class Visibility(StrEnum):
    """Who is shown a fact: its owner alone, or all members of its subject."""

    PRIVATE = "private"
    SHARED = "shared"


class FactState(StrEnum):
    """Where a fact is in its life: it holds; another one took its place; what it rested on was taken back; it was
    deleted (then nothing but its number, category and dates is left)."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    WITHDRAWN = "withdrawn"
    DELETED = "deleted"


class FactAction(StrEnum):
    """What happened to a fact, in its history."""

    EXTRACTED = "extracted"
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
    """What facts are about: a person, a project, whatever the application says. `members` are the users among whom
    its facts can be shared."""

    id: str
    name: str
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message that says a fact: message `seq` of `conversation` (of the owner's scope), said at `said_at`."""

    conversation: str
    seq: int
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A fact as it is kept. `user` and `agent` own it. `confidence` is from 0 to 1; what a person added, edited or
    confirmed has 1 and is `confirmed`. `repeated` counts how often it was said again. `version` grows with every
    change of what it says or of who sees it. `evidence` is what says it, in the order of its time; empty for what was
    added by hand, and once its conversation is deleted (to others than its owner it is always empty). From `ended_at`
    on it holds no more; `superseded_by` is the fact that took its place, as long as that is there. `metadata` is JSON
    text; it has the "category" that was given where that is none of those that are defined. `confidence`, `confirmed`
    and `repeated` are None where it is somebody else's: nobody but its owner is told (a store always gives them)."""

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
    metadata: str
    extracted_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    superseded_by: int | None = None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvent:
    """One entry of a fact's history: from then on it was `version`, with this content, category and visibility.
    `by` is the user who did it, None for what digests do. Of a deleted fact, all contents are gone ("")."""

    did: FactAction
    at: datetime
    by: str | None
    version: int
    category: str
    content: str
    visibility: Visibility


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A current fact, as far as new statements are merged with it. `said_at` is when it was last said, or a person
    last said that it holds (adding, editing, confirming or restoring it); None where that is not known. `confirmed`: a
    person said that it holds."""

    id: int
    category: str
    content: str
    confidence: float
    said_at: datetime | None = None
    confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedFact:
    """A statement that a model has found in messages: `seqs` (ascending, at least one) say so. `repeats` and `replaces`
    are ids of facts that were shown to it, if it said so."""

    category: str
    content: str
    seqs: tuple[int, ...]
    confidence: float
    repeats: int | None = None
    replaces: int | None = None
    metadata: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFact:
    """A fact to be written. `fingerprint` tells its content: of current facts with the same one, a user has one about a
    subject. `tokens` are the canonical ones of its content. The facts `supersedes` end with it, and, where it is
    `alone`, all other current ones of its category about the subject."""

    category: str
    content: str
    fingerprint: str
    tokens: int
    confidence: float
    seqs: tuple[int, ...] = ()
    supersedes: tuple[int, ...] = ()
    metadata: str = "{}"
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedFact:
    """A known fact that was said again, in the messages `seqs`; `confidence` is what it is afterwards, and `category`
    the one it has from then on (None: as it is). Where it is `alone`, all other current facts of its category about the
    subject end."""

    fact: int
    seqs: tuple[int, ...]
    confidence: float
    category: str | None = None
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedFacts:
    """What a digest taught about a `subject`: `facts` are new, `repeated` were known."""

    subject: str
    facts: tuple[NewFact, ...] = ()
    repeated: tuple[RepeatedFact, ...] = ()


def fingerprint_of_fact(text: str) -> str:
    """SHA-256, in hex, of the text without what makes no difference to a reader: case, width, spacing, invisible
    characters, the kind of quotation marks and dashes, and stops at the end."""
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
    """The confidence in a statement of which two mentions give so much each, taken as independent."""
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
