"""The verbs of a memory as requests to a service: of each class, one that inherits what is not done over HTTP."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from copy import copy
from datetime import datetime
from typing import Any, BinaryIO, NoReturn, Self, TypeVar, cast
from urllib.parse import quote
from uuid import uuid4

from hitherto import wire
from hitherto.blocks import series
from hitherto.core.log.message import Logged
from hitherto.core.policy.presets import PolicyLike, policy_of
from hitherto.core.scope import Scope, checked_name
from hitherto.engine.arguments import checked_switch
from hitherto.engine.conversation import Conversation
from hitherto.engine.documents.documents import Documents
from hitherto.engine.export.export import ExportReport, checked_file
from hitherto.engine.export.imports import LONGEST_LINE, ImportReport, Lines
from hitherto.engine.facts.facts import Facts
from hitherto.engine.keys import Keys
from hitherto.engine.listing import ConversationPage, scope_parts
from hitherto.engine.memory import Memory
from hitherto.engine.runs import Runs
from hitherto.errors import Forbidden, InvalidInput, ServiceUnavailable, TimedOut
from hitherto.http.client.service import PATIENT, Service, in_path, scope_headers
from hitherto.http.operations import LINES, OPERATIONS, POLICY, PREFIX, REMEMBER, SUBJECT, TENANT, Operation
from hitherto.http.shapes import argument_to_json
from hitherto.ports.models import Reranker

Class = TypeVar("Class", bound=type)

_COUNTED = {
    "conversation": "conversations",
    "message": "messages",
    "document": "documents",
    "fact": "facts",
    "run": "runs",
}
"""What an export's report counts, by the name that a line begins with."""


class _Formats:
    """What of `Services` the client needs: messages are read, and policies checked, on this side too."""

    codec = staticmethod(wire.codec)
    read = staticmethod(wire.read)
    usable = staticmethod(policy_of)


def _with_operations(remote: Class) -> Class:
    """Gives the class a method for each operation of the class that it inherits from."""
    for operation in OPERATIONS:
        if operation.owner is remote.__mro__[1] and operation.verb not in vars(remote):
            setattr(remote, operation.verb, _verb(operation))
    return remote


def _verb(operation: Operation) -> Callable[..., Any]:
    signature = inspect.signature(operation.function)
    named_so = {"tenant": "tenant", **{operation.named(name): name for name in operation.in_path}}
    names = {name: what for name, what in named_so.items() if operation.hints.get(name) is str}

    @functools.wraps(operation.function)
    async def verb(self: Any, *arguments: Any, **named: Any) -> Any:
        given = dict(signature.bind(self, *arguments, **named).arguments)
        del given["self"]
        for name, what in names.items():
            checked_name(given[name], what)  # without it, the request would be about something else
        return await self._request(operation, given)

    return verb


def _refuse(what: str) -> NoReturn:
    raise InvalidInput(f"{what} belongs to the service itself: call it where `hitherto serve` runs")


