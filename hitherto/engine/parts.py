"""What the verbs work with, handed in from outside: the engine knows ports, never adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from hitherto.core.budget import TokenCounter
from hitherto.core.context import Codec
from hitherto.core.message import Message
from hitherto.core.policy import Policy
from hitherto.ports.model import Model
from hitherto.ports.queue import DigestQueue
from hitherto.ports.store import Store
from hitherto.settings import Settings


class Reader(Protocol):
    """Reads an item of any supported wire format: the one named, or else the one its shape tells. Raises
    InvalidMessage."""

    def __call__(self, payload: Message | Mapping[str, Any], wire: str | None = None) -> Message: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The adapters of one memory. `canonical` counts what triggers and running sums are made of (o200k_base);
    `counter` gives the one for a model or encoding (None: the settings'), `codec` the wire format of a name."""

    store: Store
    model: Model
    queue: DigestQueue
    settings: Settings
    canonical: TokenCounter
    counter: Callable[[str | None], TokenCounter]
    codec: Callable[[str], Codec]
    read: Reader
    now: Callable[[], datetime]
    policy: Policy | None = None
