"""Making the archive's document of a digest that has just been made."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from hitherto.core.archive_answer import Archive, archive_from
from hitherto.core.archiving import Talk, archive_prompt, archive_task, archived, without_model
from hitherto.core.document import NewDocument
from hitherto.core.ledger import Cause, ModelCall
from hitherto.core.prompts import Prompt
from hitherto.engine.calls import Asked, Calls
from hitherto.engine.ceiling import NotNow
from hitherto.engine.cutting import cut
from hitherto.engine.parts import Parts
from hitherto.errors import HithertoError, ModelAnswerUnusable
from hitherto.logs import logger
from hitherto.ports.model import Completion
from hitherto.ports.store import DigestWork, Outcome

log = logger("hitherto.digest")

_FAR_TOO_LONG = 4
"""An answer of so many times the tokens that it was given is not read."""


class Archivist:
    """Makes documents of what has gone into a digest; what it asks of a model goes through `calls`."""

    def __init__(self, parts: Parts, calls: Calls) -> None:
        self._parts = parts
        self._calls = calls

    async def document(
        self, work: DigestWork, made: Outcome, ledger: list[ModelCall], *, limit: int
    ) -> NewDocument | None:
        """The document of the messages that are new to the digest `made`; None where there are none, and where the
        store keeps no documents.

        One call of the model, whatever comes of it, is added to `ledger`. Never raises for what a model does: without
        an answer of use, the document is made of what the digest says.
        """
        if not work.messages or self._parts.library is None:
            return None
        talk = Talk(scope=work.scope, conversation=work.conversation, digest=work.digest.id, messages=work.messages)
        archive = await self._asked(talk, made, ledger, limit)
        if archive is None:
            archive = without_model(talk, made.items)
        return archived(talk, archive, cut=partial(cut, self._parts, markdown=True))

    async def _asked(self, talk: Talk, made: Outcome, ledger: list[ModelCall], limit: int) -> Archive | None:
        model, count = self._parts.model, self._parts.canonical.count
        task = await asyncio.to_thread(
            archive_task, talk, made.items, limit=limit, input_limit=model.input_limit, count=count
        )
        if not task.lines and not task.digest:
            return None
        try:
            return await self._answered(archive_prompt(task), talk, ledger)
        except (HithertoError, NotNow) as error:
            self._warn(talk, str(error))
        except Exception as error:
            # A model of somebody's own may not know this task: the digest that it has made must not go with it.
            log.exception("A defect of the model, asked for the archive of digest %s", talk.digest)
            self._warn(talk, f"unexpected {type(error).__name__}: {error}")
        return None

    async def _answered(self, prompt: Prompt, talk: Talk, ledger: list[ModelCall]) -> Archive:
        model = self._parts.model

        async def ask() -> Completion:
            return await model.complete(prompt)

        what = Asked(model=model.name, purpose=prompt.purpose, tenant=talk.scope.tenant, digest=talk.digest)
        before = len(ledger)
        answer = await self._calls.make(ask, what, ledger)
        try:
            most = _FAR_TOO_LONG * prompt.max_tokens
            if len(answer.text) > most and self._parts.canonical.count(answer.text) > most:
                raise ModelAnswerUnusable(f"the model's answer is far longer than {prompt.max_tokens} tokens")
            return archive_from(answer.text)
        except ModelAnswerUnusable:
            if len(ledger) > before and ledger[-1].cause is None:
                ledger[-1] = replace(ledger[-1], cause=Cause.UNUSABLE)
            raise

    def _warn(self, talk: Talk, why: str) -> None:
        log.warning(
            "The archive of %s is made without a model: %s",
            talk.conversation,
            why,
            tenant=talk.scope.tenant,
            digest=talk.digest,
        )
