"""A conversation's tools as function tools of the OpenAI Agents SDK."""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool, RunContextWrapper, function_tool

from hitherto.core.scope import Scope, checked_name
from hitherto.engine.memory import Memory
from hitherto.integrations.conversation_tools import SCHEMAS, ConversationTools
from hitherto.integrations.openai_agents.documents import Route, always, described, told
from hitherto.integrations.openai_agents.event_loop import loop_of
from hitherto.sync.facade import SyncMemory


def conversation_tools(memory: Memory | SyncMemory, scope: Scope | Route, id: str) -> list[FunctionTool]:
    """`search_conversation` and `expand`, to be given to an `Agent` whose session has the same `id`. A search answers
    with JSON, `expand` with text.

    `memory` is an open memory, used from the running event loop, or one from `hitherto.open_sync()`. `scope` says
    whose conversation it is; a function is called with the run's context at each call of a tool. Raises InvalidScope,
    InvalidInput.
    """
    home = loop_of(memory)
    route = scope if callable(scope) else always(Scope.checked(scope))
    name = checked_name(id, "conversation")

    @function_tool(strict_mode=False, failure_error_function=told)
    async def search_conversation(context: RunContextWrapper[Any], query: Any = None, limit: Any = 5) -> str:
        async def look(opened: Memory) -> dict[str, Any]:
            return await ConversationTools(opened, route(context), name).search_conversation(query, limit)

        return json.dumps(await home.arun(look), ensure_ascii=False)

    @function_tool(strict_mode=False, failure_error_function=told)
    async def expand(context: RunContextWrapper[Any], start: Any = None, end: Any = None, character: Any = 0) -> str:
        async def look(opened: Memory) -> str:
            return await ConversationTools(opened, route(context), name).expand(start, end, character)

        return await home.arun(look)

    return described([search_conversation, expand], SCHEMAS)
