"""The verbs on one conversation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from hitherto.core.ask import Ask
from hitherto.core.budget import checked_budget
from hitherto.core.digest import Digest, joined
from hitherto.core.head import Head
from hitherto.core.manifest import Manifest
from hitherto.core.message import RESPONSES, Logged, Message, Payload, to_json
from hitherto.core.policy import Policy
from hitherto.core.presets import PolicyLike, one_of
from hitherto.core.scope import Scope, checked_name
from hitherto.core.view import View
from hitherto.engine.appending import Appended, Appending, check_key
from hitherto.engine.asked import checked_switch
from hitherto.engine.context import Context
from hitherto.engine.fitting import Contexts
from hitherto.engine.injecting import chosen, earlier_than
from hitherto.engine.parts import Parts
from hitherto.engine.place import Place
from hitherto.engine.rebuilding import rebuilt
from hitherto.engine.recall import Recaller
from hitherto.engine.recalling import Recalling, recalling_of
from hitherto.engine.taking_back import TakingBack, cleared
from hitherto.engine.views import Views
from hitherto.errors import InvalidBatch, InvalidInput, InvalidMessage
from hitherto.ports.store import Changes, Reading

Appendable = Message | Mapping[str, Any]


class Conversation:
    """One conversation in a scope. Cheap to make, holds no connection; it comes to be with its first append."""

    def __init__(
        self,
        parts: Parts,
        id: str,
        *,
        scope: Scope,
        policy: PolicyLike | None = None,
        subject: str | None = None,
        recaller: Recaller | None = None,
    ) -> None:
        self._parts, self._recaller = parts, recaller
        self._policy = parts.usable(policy)
        self._request: Policy | None = None
        self.id = checked_name(id, "conversation")
        self.scope = Scope.checked(scope)
        about = None if subject is None else checked_name(subject, "subject")
        self._place: Place = Place(parts, self.scope, self.id, self._policy, about)

    def __repr__(self) -> str:
        return f"<Conversation {self.id!r} of {self.scope}>"

    async def append(
        self,
        *messages: Appendable,
        key: str | None = None,
        expect: int | None = None,
        wire: str | None = None,
        policy: PolicyLike | None = None,
    ) -> Appended:
        """Append the messages, all or none, and set off what the policy says is due.

        When it returns they are durable. `key` makes it idempotent: the same key with the same messages answers as the
        first time and writes nothing; it is remembered for the setting `keep_receipts`. `expect` is the seq that the
        first message must get, for writers that must not interleave. `wire` names the format of messages given as
        dicts; without it their shape tells. `policy` governs this append alone; without one, that of this object's
        last `context` does, if that named one, and then the conversation's.

        Raises InvalidMessage and InvalidBatch for what cannot be appended, KeyReused for a key that was used with
        other messages, Interleaved when `expect` does not hold; nothing is written then.
        """
        batch = [self._parts.read(message, wire) for message in messages]
        if not batch:
            raise InvalidBatch("the batch is empty; append at least one message")
        check_key(key)
        request = self._parts.usable(policy) or self._request
        asked, self._request = self._request, None
        try:
            appended = await Appending(self._place, request).append(batch, key=key, expect=expect)
        except BaseException:  # a cancellation too
            self._request = self._request or asked  # it has not been followed by an append yet
            raise
        self._go_by_what_is_stored()
        return appended

    def _go_by_what_is_stored(self) -> None:
        if self._policy is not None or self._place.subject is not None:
            self._policy, self._place = None, replace(self._place, policy=None, subject=None)

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
        policy: PolicyLike | None = None,
        injection: bool | None = None,
        recall: Recalling | int | bool | None = None,
        cross_session: bool | None = None,
        facts: bool | None = None,
        at: int | None = None,
        wait: bool | float = False,
    ) -> Context:
        """The best context for `incoming` that `budget` tokens can buy; it writes nothing.

        `budget` covers everything that is sent, tools and `instructions` included, and `reserve` tokens kept free for
        the answer; without one, the setting `budget` counts. `wire` is the API's format: "openai.chat",
        "openai.responses" or "anthropic". Tokens are counted with the tokenizer of `model` (or of the encoding it
        names), without one with the setting `encoding`; `model` also tells which opaque items can be sent. `policy`, an
        object or its name, governs this context and this object's next append; `injection` says whether memory of the
        scope's earlier conversations goes into the instructions.

        `recall` finds what was said that bears on the incoming message and that the view no longer shows, here and in
        the scope's other conversations, and puts it in front of that message: True, how many things, or a `Recalling`
        with what to find and which share of the budget it may take. `cross_session` says whether what is relevant
        enough in other conversations goes in front of the messages; without it the settings do. A policy that renders
        what is recalled, such as `chunks`, needs neither. `facts` says whether what is known of the conversation's
        subject is shown; without it the settings do, which also say where it stands and how much of the budget it may
        take. `at` shows the conversation as it was at that revision.
        `wait` lets a digest that is in progress finish first, for at most so many seconds (True: 30); one that was put
        off for a later try is not waited for.

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
            family=self._parts.family(model),
        )
        governing, recalling = self._parts.usable(policy), recalling_of(recall)
        facts = None if facts is None else checked_switch(facts, "facts")
        if wait:
            await self._wait(30.0 if wait is True else float(wait))
        scope, watch, began = self._place.scope, self._parts.watch, time.perf_counter()
        with watch.span("context", tenant=scope.tenant, conversation=self._place.id, budget=budget) as span:
            made = await Contexts(self._place, self._recaller).fitted(
                ask, governing, at, injection=injection, recall=recalling, cross_session=cross_session, facts=facts
            )
            span.set(tokens=made.tokens, rev=made.manifest.rev, missing=" ".join(made.manifest.missing))
        watch.contexted(seconds=time.perf_counter() - began)
        if at is None:
            self._request = governing
        return made

    async def rebuild(self, manifest: Manifest) -> Context:
        """The context that `manifest` is the receipt of, byte for byte.

        Raises InvalidInput for a manifest of another conversation, Unreproducible when what it showed was erased
        since.
        """
        return await rebuilt(Contexts(self._place), manifest)

    async def view(self, *, at: int | None = None, policy: PolicyLike | None = None) -> View:
        """The log as the policy leaves it, before any budget, now or at a past revision. Raises NotFound for a
        revision that does not exist."""
        return await Views(self._place).view(self._parts.usable(policy), at)

    async def items(
        self,
        *,
        wire: str = RESPONSES,
        policy: PolicyLike | None = None,
        model: str | None = None,
        limit: int | None = None,
        at: int | None = None,
    ) -> list[Payload]:
        """What the policy leaves, as the items of an API, without any budget: what stands for the older part, then the
        messages in the order of the log, redacted ones with their placeholders. `limit`: only the newest so many of
        these items.

        Raises InvalidInput for a negative limit, NotFound for a revision that does not exist.
        """
        if limit is not None and (not isinstance(cast(object, limit), int) or limit < 0):
            raise InvalidInput(f"limit is {limit!r}; give a whole number of at least 0")
        governing = self._parts.usable(policy)
        return await Views(self._place).items(wire=wire, policy=governing, model=model, limit=limit, at=at)

    async def injected(self, *, injection: bool | None = None) -> str | None:
        """The memory of the scope's earlier conversations that goes into the instructions of this one, beginning with
        "Cross-session memory: "; None where it is not enabled or there is none."""
        head = await self._place.head()
        source = await chosen(self._place, head, injection, await self._place.defaults(head))
        return None if source is None else source.text

    async def known(self, *, budget: int | None = None) -> str | None:
        """What is known of the conversation's subject, as it goes into instructions, beginning with "Known facts
        about"; for requests that are not made by `context`. It takes at most the setting `facts_share` of `budget`
        (tokens; without one, of the setting `budget`): where not all facts fit, those that bear most on the newest user
        message in the log. None where nothing is known, or the setting `facts` is off."""
        limit, _ = checked_budget(self._parts.settings.budget if budget is None else budget, 0)
        return await Contexts(self._place, self._recaller).known(limit)

    async def head(self) -> Head | None:
        """The conversation's state, or None before its first append."""
        return await self._parts.store.head(self.scope, self.id)

    async def policy(self) -> Policy:
        """The policy that counts for a request that names none."""
        head = await self._place.head()
        return self._place.governing(head, None, await self._place.defaults(head))[0]

    async def messages(self, *, start: int = 0, stop: int | None = None, limit: int | None = None) -> list[Logged]:
        """The log from seq `start` up to `stop` (exclusive), at most the first `limit` of it; whole by default,
        whatever was cleared, taken back or digested. Raises InvalidInput for a negative number."""
        for name, value in (("start", start), ("stop", stop), ("limit", limit)):
            if value is not None and value < 0:
                raise InvalidInput(f"{name} is {value}; give a number of at least 0")
        head = await self._place.head()
        end = head.next_seq if stop is None else min(stop, head.next_seq)
        reading = Reading(start=min(start, end), stop=end, limit=None if limit is None else min(limit, head.next_seq))
        return await self._parts.store.messages(self.scope, self.id, head.ref, reading)

    async def digests(self) -> list[Digest]:
        """The row of every firing in the order in which they began, failed and superseded ones and clears too."""
        return await self._parts.store.digests(self.scope, self.id)

    async def configure(
        self,
        *,
        policy: PolicyLike | None = None,
        injection: bool | None = None,
        subject: str | None = None,
        memory_strategy: PolicyLike | None = None,
        memory_injection: bool | None = None,
    ) -> None:
        """Store the conversation's own policy, whether it wants memory of the scope's earlier conversations, and what
        its facts are about from now on ("" is the user himself).

        What is not given stays as it is. `memory_strategy` and `memory_injection` are seed 003's names for the same.

        The conversation comes to be, if it is not there yet. From now on this object goes by it too, whatever policy it
        was made with. Where memory is switched on for a conversation that has begun without, it gets the newest there
        is. Raises InvalidPolicy, InvalidInput for two names of the same with different values.
        """
        chosen_policy = self._parts.usable(one_of(policy=policy, memory_strategy=memory_strategy))
        about = subject if not subject else checked_name(subject, "subject")
        wants = one_of(injection=injection, memory_injection=memory_injection)
        earlier = await earlier_than(self._place) if wants else None
        async with self._parts.store.write(self.scope, self.id) as unit:
            head = unit.head
            memory = head.injection if wants is None else replace(head.injection, enabled=wants)
            if earlier is not None and head.next_seq and memory.digest is None:
                memory = replace(memory, digest=earlier.digest)
            subject = head.subject if about is None else about
            after = replace(head, policy=chosen_policy or head.policy, injection=memory, subject=subject)
            await unit.commit(Changes(head=after))
        if chosen_policy is not None:
            self._policy, self._place = None, replace(self._place, policy=None)
        if about is not None:
            self._place = replace(self._place, subject=None)

    async def pop(self, *, policy: PolicyLike | None = None, model: str | None = None) -> Payload | None:
        """Take the newest message back and return its item; None when there is none that was not cleared.

        It stays in the log, marked; views from now on are without it, and so are digests: those that rest on it are
        superseded, and one in progress loses its claim. Where items stand in the place of all messages (`replace`, or
        native compaction under `policy`, for `model`), the last of these is taken away.
        """
        return await TakingBack(self._place).pop(policy=self._parts.usable(policy), model=model)

    async def replace(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        wire: str = RESPONSES,
        model: str | None = None,
        policy: PolicyLike | None = None,
        expect: int | None = None,
    ) -> None:
        """Show `items` in the place of everything shown so far; the log does not grow. Without any, nothing is shown.

        Right after a `clear` it first takes that back; if the items are then what was shown before under `policy`, or
        the conversation's own, that is all it does. `model` names the model that made opaque ones among them, for
        others see the messages themselves. `expect` is the revision that the conversation must have.

        Raises InvalidMessage for an item the API would not accept, InvalidInput when there is nothing to replace,
        Interleaved when `expect` does not hold; nothing is written then.
        """
        given, governing = [dict(item) for item in items], self._parts.usable(policy)
        await TakingBack(self._place).replace(given, wire=wire, model=model, policy=governing, expect=expect)

    async def clear(self) -> int:
        """Hide all messages so far, and what was derived from them, from contexts; the log keeps them. Returns how
        many it hid."""
        async with self._parts.store.write(self.scope, self.id) as unit:
            head = unit.head
            hidden = head.next_seq - head.view_start
            if hidden == 0:
                return 0
            await unit.commit(cleared(head))
        ranges = [(max(first, head.view_start), last) for first, last in (*head.erased, *head.retracted)]
        gone = joined((first, last) for first, last in ranges if first <= last)
        return hidden - sum(last - first + 1 for first, last in gone)

    async def delete(self, *, facts: bool = False) -> int:
        """Erase the conversation: its messages, its digests and what its receipts tell of them. Returns how many
        messages it had; 0 when there is no such conversation. A replay of an old key writes nothing.

        Facts that were learnt from it stay, without a source in it; with `facts`, those that have no other source are
        erased too."""
        async with self._parts.store.write(self.scope, self.id) as unit:
            head = unit.head
            if head.rev == 0 and head.policy is None and head.injection.enabled is None and not head.subject:
                return 0
            messages = unit.head.next_seq
            await unit.delete(facts=facts)
        return messages

    async def _wait(self, seconds: float) -> None:
        """Until no digest is in progress, here or in another process, or until the time is up."""
        pause = 0.01
        try:
            async with asyncio.timeout(seconds):
                while (head := await self.head()) is not None and any(
                    one.claimed or one.error is None for one in head.running
                ):
                    await asyncio.sleep(pause)
                    pause = min(pause * 1.5, 0.25)
        except TimeoutError:
            return


def _listed(incoming: Appendable | Sequence[Appendable] | None) -> Sequence[Appendable]:
    if incoming is None:
        return ()
    return (incoming,) if isinstance(incoming, Message | Mapping | str) else incoming
