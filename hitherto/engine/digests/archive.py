"""Making the archived document of a digest: a summary, topics and decisions of its messages, as a searchable
document."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from hitherto.core.digests.archive import Excerpt, archive_prompt, archive_task, archived, fallback_summary
from hitherto.core.digests.archive_answer import ArchiveSummary, archive_from
from hitherto.core.digests.work import DigestOutcome, DigestWork
from hitherto.core.documents.document import NewDocument
from hitherto.core.ledger import FailureCause, ModelCall
from hitherto.core.policy.action import Summarize
from hitherto.core.prompt import Prompt
from hitherto.engine.calls import CallContext, Calls, told
from hitherto.engine.daily_limit import CallPostponed
from hitherto.engine.documents.cut import cut
from hitherto.engine.services import Services
from hitherto.errors import HithertoError, InvalidModelAnswer
from hitherto.logs import logger
from hitherto.ports.models.model import Completion

log = logger("hitherto.digest")

_FAR_TOO_LONG = 4
"""An answer of more than this many times its token limit is not read."""


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
        archive = await self._asked(excerpt, made, ledger, action.max_tokens)
        if archive is None:
            archive = fallback_summary(excerpt, made.items)
        sizes = {"tokens": action.passage_tokens, "overlap": action.passage_overlap}
        return await asyncio.to_thread(
            archived, excerpt, archive, cut=partial(cut, self._services, markdown=True, **sizes)
        )

    async def _asked(
        self, excerpt: Excerpt, made: DigestOutcome, ledger: list[ModelCall], limit: int
    ) -> ArchiveSummary | None:
        model, count = self._services.model, self._services.canonical.count
        task = await asyncio.to_thread(
            archive_task,
            excerpt,
            made.items,
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
