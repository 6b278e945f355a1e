"""An answer that comes in events, whatever API sends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hitherto.core.log.message import Payload


class StreamedAnswer(Protocol):
    """Takes the events of one answer as they come. `text` is what it has said so far, and `complete` whether the API
    has ended it; one that fails or breaks off never is. `items` are the answer as items of the API, once it is
    complete. Events of no interest are passed over."""

    @property
    def text(self) -> str: ...
    @property
    def complete(self) -> bool: ...
    def take(self, event: Mapping[str, Any]) -> None: ...
    def items(self) -> list[Payload]: ...
