"""The knowledge base's tools as function tools of the OpenAI Agents SDK."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from agents import FunctionTool, ModelBehaviorError, RunContextWrapper, default_tool_error_function, function_tool

from hitherto.core.documents import ALL
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput, InvalidScope
from hitherto.integrations.document_tools import SCHEMAS, DocumentTools
from hitherto.integrations.openai_agents.event_loop import loop_of
from hitherto.sync.facade import SyncMemory

Route = Callable[[RunContextWrapper[Any]], Scope]
"""Says whose memory it is, from the run's context."""


def document_tools(memory: Memory | SyncMemory, scope: Scope | Route) -> list[FunctionTool]:
    """`search_knowledge_base` and `list_documents`, to be given to an `Agent`; what they answer is JSON.

    `memory` is an open memory, used from the running event loop, or one from `hitherto.open_sync()`. `scope` says
    whose knowledge base it is; a function is called with the run's context at each call of a tool. Raises InvalidScope,
    InvalidInput.
    """
    home = loop_of(memory)
    route = scope if callable(scope) else always(Scope.checked(scope))

    @function_tool(strict_mode=False, failure_error_function=told)
    async def search_knowledge_base(
        context: RunContextWrapper[Any], query: Any = None, search_type: Any = ALL, limit: Any = 5
    ) -> str:
        async def look(opened: Memory) -> list[dict[str, Any]]:
            return await DocumentTools(opened, route(context)).search_knowledge_base(query, search_type, limit)

        return json.dumps(await home.arun(look), ensure_ascii=False)

    @function_tool(strict_mode=False, failure_error_function=told)
    async def list_documents(context: RunContextWrapper[Any], doc_type: Any = ALL, limit: Any = 10) -> str:
        async def look(opened: Memory) -> list[dict[str, Any]]:
            return await DocumentTools(opened, route(context)).list_documents(doc_type, limit)

        return json.dumps(await home.arun(look), ensure_ascii=False)

    return described([search_knowledge_base, list_documents], SCHEMAS)


def described(tools: list[FunctionTool], schemas: Sequence[dict[str, Any]]) -> list[FunctionTool]:
    """The tools as the schemas describe them. Their functions take whatever a model gives: what they call checks it
    and says what is wrong."""
    for tool, schema in zip(tools, schemas, strict=True):
        says = copy.deepcopy(schema["function"])
        tool.description, tool.params_json_schema = says["description"], says["parameters"]
        tool.strict_json_schema = says.get("strict", False)
    return tools


def always(scope: Scope) -> Route:
    """The route that leads to `scope` in every run."""

    def route(_: RunContextWrapper[Any]) -> Scope:
        return scope

    return route


def told(context: RunContextWrapper[Any], error: Exception) -> str:
    """What the model is told of an error: what is wrong with its arguments, and nothing of what went wrong here."""
    if isinstance(error, ModelBehaviorError):
        return "Error: the arguments are not a JSON object"
    if isinstance(error, InvalidInput) and not isinstance(error, InvalidScope):
        return f"Error: {error}"
    return default_tool_error_function(context, error)
