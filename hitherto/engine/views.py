"""What a conversation shows: its contexts, and its views without a budget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hitherto.core.ask import Ask
from hitherto.core.context import Assembled, assemble, reach
from hitherto.core.digest import Done
from hitherto.core.group import groups
from hitherto.core.head import Head
from hitherto.core.manifest import Fate, Manifest
from hitherto.core.masking import Masking
from hitherto.core.message import CHAT, RESPONSES, Kind, Logged, Message, Payload, Role, plain_message
from hitherto.core.policy import Policy, Unreadable, stored
from hitherto.core.presets import none
from hitherto.core.recalled import Recollection
from hitherto.core.recollecting import recollected
from hitherto.core.render import Prefix
from hitherto.core.standing import stood_in
from hitherto.core.view import View, view
from hitherto.engine.context import Context, begins_earlier, finished, request_sha256, tools_from
from hitherto.engine.injecting import Source, again, chosen
from hitherto.engine.knowing import Question, Shown, all_of, none_of, share_of
from hitherto.engine.knowing import again as known_again
from hitherto.engine.knowing import chosen as chosen_facts
from hitherto.engine.place import Place
from hitherto.engine.recall import Recaller
from hitherto.engine.recalling import Purpose, Recalling, found, looked, purposes, question_of, recalls
from hitherto.engine.recalling import again as recalled_again
from hitherto.errors import InvalidInput, NotFound, Unreproducible
from hitherto.ports.facts import Known
from hitherto.ports.store import Reading

_MARGIN = 64
"""So many messages are read without looking how few would do."""


@dataclass(frozen=True, slots=True)
class Views:
    """The contexts and views of one conversation. Reads only. Without a `recaller` nothing is recalled."""

    place: Place
    recaller: Recaller | None = None

    async def fitted(
        self,
        ask: Ask,
        policy: Policy | None,
        at: int | None,
        *,
        injection: bool | Source | None = None,
        recall: Recalling | Sequence[Recollection] | None = None,
        cross_session: bool | None = None,
        facts: bool | Shown | None = None,
    ) -> Context:
        """The context: one round trip for the head and what is known, one for the messages that can fit, one more where
        an opaque item or memory of another conversation is shown, and one where something is recalled.

        `injection` is what the request says of that memory, or the memory itself; `recall` what is to be recalled, or
        what was; `facts` whether what is known of the subject is shown, or what was.
        """
        head, known = await self._head_and_known(facts, at)
        defaults = await self.place.defaults(head)
        used, whose = self.place.governing(head, policy, defaults)
        source = injection
        if not isinstance(source, Source):
            source = await chosen(self.place, head, source, defaults)
        ask = replace(ask, injected=None if source is None else source.text)
        shown, ask = await self._seen(used, head, ask)
        missing: list[str] = []
        knowing = facts if isinstance(facts, Shown) else await self._knowing(known, ask, shown, head, missing)
        if knowing is not None:
            ask = ask.knowing(knowing.text, ahead=knowing.ahead, room=knowing.room or ask.facts_room)
            says = knowing.says
        else:
            says = None if known is None or not len(known.ids) else none_of(known)
        recollections: Sequence[Recollection] = ()
        wanted: Sequence[Purpose] = ()
        if recall is None or isinstance(recall, Recalling):
            if self.recaller is not None and self.recaller.able and recalls(self.place, used, recall, cross_session):
                # Without a user's words among the incoming messages, the newest in the log say what it is about.
                question = question_of(ask.incoming) or question_of(await self._newest(head))
                if question:
                    wanted = purposes(
                        self.place,
                        used,
                        shown,
                        question,
                        asked=recall,
                        cross_session=cross_session,
                        subject=self.place.about(head) or None,
                    )
            if wanted:
                ask = replace(ask, recall_tokens=self._set_aside(ask, recall))
        else:
            recollections = recall
        begun = asyncio.ensure_future(looked(self._recaller, wanted)) if wanted else None
        try:
            ask, made = await self._assembled(ask, shown, head, at)
        except BaseException:
            if begun is not None:
                begun.cancel()
            raise
        missing += [] if at is not None else _missing(used, head)
        if begun is not None:
            visible = [span for span in made.fates if span.fate is Fate.IN]
            recollections = await found(
                self.place, self._recaller, wanted, await begun, visible=visible, missing=missing
            )
        made = recollected(made, recollections, ask, own=(self.place.scope.agent, self.place.id))
        return finished(
            ask,
            made,
            shown=shown,
            head=head,
            policy=used,
            policy_from=whose,
            scope=self.place.scope,
            conversation=self.place.id,
            injected=None if source is None else source.says,
            facts=says,
            missing=missing,
        )

    async def _assembled(self, ask: Ask, shown: View, head: Head, at: int | None) -> tuple[Ask, Assembled]:
        """The payload, and what it was asked for in the end: where facts or memory of another conversation gave way, it
        is made as if there were none, as it is when it is built again."""
        while True:
            start = reach(shown, head, ask)
            reading = Reading(
                start=shown.start,
                stop=shown.stop,
                tokens=shown.lies.tokens_at(start.tokens),
                tools_from=tools_from(ask, head, at),
                live_at=head.rev,
            )
            made = assemble(shown, head, ask, await self._loaded(ask, shown, head, reading), start)
            if ask.facts is not None and not made.facts:
                ask = ask.knowing(None, ahead=False)
            elif ask.injected is not None and not made.injection:
                ask = replace(ask, injected=None)
            else:
                return ask, made

    async def _head_and_known(self, facts: bool | Shown | None, at: int | None) -> tuple[Head, Known | None]:
        """The head, and what is known, where it is wanted."""
        parts = self.place.parts
        shows = parts.settings.facts if facts is None else facts is True
        if not shows or parts.facts is None or self.recaller is None:
            return await self.place.head(at), None
        return await self.place.head_and_known(self.recaller.space, at)

    async def _knowing(
        self, known: Known | None, ask: Ask, shown: View, head: Head, missing: list[str]
    ) -> Shown | None:
        """The facts that are shown: all, or those that bear most on what the user says. An embedder that they have to
        be chosen without is put down as `missing`."""
        if known is None or not len(known.ids):
            return None
        room = share_of(self.place, ask, shown)
        every = all_of(self.place, known, ask, room)
        if every is not None or room <= 0:
            return every
        said = question_of(ask.incoming) or question_of(await self._newest(head))
        vector = None
        if known.codes is not None and said:
            vector = await self._recaller.vector(said, self.place.scope)
            missing += ["embedder"] if vector is None else []
        question = Question(said, vector)
        return chosen_facts(self.place, known, ask, room, question)

    async def known(self, budget: int) -> str | None:
        """See `Conversation.known`."""
        head, known = await self._head_and_known(None, None)
        parts = self.place.parts
        ask = Ask(
            incoming=(),
            instructions=None,
            tools=(),
            budget=budget,
            reserve=0,
            counter=parts.canonical,
            codec=parts.codec(CHAT),
        )
        shown = view(none(), head, opaque=False)
        knowing = await self._knowing(known, ask, shown, head, [])
        return None if knowing is None else knowing.text

    async def _loaded(self, ask: Ask, shown: View, head: Head, reading: Reading) -> list[Logged]:
        loaded: list[Logged] = []
        if reading.start < reading.stop or reading.tools_from is not None:
            loaded = await self._messages(head, reading)
        if not ask.incoming and begins_earlier(loaded, shown.start, head):
            from_ = await self._newest_group(shown, head)
            loaded = await self._messages(head, replace(reading, tools_from=from_))
        return loaded

    async def _newest(self, head: Head) -> list[Message]:
        start = max(head.view_start, head.next_seq - _MARGIN)
        newest = await self._live(Reading(start=start, stop=head.next_seq, live_at=head.rev), head)
        users = [one.message for one in newest if one.message.opens_turn]
        return users[-1:]

    @property
    def _recaller(self) -> Recaller:
        assert self.recaller is not None, "nothing is to be recalled without"
        return self.recaller

    def _set_aside(self, ask: Ask, recall: Recalling | None) -> int:
        share = None if recall is None else recall.share
        return int(ask.budget * (self.place.parts.settings.recall_share if share is None else share))

    async def rebuilt(self, manifest: Manifest) -> Context:
        """The context that `manifest` is the receipt of; see `Conversation.rebuild`."""
        place, parts = self.place, self.place.parts
        scope = place.scope
        theirs = (manifest.tenant, manifest.user, manifest.agent, manifest.conversation)
        if theirs != (scope.tenant, scope.user, scope.agent, place.id):
            raise InvalidInput(f"the manifest is not of {place.id!r} in {scope}; ask the conversation it names")
        asked = manifest.request
        try:
            incoming = tuple(parts.read(json.loads(raw), wire) for wire, raw in asked.incoming)
            tools = tuple(json.loads(tool) for tool in asked.tools)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"the manifest's request is not what a context wrote: {error}") from error
        ask = Ask(
            incoming=incoming,
            instructions=asked.instructions,
            tools=tools,
            budget=manifest.budget,
            reserve=manifest.reserve,
            counter=parts.counter(asked.model or manifest.encoding),
            codec=parts.codec(manifest.wire),
            model=asked.model,
            family=asked.family,
            recall_tokens=asked.recall_tokens,
            facts_room=asked.facts_room,
        )
        source = await again(place, manifest.injected)
        try:
            made = await self.fitted(
                ask,
                stored(json.dumps(manifest.policy)),
                manifest.rev,
                injection=False if source is None else source,
                recall=await recalled_again(place, manifest.recalled),
                facts=await known_again(place, manifest.facts) or False,
            )
        except NotFound as error:
            raise Unreproducible(
                f"{place.id!r} does not reach revision {manifest.rev}; was it erased since?"
            ) from error
        if request_sha256(made.request) != manifest.sha256:
            raise Unreproducible(
                f"{place.id!r} at revision {manifest.rev} no longer gives the context of this manifest: something it "
                "showed was erased since"
            )
        return replace(
            made,
            manifest=made.manifest.model_copy(
                update={
                    "missing": manifest.missing,
                    "policy_from": manifest.policy_from,
                    "facts": manifest.facts,
                }
            ),
        )

    async def view(self, policy: Policy | None, at: int | None) -> View:
        """The log as the policy leaves it, before any budget."""
        head = await self.place.head(at)
        used, _ = self.place.governing(head, policy, await self.place.defaults(head))
        return view(used, head, family=self.place.parts.family(None))

    async def items(
        self, *, wire: str, policy: Policy | None, model: str | None, limit: int | None, at: int | None
    ) -> list[Payload]:
        """The view as items of an API; see `Conversation.items`."""
        parts = self.place.parts
        head = await self.place.head(at)
        used, _ = self.place.governing(head, policy, await self.place.defaults(head))
        ask = Ask(
            incoming=(),
            instructions=None,
            tools=(),
            budget=1,
            reserve=0,
            counter=parts.canonical,
            codec=parts.codec(wire),
            family=parts.family(model),
        )
        shown, ask = await self._seen(used, head, ask)
        if limit is not None and shown.stop - shown.start > 4 * limit + _MARGIN:
            newest = await self._tail(shown, head, ask, limit)
            if newest is not None:
                return newest
        loaded = await self._live(Reading(start=shown.start, stop=shown.stop, live_at=head.rev), head)
        items = _written(self._without_orphans(loaded, ask), ask, shown, head)
        items, system, _ = stood_in(shown, ask, items)
        items = [*(item for text in system for item in ask.codec.write([plain_message(Role.SYSTEM, text)])), *items]
        return items if limit is None else items[max(len(items) - limit, 0) :]

    async def _tail(self, shown: View, head: Head, ask: Ask, limit: int) -> list[Payload] | None:
        """The newest `limit` items of a long view without reading all of it; None where they cannot be told so."""
        start = max(shown.start, _newest(shown, limit))
        loaded = await self._live(Reading(start=start, stop=shown.stop, live_at=head.rev), head)
        alike = all(one.message.wire == ask.codec.name for one in loaded)
        if not alike or isinstance(shown.render, Prefix) or len(self._without_orphans(loaded, ask)) < len(loaded):
            return None
        items = _written(loaded, ask, shown, head)
        return items[-limit:] if limit and len(items) >= limit else None if limit else []

    async def _newest_group(self, shown: View, head: Head) -> int:
        """Where the group begins that the newest message belongs to."""
        size = _MARGIN
        while True:
            start = max(shown.start, shown.stop - size)
            loaded = await self._live(Reading(start=start, stop=shown.stop, live_at=head.rev), head)
            if start == shown.start or not begins_earlier(loaded, shown.start, head):
                newest = next(
                    (one for one in reversed(groups(loaded, head.retracted)) if one.last == loaded[-1].seq), None
                )
                return shown.start if newest is None else newest.first
            size *= 4

    async def _live(self, reading: Reading, head: Head) -> list[Logged]:
        if reading.start >= reading.stop:
            return []
        return [one for one in await self._messages(head, reading) if not one.erased]

    async def _seen(self, policy: Policy, head: Head, ask: Ask) -> tuple[View, Ask]:
        """The view for the API and model of `ask`, with the opaque items that it shows."""
        can = ask.codec.name == RESPONSES
        shown = view(policy, head, opaque=can, family=ask.family)
        if shown.opaque is None:
            return shown, ask
        items = await self.place.parts.store.opaque(self.place.scope, self.place.id, shown.opaque)
        if items is None:
            return view(policy, head, opaque=False), ask
        return shown, replace(ask, opaque=items)

    def _without_orphans(self, loaded: Sequence[Logged], ask: Ask) -> list[Logged]:
        """Without the results whose calls are not shown, neither as messages nor among the opaque items."""
        known = {call for item in ask.opaque for call in self.place.parts.read(item, RESPONSES).calls}
        kept: list[Logged] = []
        for one in loaded:
            if one.message.kind is not Kind.TOOL_RESULT or known.intersection(one.message.answers):
                kept.append(one)
            known.update(one.message.calls)
        return kept

    async def _messages(self, head: Head, reading: Reading) -> list[Logged]:
        return await self.place.parts.store.messages(self.place.scope, self.place.id, head.ref, reading)


def _newest(shown: View, limit: int) -> int:
    """From where on there are `limit` messages that are not gone."""
    first, gone = shown.stop - limit, 0
    for span in reversed(shown.gone):
        if span.end < first - gone:
            break
        gone += span.end - span.start + 1
    return first - gone


def _written(loaded: Sequence[Logged], ask: Ask, shown: View, head: Head) -> list[Payload]:
    """The messages, redacted where they are, in the order of the log; those of another format in groups, as only these
    can be converted."""
    masking = Masking(shown.lies, ask.codec)
    if all(one.message.wire == ask.codec.name for one in loaded):
        return [masking(one).payload for one in loaded]
    grouped = groups(loaded, head.retracted)
    return [item for group in grouped for item in ask.codec.write([masking(member) for member in group.members])]


def _missing(policy: Policy, head: Head) -> list[str]:
    """What a context goes without: a digest that failed or was put off, stages that this process cannot read."""
    late = any(one.error is not None for one in head.running) or (head.failures > 0 and not head.running)
    digested = bool(policy.doing(Done.SUMMARISE, Done.CHUNK, Done.COMPACT))
    return (["digest"] if late and digested else []) + (["policy"] if isinstance(policy, Unreadable) else [])
