"""The port to the facts of a store. Its docstrings are the contract; `hitherto.testing` checks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hitherto.core.facts.fact import Fact, FactAction, FactEvent, FactState, KnownFact, NewFact, Subject
from hitherto.core.facts.relevance import FactColumns
from hitherto.core.scope import Scope
from hitherto.ports.models.embedder import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentFacts:
    """The current facts of one scope about one subject, ascending by id."""

    subject: Subject
    facts: tuple[KnownFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownFacts(FactColumns):
    """The facts that a context may show: the current facts of a scope about a subject, and those that other members of
    the subject share, ascending by id (the order of extraction).

    `own` says which are the scope's own, `shared` which are shared. `tokens` are those of the contents (canonical).
    `codes` are those of vectors in the space that was asked for. `due`: messages of the tenant wait to be erased, and
    what rests on them is left out, here and wherever else a store shows it.
    """

    subject: Subject
    versions: NDArray[np.int32]
    own: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    tokens: NDArray[np.int32]
    categories: Sequence[str]
    contents: Sequence[str]
    due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFactsQuery:
    """Which facts a context may show; without `facts`, none. `subject` applies as long as the conversation does not
    exist; after that its own does. `space` is the space of the codes."""

    subject: str
    space: Space | None = None
    facts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFilter:
    """Which facts are listed: about `subject` (None: any), the scope's own (`mine`) and those that others share with
    its user (`shared`; of these only current ones). `all_agents`: those of the user's other agents too. `category` as
    it is kept. `conversation`: only facts of the scope's own that a message of it says. `state` None: any. `after` is
    the id of the last fact of the page before."""

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
    """A person's change of a fact: EDITED (to `content` with its `fingerprint` and `tokens`, `category` and `metadata`,
    each as it is afterwards), CONFIRMED, SHARED, UNSHARED, RESTORED or DELETED. `expect` is the version that the fact
    must have. With `single_valued`, a fact that is EDITED or RESTORED supersedes all other current facts of its
    category about its subject."""

    action: FactAction
    expect: int | None = None
    content: str = ""
    fingerprint: str = ""
    tokens: int = 0
    category: str = ""
    metadata: str = "{}"
    single_valued: bool = False


@dataclass(frozen=True, slots=True)
class AddedFact:
    """The result of adding a fact: its id, and whether it is new. If not, the same statement was current before."""

    id: int
    new: bool


class FactStore(Protocol):
    """Facts of users about subjects. All methods raise what `Store` says.

    A fact belongs to its scope: tenant, user and agent. Another tenant's, user's or (without `all_agents`) agent's
    facts are never found, counted or named. There is one exception: a fact that its owner shares is shown to users who
    are members of its subject, in the same tenant and for the same agent, as long as the owner is a member too. Then it
    comes without its evidence. Facts about the user (subject "") are never shown to others.

    Facts are extracted with a digest (`Changes.learned`, and `Unit.current_facts` before it). Evidence is removed with
    the messages it names. An unconfirmed fact that loses its last evidence goes with it: if messages were erased, the
    fact is erased whole; if they were retracted, it is WITHDRAWN. The facts that a withdrawn fact had superseded are
    then current again (RESTORED, by no user), at the next version and private, unless a current fact says the same. A
    confirmed fact that loses its last evidence by an erasure stays, but its history loses whatever else the fact said
    before. A clear leaves facts as they are. An unconfirmed fact whose messages have all expired is shown by no method,
    whether they are erased yet or not.

    A `RepeatedFact` counts as said again if any message that says so is new; else nothing of it is written. A change of
    category makes a new version and empties the fact's metadata.
    """

    async def subject(self, tenant: str, id: str) -> Subject | None:
        """A subject as it was set; None if it never was."""
        ...

    async def subjects(self, tenant: str) -> list[Subject]:
        """All subjects that were set, by id."""
        ...

    async def set_subject(
        self, tenant: str, id: str, *, name: str | None = None, members: Sequence[str] | None = None
    ) -> Subject:
        """Set what is given and leave the rest as it is, under concurrent calls too; a subject that was never set has
        its id as its name and no members. Returns it as it is afterwards. A user who is no longer a member sees no
        shared facts."""
        ...

    async def current_facts(self, scope: Scope, subject: str) -> CurrentFacts:
        """The scope's current facts about a subject. A subject that was never set has its id as its name, and no
        members; so has, for a user who is none of its members, one that has some. The subject "" has the user's
        name."""
        ...

    async def known(self, scope: Scope, subject: str, *, space: Space | None = None) -> KnownFacts:
        """The facts about a subject that a context may show; the subject as `current_facts` has it."""
        ...

    async def facts(self, scope: Scope, criteria: FactFilter) -> list[Fact]:
        """Facts ascending by id, at most `criteria.limit`."""
        ...

    async def fact(self, scope: Scope, id: int, *, all_agents: bool = False) -> Fact | None:
        """One fact, in any state, or one that is shared with the user; None where there is none of that id."""
        ...

    async def history(self, scope: Scope, id: int, *, all_agents: bool = False) -> tuple[FactEvent, ...]:
        """What happened to one of the scope's own facts, oldest first; nothing for any other."""
        ...

    async def versions(self, scope: Scope, asked: Sequence[tuple[int, int]]) -> list[Fact | None]:
        """Facts as they were at a version, for pairs of id and version, in the order of `asked`: with the content,
        category and visibility of that version, and without evidence. A fact of the scope's own is returned in any
        state but DELETED; one of another user's only while it is shared with the scope's user, and if it was shared at
        that version. None in the place of any other."""
        ...

    async def add(self, scope: Scope, subject: str, fact: NewFact) -> AddedFact:
        """Add a fact by hand: it is private, confirmed and has no evidence. If it is `single_valued`, it supersedes the
        other current facts of its category about the subject. Its `supersedes` is not read: that is for learned facts.

        Where a current fact of the scope's own about the subject says the same, that fact counts as added by hand from
        then on (ADDED, by the user): it is confirmed, gets the next version, takes category and metadata unless that
        category is "other", and keeps its visibility. If it is so already, nothing is written. `single_valued` then
        refers to the category that it has afterwards.
        """
        ...

    async def change(self, scope: Scope, id: int, change: FactChange, *, all_agents: bool = False) -> Fact:
        """Change one of the scope's own facts, and return it as it is afterwards, at the next version; sharing a shared
        fact, or unsharing a private one, changes nothing. A fact that is EDITED or RESTORED is confirmed too; a
        RESTORED one is current again, and private. A DELETED fact loses all contents and evidence, those in its history
        too.

        Raises NotFound for a fact that does not exist, is not the scope's own or is deleted; StaleVersion when it is
        not at the version `expect`; InvalidFact for any change but DELETED, RESTORED and UNSHARED of one that is not
        current, for RESTORED of one that is, and where another current fact says the same already
        (`core.facts.change.check_change`).
        """
        ...
