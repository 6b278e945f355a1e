"""The MCP server: it lists what a caller may use, calls the tools, and answers errors with sentences."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)

from hitherto import logs
from hitherto.core.key import Right, in_order
from hitherto.core.scope import Scope
from hitherto.errors import Forbidden, HithertoError
from hitherto.mcp.tools import TOOLS, McpTool, checked_arguments

if TYPE_CHECKING:
    from hitherto.engine.memory import Memory
    from hitherto.mcp.verbs import McpVerbs

log = logs.logger("hitherto.mcp")

INSTRUCTIONS = (
    "The user's memory over all conversations. Recall before you ask what you may have been told. Remember what will "
    "matter later. When something is done or decided, save what was said, or a note of it."
)

_FAILED = "the memory has failed; its log says why"
_DONE = "Done. This key may not read, so no more is told."

_FACTS = "hitherto://facts"
_CONVERSATION = "hitherto://conversations/"

_LONG_PAGE = 20_000
"""Tokens of a conversation that is read as a resource."""

_PROMPTS = {
    "catch_up": (
        "Where did we leave off?",
        "Catch me up: read the end of our newest conversation, and of others that belong to it, with the tool read. "
        "Tell me in a few sentences where we left off, what was decided and what is open.",
    ),
    "what_do_you_know": (
        "What do you know about me?",
        "Tell me what you know about me, from these facts and from what recall finds, and from where you know it. Ask "
        "me what is wrong or out of date: remember keeps a correction, forget erases a fact.",
    ),
}


@dataclass(frozen=True, slots=True)
class McpAccess:
    """Whose memory a call is for. `open_memory` and `find_scope` raise HithertoError: where it cannot be reached, and
    where the caller does not say for whom. `tell` says what the caller may know of an error."""

    open_memory: Callable[[], Awaitable[Memory]]
    rights: Collection[Right]
    find_scope: Callable[[], Scope]
    tell: Callable[[HithertoError], str] = str

    def allows(self, tool: McpTool) -> bool:
        return Right.ADMIN in self.rights or tool.rights <= set(self.rights)

    @property
    def reads(self) -> bool:
        return Right.ADMIN in self.rights or Right.READ in self.rights


def mcp_server(find_access: Callable[[ServerRequestContext[Any]], McpAccess]) -> Server[Any]:
    """A server of the seven tools for the callers that `find_access` finds. It keeps nothing between requests."""
    handlers = _Handlers(find_access)
    return Server(
        "hitherto",
        version=version("hitherto"),
        title="Hitherto",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


class _Handlers:
    def __init__(self, find_access: Callable[[ServerRequestContext[Any]], McpAccess]) -> None:
        self._find_access = find_access

    @cached_property
    def _verbs(self) -> McpVerbs:
        """Loaded when they are first needed: clients wait two seconds for the list of tools, not longer."""
        from hitherto.mcp.verbs import McpVerbs

        return McpVerbs()

    async def list_tools(self, ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListToolsResult:
        access = self._find_access(ctx)
        return ListToolsResult(tools=[_listed(tool) for tool in TOOLS if access.allows(tool)])

    async def call_tool(self, ctx: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        tool = next((one for one in TOOLS if one.name == params.name), None)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no such tool; there is {', '.join(one.name for one in TOOLS)}")
        access = self._find_access(ctx)
        try:
            if not access.allows(tool):
                needed = ", ".join(in_order(tool.rights))
                raise Forbidden(f"this key does not have the rights that {tool.name} needs: {needed}")
            given = checked_arguments(tool, params.arguments or {})
            memory, scope = await access.open_memory(), access.find_scope()
            text = await getattr(self._verbs, tool.name)(memory, scope, **given)
        except HithertoError as error:
            return result_of(access.tell(error), is_error=True)
        except Exception as error:  # the edge of a request: a bug is an answer too
            log.error("The tool %s failed", tool.name, exc_info=error)
            return result_of(_FAILED, is_error=True)
        return result_of(text if access.reads else _DONE)

    async def list_resources(
        self, ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        facts = Resource(uri=_FACTS, name="facts", title="What is known about you", mime_type="text/plain")
        return ListResourcesResult(resources=[facts] if self._find_access(ctx).reads else [])

    async def list_templates(
        self, ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        conversation = ResourceTemplate(
            uri_template=f"{_CONVERSATION}{{id}}", name="conversation", title="A conversation", mime_type="text/plain"
        )
        return ListResourceTemplatesResult(resource_templates=[conversation] if self._find_access(ctx).reads else [])

    async def read_resource(
        self, ctx: ServerRequestContext[Any], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        uri = str(params.uri)
        name = unquote(uri.removeprefix(_CONVERSATION))
        if uri == _FACTS:
            text = await self._shown(ctx, "facts")
        elif name and uri.startswith(_CONVERSATION):
            text = await self._shown(ctx, "read", conversation=name, budget=_LONG_PAGE)
        else:
            raise MCPError(INVALID_PARAMS, f"there is no such resource; there is {_FACTS}, and {_CONVERSATION}{{id}}")
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type="text/plain", text=text)])

    async def list_prompts(self, ctx: ServerRequestContext[Any], _: PaginatedRequestParams | None) -> ListPromptsResult:
        reads = self._find_access(ctx).reads
        return ListPromptsResult(
            prompts=[Prompt(name=name, title=title) for name, (title, _) in _PROMPTS.items() if reads]
        )

    async def get_prompt(self, ctx: ServerRequestContext[Any], params: GetPromptRequestParams) -> GetPromptResult:
        if params.name not in _PROMPTS:
            raise MCPError(INVALID_PARAMS, f"there is no such prompt; there is {', '.join(_PROMPTS)}")
        title, asks = _PROMPTS[params.name]
        known = await self._shown(ctx, "conversations" if params.name == "catch_up" else "facts")
        content = TextContent(text=f"{known}\n\n{asks}")
        return GetPromptResult(description=title, messages=[PromptMessage(role="user", content=content)])

    async def _shown(self, ctx: ServerRequestContext[Any], verb: str, **given: Any) -> str:
        """What a verb that reads shows. Raises MCPError."""
        access = self._find_access(ctx)
        try:
            if not access.reads:
                raise Forbidden("this key does not have the right 'read'")
            memory, scope = await access.open_memory(), access.find_scope()
            return sendable(await getattr(self._verbs, verb)(memory, scope, **given))
        except HithertoError as error:
            raise MCPError(INVALID_PARAMS, sendable(access.tell(error))) from None
        except Exception as error:  # as for a tool
            log.error("Showing %s failed", verb, exc_info=error)
            raise MCPError(INTERNAL_ERROR, _FAILED) from None


def _listed(tool: McpTool) -> Tool:
    return Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=ToolAnnotations.model_validate(dict(tool.hints)),
        _meta=None if tool.meta is None else dict(tool.meta),
    )


def result_of(text: str, *, is_error: bool = False) -> CallToolResult:
    """A result of this text, as UTF-8 can have it."""
    return CallToolResult(content=[TextContent(text=sendable(text))], is_error=is_error)


def sendable(text: str) -> str:
    """The text as UTF-8 can have it: "?" for each lone surrogate."""
    return text.encode(errors="replace").decode()
