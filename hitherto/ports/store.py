"""The port to the store, where conversations are kept. Its docstrings are the contract; `hitherto.testing.conformance`
checks it.

Every store is safe for use by many tasks at once, and a durable one by many processes. A store decides nothing: it
hands out a head, answers index probes, and takes a set of changes.
"""

from __future__ import annotations

from typing import Protocol

from hitherto.ports.contexts import ContextStore
from hitherto.ports.digests import DigestStore
from hitherto.ports.documents import DocumentStore
from hitherto.ports.export import ExportStore
from hitherto.ports.facts import FactStore
from hitherto.ports.keys import KeyStore
from hitherto.ports.ledger import LedgerStore
from hitherto.ports.log import LogStore
from hitherto.ports.recall import SearchIndex
from hitherto.ports.runs import RunStore


class Store(LogStore, DigestStore, LedgerStore, Protocol):
    """Where conversations are kept.

    All methods raise DatabaseUnavailable when the store cannot be reached, DatabaseReadOnly when it refuses to write,
    and change nothing then (but see `Unit.commit`). What belongs to another scope is never found, counted or named.
    `index`, `documents`, `facts`, `contexts`, `runs`, `keys` and `export` are its search index, its documents, its
    facts, its kept contexts, its runs, the keys of the service and its exports, on the same data.

    What rests on an expired message is shown nowhere outside its conversation, whether the message is erased yet or
    not. As long as a conversation has expired messages that are not erased, its digests and the documents archived from
    it are left out of `earlier`, of the `latest` in another conversation's head, of the index and of `documents`; only
    the methods on that conversation itself show its digests. Its `head`, `messages` and `digests` show what there is;
    the engine erases before it calls them.
    """

    @property
    def index(self) -> SearchIndex: ...

    @property
    def documents(self) -> DocumentStore: ...

    @property
    def facts(self) -> FactStore: ...

    @property
    def contexts(self) -> ContextStore: ...

    @property
    def runs(self) -> RunStore: ...

    @property
    def keys(self) -> KeyStore: ...

    @property
    def export(self) -> ExportStore: ...

    async def open(self) -> None:
        """Make ready for use, schema included. Raises SchemaMismatch for one that this version cannot work with."""
        ...

    async def aclose(self) -> None:
        """Release what is held. Calling it twice is allowed."""
        ...
