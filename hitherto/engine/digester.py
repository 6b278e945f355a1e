"""Making one digest: from what it is made of to what is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from hitherto.core.action import Chunk, Summarise
from hitherto.core.digest import Done
from hitherto.core.digesting import Digested, digest
from hitherto.core.group import groups
from hitherto.core.layout import layout
from hitherto.core.ledger import Cause, ModelCall, Purpose
from hitherto.core.masking import Masking
from hitherto.core.message import RESPONSES
from hitherto.core.policy import Stage
from hitherto.core.prompts import PROMPT_VERSION, Line, Prompt
from hitherto.engine.archiving import Archivist
from hitherto.engine.calls import Asked, Calls
from hitherto.engine.learning import Learner, Lesson, lesson_of
from hitherto.engine.parts import Parts
from hitherto.engine.place import Place
from hitherto.errors import InvalidPolicy, ModelAnswerUnusable
from hitherto.logs import logger
from hitherto.ports.compactor import Compacted
from hitherto.ports.model import Completion
from hitherto.ports.store import DigestWork, Outcome

log = logger("hitherto.digest")

_BIG = 200_000
"""Characters from which on counting their tokens leaves the event loop."""


@dataclass(frozen=True, slots=True)
class Made:
    """A digest that was made, and what its messages tell of the conversation's subject, if that was asked for and
    answered."""

    outcome: Outcome
    lesson: Lesson | None = None


class Digester:
    """Makes digests; what it asks of a model goes through `calls`."""

    def __init__(self, parts: Parts, calls: Calls, learner: Learner) -> None:
        self._parts = parts
        self._calls = calls
        self._archivist = Archivist(parts, calls)
        self._learner = learner

    async def make(self, work: DigestWork, ledger: list[ModelCall]) -> Made:
        """The digest of `work`; every model call on the way is added to `ledger`.

        Raises NotNow and ModelUnreachable where a later try may have more luck, any other error of ours where it will
        not.
        """
        action = Stage.from_json(json.loads(work.digest.spec)).action
        match action:
            case Summarise() | Chunk():
                return await self._summarised(work, action, ledger)
            case _ if action.done is Done.COMPACT:
                return Made(await self._compacted(work, ledger))
            case _:
                raise InvalidPolicy(f"{action} is nothing that is made in the background")

    async def _summarised(self, work: DigestWork, action: Summarise | Chunk, ledger: list[ModelCall]) -> Made:
        model = self._parts.model
        about = await self._learner.task(work, action)
        making = digest(
            base=work.base if isinstance(action, Summarise) else (),
            lines=[Line(one.seq, one.message.role.value, one.message.text) for one in work.messages],
            start=work.digest.start,
            end=work.digest.end,
            limit=action.limit,
            input_limit=model.input_limit,
            count=self._parts.canonical.count,
            facts=None if about is None else about[1],
            prose=isinstance(action, Chunk),
        )
        big = sum(len(one.message.text) for one in work.messages) > _BIG
        made = await _step(lambda: next(making), big)
        while isinstance(made, Prompt):
            try:
                answer = await self._asked(made, work, ledger)
            except ModelAnswerUnusable as error:
                made = await _step(partial(making.throw, error), big)
            else:
                made = await self._read(partial(making.send, answer.text), big, ledger)
        outcome = Outcome(
            digest=work.digest.id,
            items=made.items,
            text=made.text,
            tokens=made.tokens,
            model=model.name,
            prompt_version=PROMPT_VERSION,
        )
        lesson = None
        if about is not None and made.facts is not None:
            lesson = lesson_of(work, about[0], made.facts)
            if made.left_out:
                _tell_left_out(work, made.left_out)
        if isinstance(action, Summarise) and action.archive:
            archive = await self._archivist.document(work, outcome, ledger, limit=action.limit)
            outcome = replace(outcome, archive=archive)
        return Made(outcome, lesson)

    async def _read(self, step: Callable[[], Prompt], big: bool, ledger: list[ModelCall]) -> Prompt | Digested:
        """What an answer leads to. One that cannot be used came to nothing, in the ledger too."""
        try:
            made = await _step(step, big)
        except ModelAnswerUnusable:
            _came_to_nothing(ledger)
            raise
        if isinstance(made, Prompt) and made.corrects:
            _came_to_nothing(ledger)
        return made

    async def _asked(self, prompt: Prompt, work: DigestWork, ledger: list[ModelCall]) -> Completion:
        model = self._parts.model

        async def ask() -> Completion:
            return await model.complete(prompt)

        what = Asked(model=model.name, purpose=prompt.purpose, tenant=work.scope.tenant, digest=work.digest.id)
        return await self._calls.make(ask, what, ledger)

    async def _compacted(self, work: DigestWork, ledger: list[ModelCall]) -> Outcome:
        """The opaque items of the base and the messages since, redacted where the view has them so, as the model's own
        endpoint makes them anew."""
        compactor, codec = self._parts.compactor, self._parts.codec(RESPONSES)
        if compactor is None:
            raise InvalidPolicy("this process has no endpoint that compacts; set compact_model")
        items = [] if work.opaque is None else list(json.loads(work.opaque))
        masking = await self._masking(work)
        for group in groups(work.messages):
            items += codec.write([masking(member) for member in group.members], unanswered=sorted(group.open))

        async def ask() -> Compacted:
            return await compactor.compact(items)

        what = Asked(model=compactor.name, purpose=Purpose.COMPACT, tenant=work.scope.tenant, digest=work.digest.id)

        async def made() -> Compacted:
            return await self._calls.make(ask, what, ledger)

        found = await _once_more(made)
        for item in found.items:
            self._parts.read(item, RESPONSES)  # what no request could carry is no answer
        return Outcome(
            digest=work.digest.id,
            tokens=sum(codec.tokens(item, self._parts.canonical) for item in found.items),
            model=compactor.name,
            opaque=json.dumps(list(found.items)),
            family=compactor.family,
        )

    async def _masking(self, work: DigestWork) -> Masking:
        """The redactions of the view, as the conversation's policy has them now."""
        place = Place(self._parts, work.scope, work.conversation)
        head = await place.head()
        return Masking(layout(place.governing(head, None)[0], head), self._parts.codec(RESPONSES))


def _tell_left_out(work: DigestWork, statements: int) -> None:
    log.info(
        "%s statements found in messages %s-%s of %s are no facts: too long, too many, or no user's",
        statements,
        work.digest.start,
        work.digest.end,
        work.conversation,
        tenant=work.scope.tenant,
        user=work.scope.user,
        agent=work.scope.agent,
        conversation=work.conversation,
        digest=work.digest.id,
    )


def _came_to_nothing(ledger: list[ModelCall]) -> None:
    if ledger and ledger[-1].cause is None:
        ledger[-1] = replace(ledger[-1], cause=Cause.UNUSABLE)


async def _step(step: Callable[[], Prompt], big: bool) -> Prompt | Digested:
    """What the making comes to next, outside of the event loop where there is much to count."""

    def taken() -> Prompt | Digested:
        try:
            return step()
        except StopIteration as end:
            return end.value

    return await asyncio.to_thread(taken) if big else taken()


async def _once_more(ask: Callable[[], Awaitable[Compacted]]) -> Compacted:
    """An answer that cannot be used is asked for once more: there is nobody to tell what was wrong with it."""
    try:
        return await ask()
    except ModelAnswerUnusable:
        return await ask()
