"""From settings to a memory with its adapters. Which one a name means stands in `providers.names`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from hitherto import tokens, wire
from hitherto.core.policy.presets import PolicyLike
from hitherto.engine.digests.tasks import TaskQueue
from hitherto.engine.memory import Memory
from hitherto.engine.services import Services
from hitherto.errors import InvalidInput, InvalidSettings, ModelError, ModelUnavailable, StoreError
from hitherto.logs import logger
from hitherto.policies import discover
from hitherto.ports.models import Compactor, Embedder, Model, Reranker
from hitherto.ports.watch import Watch
from hitherto.pricing import listed
from hitherto.providers import names
from hitherto.providers.names import embedder_of, learn, previous_of, reranker_of
from hitherto.settings import Settings
from hitherto.settings.definitions import SettingsOptions

if TYPE_CHECKING:
    from hitherto.store.embedded.server import EmbeddedServer
    from hitherto.store.store import Store

IN_MEMORY = "memory:"

log = logger("hitherto")


class Opening:
    """What `hitherto.open()` returns: `async with` it, or `await` it and call `aclose()` on the memory later."""

    def __init__(self, make: Callable[[], Awaitable[Memory]]) -> None:
        self._make = make
        self._memory: Memory | None = None

    def __await__(self) -> Any:
        return self._make().__await__()

    async def __aenter__(self) -> Memory:
        self._memory = await self._make()
        return self._memory

    async def __aexit__(self, *_: object) -> None:
        if self._memory is not None:
            await self._memory.aclose()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(
                f"hitherto.open(…) was not awaited, so it has no {name!r} yet; write `async with hitherto.open(…) as "
                "memory:`, or `memory = await hitherto.open(…)`"
            )


def open(  # noqa: A001 (the name users read: hitherto.open)
    database: str | None = None,
    *,
    model: Model | str | None = None,
    policy: PolicyLike | None = None,
    compactor: Compactor | None = None,
    embedder: Embedder | str | None = None,
    previous_embedders: Sequence[Embedder] = (),
    reranker: Reranker | str | None = None,
    watch: Watch | None = None,
    config: Path | str | None = None,
    **settings: Unpack[SettingsOptions],
) -> Opening:
    """Open a memory.

    Without arguments it runs Hitherto's own PostgreSQL in the user's data directory, and makes digests without a model.
    `database` is a PostgreSQL URL, or "memory:" for a throw-away memory that is gone when it is closed. `model` makes
    the digests: the name of one behind an OpenAI-compatible endpoint, "extractive", or an object of your own. `policy`
    governs conversations that have none. `embedder` and `reranker` are names as in `Settings`, or objects of your own;
    `previous_embedders` are objects whose vectors are searched until those of the embedder have caught up. A model,
    compactor, embedder or reranker object given here must be open, and is not closed. `watch` receives metrics and
    traces, in place of our own. Everything in `Settings` can be passed by its name, stand in the environment as
    HITHERTO_…, or in the file `config` (without it: the one that HITHERTO_CONFIG names, or hitherto.toml in the working
    folder).

    Entering raises InvalidSettings, InvalidInput for an object that lacks something, InvalidPolicy,
    DatabaseUnavailable, SchemaMismatch or EmbeddedServerError.
    """

    async def make() -> Memory:
        for name, one, port in (
            ("model", model, Model),
            ("compactor", compactor, Compactor),
            ("embedder", embedder, Embedder),
            *(("previous_embedders", one, Embedder) for one in previous_embedders),
            ("reranker", reranker, Reranker),
            ("watch", watch, Watch),
        ):
            _check_object(name, one, port)
        discover()
        named_ones = {"model": model, "embedder": embedder, "reranker": reranker}
        by_name = {setting: name for setting, name in named_ones.items() if isinstance(name, str)}
        if of_commands := sorted({"tenant", "user", "agent"} & settings.keys()):
            raise InvalidSettings(
                f"{of_commands[0]!r} is a setting of commands; programs name a scope in each call: "
                "memory.conversation(id, scope=Scope(tenant=…, user=…, agent=…))"
            )
        loaded = Settings.load(config, database=database, **by_name, **settings)
        return await open_with(
            loaded,
            model=model,
            policy=policy,
            compactor=compactor,
            embedder=embedder,
            previous_embedders=previous_embedders,
            reranker=reranker,
            watch=watch,
        )

    return Opening(make)


async def open_with(settings: Settings, **objects: Any) -> Memory:
    """A memory with these settings, started; `objects` are arguments of `open`. Raises as entering that does."""
    async with AsyncExitStack() as opened:
        return await make_memory(await _store(settings, opened), settings, opened, **objects)


def _check_object(name: str, one: object, port: type) -> None:
    """Raises InvalidInput for an object that lacks members of its port."""
    if one is None or (isinstance(one, str) and name in ("model", "embedder", "reranker")):
        return
    members = sorted(member for member in vars(port) if not member.startswith("_"))
    lacking = [member for member in members if not _has(one, member)]
    if lacking or isinstance(one, type):
        said = "it is a class" if isinstance(one, type) else f"it has no {', '.join(lacking)}"
        raise InvalidInput(
            f"{name} is a {type(one).__name__} that cannot be used: {said}; give an object with the members of "
            f"{port.__module__}.{port.__qualname__}"
        )


def _has(one: object, member: str) -> bool:
    try:
        return hasattr(one, member)
    except Exception:  # noqa: BLE001 (a property that cannot tell yet, such as an embedder's space)
        return True


async def make_memory(
    store: Store,
    settings: Settings,
    opened: AsyncExitStack,
    *,
    model: Model | str | None = None,
    policy: PolicyLike | None = None,
    compactor: Compactor | None = None,
    embedder: Embedder | str | None = None,
    previous_embedders: Sequence[Embedder] = (),
    reranker: Reranker | str | None = None,
    watch: Watch | None = None,
) -> Memory:
    """A memory on an open store, started. What else is opened for it, `opened` holds until it is closed; the arguments
    are as those of `open`."""
    from hitherto.watching import watch_of

    maker = model_of(settings, opened) if model is None or isinstance(model, str) else model
    services = Services(
        store=store,
        model=maker,
        queue=TaskQueue(store, concurrency=settings.digest_concurrency),
        settings=settings,
        canonical=tokens.counter_for(tokens.CANONICAL),
        counter=lambda asked: tokens.counter_for(asked or settings.encoding),
        codec=wire.codec,
        read=wire.read,
        compactor=compactor or await _compactor(settings, opened),
        price=listed(settings.prices).of,
        watch=watch_of(settings) if watch is None else watch,
    )
    services = replace(services, **await _recalling(settings, opened, services.model, embedder, reranker))
    if previous_embedders:
        services = replace(services, previous=(*previous_embedders, *services.previous))
    services = replace(services, policy=services.usable(settings.policy if policy is None else policy))
    return await Memory(services, opened=opened.pop_all()).start()


async def _recalling(
    settings: Settings,
    opened: AsyncExitStack,
    model: Model,
    embedder: Embedder | str | None,
    reranker: Reranker | str | None,
) -> dict[str, Any]:
    """The services that recall needs: the embedder and those before it, and the reranker."""
    current = embedder_of(settings) if embedder is None or isinstance(embedder, str) else embedder
    if current is None and (why := names.lacks_wordllama(settings)):
        log.warning("No embedder: %s", why)
    previous = previous_of(settings)
    ours = previous if current is embedder or current is None else (current, *previous)
    for one in ours:
        opened.push_async_callback(one.aclose)
    for one in (*([] if current is None else [current]), *previous):
        try:
            await learn(one)
        except ModelError as error:
            log.warning("Embedder unavailable at start; the dimensions of its vectors are not known yet: %s", error)
    ranks = reranker_of(settings, model) if reranker is None or isinstance(reranker, str) else reranker
    if ranks is not None and ranks is not reranker:
        opened.push_async_callback(ranks.aclose)
    return {"embedder": current, "previous": previous, "reranker": ranks}


async def _store(settings: Settings, opened: AsyncExitStack) -> Store:
    """The store, open."""
    if find_spec("hitherto.store") is None:
        raise InvalidSettings(
            "hitherto-client is installed, which only speaks to a service: hitherto.connect(url). For a memory in this "
            "process: pip uninstall hitherto-client, then pip install hitherto"
        )
    from hitherto.store.store import Store

    url, pool_size, start_again = settings.database, settings.pool_size, None
    if url == IN_MEMORY:
        from hitherto.store.embedded.throwaway import POOL_SIZE, throwaway_database

        url, pool_size = await throwaway_database(opened), min(pool_size, POOL_SIZE)
    elif url is None:
        server = await own_server(settings, opened, create=not settings.read_only)
        url, start_again = server.url, server.start_again
    if settings.row_security and settings.database in (None, IN_MEMORY):
        url = await _as_service(url, settings)
    store = Store(
        url,
        pool_size=pool_size,
        patience=settings.database_timeout,
        prepared=settings.prepared_statements,
        read_only=settings.read_only,
        throwaway=settings.database == IN_MEMORY,
        start_again=start_again,
    )
    opened.push_async_callback(store.aclose)
    await store.open()
    if settings.row_security and not store.row_security:
        raise StoreError(
            "the role of this database address passes row-level security, as a superuser or as the tables' owner, and "
            "would see all tenants: a service that asks for keys, and the setting row_security, want a role that sees "
            "one at a time. Give the address of another role (CREATE ROLE … LOGIN PASSWORD …), to which "
            "`hitherto migrate --grant ROLE`, run as the owner, has given what it needs"
        )
    return store


async def _as_service(url: str, settings: Settings) -> str:
    """Where to connect to a database of our own server, at `url` as its owner, as a role for which row-level security
    holds, with the schema ready for it."""
    from psycopg.conninfo import make_conninfo

    from hitherto.store import schema
    from hitherto.store.connections import row_security
    from hitherto.store.embedded.server import SERVICE

    if not settings.read_only:
        await schema.ensure(url, patience=settings.database_timeout)
        await row_security.grant(url, SERVICE)
    return make_conninfo(url, user=SERVICE)


async def own_server(settings: Settings, opened: AsyncExitStack, *, create: bool) -> EmbeddedServer:
    """Hitherto's own PostgreSQL, in the directory that the settings name; it is left when `opened` ends. Raises as
    `EmbeddedServer.start` does."""
    from hitherto.store.embedded.server import EmbeddedServer, default_data_directory

    server = await EmbeddedServer.start(settings.data_dir or default_data_directory(), create=create)
    opened.push_async_callback(server.stop)
    return server


def model_of(settings: Settings, opened: AsyncExitStack) -> Model:
    """The model for digests that the settings name; `opened` gives back what it holds. Raises InvalidSettings."""
    model = names.model_of(settings)
    if names.lacks_key(settings):
        log.warning("No key is set for the model %s: its endpoint will refuse. Set HITHERTO_MODEL_KEY", settings.model)
    opened.push_async_callback(model.aclose)
    return model


def compactor_of(settings: Settings, opened: AsyncExitStack) -> Compactor | None:
    """The compaction endpoint that the settings name, None if they name none. Whether it can compact is not checked
    yet."""
    compactor = names.compactor_of(settings)
    if compactor is not None:
        opened.push_async_callback(compactor.aclose)
    return compactor


async def _compactor(settings: Settings, opened: AsyncExitStack) -> Compactor | None:
    compactor = compactor_of(settings, opened)
    if compactor is None:
        return None
    try:
        await compactor.check()
    except ModelUnavailable as error:
        log.warning("Compaction endpoint unavailable at start: %s", error)
    return compactor
