"""Making one digest: reads the messages, calls the model or the compaction endpoint, returns what is to be written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hitherto.aside import aside
from hitherto.core.context.redaction import Redactor
from hitherto.core.digests.archive import (
    ArchiveSummary,
    Excerpt,
    archive_from,
    archive_prompt,
    archive_task,
    archived,
    fallback_summary,
)
from hitherto.core.digests.digest import DigestOutcome, DigestWork
from hitherto.core.digests.make import DigestContent, Digesting, digest, find_facts
from hitherto.core.digests.prompts import PROMPT_VERSION, lines_of, spoken_lines
from hitherto.core.documents import NewDocument, passages
from hitherto.core.ledger import FailureCause, ModelCall, Purpose
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.group import groups
from hitherto.core.log.message import RESPONSES, size_of
from hitherto.core.policy.parts import Chunk, FindFacts, Summarize
from hitherto.core.policy.policy import Stage
from hitherto.core.policy.view import layout_of
from hitherto.core.prompt import Prompt, PromptLine
from hitherto.core.scope import THE_USER
from hitherto.engine.calls import CallContext, Calls, figure, told
from hitherto.engine.daily_limit import CallPostponed
from hitherto.engine.facts.learn import FoundFacts, facts_task, found_facts_of
from hitherto.engine.handle import Handle
from hitherto.engine.recall.embedding import Embedding
from hitherto.engine.services import Services
from hitherto.errors import HithertoError, InvalidMessage, InvalidModelAnswer, InvalidPolicy, ModelRejected
from hitherto.logs import logger
from hitherto.ports.models import CompactionResult, Completion

log = logger("hitherto.digest")

_FAR_TOO_LONG = 4
"""An answer of more than this many times its token limit is not read."""

_SMALLEST_WINDOW = 2_000
"""Tokens that every server takes."""

_FEWEST = 2
"""No tokenizer at hand counts less of a prompt than one part in so many of what o200k counts."""


class Archiver:
    """Makes the archived documents of digests; all model calls go through `calls`."""

    def __init__(self, services: Services, calls: Calls) -> None:
        self._services = services
        self._calls = calls

    async def document(
        self, work: DigestWork, made: DigestOutcome, ledger: list[ModelCall], *, action: Summarize
    ) -> NewDocument | None:
        """The archived document of the messages that are new to the digest `made`, as `action` says; None where there
        are none.

        The model call, failed or not, is added to `ledger`. A failure of the model is never raised: without a usable
        answer, the document is made from the digest's statements.
        """
        if not work.messages:
            return None
        excerpt = Excerpt(
            scope=work.scope, conversation=work.conversation, digest=work.digest.id, messages=work.messages
        )
        lines = await asyncio.to_thread(lines_of, work.messages, self._services.voices)
        archive = await self._asked(excerpt, lines, made, ledger, action.max_tokens)
        if archive is None:
            archive = fallback_summary(excerpt, made.items, lines)
        settings = self._services.settings
        cut = partial(
            passages,
            limit=action.passage_tokens or settings.passage_tokens,
            overlap=settings.passage_overlap if action.passage_overlap is None else action.passage_overlap,
            count=self._services.canonical.count,
            markdown=True,
        )
        return await asyncio.to_thread(archived, excerpt, archive, cut=cut)

    async def _asked(
        self,
        excerpt: Excerpt,
        lines: Sequence[PromptLine],
        made: DigestOutcome,
        ledger: list[ModelCall],
        limit: int,
    ) -> ArchiveSummary | None:
        model, count = self._services.model, self._services.canonical.count
        task = await asyncio.to_thread(
            archive_task,
            excerpt,
            made.items,
            lines=lines,
            limit=limit,
            input_limit=model.input_limit,
            count=count,
            plain_text=self._services.settings.model_output == "text",
        )
        if not task.lines and not task.digest:
            return None
        try:
            return await self._answered(archive_prompt(task), excerpt, ledger)
        except (HithertoError, CallPostponed) as error:
            self._warn(excerpt, told(error))
        except Exception as error:
            # A user-supplied model may not know this task: the digest that it has made must not be lost.
            log.exception("The model failed unexpectedly on the archive of digest %s", excerpt.digest)
            self._warn(excerpt, told(error))
        return None

    async def _answered(self, prompt: Prompt, excerpt: Excerpt, ledger: list[ModelCall]) -> ArchiveSummary:
        model = self._services.model

        async def ask() -> Completion:
            return await model.complete(prompt)

        tenant, user = excerpt.scope.tenant, excerpt.scope.user
        what = CallContext(model=model.name, purpose=prompt.purpose, tenant=tenant, user=user, digest=excerpt.digest)
        before = len(ledger)
        answer = await self._calls.make(ask, what, ledger)
        _check_read(prompt, answer, self._services)
        try:
            most = _FAR_TOO_LONG * prompt.max_tokens
            if len(answer.text) > most and self._services.canonical.count(answer.text) > most:
                raise InvalidModelAnswer(f"the model's answer is far longer than {prompt.max_tokens} tokens")
            return archive_from(answer.text)
        except InvalidModelAnswer:
            if len(ledger) > before and ledger[-1].cause is None:
                ledger[-1] = replace(ledger[-1], cause=FailureCause.UNUSABLE)
            raise

    def _warn(self, excerpt: Excerpt, why: str) -> None:
        log.warning(
            "The archive of %s is made without a model: %s",
            excerpt.conversation,
            why,
            tenant=excerpt.scope.tenant,
            digest=excerpt.digest,
        )


@dataclass(frozen=True, slots=True)
class DigestResult:
    """A digest that was made, and the facts found in its messages, if they were asked for and the model gave any
    answer."""

    outcome: DigestOutcome
    found_facts: FoundFacts | None = None


class DigestMaker:
    """Makes digests; all model calls go through `calls`."""

    def __init__(self, services: Services, calls: Calls) -> None:
        self._services = services
        self._calls = calls
        self._archivist = Archiver(services, calls)
        self._embedding = Embedding(services, calls)

    async def make(self, work: DigestWork, ledger: list[ModelCall]) -> DigestResult:
        """Make the digest of `work`; every model call is added to `ledger`.

        Raises CallPostponed and ModelUnavailable where a later try may succeed, any other HithertoError where it will
        not.
        """
        action = Stage.from_json(json.loads(work.digest.spec)).action
        match action:
            case Summarize() | Chunk():
                return await self._summarized(work, action, ledger)
            case FindFacts():
                return await self._read_for_facts(work, ledger)
            case _ if action.digest_action is DigestAction.COMPACT:
                return DigestResult(await self._compacted(work, ledger))
            case _:
                raise InvalidPolicy(f"{action} is nothing that is made in the background")

    async def _summarized(self, work: DigestWork, action: Summarize | Chunk, ledger: list[ModelCall]) -> DigestResult:
        model = self._services.model
        about = None
        if action.facts and self._services.settings.facts:
            about = await facts_task(self._services, self._embedding, work)
        size = size_of([one.message for one in work.messages])
        making = digest(
            base=work.base if isinstance(action, Summarize) else (),
            lines=await aside(size, lines_of, work.messages, self._services.voices),
            start=work.digest.start,
            limit=action.max_tokens,
            input_limit=model.input_limit,
            count=self._services.canonical.count,
            facts=None if about is None else about[1],
            prose=isinstance(action, Chunk),
            plain_text=self._services.settings.model_output == "text",
        )
        made = await self._made(making, work, size, ledger)
        outcome = DigestOutcome(
            digest=work.digest.id,
            items=made.items,
            text=made.text,
            tokens=made.tokens,
            model=model.name,
            prompt_version=PROMPT_VERSION,
        )
        found_facts = None
        if about is not None and made.facts is not None:
            found_facts = found_facts_of(work, about[0], made.facts, about[1].known)
        if isinstance(action, Summarize) and action.archive:
            archive = await self._archivist.document(work, outcome, ledger, action=action)
            outcome = replace(outcome, archive=archive)
        return DigestResult(outcome, found_facts)

    async def _read_for_facts(self, work: DigestWork, ledger: list[ModelCall]) -> DigestResult:
        model = self._services.model
        outcome = DigestOutcome(digest=work.digest.id, model=model.name, prompt_version=PROMPT_VERSION)
        about = await facts_task(self._services, self._embedding, work)
        if about is None:
            return DigestResult(outcome, found_facts_of(work, THE_USER, ()))
        size = size_of([one.message for one in work.messages])
        making = find_facts(
            lines=await aside(size, spoken_lines, work.messages, self._services.voices),
            input_limit=model.input_limit,
            count=self._services.canonical.count,
            facts=about[1],
        )
        try:
            made = await self._made(making, work, size, ledger)
        except (HithertoError, CallPostponed):
            raise
        except Exception as error:  # a user-supplied model may not know this task
            log.exception("The model failed unexpectedly on the reading %s", work.digest.id)
            raise InvalidModelAnswer(told(error)) from None
        return DigestResult(outcome, found_facts_of(work, about[0], made.facts or (), about[1].known))

    async def _made(self, making: Digesting, work: DigestWork, size: int, ledger: list[ModelCall]) -> DigestContent:
        """What comes of the generator once the model has answered its prompts."""
        made = await _step(lambda: next(making), size)
        while isinstance(made, Prompt):
            try:
                answer = await self._asked(made, work, ledger)
            except InvalidModelAnswer as error:
                made = await _step(partial(making.throw, error), size)
            else:
                made = await self._read(partial(making.send, answer.text), size, ledger)
        if made.left_out:
            _tell_left_out(work, made.left_out)
        return made

    async def _read(self, step: Callable[[], Prompt], size: int, ledger: list[ModelCall]) -> Prompt | DigestContent:
        """Pass a model's answer to the digest's generator; returns the next prompt or the finished content. An answer
        that cannot be used is marked as such in the ledger."""
        try:
            made = await _step(step, size)
        except InvalidModelAnswer:
            _mark_unusable(ledger)
            raise
        if isinstance(made, Prompt) and made.corrects:
            _mark_unusable(ledger)
        return made

    async def _asked(self, prompt: Prompt, work: DigestWork, ledger: list[ModelCall]) -> Completion:
        model = self._services.model

        async def ask() -> Completion:
            return await model.complete(prompt)

        tenant, user = work.scope.tenant, work.scope.user
        what = CallContext(model=model.name, purpose=prompt.purpose, tenant=tenant, user=user, digest=work.digest.id)
        answer = await self._calls.make(ask, what, ledger)
        try:
            _check_read(prompt, answer, self._services)
        except ModelRejected:
            _mark_unusable(ledger)
            raise
        return answer

    async def _compacted(self, work: DigestWork, ledger: list[ModelCall]) -> DigestOutcome:
        """Have the compaction endpoint make new opaque items from those of the base and the messages since, which are
        redacted where the view redacts them."""
        compactor, codec = self._services.compactor, self._services.codec(RESPONSES)
        if compactor is None:
            raise InvalidPolicy("this process has no endpoint that compacts; set compact_model")
        items = [] if work.opaque is None else list(json.loads(work.opaque))
        masking = await self._masking(work)
        used: dict[tuple[str, str], int] = {}
        for group in groups(work.messages):
            written = codec.write([masking(member) for member in group.members], unanswered=sorted(group.open))
            items += codec.distinct(codec.sendable(written), used)

        async def ask() -> CompactionResult:
            return await compactor.compact(items)

        tenant, user = work.scope.tenant, work.scope.user
        what = CallContext(
            model=compactor.name, purpose=Purpose.COMPACT, tenant=tenant, user=user, digest=work.digest.id
        )

        async def made() -> CompactionResult:
            return await self._calls.make(ask, what, ledger)

        found = await _with_retry(made)
        try:
            for item in found.items:
                codec.read(item)
        except InvalidMessage:  # the error quotes the item
            _mark_unusable(ledger)
            raise InvalidModelAnswer(
                f"{compactor.name!r} answered with an item that no request can carry; the messages stay as they are"
            ) from None
        return DigestOutcome(
            digest=work.digest.id,
            tokens=sum(codec.tokens(item, self._services.canonical) for item in found.items),
            model=compactor.name,
            opaque=json.dumps(list(found.items)),
            family=compactor.family,
        )

    async def _masking(self, work: DigestWork) -> Redactor:
        """The redactions of the view under the policy that applies."""
        handle = Handle(self._services, work.scope, work.conversation)
        head, services = await handle.head(), self._services
        layout = layout_of(handle.resuming(head, work.digest), head)
        return Redactor(layout, services.codec(RESPONSES), services.settings.budget)


def _check_read(prompt: Prompt, answer: Completion, services: Services) -> None:
    """Raises ModelRejected where the model read less than it was sent, by its own count of the prompt's tokens: then
    its server cut the prompt, and the answer leaves something out. A count that is none (0, negative, huge, no number)
    says nothing."""
    sent = services.canonical.count(f"{prompt.system}\n{prompt.user}")
    read = figure(answer.tokens_in)
    if read and sent >= _SMALLEST_WINDOW and read < sent // _FEWEST:
        raise ModelRejected(
            f"{services.model.name!r} read {read:,} tokens of a prompt of about {sent:,}: its server cut the prompt to "
            "its context window; raise that (with Ollama: num_ctx, or OLLAMA_CONTEXT_LENGTH), or set model_input_limit "
            "(HITHERTO_MODEL_INPUT_LIMIT) below it"
        )


def _tell_left_out(work: DigestWork, statements: int) -> None:
    log.info(
        "%s statements in messages %s-%s of %s were not stored as facts: too long, too many, or not said by a user",
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


def _mark_unusable(ledger: list[ModelCall]) -> None:
    if ledger and ledger[-1].cause is None:
        ledger[-1] = replace(ledger[-1], cause=FailureCause.UNUSABLE)


async def _step(step: Callable[[], Prompt], size: int) -> Prompt | DigestContent:
    """Run one step of the digest's generator: returns the next prompt or the finished content. Each step may go through
    the messages, of this `size`."""

    def taken() -> Prompt | DigestContent:
        try:
            return step()
        except StopIteration as end:
            return end.value

    return await aside(size, taken)


async def _with_retry(ask: Callable[[], Awaitable[CompactionResult]]) -> CompactionResult:
    """Ask a second time after an answer that cannot be used; the endpoint cannot be told what was wrong with it."""
    try:
        return await ask()
    except InvalidModelAnswer:
        return await ask()
