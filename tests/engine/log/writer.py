"""A process of its own that appends until it is killed, and says on standard output what was acknowledged.

python -m tests.engine.log.writer URL-OR-DIRECTORY CONVERSATION NAME
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import hitherto
from hitherto import assistant, sliding_window, user
from hitherto.errors import StoreError
from hitherto.providers.scripted import Delayed, Scripted, items
from tests.conftest import SCOPE

TAKE_OVER_AFTER = 2


async def write(where: str, conversation: str, name: str) -> None:
    given: dict[str, Any] = {"data_dir": Path(where)} if where.startswith("/") else {"database": where}
    model = Scripted(then=Delayed(0.02, items("They talk.")))
    async with hitherto.open(model=model, database_timeout=2, lease_timeout=TAKE_OVER_AFTER, **given) as memory:
        chat = memory.conversation(conversation, scope=SCOPE, policy=sliding_window())
        for number in range(1_000_000):
            key = f"{name}-{number}"
            done = None
            while done is None:
                try:
                    done = await chat.append(user(f"{key} asks"), assistant(f"{key} answers"), key=key)
                except StoreError as error:
                    print(f"lost {type(error).__name__}", flush=True)  # noqa: T201 (it is what this program is for)
            print(f"{key} {done.start}", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(write(*sys.argv[1:4]))