@_with_operations
class RemoteMemory(Memory):
    """A `Memory` that a service has."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def start(self) -> Self:
        """See that the service answers, and knows the key. Raises ServiceUnavailable, ServiceError for something else
        at its address, and Unauthorized."""
        try:
            response = await self._service.request(
                "GET", f"{PREFIX}/conversations", first=True, headers={}, params={"limit": 1}
            )
            self._service.read(response, ConversationPage)
        except Forbidden:
            pass  # the key is known, and does not have the right to read
        except BaseException:
            await self.aclose()
            raise
        return self

    async def aclose(self) -> None:
        """Close the connections to the service. Safe to call twice."""
        await self._service.aclose()

    async def _request(self, operation: Operation, given: dict[str, Any]) -> Any:
        return await self._service.call(operation, {}, given)

    def conversation(
        self,
        id: str,
        *,
        scope: Scope,
        policy: PolicyLike | None = None,
        subject: str | None = None,
        remember: bool | None = None,
    ) -> Conversation:
        return RemoteConversation(self._service, id, scope=scope, policy=policy, subject=subject, remember=remember)

    def documents(self, scope: Scope) -> Documents:
        return RemoteDocuments(self._service, scope)

    def runs(self, scope: Scope) -> Runs:
        return RemoteRuns(self._service, scope)

    def facts(self, scope: Scope, *, subject: str | None = None, all_agents: bool = False) -> Facts:
        return RemoteFacts(self._service, scope, subject, all_agents=all_agents)

    def with_reranker(self, reranker: Reranker) -> Memory:
        _refuse("putting what is found in order (the setting reranker)")

    def keys(self, tenant: str) -> Keys:
        _refuse("making and listing keys")

    async def purge_expired(self) -> int:
        _refuse("the housekeeping of all tenants")

    async def metrics(self) -> bytes:
        return await self._service.request("GET", "/metrics")

    async def conversations(
        self,
        scope: Scope | None = None,
        *,
        tenant: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        after: datetime | None = None,
        before: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> ConversationPage:
        tenant, user, agent = scope_parts(scope, tenant=tenant, user=user, agent=agent)
        narrowed = {"user": user, "agent": agent, "after": after, "before": before, "metadata": metadata}
        given = {name: value for name, value in narrowed.items() if value is not None}
        return await self._request(_LIST, {"tenant": tenant, **given, "limit": limit, "cursor": cursor})

    async def wait_for_digests(self, *, tenant: str | None = None) -> None:
        await self._wait(_WAITS["wait_for_digests"], tenant)

    async def wait_for_index(self, *, tenant: str | None = None) -> bool:
        return await self._wait(_WAITS["wait_for_index"], tenant)

    async def wait_for_erasure(self, *, tenant: str | None = None) -> None:
        await self._wait(_WAITS["wait_for_erasure"], tenant)

    async def _wait(self, operation: Operation, tenant: str | None) -> Any:
        while True:
            try:
                return await self._request(operation, {"tenant": tenant})
            except TimedOut:  # a request may not take as long as this may
                continue

    async def export_to(
        self,
        file: BinaryIO,
        *,
        tenant: str,
        user: str | None = None,
        agent: str | None = None,
        progress: Callable[[ExportReport], None] | None = None,
    ) -> ExportReport:
        checked_file(file, "wb")
        narrowed = {name: value for name, value in (("user", user), ("agent", agent)) if value is not None}
        headers = {TENANT: quote(checked_name(tenant, "tenant"), safe="")}
        done, rest, last = Counter[str](), b"", ""
        async with self._service.stream(f"{PREFIX}/export", params=narrowed, headers=headers) as parts:
            async for part in parts:
                await asyncio.to_thread(file.write, part)
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    last = line[2 : line.find(b'"', 2)].decode(errors="replace")
                    done[_COUNTED.get(last, "")] += 1
                if progress is not None:
                    progress(_report(done))
        if rest or last != "end":
            raise ServiceUnavailable("the export was cut off; ask for it again")
        return _report(done)

    async def import_from(
        self, file: Lines, *, tenant: str | None = None, progress: Callable[[ImportReport], None] | None = None
    ) -> ImportReport:
        checked_file(file, "rb")
        named = {} if tenant is None else {TENANT: quote(checked_name(tenant, "tenant"), safe="")}
        headers = {**named, "Content-Type": LINES}
        failures = list[Exception]()
        data = _lines(file, failures)
        try:
            response = await self._service.request(
                "POST", f"{PREFIX}/import", repeatable=False, data=data, headers=headers, timeout=PATIENT
            )
        except ServiceUnavailable:
            if failures:
                raise failures[0] from None
            raise
        report = self._service.read(response, ImportReport)
        if progress is not None:
            progress(report)
        return report


_LIST = next(operation for operation in OPERATIONS if operation.verb == "conversations")
_WAITS = {operation.verb: operation for operation in OPERATIONS if operation.waits}


def _report(done: Counter[str]) -> ExportReport:
    return ExportReport(**{name: done[name] for name in _COUNTED.values()})


@series
async def _lines(file: Lines, failures: list[Exception]) -> AsyncGenerator[bytes]:
    """The lines of the file. What reading them raises is put into `failures` too: aiohttp makes it an error of its
    own."""
    try:
        while line := await asyncio.to_thread(file.readline, LONGEST_LINE):
            yield line
    except Exception as error:
        failures.append(error)
        raise


@_with_operations
class RemoteConversation(Conversation):
    """A `Conversation` that a service has."""

    def __init__(
        self,
        service: Service,
        id: str,
        *,
        scope: Scope,
        policy: PolicyLike | None = None,
        subject: str | None = None,
        remember: bool | None = None,
    ) -> None:
        self._service, self._services = service, cast(Any, _Formats)
        self._policy = policy_of(policy)
        self.id = checked_name(id, "conversation")
        self.scope = Scope.checked(scope)
        self._subject = None if subject is None else checked_name(subject, "subject")
        self._remember = None if remember is None else checked_switch(remember, "remember")

    async def _request(self, operation: Operation, given: dict[str, Any]) -> Any:
        result = await self._service.call(operation, self._headers(), {"conversation": self.id, **given})
        if operation.verb == "append" and result.end >= result.start:
            self._policy = self._subject = self._remember = None  # they are stored now
        elif operation.verb == "configure":
            if given.get("policy") is not None:
                self._policy = None
            if given.get("subject") is not None:
                self._subject = None
            if given.get("remember") is not None:
                self._remember = None
        return result

    def _headers(self) -> dict[str, str]:
        headers = scope_headers(self.scope)
        if self._policy is not None:
            headers[POLICY] = quote(json.dumps(argument_to_json(self._policy)), safe="")
        if self._subject is not None:
            headers[SUBJECT] = quote(self._subject, safe="")
        if self._remember is not None:
            headers[REMEMBER] = "true" if self._remember else "false"
        return headers

    async def messages(self, *, start: int = 0, stop: int | None = None, limit: int | None = None) -> list[Logged]:
        asked = {"start": start, "stop": stop, "limit": limit}
        path = f"{PREFIX}/conversations/{in_path(self.id)}/messages"
        params = {name: value for name, value in asked.items() if value is not None}
        response = await self._service.request("GET", path, headers=self._headers(), params=params)
        return self._service.read(response, list[Logged])

    async def fork(self, *, at: int | None = None, id: str | None = None) -> RemoteConversation:
        made = copy(self)
        made.id = await self._fork(at=at, id=uuid4().hex if id is None else id)
        return made

    def _follow(self, other: Conversation) -> None:
        if isinstance(other, RemoteConversation):
            self._policy, self._subject, self._remember = other._policy, other._subject, other._remember


class _RemotePart:
    """A part of a remote memory: its scope, and with what else it was made."""

    _service: Service
    _scope: Scope
    _made_with: Mapping[str, Any]

    async def _request(self, operation: Operation, given: dict[str, Any]) -> Any:
        return await self._service.call(operation, scope_headers(self._scope), given, self._made_with)


@_with_operations
class RemoteDocuments(Documents, _RemotePart):
    """The `Documents` that a service has."""

    def __init__(self, service: Service, scope: Scope) -> None:
        self._service, self._scope, self._made_with = service, Scope.checked(scope), {}


@_with_operations
class RemoteFacts(Facts, _RemotePart):
    """The `Facts` that a service has."""

    def __init__(self, service: Service, scope: Scope, subject: str | None, *, all_agents: bool) -> None:
        self._service, self._scope = service, Scope.checked(scope)
        about = subject if not subject else checked_name(subject, "subject")
        self._made_with = {"subject": about, "all_agents": all_agents}


@_with_operations
class RemoteRuns(Runs, _RemotePart):
    """The `Runs` that a service has."""

    def __init__(self, service: Service, scope: Scope) -> None:
        self._service, self._scope, self._made_with = service, Scope.checked(scope), {}
