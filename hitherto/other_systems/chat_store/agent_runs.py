"""Runs of the agents that the service has: a prompt in, an answer out, whole or with the run's events as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from hitherto import DigestAction, Memory, Policy, Right, Scope, logs
from hitherto.errors import InvalidInput, NotFound, ServiceError, StoreError, TimedOut
from hitherto.http.server.callers import LOOK_AGAIN, Authentication, needs
from hitherto.http.server.responses import encoded
from hitherto.other_systems.request_scope import RequestScope
from hitherto.other_systems.session_strategies.memory_strategy import Strategy, strategy
from hitherto.other_systems.session_strategies.run_events import (
    RunObject,
    Write,
    failed,
    run_completed,
    run_detail,
    run_started,
)

if TYPE_CHECKING:
    from hitherto.other_systems.agent_service.api_agent import APIAgent
    from hitherto.other_systems.agent_service.setup import AgentSetup

log = logs.logger("hitherto.http")

RUNS = frozenset({"/agent/run", "/agent/vision"})
"""Paths whose answers may take any time."""

_QUIET = 15.0
"""Seconds without an event after which a stream says that it is still there: proxies cut off what is idle."""

_Image = Annotated[str, Field(pattern="^(data:image/|https?://)", description="A data: URL, or an address.")]
_Switch = Annotated[bool | dict[str, Any] | None, Field(description="True, or the parameters.")]


class _AgentRequest(BaseModel):
    """What an agent is asked. How the session's memory is shown in this run is said as to `hitherto agent --stdio`: by
    `memory_strategy` (a policy's name, form or JSON, or switches) and `memory_injection`; or by the switches alone, of
    which at most one is of the session."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: Annotated[str, Field(min_length=1)]
    session_id: Annotated[str, Field(min_length=1, max_length=200)] = "default"
    memory_strategy: Annotated[
        str | dict[str, Any] | None, Field(validation_alias=AliasChoices("memory_strategy", "memoryStrategy"))
    ] = None
    memory_injection: bool | None = None
    memory_trimming: Annotated[_Switch, Field(alias="memoryTrimming")] = None
    memory_summarization: Annotated[_Switch, Field(alias="memorySummarization")] = None
    memory_compacting: Annotated[_Switch, Field(alias="memoryCompacting")] = None
    switched_injection: Annotated[bool | None, Field(alias="memoryInjection")] = None
    stream: Annotated[bool, Field(description="As the header Accept: text/event-stream.")] = False

    @property
    def strategy(self) -> Strategy:
        """The memory strategy, under either name. Raises InvalidInput for both, and for what cannot be used."""
        switches = {
            "memoryTrimming": self.memory_trimming,
            "memorySummarization": self.memory_summarization,
            "memoryCompacting": self.memory_compacting,
            "memoryInjection": self.switched_injection,
        }
        given = {name: value for name, value in switches.items() if value is not None}
        if given and self.memory_strategy is not None:
            raise InvalidInput(f"memory_strategy and {min(given)} say the same; give one of them")
        return strategy(given or self.memory_strategy, self.memory_injection)


class AgentRunRequest(_AgentRequest):
    __doc__ = _AgentRequest.__doc__

    images: list[_Image] = []


class AgentVisionRequest(_AgentRequest):
    __doc__ = _AgentRequest.__doc__

    images: Annotated[list[_Image], Field(min_length=1)]


AgentRequest = AgentRunRequest | AgentVisionRequest


class AgentRunAnswer(BaseModel):
    """The agent's answer, and the run as it is recorded; null if it was deleted meanwhile, with its session."""

    output: str
    run: RunObject | None


async def _agents_of(request: Request) -> AgentSetup:
    """The agents that the service runs. Raises NotFound where it runs none."""
    found: AgentSetup | None = request.scope["agents"]
    if found is None:
        raise NotFound("this service runs no agent; start it with: hitherto serve --agent FILE")
    return found


def add_routes(router: APIRouter) -> None:
    """Add the routes."""
    options: dict[str, Any] = {
        "tags": ["Agent"],
        "response_model": AgentRunAnswer,
        "responses": {
            200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
            502: {"description": "The agent's model failed.", **_problem()},
        },
        "dependencies": [needs(Right.WRITE), Depends(_agents_of)],
    }
    about = (
        "{} What is due is summarized first. Only the prompt and the final answer are stored, together, at the end: "
        "nothing of a run that fails, or whose client leaves. Under a policy that redacts tool results, such as "
        "`memoryCompacting`, calls and results are stored too, as they come. With `Accept: text/event-stream` the "
        "run's events are streamed, one JSON object a message, as `hitherto agent --stdio` writes them. Needs the "
        "right `write`."
    )

    @router.post("/agent/run", operation_id="agent_run", description=about.format("Ask the agent."), **options)
    async def agent_run(request: Request, scope: RequestScope, body: AgentRunRequest) -> Response:
        return await _answer(request, scope, body)

    @router.post(
        "/agent/vision", operation_id="agent_vision", description=about.format("Ask it about images."), **options
    )
    async def agent_vision(request: Request, scope: RequestScope, body: AgentVisionRequest) -> Response:
        return await _answer(request, scope, body)


def _problem() -> dict[str, Any]:
    return {"content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}


async def _answer(request: Request, scope: Scope, body: AgentRequest) -> Response:
    from hitherto.other_systems.agent_service.api_agent import APIAgent

    # What cannot be used is refused before anything is streamed.
    memory: Memory = request.scope["memory"]
    memory.conversation(body.session_id, scope=scope)
    _ = body.strategy
    setup = replace(await _agents_of(request), tenant=scope.tenant)
    agent = APIAgent(scope.agent, scope.user, body.session_id, setup=setup)
    if body.stream or "text/event-stream" in request.headers.get("Accept", ""):
        return _EventStream(_streamed(request, agent, body))
    run = _Running(request, agent, body, lambda _: None)
    try:
        return Response(encoded(await run.ended()), media_type="application/json")
    finally:
        await run.stop()


class _Running:
    """A run that goes on until its client leaves or its key is revoked. `write` takes its events."""

    def __init__(self, request: Request, agent: APIAgent, body: AgentRequest, write: Write) -> None:
        self._run = asyncio.create_task(_run(agent, body, write))
        self._watch = asyncio.create_task(_watched(request))

    async def ended(self) -> dict[str, Any]:
        """The output and the run. Raises the error of a run that fails; Unauthorized for a revoked key; TimedOut
        if the client has left."""
        await asyncio.wait({self._run, self._watch}, return_when=asyncio.FIRST_COMPLETED)
        return await (self._run if self._run.done() else self._watch)

    async def stop(self) -> None:
        """What has not ended is cancelled, and has ended once this returns."""
        for task in (self._run, self._watch):
            task.cancel()
        await asyncio.gather(self._run, self._watch, return_exceptions=True)


async def _run(agent: APIAgent, body: AgentRequest, write: Write) -> dict[str, Any]:
    from hitherto.other_systems.agent_service.failures import failure_of

    try:
        await agent.initialize()
        done = await agent.run(
            _message_of(body),
            **body.strategy,
            wait=True,
            stored=await _stored(agent, body.strategy["policy"]),
            on_event=lambda event: write(run_detail(event)),
        )
    except Exception as error:  # the SDK and the agent's tools may raise anything; what is the model's fault is told so
        found = failure_of(error)
        if found is None or found is error:
            raise
        raise found from None
    finally:
        await agent.cleanup()
    completed = run_completed(done.output, done.run)
    return {name: completed[name] for name in AgentRunAnswer.model_fields}


async def _stored(agent: APIAgent, asked: Policy | None) -> Literal["all", "answer"]:
    """What a run appends: tool calls and results too where the policy redacts them later."""
    policy = asked or await agent.governing()
    if policy is None and agent.memory is not None:
        policy = await agent.memory.policy()
    return "all" if policy is not None and policy.doing(DigestAction.REDACT) else "answer"


def _message_of(body: AgentRequest) -> str | Mapping[str, Any]:
    if not body.images:
        return body.prompt
    images = [{"type": "input_image", "image_url": image} for image in body.images]
    return {"role": "user", "content": [{"type": "input_text", "text": body.prompt}, *images]}


async def _watched(request: Request) -> dict[str, Any]:
    """Raises TimedOut once the client has left, Unauthorized once the key is revoked. A database that is away for a
    while ends no run."""
    authentication: Authentication = request.scope["authentication"]
    leaving = asyncio.ensure_future(request.receive())
    try:
        while not (await asyncio.wait({leaving}, timeout=LOOK_AGAIN))[0]:
            with suppress(StoreError):
                await authentication.caller(request.headers)
    finally:
        leaving.cancel()
    raise TimedOut("the client has left")


class _EventStream(StreamingResponse):
    """Server-sent events. Once it has ended, in whatever way, so has what makes them."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
        self._events = events

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.aclose()


async def _streamed(request: Request, agent: APIAgent, body: AgentRequest) -> AsyncGenerator[bytes]:
    events = asyncio.Queue[dict[str, Any]]()
    run = _Running(request, agent, body, events.put_nowait)
    ended = asyncio.create_task(run.ended())
    try:
        yield _sent(run_started(agent.session_id))
        while not (ended.done() and events.empty()):
            event = asyncio.create_task(events.get())
            try:
                await asyncio.wait({event, ended}, timeout=_QUIET, return_when=asyncio.FIRST_COMPLETED)
            finally:
                came = not event.cancel()
            if came:
                yield _sent(event.result())
            elif not ended.done():
                yield b": the run goes on\n\n"
        yield _sent(await _last(ended))
    finally:
        await run.stop()
        await asyncio.gather(ended, return_exceptions=True)


async def _last(ended: asyncio.Task[dict[str, Any]]) -> dict[str, Any]:
    """The event with which a run ends."""
    from hitherto.other_systems.agent_service.failures import failure_of

    try:
        return {"event": "run_completed", **(await ended)}
    except Exception as error:  # noqa: BLE001 (the client is told)
        found = failure_of(error)
        if found is None:
            log.error("A run failed: %s", type(error).__name__)
        return failed(found or ServiceError("the run has failed; its last event says why"))


def _sent(event: dict[str, Any]) -> bytes:
    """An event as `hitherto agent --stdio` writes it."""
    return b"data: " + encoded({**event, "id": None}) + b"\n\n"
