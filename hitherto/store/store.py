"""The store on PostgreSQL: a pool, units of work, and single-statement reads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from psycopg_pool import PoolTimeout

from hitherto.store import errors, schema
from hitherto.store.connections.pool import Connections
from hitherto.store.contexts import ContextStore
from hitherto.store.digests import DigestStore
from hitherto.store.documents import DocumentStore
from hitherto.store.export import ExportStore
from hitherto.store.facts.facts import FactStore
from hitherto.store.keys import KeyStore
from hitherto.store.ledger import LedgerStore
from hitherto.store.log.log import LogStore
from hitherto.store.recall.index import SearchIndex
from hitherto.store.runs import RunStore
from hitherto.store.wake import Notifier, listen


class Store(LogStore, DigestStore, LedgerStore):
    """Where conversations are kept: the PostgreSQL at `url` (a libpq URL or key=value string), version 15 or later.
    The docstrings of its methods are the contract; `tests/store` checks it.

    Safe for use by many tasks at once, and by many processes. It decides nothing: it hands out a head, answers index
    probes, and takes a set of changes. All methods raise DatabaseUnavailable when the database cannot be reached,
    DatabaseReadOnly when it refuses to write, and change nothing then (but see `Unit.commit`). What belongs to another
    scope is never found, counted or named. `index`, `documents`, `facts`, `contexts`, `runs`, `keys` and `export` are
    its search index, its documents, its facts, its kept contexts, its runs, the keys of the service and its exports, on
    the same data.

    What rests on an expired message is shown nowhere outside its conversation, whether the message is erased yet or
    not. As long as a conversation has expired messages that are not erased, its digests and the documents archived from
    it are left out of `earlier`, of the `latest` in another conversation's head, of the index and of `documents`; only
    the methods on that conversation itself show its digests. Its `head`, `messages` and `digests` show what there is;
    the engine erases before it calls them.

    Holds at most `pool_size` connections; a verb waits at most `patience` seconds for one. If `prepared`, statements
    that come often are prepared, which a connection pooler in between must support. If `read_only`, nothing is written,
    and the schema must be there. If `throwaway`, it is a throw-away database, on which no other process has workers,
    which would have to be told of digests. `start_again` is called when no connection can be made.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        patience: float = 10.0,
        prepared: bool = True,
        read_only: bool = False,
        throwaway: bool = False,
        start_again: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        connections = Connections(
            url,
            size=pool_size,
            patience=patience,
            prepared=prepared,
            read_only=read_only,
            start_again=start_again,
            throwaway=throwaway,
        )
        super().__init__(connections)
        self._url = url
        self._patience = patience
        self._read_only, self._throwaway = read_only, throwaway
        self._notifier = Notifier(url)
        self.index = SearchIndex(connections)
        self.documents = DocumentStore(connections)
        self.facts = FactStore(connections)
        self.export = ExportStore(connections)
        self.contexts = ContextStore(connections)
        self.runs = RunStore(connections)
        self.keys = KeyStore(connections)

    async def open(self) -> None:
        """Make ready for use, schema included. Raises SchemaMismatch for one that this version cannot work with."""
        await schema.ensure(self._url, patience=self._patience, upgrade=not self._read_only)
        try:
            await self._connections.open()
        except PoolTimeout as error:
            raise errors.unreachable(self._url, error) from error

    @property
    def row_security(self) -> bool:
        """Whether row-level security holds for the role of the connections."""
        return self._connections.row_security

    async def aclose(self) -> None:
        """Release what is held. Calling it twice is allowed."""
        await self._notifier.aclose()
        await self._connections.aclose()

    def wake_workers(self) -> None:
        """Tell the workers of other processes that digests are due. Returns at once and never raises: calls within 20
        milliseconds become one, and one that is lost is made up for, as workers look by themselves."""
        if not self._throwaway:
            self._notifier.notify()

    async def listen(self, woken: Callable[[], None]) -> None:
        """Call `woken` whenever another process called `wake_workers`, and after each time that this may have been
        missed; until cancelled."""
        if not self._throwaway:
            await listen(self._url, woken)
