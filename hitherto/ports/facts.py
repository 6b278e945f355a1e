"""The port to the facts of a store. Its docstrings are the contract; `hitherto.testing` checks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hitherto.core.facts.fact import Fact, FactAction, FactEvent, FactState, KnownFact, NewFact, Subject
from hitherto.core.scope import Scope
from hitherto.ports.embedder import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentFacts:
    """The current facts of one scope about one subject, ascending by id."""

    subject: Subject
    facts: tuple[KnownFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownFacts:
    """What a context may show: the current facts of a scope about a subject, and those that other members of the
    subject share, in columns of one length, ascending by id (the order of extraction).

    `own` says which are the scope's own, `shared` which are shared. `tokens` are those of the contents (canonical).
    `sizes` are how many of `terms` and `counts` belong to each (`core.recall.terms.analyzed` of the content), `lengths`
    the terms it has in all. `codes` are those of their vectors in the space that was asked for
    (`core.recall.codes.codes_of`), and `coded` says which have one; both None where none has. `due`: messages of the
    tenant wait to be erased, and what rests on them is left out, here and wherever else a store shows it.
    """

    subject: Subject
    ids: NDArray[np.int64]
    versions: NDArray[np.int32]
    own: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    tokens: NDArray[np.int32]
    categories: Sequence[str]
    contents: Sequence[str]
    sizes: NDArray[np.int32]
    lengths: NDArray[np.int32]
    terms: NDArray[np.int64]
    counts: NDArray[np.uint8]
    codes: NDArray[np.uint8] | None = None
    coded: NDArray[np.bool_] | None = None
    due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFactsQuery:
    """Which facts a context may show; without `facts`, none. `subject` counts as long as the conversation does not
    exist; then its own does. `space` is the one in which codes are wanted."""

    subject: str
    space: Space | None = None
    facts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFilter:
    """Which facts are listed: about `subject` (None: any), the scope's own (`mine`) and those that others share with
    its user (`shared`; of these only current ones). `all_agents`: those of the user's other agents too. `category` as
    it is kept. `conversation`: of its own, only those that a message of it says. `state` None: any. `after` is the id
    of the last one before this page."""

    subject: str | None = None
    mine: bool = True
    shared: bool = True
    all_agents: bool = False
    category: str | None = None
    conversation: str | None = None
    state: FactState | None = FactState.CURRENT
    after: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FactChange:
    """What a person does to a fact: EDITED (to `content` with its `fingerprint` and `tokens`, `category` and
    `metadata`, each as it is afterwards), CONFIRMED, SHARED, UNSHARED, RESTORED or DELETED. `expect` is the version
    that the fact must have. With `alone`, what is EDITED or RESTORED ends all other current facts of its category about
    its subject."""

    did: FactAction
    expect: int | None = None
    content: str = ""
    fingerprint: str = ""
    tokens: int = 0
    category: str = ""
    metadata: str = "{}"
    alone: bool = False


@dataclass(frozen=True, slots=True)
class AddedFact:
    """What adding a fact answered: its id, and whether it is new. Otherwise the same statement was current before."""

    id: int
    new: bool


class FactStore(Protocol):
    """Facts of users about subjects. All verbs raise what the store's do.

    A fact belongs to its scope: tenant, user and agent. Another tenant's, user's or (without `all_agents`) agent's
    facts are never found, counted or named; with one exception: a fact that its owner shares is shown to users who are
    members of its subject, in the same tenant and for the same agent, as long as the owner is a member too. Then it
    comes without its evidence. Facts about the user (subject "") are never shown to others.

    Facts are extracted with a digest (`Changes.learned`, and `Unit.current_facts` before it). Evidence goes with the
    messages it names. When those are erased or taken back, an unconfirmed fact that had evidence and has none left goes
    too: it is erased whole, or, where messages were taken back, is WITHDRAWN; then those that it had superseded are
    current again (RESTORED, by nobody), one version on and private, unless a current one says the same. A confirmed
    fact that loses its last evidence by an erasure stays, but its history keeps nothing of what it said otherwise
    before. A clear leaves facts as they are. A fact that no person confirmed and that only messages say whose time has
    come is shown by no verb, whether they are erased yet or not.

    What is `RepeatedFact` counts as said again if any message that says so is new; else nothing of it is written. To
    take another category is a version on, and leaves its metadata empty.
    """

    async def subject(self, tenant: str, id: str) -> Subject | None:
        """A subject as it was set; None where none was."""
        ...

    async def subjects(self, tenant: str) -> list[Subject]:
        """All subjects that were set, by id."""
        ...

    async def set_subject(
        self, tenant: str, id: str, *, name: str | None = None, members: Sequence[str] | None = None
    ) -> Subject:
        """Set what is given and leave the rest as it is now, whoever else sets something meanwhile; a subject that was
        never set has its id as its name and no members. Returns it as it is afterwards. Who is a member no more sees
        shared facts no more."""
        ...

    async def current_facts(self, scope: Scope, subject: str) -> CurrentFacts:
        """The scope's current facts about a subject. One that was never set has its id as its name, and no members; the
        user himself ("") has the user's name."""
        ...

    async def known(self, scope: Scope, subject: str, *, space: Space | None = None) -> KnownFacts:
        """What a context may show of a subject."""
        ...

    async def facts(self, scope: Scope, wanted: FactFilter) -> list[Fact]:
        """Facts ascending by id, at most `wanted.limit`."""
        ...

    async def fact(self, scope: Scope, id: int, *, all_agents: bool = False) -> Fact | None:
        """One fact, in any state, or one that is shared with the user; None where there is none of that id."""
        ...

    async def history(self, scope: Scope, id: int, *, all_agents: bool = False) -> tuple[FactEvent, ...]:
        """What happened to one of the scope's own facts, oldest first; nothing for any other."""
        ...

    async def versions(self, scope: Scope, asked: Sequence[tuple[int, int]]) -> list[Fact | None]:
        """Facts (by id) as they were at a version each, in the order in which they are asked for: with its content,
        category and visibility, and without evidence. One of the scope's own is there in any state but DELETED, and one
        that is shared with its user as long as it is, if it was at that version. None in the place of any other.
        """
        ...

    async def add(self, scope: Scope, subject: str, fact: NewFact) -> AddedFact:
        """Write a fact by hand: it is private, confirmed and has no evidence. Where it is `alone`, it ends what that
        says; what it `supersedes` counts only for what is learned.

        Where a current fact of the scope's own about the subject says the same, that one is kept by hand from then on
        (ADDED, by the user): it is confirmed, a version on, takes category and metadata unless that category is
        "other", and stays as visible as it is. Where it is so already, nothing is written. `alone` is meant of the
        category that it has then."""
        ...

    async def change(self, scope: Scope, id: int, change: FactChange, *, all_agents: bool = False) -> Fact:
        """Change one of the scope's own facts, and return it as it is afterwards, one version on; to share what is
        shared, or unshare what is not, changes nothing. What is EDITED or RESTORED is confirmed too; the latter is
        current again, and private. Of a DELETED fact all contents and evidence are gone, its history's too.

        Raises NotFound for a fact that is not there, is not the scope's own or is deleted; StaleVersion when it is not
        at the version `expect`; InvalidFact for any change but DELETED, RESTORED and UNSHARED of one that is not
        current, for RESTORED of one that is, and where another current fact says the same already
        (`core.facts.change.check_change`).
        """
        ...
