"""Programs that kill themselves between two exchanges with the database."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from psycopg import AsyncConnection


def count_exchanges(last: int) -> Callable[[], int]:
    """From now on this process counts its exchanges with the database, and kills itself after so many (0: it does not).

    What is returned tells how many there were."""
    exchanges, wait = 0, AsyncConnection[Any].wait

    async def counted(self: AsyncConnection[Any], *given: Any, **named: Any) -> Any:
        nonlocal exchanges
        found = await wait(self, *given, **named)
        exchanges += 1
        if exchanges == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    AsyncConnection.wait = counted
    return lambda: exchanges
