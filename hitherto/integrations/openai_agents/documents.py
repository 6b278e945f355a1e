"""The knowledge base's tools as function tools of the OpenAI Agents SDK."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agents import FunctionTool, RunContextWrapper, default_tool_error_function, function_tool

from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput, InvalidScope
from hitherto.integrations.document_tools import LIST, SEARCH, DocumentTools
from hitherto.integrations.openai_agents.event_loop import CurrentLoop, MemoryLoop, Portal

Route = Callable[[RunContextWrapper[Any]], Scope]
"""Says whose memory it is, from the run's context."""


def document_tools(memory: Memory | Portal, scope: Scope | Route) -> list[FunctionTool]:
    """`search_knowledge_base` and `list_documents`, to be given to an `Agent`; what they answer is JSON.

    `memory` is an open memory, used from the running event loop, or a `Portal`. `scope` says whose knowledge base it
    is; a function is called with the run's context at each call of a tool. Raises InvalidScope, InvalidInput.
    """
    home: MemoryLoop = memory if isinstance(memory, Portal) else CurrentLoop(memory)
    route = scope if callable(scope) else always(Scope.checked(scope))

    @function_tool(description_override=SEARCH, strict_mode=False, failure_error_function=told)
    async def search_knowledge_base(
        context: RunContextWrapper[Any], query: str, search_type: str = "all", limit: int = 5
    ) -> str:
        """Search.

        Args:
            query: What to look for, in words or as a question.
            search_type: 'conversations' for archived conversations, any other type that documents have, or 'all'.
            limit: How many to give, at most 50.
        """

        async def look(opened: Memory) -> list[dict[str, Any]]:
            return await DocumentTools(opened, route(context)).search_knowledge_base(query, search_type, limit)

        return json.dumps(await home.run(look), ensure_ascii=False)

    @function_tool(description_override=LIST, strict_mode=False, failure_error_function=told)
    async def list_documents(context: RunContextWrapper[Any], doc_type: str = "all", limit: int = 10) -> str:
        """List.

        Args:
            doc_type: 'conversations' for archived conversations, any other type that documents have, or 'all'.
            limit: How many to give, at most 50.
        """

        async def look(opened: Memory) -> list[dict[str, Any]]:
            return await DocumentTools(opened, route(context)).list_documents(doc_type, limit)

        return json.dumps(await home.run(look), ensure_ascii=False)

    return [search_knowledge_base, list_documents]


def always(scope: Scope) -> Route:
    """The route that leads to `scope` in every run."""

    def route(_: RunContextWrapper[Any]) -> Scope:
        return scope

    return route


def told(context: RunContextWrapper[Any], error: Exception) -> str:
    """What the model is told of an error: what is wrong with its arguments, and nothing of what went wrong here."""
    if isinstance(error, InvalidInput) and not isinstance(error, InvalidScope):
        return f"Error: {error}"
    return default_tool_error_function(context, error)
