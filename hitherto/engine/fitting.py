"""What a conversation shows within a budget: the view, and beside it what is known, recalled and injected."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hitherto.core.ask import Ask
from hitherto.core.context import Assembled, assemble, reach
from hitherto.core.digest import Done
from hitherto.core.head import Head
from hitherto.core.manifest import Fate
from hitherto.core.message import CHAT, Logged
from hitherto.core.policy import Policy, Unreadable
from hitherto.core.presets import none
from hitherto.core.recalled import Recollection
from hitherto.core.recollecting import recollected
from hitherto.core.view import View, view
from hitherto.engine.context import Context, begins_earlier, finished, tools_from
from hitherto.engine.injecting import Source, chosen
from hitherto.engine.knowing import Question, Shown, all_of, none_of, share_of
from hitherto.engine.knowing import chosen as chosen_facts
from hitherto.engine.place import Place
from hitherto.engine.reading import Reader
from hitherto.engine.recall import Recaller
from hitherto.engine.recalling import Purpose, Recalling, found, looked, purposes, question_of, recalls
from hitherto.ports.facts import Known
from hitherto.ports.store import Reading


@dataclass(frozen=True, slots=True)
class Contexts:
    """The contexts of one conversation. Reads only. Without a `recaller` nothing is recalled."""

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
        shown, ask = await self._reader.seen(used, head, ask)
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
            wanted = await self._wanted(ask, used, shown, head, recall=recall, cross_session=cross_session)
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

    async def _wanted(
        self, ask: Ask, used: Policy, shown: View, head: Head, *, recall: Recalling | None, cross_session: bool | None
    ) -> Sequence[Purpose]:
        """What is to be looked for, if anything is."""
        if self.recaller is None or not self.recaller.able or not recalls(self.place, used, recall, cross_session):
            return ()
        # Without a user's words among the incoming messages, the newest in the log say what it is about.
        question = question_of(ask.incoming) or question_of(await self._reader.newest_said(head))
        if not question:
            return ()
        subject = self.place.about(head) or None
        return purposes(self.place, used, shown, question, asked=recall, cross_session=cross_session, subject=subject)

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
        said = question_of(ask.incoming) or question_of(await self._reader.newest_said(head))
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
            loaded = await self._reader.messages(head, reading)
        if not ask.incoming and begins_earlier(loaded, shown.start, head):
            from_ = await self._reader.newest_group(shown, head)
            loaded = await self._reader.messages(head, replace(reading, tools_from=from_))
        return loaded

    @property
    def _recaller(self) -> Recaller:
        assert self.recaller is not None, "nothing is to be recalled without"
        return self.recaller

    @property
    def _reader(self) -> Reader:
        return Reader(self.place)

    def _set_aside(self, ask: Ask, recall: Recalling | None) -> int:
        share = None if recall is None else recall.share
        return int(ask.budget * (self.place.parts.settings.recall_share if share is None else share))


def _missing(policy: Policy, head: Head) -> list[str]:
    """What a context goes without: a digest that failed or was put off, stages that this process cannot read."""
    late = any(one.error is not None for one in head.running) or (head.failures > 0 and not head.running)
    digested = bool(policy.doing(Done.SUMMARISE, Done.CHUNK, Done.COMPACT))
    return (["digest"] if late and digested else []) + (["policy"] if isinstance(policy, Unreadable) else [])
