"""Rolling chunks and facts about a legacy, for programs that call the functions of such a system."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hitherto import Conversation, Fact, Memory, Scope, Visibility, chunks
from hitherto.core.context.blocks import heading_of
from hitherto.other_systems.background import Background, fired


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTurn:
    """What goes to the model: a system prompt, and the messages, oldest first, with what is recalled."""

    system_prompt: str
    messages: list[dict[str, Any]]


class LegacyService:
    """The functions of such a system on the conversations of a scope, to which the application appends: chunks and
    facts, under the policy `chunks`."""

    def __init__(self, memory: Memory, scope: Scope) -> None:
        self._memory, self._scope = memory, Scope.checked(scope)
        self._background = Background()

    def maybe_summarize(self, conversation_id: str, *, legacy_id: str = "") -> asyncio.Task[bool]:
        """Make a chunk of the oldest messages, with facts about `legacy_id`, if enough have none. It does not wait:
        awaited, it gives whether it started one."""

        async def trigger() -> bool:
            return await fired(self._chunked(conversation_id, legacy_id), None)

        return self._background.start(trigger())

    async def prepare_turn(
        self,
        conversation_id: str,
        query: str,
        *,
        legacy_id: str = "",
        base_prompt: str = "",
        budget: int | None = None,
    ) -> PreparedTurn:
        """What the model is sent for `query`: the newest messages, chunks of older ones that bear on it, and in the
        system prompt the facts about `legacy_id` ("": the user), as many as fit. Nothing is appended. Raises what a
        context raises."""
        made = await self._chunked(conversation_id, legacy_id).context(
            query, budget=budget, instructions=base_prompt or None, policy=chunks(), facts=True
        )
        sent = [dict(one) for one in made.request["messages"]]
        prompt = "\n\n".join(str(one["content"]) for one in sent if one["role"] == "system")
        return PreparedTurn(system_prompt=prompt, messages=[one for one in sent if one["role"] != "system"])

    @staticmethod
    def build_system_prompt(base_prompt: str, legacy_name: str, facts: Sequence[Fact] = ()) -> str:
        """The prompt with a line for each fact. Facts and names come from what people said: each is always one line,
        without invisible characters."""
        if not facts:
            return base_prompt
        lines = [heading_of(legacy_name), *(one.line for one in facts)]
        return "\n".join([*([f"{base_prompt}\n"] if base_prompt else []), *lines])

    async def get_facts_for_context(self, legacy_id: str) -> list[Fact]:
        """The user's facts about a subject, and those that others share with the user, oldest first."""
        facts, found = self._memory.facts(self._scope, subject=legacy_id), list[Fact]()
        while page := await facts.list(after=found[-1].id if found else 0, limit=1_000):
            found += page
        return found

    async def list_user_facts(self, legacy_id: str) -> list[Fact]:
        """The user's own facts about a subject, oldest first."""
        return [one for one in await self.get_facts_for_context(legacy_id) if one.user == self._scope.user]

    async def delete_fact(self, fact_id: int) -> None:
        """Delete a fact of the user. Raises NotFound for another's."""
        await self._memory.facts(self._scope).delete(fact_id)

    async def delete_legacy(self, legacy_id: str) -> None:
        """Delete a legacy with the conversations about it, their chunks, and the facts about it, of all users."""
        await self._memory.erase_subject(self._scope.tenant, legacy_id)

    async def update_fact_visibility(self, fact_id: int, visibility: Visibility | Literal["private", "shared"]) -> Fact:
        """Share a fact of the user ("shared"), or take that back ("private"). Raises NotFound for another's,
        InvalidFact for another value."""
        return await self._memory.facts(self._scope).set_visibility(fact_id, visibility)

    def _chunked(self, name: str, legacy_id: str) -> Conversation:
        return self._memory.conversation(name, scope=self._scope, policy=chunks(), subject=legacy_id or None)
