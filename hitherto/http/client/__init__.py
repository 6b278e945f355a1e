"""The client: a memory whose verbs are requests to a service."""

from __future__ import annotations

from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput
from hitherto.sync.base import BackgroundMemory
from hitherto.sync.facade import SyncMemory
from hitherto.wiring import Opening


def connect(url: str, *, key: str | None = None, timeout: float = 60.0) -> Opening:
    """A memory over HTTP: `async with hitherto.connect(url, key=…) as memory` in the place of `hitherto.open(…)`.

    `url` is where `hitherto serve` listens, `key` one of `hitherto keys create`. The verbs are those of `Memory` and
    its parts, and raise the same errors; `ServiceUnavailable` is raised in the place of other errors of the store. A
    request is sent again as long as the service is away, for at most `timeout` seconds: appends with an idempotency
    key, which each append without one gets; what might be done twice, or undo what others did in between, only if it
    cannot have arrived. On entering, nothing is sent again where nobody listens. Waits and imports last as long as they
    take. Scopes must be of the key's tenant.

    `purge_expired` and `keys` belong to the service alone and raise InvalidInput. Entering raises ServiceUnavailable,
    ServiceError where something else answers, Unauthorized for a key that the service does not know, or for any where
    it asks for none, and InvalidInput for what is no address, and where the extra `client` is not installed. Like its
    connections, the memory belongs to one event loop.
    """

    async def make() -> Memory:
        try:
            from hitherto.http.client.remote import RemoteMemory
            from hitherto.http.client.service import Service
        except ModuleNotFoundError as error:
            raise InvalidInput(
                f"connect needs {error.name}, which is not installed: pip install 'hitherto[client]'"
            ) from error
        return await RemoteMemory(Service(url, key, timeout=timeout)).start()

    return Opening(make)


def connect_sync(url: str, *, key: str | None = None, timeout: float = 60.0) -> SyncMemory:
    """`connect` for code without an event loop: `with hitherto.connect_sync(url, key=…) as memory` in the place of
    `hitherto.open_sync(…)`."""
    background = BackgroundMemory(connect(url, key=key, timeout=timeout))
    background.memory()
    return SyncMemory(background)


__all__ = ["connect", "connect_sync"]
