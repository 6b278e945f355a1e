"""A double of a model's own compaction: it answers from a script and remembers what it was given."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hitherto.core.log.message import Payload
from hitherto.ports.models import CompactionResult, family_of


class ScriptedCompactor:
    """Leaves one opaque item, behind the user's messages with `keeps_users`; raises the errors of `script` first, one
    a call.

    `given` are the items of each call, from the moment of asking; `checked` and `closed` count calls.
    """

    def __init__(
        self, script: Sequence[Exception] = (), *, name: str = "gpt-5.2-2025-12-11", keeps_users: bool = False
    ) -> None:
        self.given: list[list[Payload]] = []
        self.checked = self.closed = 0
        self._script = list(script)
        self._name = name
        self._keeps_users = keeps_users

    @property
    def name(self) -> str:
        return self._name

    @property
    def family(self) -> str:
        return family_of(self._name)

    async def check(self) -> None:
        self.checked += 1

    async def compact(self, items: Sequence[Payload], *, instructions: str | None = None) -> CompactionResult:
        self.given.append(json.loads(json.dumps(list(items))))
        if self._script:
            raise self._script.pop(0)
        kept = [item for item in self.given[-1] if item.get("role") == "user"] if self._keeps_users else []
        return CompactionResult(items=(*kept, opaque(len(self.given))), tokens_in=1, tokens_out=1)

    async def aclose(self) -> None:
        self.closed += 1


def opaque(number: int) -> Payload:
    """The opaque item of call `number`, counted from 1."""
    return {"type": "compaction", "id": f"cmp_{number}", "encrypted_content": f"gAAAAsealed{number}"}
