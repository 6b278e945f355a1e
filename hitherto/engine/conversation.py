"""The verbs on one conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from hitherto.core.append import extended, fingerprint
from hitherto.core.budget import checked_budget
from hitherto.core.context import Ask, assemble, reach
from hitherto.core.digest import Digest, Done
from hitherto.core.head import Head, empty
from hitherto.core.manifest import Manifest
from hitherto.core.message import Logged, Message, to_json
from hitherto.core.policy import Policy
from hitherto.core.presets import none, policy_of
from hitherto.core.scope import Scope, checked_name
from hitherto.core.view import View, view
from hitherto.engine.appending import Appended, check_key, counted, new_digest, planned, replayed
from hitherto.engine.context import Context, ends_without_call, finished, request_sha256, tools_from
from hitherto.engine.expiry import erase_expired, is_due
from hitherto.engine.parts import Parts
from hitherto.engine.stuck import given_up, stuck_digests
from hitherto.errors import Interleaved, InvalidBatch, InvalidInput, InvalidMessage, NotFound, Unreproducible
from hitherto.ports.queue import DigestJob
from hitherto.ports.store import Changes, NewDigest, Outcome, Reading, Receipt, Unit
from hitherto.uninterrupted import uninterrupted

Appendable = Message | Mapping[str, Any]


class Conversation:
    """One conversation in a scope. Cheap to make, holds no connection; it comes to be with its first append."""

    def __init__(self, parts: Parts, id: str, *, scope: Scope, policy: Policy | None = None) -> None:
        self._parts = parts
        self._policy = policy
        self.id = checked_name(id, "conversation")
        self.scope = Scope.checked(scope)

    def __repr__(self) -> str:
        return f"<Conversation {self.id!r} of {self.scope}>"

    async def append(
        self, *messages: Appendable, key: str | None = None, expect: int | None = None, wire: str | None = None
    ) -> Appended:
        """Append the messages, all or none, and set off a digest if the policy says that one is due.

        When it returns they are durable. `key` makes it idempotent: the same key with the same messages answers as the
        first time and writes nothing; it is remembered for the setting `keep_receipts`. `expect` is the seq that the
        first message must get, for writers that must not interleave. `wire` names the format of messages given as
        dicts; without it their shape tells.

        Raises InvalidMessage and InvalidBatch for what cannot be appended, KeyReused for a key that was used with
        other messages, Interleaved when `expect` does not hold; nothing is written then.
        """
        batch = [self._parts.read(message, wire) for message in messages]
        if not batch:
            raise InvalidBatch("the batch is empty; append at least one message")
        check_key(key)
        tokens = await counted(self._parts, batch)
        mark = fingerprint(batch)
        async with self._parts.store.write(self.scope, self.id, key=key) as unit:
            if unit.receipt is not None:
                return replayed(unit.receipt, mark, key)
            if expect is not None and expect != unit.head.next_seq:
                raise Interleaved(
                    f"expect={expect}, but the next message of {self.id!r} gets seq {unit.head.next_seq}: others were "
                    "appended since; read them and decide again",
                    actual=unit.head.next_seq,
                )
            logged, head = extended(unit.head, batch, tokens)
            head = replace(head, policy=self._policy or head.policy)
            stuck = stuck_digests(head, self._parts.settings.stuck_after)
            head = replace(head, running=tuple(one for one in head.running if one.id not in stuck))
            firing = await planned(self._effective(head), head, logged, unit, self.id)
            start, end, rev = logged[0].seq, logged[-1].seq, head.rev
            changes = Changes(
                head=head,
                messages=logged,
                key=key,
                receipt=None if key is None else Receipt(start=start, end=end, rev=rev, fingerprint=mark),
                fire=None if firing is None else new_digest(firing),
                outcomes=given_up(stuck),
            )
            if firing is None:
                fired = await unit.commit(changes)
            else:
                # Even if this task is cancelled meanwhile, a digest that is written is also submitted.
                fired = await uninterrupted(self._committed(unit, changes))
        return Appended(start=start, end=end, rev=rev, digest=fired)

    async def _committed(self, unit: Unit, changes: Changes) -> int | None:
        fired, fire = await unit.commit(changes), changes.fire
        if fired is not None and fire is not None:
            self._parts.queue.submit(
                DigestJob(
                    scope=self.scope,
                    conversation=self.id,
                    digest=fired,
                    attempt=1,
                    start=fire.start,
                    end=fire.end,
                )
            )
        return fired

    async def context(
        self,
        incoming: Appendable | Sequence[Appendable] | None = None,
        *,
        budget: int | None = None,
        instructions: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        reserve: int = 0,
        wire: str = "openai.chat",
        model: str | None = None,
        policy: Policy | str | None = None,
        at: int | None = None,
        wait: bool | float = False,
    ) -> Context:
        """The best context for `incoming` that `budget` tokens can buy; it writes nothing.

        `budget` covers everything that is sent, tools and `instructions` included, and `reserve` tokens kept free for
        the answer; without one, the setting `budget` counts. `wire` is the API's format: "openai.chat",
        "openai.responses" or "anthropic". Tokens are counted with the tokenizer of `model` (or of the encoding it
        names), without one with the setting `encoding`. `policy`, an object or its name, governs this context alone.
        `at` shows the conversation as it was at that revision. `wait` lets a digest that is in progress finish first,
        for at most so many seconds (True: 30).

        Raises OverBudget when not even the incoming messages fit, InvalidMessage or InvalidBatch for an unusable
        `incoming`, NotFound for a revision that does not exist. A conversation that does not exist yet is empty.
        """
        budget, reserve = checked_budget(self._parts.settings.budget if budget is None else budget, reserve)
        for tool in tools:
            if not isinstance(cast(object, tool), Mapping):
                raise InvalidMessage(f"a tool schema is {tool!r}; give JSON objects, in the format of the API")
            to_json(tool, what="a tool schema")
        ask = Ask(
            incoming=tuple(self._parts.read(message) for message in _listed(incoming)),
            instructions=instructions,
            tools=tuple(tools),
            budget=budget,
            reserve=reserve,
            counter=self._parts.counter(model),
            codec=self._parts.codec(wire),
            model=model or self._parts.settings.encoding,
        )
        governing = policy_of(policy)
        if wait:
            await self._wait(30.0 if wait is True else float(wait))
        return await self._fitted(ask, governing, at)

    async def _fitted(self, ask: Ask, policy: Policy | None, at: int | None) -> Context:
        """The context: one round trip for the head, one for the messages that can fit."""
        head = await self._head(at)
        used = policy or self._effective(head)
        shown = view(used, head)
        start = reach(shown, head, ask)
        reading = Reading(start=shown.start, stop=shown.stop, tokens=start.tokens, tools_from=tools_from(ask, head, at))
        loaded = []
        if reading.start < reading.stop or reading.tools_from is not None:
            loaded = await self._parts.store.messages(self.scope, self.id, head.ref, reading)
        if not ask.incoming and ends_without_call(loaded):
            whole = replace(reading, tools_from=shown.start)
            loaded = await self._parts.store.messages(self.scope, self.id, head.ref, whole)
        made = assemble(shown, head, ask, loaded, start)
        return finished(ask, made, head=head, policy=used, scope=self.scope, conversation=self.id, missing=[])

    async def rebuild(self, manifest: Manifest) -> Context:
        """The context that `manifest` is the receipt of, byte for byte.

        Raises InvalidInput for a manifest of another conversation, Unreproducible when what it showed was erased
        or taken back since.
        """
        if (manifest.tenant, manifest.user, manifest.agent, manifest.conversation) != (
            self.scope.tenant,
            self.scope.user,
            self.scope.agent,
            self.id,
        ):
            raise InvalidInput(f"the manifest is not of {self!r}; ask the conversation it names")
        asked = manifest.request
        try:
            incoming = tuple(self._parts.read(json.loads(raw), wire) for wire, raw in asked.incoming)
            tools = tuple(json.loads(tool) for tool in asked.tools)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"the manifest's request is not what a context wrote: {error}") from error
        ask = Ask(
            incoming=incoming,
            instructions=asked.instructions,
            tools=tools,
            budget=manifest.budget,
            reserve=manifest.reserve,
            counter=self._parts.counter(asked.model or manifest.encoding),
            codec=self._parts.codec(manifest.wire),
            model=asked.model,
        )
        try:
            again = await self._fitted(ask, Policy.from_json(manifest.policy), manifest.rev)
        except NotFound as error:
            raise Unreproducible(f"{self.id!r} does not reach revision {manifest.rev}; was it erased since?") from error
        if request_sha256(again.request) != manifest.sha256:
            raise Unreproducible(
                f"{self.id!r} at revision {manifest.rev} no longer gives the context of this manifest: something it "
                "showed was erased since"
            )
        return again

    async def view(self, *, at: int | None = None, policy: Policy | str | None = None) -> View:
        """The log as the policy leaves it, before any budget, now or at a past revision. Raises NotFound for a
        revision that does not exist."""
        head = await self._head(at)
        return view(policy_of(policy) or self._effective(head), head)

    async def head(self) -> Head | None:
        """The conversation's state, or None before its first append."""
        return await self._parts.store.head(self.scope, self.id)

    async def messages(self, *, start: int = 0, stop: int | None = None, limit: int | None = None) -> list[Logged]:
        """The log from seq `start` up to `stop` (exclusive), at most the first `limit` of it; whole by default,
        whatever was cleared or digested. Raises InvalidInput for a negative number."""
        for name, value in (("start", start), ("stop", stop), ("limit", limit)):
            if value is not None and value < 0:
                raise InvalidInput(f"{name} is {value}; give a number of at least 0")
        head = await self._head(None)
        end = head.next_seq if stop is None else min(stop, head.next_seq)
        reading = Reading(start=min(start, end), stop=end, limit=None if limit is None else min(limit, head.next_seq))
        return await self._parts.store.messages(self.scope, self.id, head.ref, reading)

    async def digests(self) -> list[Digest]:
        """All digests in the order in which they began, failed and superseded ones and clears too."""
        return await self._parts.store.digests(self.scope, self.id)

    async def clear(self) -> int:
        """Hide all messages so far, and what was derived from them, from contexts; the log keeps them. Returns how
        many it hid."""
        async with self._parts.store.write(self.scope, self.id) as unit:
            head = unit.head
            hidden = head.next_seq - head.view_start
            if hidden == 0:
                return 0
            erased = sum(b - max(a, head.view_start) + 1 for a, b in head.erased if b >= head.view_start)
            after = replace(
                head,
                rev=head.rev + 1,
                view_start=head.next_seq,
                view_sums=head.sums,
                run_start=head.next_seq,
                open_calls={},
            )
            hide = NewDigest(
                stage="clear",
                spec="{}",
                done=Done.CLEAR,
                start=head.view_start,
                end=head.last_seq,
                base=None,
                completed=True,
            )
            fenced = tuple(Outcome(digest=one.id, superseded=True, error="cleared") for one in head.running)
            await unit.commit(Changes(head=after, fire=hide, outcomes=fenced))
        return hidden - erased

    async def delete(self) -> int:
        """Erase the conversation: its messages, its digests and what its receipts tell of them. Returns how many
        messages it had; 0 when there is no such conversation. A replay of an old key writes nothing."""
        async with self._parts.store.write(self.scope, self.id) as unit:
            if unit.head.rev == 0:
                return 0
            messages = unit.head.next_seq
            await unit.delete()
        return messages

    async def _head(self, at: int | None) -> Head:
        store = self._parts.store
        head = await store.head(self.scope, self.id, at=at)
        if head is not None and is_due(head):
            await erase_expired(store, self.scope, self.id, self._parts.canonical)
            head = await store.head(self.scope, self.id, at=at)
        if head is None:
            if at not in (None, 0):
                raise NotFound(f"{self.id!r} has no revision {at} in scope {self.scope}")
            return empty(self._parts.now())
        return head

    def _effective(self, head: Head) -> Policy:
        return self._policy or head.policy or self._parts.policy or none()

    async def _wait(self, seconds: float) -> None:
        """Until no digest is in progress, here or in another process, or until the time is up."""
        pause = 0.01
        try:
            async with asyncio.timeout(seconds):
                while (head := await self.head()) is not None and head.running:
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, 0.25)
        except TimeoutError:
            return


def _listed(incoming: Appendable | Sequence[Appendable] | None) -> Sequence[Appendable]:
    if incoming is None:
        return ()
    return (incoming,) if isinstance(incoming, Message | Mapping | str) else incoming
