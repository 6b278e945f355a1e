"""What is asked about facts, the answers, and changes by people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hitherto.arrays import NDArray, np
from hitherto.core.facts.fact import FactAction, FactState, KnownFact, Subject
from hitherto.core.facts.relevance import FactColumns
from hitherto.core.recall.vectors import Space

MOST_SHARED = 1_000
"""The most facts of others that a context looks at, the newest ones: more than it has room for, unless facts may take
some 40,000 tokens. So what members share does not slow down every context of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentFacts:
    """The current facts of one scope about one subject, ascending by id."""

    subject: Subject
    facts: tuple[KnownFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownFacts(FactColumns):
    """The facts that a context may show: the current facts of a scope about a subject, and the newest MOST_SHARED that
    other members of the subject share, ascending by id (the order of extraction).

    `own` says which are the scope's own, `shared` which are shared. `tokens` are those of the contents (canonical).
    `codes` are those of vectors in the space that was asked for. Up to the id `taken` they were known when the
    conversation began, or when a digest of it was last made. `due`: messages of the tenant wait to be erased, and
    what rests on them is left out, here and wherever else a store shows it.
    """

    subject: Subject
    versions: NDArray[np.int32]
    own: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    tokens: NDArray[np.int32]
    categories: Sequence[str]
    contents: Sequence[str]
    taken: int
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
    it is kept. `conversation`: only facts of the scope's own that a message of it says. `state` None: any. `confirmed`:
    of the scope's own, only those that are, or are not. `after` is the id of the last fact of the page before."""

    subject: str | None = None
    mine: bool = True
    shared: bool = True
    all_agents: bool = False
    category: str | None = None
    conversation: str | None = None
    state: FactState | None = FactState.CURRENT
    confirmed: bool | None = None
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
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    single_valued: bool = False


@dataclass(frozen=True, slots=True)
class AddedFact:
    """The result of adding a fact: its id, and whether it is new. If not, the same statement was current before."""

    id: int
    new: bool
