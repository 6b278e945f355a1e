"""Memories on a store that is open already, and stays open: opening one takes longer than most tests do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Unpack

from hitherto import Memory
from hitherto.core.policy.presets import PolicyLike
from hitherto.policies import discover
from hitherto.ports.models import Compactor, Embedder, Model, Reranker
from hitherto.ports.watch import Watch
from hitherto.settings import Settings
from hitherto.settings.definitions import SettingsOptions
from hitherto.store.store import Store
from hitherto.wiring import Opening, make_memory

over: Callable[[Opening], Any] = lambda opening: opening  # noqa: E731
"""What the memories are reached over: the tests of the client put a service between."""


def open_on(
    store: Store,
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
    """As `hitherto.open`, on `store`."""

    async def make() -> Memory:
        discover()
        named_ones = {"model": model, "embedder": embedder, "reranker": reranker}
        names = {setting: name for setting, name in named_ones.items() if isinstance(name, str)}
        loaded = Settings.load(config, **names, **settings)
        async with AsyncExitStack() as opened:
            return await make_memory(
                store,
                loaded,
                opened,
                model=model,
                policy=policy,
                compactor=compactor,
                embedder=embedder,
                previous_embedders=previous_embedders,
                reranker=reranker,
                watch=watch,
            )

    return over(Opening(make))
