"""An agent's memory as function tools of the OpenAI Agents SDK."""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool, RunContextWrapper, function_tool

from hitherto.core.scope import Scope, checked_name
from hitherto.engine.arguments import checked_switch
from hitherto.engine.memory import Memory
from hitherto.integrations.memory_tools import SCHEMAS, MemoryTools
from hitherto.integrations.openai_agents.documents import Route, always, described, told
from hitherto.integrations.openai_agents.event_loop import loop_of
from hitherto.sync.facade import SyncMemory


def memory_tools(
    memory: Memory | SyncMemory, scope: Scope | Route, conversation_id: str, *, remember: bool | None = None
) -> list[FunctionTool]:
    """`remember`, `forget`, `recall` and `expand`, to be given to an `Agent` whose session has the same
    `conversation_id`. `expand` answers with text, the others with JSON.

    `memory` is an open memory, used from the running event loop, or one from `hitherto.open_sync()`. `scope` says
    whose memory it is; a function is called with the run's context at each call of a tool. `remember` as for
    `Memory.conversation`: with False the conversation is private, also before anything of it is stored. Raises
    InvalidScope, InvalidInput.
    """
    home = loop_of(memory)
    route = scope if callable(scope) else always(Scope.checked(scope))
    name = checked_name(conversation_id, "conversation_id")
    private = remember if remember is None else checked_switch(remember, "remember")

    async def call(context: RunContextWrapper[Any], verb: str, *arguments: Any) -> Any:
        async def work(opened: Memory) -> Any:
            return await getattr(MemoryTools(opened, route(context), name, remember=private), verb)(*arguments)

        return await home.arun(work)

    @function_tool(name_override="remember", strict_mode=False, failure_error_function=told)
    async def keep(context: RunContextWrapper[Any], text: Any = None, category: Any = None) -> str:
        return json.dumps(await call(context, "remember", text, category), ensure_ascii=False)

    @function_tool(strict_mode=False, failure_error_function=told)
    async def forget(context: RunContextWrapper[Any], fact: Any = None, mentions: Any = None) -> str:
        return json.dumps(await call(context, "forget", fact, mentions), ensure_ascii=False)

    @function_tool(strict_mode=False, failure_error_function=told)
    async def recall(
        context: RunContextWrapper[Any], question: Any = None, after: Any = None, before: Any = None
    ) -> str:
        return json.dumps(await call(context, "recall", question, after, before), ensure_ascii=False)

    @function_tool(strict_mode=False, failure_error_function=told)
    async def expand(
        context: RunContextWrapper[Any],
        start: Any = None,
        end: Any = None,
        character: Any = None,
        conversation: Any = None,
    ) -> str:
        return await call(context, "expand", start, end, character, conversation)

    return described([keep, forget, recall, expand], SCHEMAS)
