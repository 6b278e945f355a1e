"""Every error that Hitherto raises on purpose, as one tree.

    HithertoError
    ├── InvalidInput            (also a ValueError) the call is wrong; nothing was changed
    │   ├── InvalidScope
    │   ├── InvalidMessage
    │   ├── InvalidBatch
    │   ├── InvalidPolicy
    │   ├── InvalidBudget
    │   ├── InvalidSettings
    │   ├── InvalidDocument
    │   ├── InvalidFact
    │   ├── InvalidTranscript
    │   └── InvalidExport
    ├── Conflict                the call lost against another one; nothing was changed
    │   ├── IdempotencyKeyReused
    │   ├── ConcurrentWrite
    │   └── StaleVersion
    ├── NotFound                (also a LookupError) no such conversation, revision, digest or fact in this scope
    ├── BudgetExceeded              the incoming message does not fit; `over_by` says by how many tokens
    ├── NotReproducible          a saved manifest no longer gives the bytes it stands for
    ├── StoreError
    │   ├── DatabaseUnavailable
    │   ├── DatabaseReadOnly
    │   ├── SchemaMismatch
    │   ├── EmbeddedServerError
    │   └── ServiceUnavailable
    ├── ModelError
    │   ├── ModelUnavailable
    │   │   └── ModelRateLimited
    │   ├── ModelRejected
    │   └── InvalidModelAnswer
    │       └── InvalidEmbedding
    ├── AccessError             the service does not let a request through
    │   ├── Unauthorized
    │   ├── Forbidden
    │   ├── TooLarge
    │   ├── UnsupportedMediaType
    │   ├── TooManyRequests
    │   └── TimedOut
    └── ServiceError            the service has failed

Each message says what was wrong, with which value, and what to do about it.
"""

from __future__ import annotations

_LONGEST_WAIT = 3_600.0


class HithertoError(Exception):
    """Base of all errors that Hitherto raises on purpose."""


class InvalidInput(HithertoError, ValueError):
    """What was passed in cannot be used. Nothing was changed."""


class InvalidScope(InvalidInput):
    """A scope needs a tenant, a user and an agent; one of them is missing or unusable."""


class InvalidMessage(InvalidInput):
    """A message is not one that any supported API would send or accept."""


class InvalidBatch(InvalidInput):
    """The messages are each well formed, but they cannot be appended together, here and now."""


class InvalidPolicy(InvalidInput):
    """A policy, or its JSON or command-line form, does not make sense."""


class InvalidBudget(InvalidInput):
    """A token budget or reserve is not a usable number of tokens."""


class InvalidSettings(InvalidInput):
    """A setting, from the environment or from a call, does not make sense."""


class InvalidDocument(InvalidInput):
    """A document has nothing in it that could be found, or is not text."""


class InvalidFact(InvalidInput):
    """A fact, its category, its subject or what is to be done to it does not make sense."""


class InvalidTranscript(InvalidInput):
    """A transcript file cannot be read; `line` (counted from 1) is where, if it is one line's fault."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class InvalidExport(InvalidInput):
    """What should be an export of Hitherto's cannot be read; `line` (counted from 1) is where."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Conflict(HithertoError):
    """Another call got there first. Nothing was changed."""


class IdempotencyKeyReused(Conflict):
    """An idempotency key was used before with other content."""


class ConcurrentWrite(Conflict):
    """`expect=` did not hold: others wrote in between. `actual` is the next seq now, or the revision, whichever was
    expected."""

    def __init__(self, message: str, *, actual: int) -> None:
        super().__init__(message)
        self.actual = actual


class StaleVersion(Conflict):
    """`expect=` did not hold: somebody changed the fact meanwhile. `actual` is its version now."""

    def __init__(self, message: str, *, actual: int) -> None:
        super().__init__(message)
        self.actual = actual


class NotFound(HithertoError, LookupError):
    """There is no such thing in this scope."""


class BudgetExceeded(HithertoError):
    """Even alone, the incoming message does not fit the budget; `over_by` says by how many tokens."""

    def __init__(self, message: str, *, over_by: int) -> None:
        super().__init__(message)
        self.over_by = over_by


class NotReproducible(HithertoError):
    """A context cannot be rebuilt from its manifest, because what it showed was erased since."""


class StoreError(HithertoError):
    """The store could not do its work. Nothing was half written."""


class DatabaseUnavailable(StoreError):
    """No connection to PostgreSQL could be made, or one was lost or has fallen silent."""


class DatabaseReadOnly(StoreError):
    """PostgreSQL refuses to write."""


class SchemaMismatch(StoreError):
    """The database holds a schema that this version of Hitherto does not know."""


class EmbeddedServerError(StoreError):
    """The PostgreSQL server that Hitherto runs for itself could not be started."""


class ServiceUnavailable(StoreError):
    """The service that has the store gave no answer. What was asked for may have been done or not."""


class ModelError(HithertoError):
    """A model call failed. Appends and contexts go on without it."""


class ModelUnavailable(ModelError):
    """The model's endpoint could not be reached, did not answer in time, or is failing. The same call may succeed
    later: not before `retry_after` seconds have passed, if the endpoint said so (more than an hour counts as one)."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        usable = retry_after is not None and retry_after >= 0  # which NaN is not
        self.retry_after = min(retry_after, _LONGEST_WAIT) if usable and retry_after is not None else None


class ModelRateLimited(ModelUnavailable):
    """The endpoint lets no more requests through for now: a rate limit."""


class ModelRejected(ModelError):
    """The endpoint answered with a refusal that the same call would get again: a wrong key, an unknown model, a bad
    request, an account without credit."""


class InvalidModelAnswer(ModelError):
    """The model answered with nothing, or with something that cannot be a digest. It is paid for all the same: `tokens`
    are those in, of them from the provider's cache, and out, as far as the endpoint said; `tokens_written` are those
    of the prompt that were put into the cache."""

    tokens: tuple[int | None, int | None, int | None] = (None, None, None)
    tokens_written: int | None = None


class InvalidEmbedding(InvalidModelAnswer):
    """The embedder answered with other vectors than it was asked for: too few, of another dimension, or not numbers."""


class AccessError(HithertoError):
    """The service does not let this request through."""


class Unauthorized(AccessError):
    """The request has no key, or one that is not known or was revoked."""


class Forbidden(AccessError):
    """The key does not allow this."""


class TooLarge(AccessError):
    """The request's body is larger than the key allows, holds more values, or nests them deeper."""


class UnsupportedMediaType(AccessError):
    """The request's body is in a form that is not read here."""


class TooManyRequests(AccessError):
    """The key allows no more requests for now."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TimedOut(AccessError):
    """The request took longer than the key allows, or its body came too slowly."""


class ServiceError(HithertoError):
    """The service has failed."""
