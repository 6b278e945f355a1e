"""An agent that answers: the model and the tools of its configuration, with its memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agents import RunConfig, Runner, Tool
from openai import AsyncOpenAI

from hitherto import CrossSessionLike, DigestAction, PolicyLike, none, policy_of
from hitherto.errors import InvalidInput, StoreError
from hitherto.integrations.openai_agents import (
    AgentSpec,
    OnEvent,
    RunOutcome,
    document_tools,
    run_agent,
    within_budget,
)
from hitherto.logs import logger
from hitherto.other_systems.agent_service.base_agent import BaseAgent
from hitherto.other_systems.agent_service.providers import chat_model
from hitherto.other_systems.agent_service.setup import KNOWLEDGE_BASE_TOOLS, AgentSetup

log = logger("hitherto.agents")

_SHORTENING = (DigestAction.DROP, DigestAction.REDACT, DigestAction.COMPACT, DigestAction.CHUNK)


class APIAgent(BaseAgent):
    """A `BaseAgent` that answers with `chat`. Its model is asked within the memory's budget (the setting `budget`),
    tool loops too, and each answer is recorded as a run (see `Memory.runs`) if it has a memory."""

    def __init__(self, agent_id: str, user_id: str, session_id: str, *, setup: AgentSetup | None = None) -> None:
        super().__init__(agent_id, user_id, session_id, setup=setup)
        self._client: AsyncOpenAI | None = None
        self._answered: str | None = None

    async def chat(self, message: str) -> str:
        """Answer a message, and remember both. A message that `save_memory` has stored just before is not stored again.
        Without a memory, or while its database is away, nothing is remembered, which is logged. Raises InvalidInput
        before `initialize`, and what `run_agent` raises: an error of the store only after a tool has run, because no
        tool is called twice."""
        if self.memory is None and (self._missing is None or not isinstance(self._missing, InvalidInput)):
            return str(await self._alone(self._spec(), message))
        events = list[Mapping[str, Any]]()
        try:
            return str((await self.run(message, on_event=events.append)).output)
        except StoreError as error:
            done = [one for one in events if one["kind"] != "error"]
            if done and done[-1]["kind"] != "message":
                raise
            log.warning("The memory of %s is not available; it goes on without: %s", self.agent_id, error)
            return str(done[-1]["payload"] if done else await self._alone(self._spec(), message))

    async def run(
        self,
        message: str | Mapping[str, Any],
        *,
        policy: PolicyLike | None = None,
        cross_session: CrossSessionLike | None = None,
        wait: bool | float = False,
        stored: Literal["all", "answer"] = "all",
        on_event: OnEvent | None = None,
    ) -> RunOutcome:
        """Answer as `chat` does, with the options of `run_agent`. Raises InvalidInput without a memory, and the error
        for which it was left out."""
        if self.memory is None and self._missing is not None:
            raise self._missing
        if self.memory is None:
            raise InvalidInput(f"the agent {self.agent_id!r} has no memory, in which runs are recorded; use chat()")
        await self._warn_of_cuts(policy)
        done = await run_agent(
            self._memory,
            self._spec(),
            message,
            scope=self.scope,
            conversation=self.session_id,
            policy=policy,
            cross_session=cross_session,
            wait=wait,
            stored=stored,
            on_event=on_event,
        )
        self._answered = str(done.output)
        return done

    async def save_memory(self, role: str, content: str) -> None:
        """Append a message, as `BaseAgent.save_memory` does; not the answer that `chat` has given and stored."""
        answered, self._answered = self._answered, None
        if role != "assistant" or content != answered:
            await super().save_memory(role, content)

    async def clear_conversation(self) -> int:
        """Begin the session anew. Returns how many messages it cleared; the log keeps them. 0 without a memory."""
        return 0 if self.memory is None else await self.memory.clear()

    async def cleanup(self) -> None:
        await super().cleanup()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _spec(self) -> AgentSpec:
        config, model = self.configuration, self._model
        if self._client is None:
            self._client = self._setup.provider(config.provider).client()
        return AgentSpec(
            name=self.agent_id,
            instructions=config.instructions,
            model=chat_model(self._client, model),
            tools=self._tools(),
            policy=self.policy,
            cross_session=self.cross_session,
            max_turns=config.max_turns,
        )

    async def _warn_of_cuts(self, request: PolicyLike | None) -> None:
        """Say so where messages are left out of requests without ever being summarized."""
        head = None if self.memory is None else await self.memory.head()
        if self.memory is None or self._settings is None or head is None:
            return
        policy = policy_of(request) or await self.governing() or await self.memory.policy(default=none())
        if policy.recalls or policy.doing(*_SHORTENING):
            return
        tokens = head.sums.tokens - max(head.view_sums.tokens, head.digest_sums.tokens)
        if tokens > self._settings.budget:
            log.warning(
                "The session has %s tokens and a request %s: the oldest messages are left out and in no summary; raise "
                "HITHERTO_BUDGET, or let %s be summarized before (compression.threshold_tokens, or "
                "summaryThreshold)",
                f"{tokens:,}",
                f"{self._settings.budget:,}",
                self.agent_id,
                conversation=self.session_id,
            )

    def _tools(self) -> list[Tool]:
        allowed = self.configuration.allowed_regular_tools
        own = document_tools(self._memory, self.scope) if self.knowledge_base is not None else []
        there = {one.name: one for one in own if one.name in KNOWLEDGE_BASE_TOOLS}
        there |= {name: tool for name, tool in self._setup.tools.items() if name not in there}
        return [there[name] for name in dict.fromkeys(allowed) if name in there]

    async def _alone(self, spec: AgentSpec, message: str) -> object:
        settings = self._settings
        fitted = None if settings is None else within_budget(settings.budget, model=self._model)
        config = RunConfig(tracing_disabled=True, call_model_input_filter=fitted)
        result = await Runner.run(spec.agent(), message, run_config=config, max_turns=spec.max_turns)
        return result.final_output
