"""Vectors from the embedders, behind the circuit breaker and entered in the ledger."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Sequence

from hitherto.arrays import np
from hitherto.core.ledger import ModelCall, Purpose
from hitherto.core.recall.terms import topic
from hitherto.core.recall.vectors import Space, Vector, Vectors
from hitherto.engine.calls import CallContext, Calls, call_adapter, told
from hitherto.engine.services import Services
from hitherto.errors import InvalidEmbedding, ModelError, ModelRejected, ModelUnavailable
from hitherto.logs import logger
from hitherto.ports.models import Embedder, Embeddings, usable

log = logger("hitherto.embedding")

PATIENCE = 10
"""How many times as long as a question over a network the embedder may take for what is computed in this process."""

_NOBODY = "-"
"""The tenant named where a call is made for none."""


class Embedding:
    """Calls the embedders of a memory."""

    def __init__(self, services: Services, calls: Calls) -> None:
        self._services, self._calls = services, calls

    @property
    def space(self) -> Space | None:
        """The space of the current embedder; None where there is none, or its space is not known yet."""
        return None if self._services.embedder is None else _space(self._services.embedder)

    @property
    def known(self) -> bool:
        """Whether the embedder's space is known, or there is no embedder."""
        return self._services.embedder is None or _space(self._services.embedder) is not None

    async def learn(self) -> None:
        """Embed one word if the embedder's space is not known yet, which makes it known. Raises CallPostponed and what
        the embedder raises."""
        embedder = self._services.embedder
        if embedder is not None and _space(embedder) is None:
            ledger: list[ModelCall] = []
            what = CallContext(model=embedder_name(embedder), purpose=Purpose.EMBED, tenant=_NOBODY)
            try:
                await self._calls.make(lambda: embedder.query("hello"), what, ledger)
            finally:
                self._calls.written(_NOBODY, None, ledger)  # a call for no tenant goes into no ledger

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces that questions can be embedded in, that of the current embedder first."""
        embedders = (*([self._services.embedder] if self._services.embedder else []), *self._services.previous)
        found = [_space(one) for one in embedders]
        return tuple(dict.fromkeys(space for space in found if space is not None))

    async def documents(self, texts: Sequence[str], tenant: str, ledger: list[ModelCall]) -> tuple[Space, Vectors]:
        """The space of the current embedder, and the vectors of texts in it, in their order; zeros for a text that the
        endpoint refuses. Raises CallPostponed and what the embedder raises."""
        embedder = self._services.embedder
        assert embedder is not None, "who has a space has an embedder"
        made: list[Vectors] = []
        for at in range(0, len(texts), embedder.batch):
            batch = texts[at : at + embedder.batch]
            try:
                made.append(await self._batch(embedder, batch, tenant, ledger))
            except (ModelRejected, InvalidEmbedding):
                # Is it the key, the model, or one of the texts? A harmless word tells: if refused too, it raises.
                await self._batch(embedder, ["hello"], tenant, ledger)
                made.append(await self._without_refused(embedder, batch, tenant, ledger))
        space = embedder.space
        return space, np.concatenate(made) if made else np.zeros((0, space.dimensions), np.float32)

    async def documents_within_timeout(
        self, texts: Sequence[str], tenant: str, ledger: list[ModelCall], *, otherwise: str
    ) -> Vectors | None:
        """The same vectors, for those who can do without: None if the embedder fails in any way, or takes longer than
        the setting `embedder_timeout` allows. Then a warning says what is done `otherwise`."""
        try:
            async with asyncio.timeout(self._seconds(self._services.embedder)):
                return (await self.documents(texts, tenant, ledger))[1]
        except Exception as error:  # noqa: BLE001 (a user-supplied embedder may raise anything; there are still words)
            why = "it took too long" if isinstance(error, TimeoutError) else told(error)
            log.warning("Embedder unavailable; %s: %s", otherwise, why, tenant=tenant)
            return None

    async def _without_refused(
        self, embedder: Embedder, texts: Sequence[str], tenant: str, ledger: list[ModelCall]
    ) -> Vectors:
        """The vectors of texts of which the endpoint refuses some. Halving the batch finds the refused ones; they get
        zeros, and are still found by their words."""
        try:
            return await self._batch(embedder, texts, tenant, ledger)
        except (ModelRejected, InvalidEmbedding) as error:
            if len(texts) == 1:
                log.warning("The embedder refused a text, which is found by its words only: %s", error, tenant=tenant)
                return np.zeros((1, embedder.space.dimensions), np.float32)
            half = len(texts) // 2
            batches = [
                await self._without_refused(embedder, part, tenant, ledger) for part in (texts[:half], texts[half:])
            ]
            return np.concatenate(batches)

    async def _batch(self, embedder: Embedder, texts: Sequence[str], tenant: str, ledger: list[ModelCall]) -> Vectors:
        async def ask() -> Embeddings:
            return await embedder.documents(texts)

        return await self._asked(embedder, ask, len(texts), tenant, ledger, tries=None)

    def _seconds(self, embedder: Embedder | None) -> float:
        """What a question's vector may take. One that is computed in this process is only slow where the machine is
        busy, so it gets ten times as long."""
        seconds = self._services.settings.embedder_timeout
        return PATIENCE * seconds if embedder is not None and embedder.local else seconds

    @property
    def local(self) -> bool:
        """Whether the embedder computes in this process."""
        return self._services.embedder is not None and self._services.embedder.local

    async def question(
        self, text: str, space: Space, tenant: str, ledger: list[ModelCall], *, authors: Collection[int]
    ) -> Vector:
        """The vector of a question in `space`, from one request in the time that the setting `embedder_timeout`
        allows. Raises CallPostponed and what the embedder raises.

        In a mean of word vectors the name of an author drowns all other words. So for a local embedder the names of
        `authors` are left out (see `core.recall.terms.topic`); any other gets the question as it is.
        """
        known = (*([self._services.embedder] if self._services.embedder else []), *self._services.previous)
        embedder = next(one for one in known if _space(one) == space)

        asked = topic(text, authors=authors) if embedder.local else text
        seconds = self._seconds(embedder)

        async def ask() -> Embeddings:
            try:
                async with asyncio.timeout(seconds):
                    return await embedder.query(asked)
            except TimeoutError:
                raise ModelUnavailable(
                    f"the embedder {space.name!r} did not answer within {seconds:g} seconds; allow it more time "
                    "(HITHERTO_EMBEDDER_TIMEOUT), or see what it waits for"
                ) from None

        return (await self._asked(embedder, ask, 1, tenant, ledger, tries=1))[0]

    async def _asked(
        self,
        embedder: Embedder,
        ask: Callable[[], Awaitable[Embeddings]],
        count: int,
        tenant: str,
        ledger: list[ModelCall],
        *,
        tries: int | None,
    ) -> Vectors:
        async def checked() -> Embeddings:
            answer = await ask()
            try:
                vectors = usable(answer.vectors, count=count, space=embedder.space)
            except InvalidEmbedding as error:
                error.tokens = (answer.tokens, None, None)
                raise
            return Embeddings(vectors, answer.tokens, answer.asked)

        if embedder.local:
            return (await call_adapter(checked)).vectors
        what = CallContext(model=embedder_name(embedder), purpose=Purpose.EMBED, tenant=tenant)
        return (await self._calls.make(checked, what, ledger, tries=tries)).vectors


def _space(embedder: Embedder) -> Space | None:
    try:
        return embedder.space
    except ModelError:  # its endpoint was unavailable so far
        return None


def embedder_name(embedder: Embedder) -> str:
    """The model's name as price lists and the ledger have it: the name of the space up to its dimensions."""
    space = _space(embedder)
    return "an embedder" if space is None else _BESIDE.split(space.name)[0]


_BESIDE = re.compile(r"/\d+(?:/|$)")
"""Where the name of a space goes on with its dimensions."""
