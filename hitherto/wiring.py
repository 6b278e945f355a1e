"""The composition root: settings in, adapters out. Nothing else knows which adapters there are."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hitherto import tokens, wire
from hitherto.core.presets import PolicyLike
from hitherto.engine.memory import Memory
from hitherto.engine.parts import Parts
from hitherto.engine.tasks import TaskQueue
from hitherto.errors import ModelUnreachable
from hitherto.policies import discover
from hitherto.ports.compactor import Compactor
from hitherto.ports.model import Model
from hitherto.ports.store import Store
from hitherto.settings import Settings

IN_MEMORY = "memory:"

log = logging.getLogger("hitherto")


class Opening:
    """What `hitherto.open()` gives: `async with` it, or `await` it and call `aclose()` on the memory later."""

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


def open(  # noqa: A001 (the name users read: hitherto.open)
    database: str | None = None,
    *,
    model: Model | str | None = None,
    policy: PolicyLike | None = None,
    store: Store | None = None,
    compactor: Compactor | None = None,
    **settings: Any,
) -> Opening:
    """Open a memory.

    With no argument: on Hitherto's own PostgreSQL in the user's data directory, digests without a model. `database`
    is a PostgreSQL URL, or "memory:" for a memory that ends with the process. `model` makes the digests: the name of
    one behind an OpenAI-compatible endpoint, "extractive", or an object of your own. `policy` counts for
    conversations that have none. A `store`, model or compactor object given here must be open and stays so. Everything
    in `Settings` can be passed by its name, or stand in the environment as HITHERTO_….

    Entering raises InvalidSettings, InvalidPolicy, DatabaseUnreachable, SchemaMismatch or EmbeddedServerError.
    """

    async def make() -> Memory:
        discover()
        name = model if isinstance(model, str) else None
        loaded = Settings.load(database=database, model=name, **settings)
        async with AsyncExitStack() as opened:
            parts = Parts(
                store=store or await _store(loaded, opened),
                model=model_of(loaded, opened) if model is None or isinstance(model, str) else model,
                queue=TaskQueue(at_once=loaded.digests_at_once),
                settings=loaded,
                canonical=tokens.counter_for(tokens.CANONICAL),
                counter=lambda asked: tokens.counter_for(asked or loaded.encoding),
                codec=wire.codec,
                read=wire.read,
                now=lambda: datetime.now(UTC),
                compactor=compactor or await _compactor(loaded, opened),
            )
            parts = replace(parts, policy=parts.usable(policy))
            return await Memory(parts, opened=opened.pop_all()).start()

    return Opening(make)


async def _store(settings: Settings, opened: AsyncExitStack) -> Store:
    if settings.database == IN_MEMORY:
        from hitherto.stores.inmemory import InMemoryStore

        return InMemoryStore()
    from hitherto.stores.postgres.store import PostgresStore

    url = settings.database
    if url is None:
        from hitherto.stores.postgres.embedded import EmbeddedServer, default_data_directory

        server = await EmbeddedServer.start(settings.home or default_data_directory())
        opened.push_async_callback(server.stop)
        url = server.url
    store = PostgresStore(url, pool_size=settings.pool_size, patience=settings.database_timeout)
    opened.push_async_callback(store.aclose)
    await store.open()
    return store


def model_of(settings: Settings, opened: AsyncExitStack) -> Model:
    """The model for digests that the settings name; `opened` gives back what it holds. Raises InvalidSettings."""
    if settings.model == "extractive":
        from hitherto.models.extractive import Extractive

        return Extractive()
    from hitherto.models.openai_compatible import OpenAICompatible

    model = OpenAICompatible(
        model=settings.model,
        base_url=settings.model_base_url,
        api_key=None if settings.model_key is None else settings.model_key.get_secret_value(),
        timeout=settings.model_timeout,
        input_limit=settings.model_input_limit,
    )
    opened.push_async_callback(model.aclose)
    return model


async def _compactor(settings: Settings, opened: AsyncExitStack) -> Compactor | None:
    if settings.compact_model is None:
        return None
    from hitherto.models.openai_compactor import OpenAICompactor

    compactor = OpenAICompactor(
        model=settings.compact_model,
        base_url=settings.compact_base_url,
        api_key=None if settings.compact_key is None else settings.compact_key.get_secret_value(),
        timeout=settings.model_timeout,
    )
    opened.push_async_callback(compactor.aclose)
    try:
        await compactor.check()
    except ModelUnreachable as error:
        log.warning("The endpoint that compacts could not be asked whether it does: %s", error)
    return compactor
