"""Calls of a model: what is tried again on the spot, what is not, and what of it is written down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from hitherto.core.ledger import FailureCause, ModelCall, Purpose
from hitherto.engine.calls import CallContext, CallPostponed, Calls
from hitherto.errors import HithertoError, InvalidModelAnswer, ModelRateLimited, ModelRejected, ModelUnavailable
from hitherto.ports.models import Completion
from hitherto.store.store import Store
from tests.conftest import SCOPE
from tests.engine.metered import PRICED, Told, services_of
from tests.store.samples import user, write
from tests.times import BreakerTime

GOOD = Completion(text="yes", tokens_in=900, tokens_cached=500, tokens_out=100)
DigestOutcome = Completion | Exception
WHAT = CallContext(model=PRICED, purpose=Purpose.DIGEST, tenant=SCOPE.tenant, digest=7)


class Answers:
    """One outcome a call, then the last for ever; `at` is when each was asked for."""

    def __init__(self, *outcomes: DigestOutcome) -> None:
        self.outcomes = list(outcomes)
        self.at: list[float] = []

    async def __call__(self) -> Completion:
        self.at.append(time.monotonic())
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def waits(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.at, self.at[1:], strict=False)]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def calls(store: Store, told: Told) -> Callable[..., Calls]:
    def make(**settings: object) -> Calls:
        return Calls(services_of(store, told, **settings))

    return make


def causes(ledger: Sequence[ModelCall]) -> list[FailureCause | None]:
    return [call.cause for call in ledger]


async def test_what_passes_is_asked_for_again_after_a_wait_that_grows(calls: Callable[..., Calls], told: Told) -> None:
    answers, ledger = Answers(ModelUnavailable("gone"), ModelRateLimited("too many"), GOOD), list[ModelCall]()
    assert await calls().make(answers, WHAT, ledger) == GOOD
    assert causes(ledger) == [FailureCause.UNREACHABLE, FailureCause.BUSY, None]
    assert ledger == told.calls
    first, second = answers.waits
    assert 0.5 <= first <= 1.2
    assert 1 <= second <= 1.7


async def test_after_so_many_tries_it_is_for_whoever_asked(calls: Callable[..., Calls]) -> None:
    answers, ledger = Answers(ModelUnavailable("gone")), list[ModelCall]()
    with pytest.raises(ModelUnavailable, match="gone"):
        await calls(model_max_attempts=2).make(answers, WHAT, ledger)
    assert causes(ledger) == [FailureCause.UNREACHABLE] * 2


async def test_what_the_endpoint_asked_for_is_waited_for(calls: Callable[..., Calls]) -> None:
    answers = Answers(ModelRateLimited("too many", retry_after=1.4), GOOD)
    await calls().make(answers, WHAT, [])
    assert 1.4 <= answers.waits[0] <= 2


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ModelRateLimited("come back later", retry_after=10.5), FailureCause.BUSY),
        (ModelRejected("wrong key"), FailureCause.REFUSED),
        (InvalidModelAnswer("nothing"), FailureCause.UNUSABLE),
        (RuntimeError("a defect in an adapter"), FailureCause.DEFECT),
        (HithertoError("something else"), FailureCause.DEFECT),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else "",
)
async def test_what_a_second_call_would_not_change_is_one_call(
    calls: Callable[..., Calls], error: Exception, cause: FailureCause
) -> None:
    answers, ledger = Answers(error), list[ModelCall]()
    with pytest.raises(type(error), match=str(error)):
        await calls().make(answers, WHAT, ledger)
    assert len(answers.at) == 1
    assert causes(ledger) == [cause]


async def test_an_entry_says_what_the_call_took(calls: Callable[..., Calls]) -> None:
    ledger = list[ModelCall]()
    await calls().make(Answers(GOOD), WHAT, ledger)
    (entry,) = ledger
    assert (entry.purpose, entry.model, entry.digest, entry.cause) == (Purpose.DIGEST, PRICED, 7, None)
    assert (entry.tokens_in, entry.tokens_cached, entry.tokens_out) == (900, 500, 100)
    assert entry.cost == pytest.approx((400 * 0.4 + 500 * 0.1 + 100 * 1.6) / 1e6), "by the shipped price list"
    assert entry.latency_ms >= 0


async def test_tokens_written_to_the_cache_cost_the_write_price(calls: Callable[..., Calls]) -> None:
    ledger = list[ModelCall]()
    answers = Answers(replace(GOOD, tokens_written=300), replace(GOOD, tokens_written=-1))
    what = replace(WHAT, model="claude-haiku-4-5")
    for _ in range(2):
        await calls().make(answers, what, ledger)
    written = (100 * 1.0 + 300 * 1.25 + 500 * 0.1 + 100 * 5.0) / 1e6
    assert [one.cost for one in ledger] == pytest.approx([written, (400 * 1.0 + 500 * 0.1 + 100 * 5.0) / 1e6])


NO_COUNT: list[Any] = [None, -5, 2**70, 91.5, float("nan"), "91", [91], {"tokens": 91}, True]


@pytest.mark.parametrize("figure", NO_COUNT, ids=repr)
async def test_what_is_no_count_of_tokens_is_not_in_the_entry(calls: Callable[..., Calls], figure: Any) -> None:
    for field in ("tokens_in", "tokens_cached", "tokens_out", "tokens_written"):
        ledger = list[ModelCall]()
        await calls().make(Answers(replace(GOOD, **{field: figure})), replace(WHAT, model="claude-haiku-4-5"), ledger)
        (entry,) = ledger
        told = {"tokens_in": 900, "tokens_cached": 500, "tokens_out": 100} | {field: None}
        assert (
            told.items() >= {one: getattr(entry, one) for one in ("tokens_in", "tokens_cached", "tokens_out")}.items()
        )
        assert entry.cost is not None
        assert entry.cost >= 0


async def test_more_from_the_cache_than_was_sent_costs_no_less_than_nothing(calls: Callable[..., Calls]) -> None:
    ledger = list[ModelCall]()
    answers = Answers(replace(GOOD, tokens_cached=2**30), replace(GOOD, tokens_written=2**30))
    for _ in range(2):
        await calls().make(answers, replace(WHAT, model="claude-haiku-4-5"), ledger)
    sent, written = 400 * 1.25, 500 * 0.1
    assert [one.cost for one in ledger] == pytest.approx([(900 * 0.1 + 500) / 1e6, (sent + written + 500) / 1e6])


async def test_an_answer_that_was_computed_on_the_spot_is_no_call(calls: Callable[..., Calls], told: Told) -> None:
    ledger = list[ModelCall]()
    await calls().make(Answers(Completion(text="yes", asked=False)), WHAT, ledger)
    assert ledger == told.calls == []


async def test_a_model_of_ones_own_that_never_answers(calls: Callable[..., Calls]) -> None:
    async def never() -> Completion:
        await asyncio.Event().wait()
        raise AssertionError

    ledger = list[ModelCall]()
    with pytest.raises(ModelUnavailable, match="HITHERTO_MODEL_TIMEOUT"):
        await calls(model_timeout=0.05, model_max_attempts=1).make(never, WHAT, ledger)
    assert causes(ledger) == [FailureCause.UNREACHABLE]


async def test_a_call_that_is_cancelled_is_in_the_ledger_too(calls: Callable[..., Calls]) -> None:
    async def never() -> Completion:
        await asyncio.Event().wait()
        raise AssertionError

    ledger = list[ModelCall]()
    task = asyncio.create_task(calls().make(never, WHAT, ledger))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert causes(ledger) == [FailureCause.LOST]


async def test_the_breaker_opens_and_closes_again(calls: Callable[..., Calls], monkeypatch: pytest.MonkeyPatch) -> None:
    breaker_time = BreakerTime(monkeypatch)
    answers, ledger = Answers(*[ModelUnavailable("no route")] * 3, GOOD), list[ModelCall]()
    asked = calls(model_max_attempts=1, breaker_failures=2, breaker_cooldown=600)
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await asked.make(answers, WHAT, ledger)
    with pytest.raises(CallPostponed, match=r"failed several times in a row and is not called until .* UTC$") as caught:
        await asked.make(answers, replace(WHAT, tenant="globex"), ledger)
    assert "no route" not in str(caught.value), "what another tenant's call was told"
    assert 0 < caught.value.seconds <= 600
    assert caught.value.cause is FailureCause.UNREACHABLE
    assert len(answers.at) == 2, "nobody was asked"

    other = CallContext(model="another", purpose=Purpose.DIGEST, tenant=SCOPE.tenant, digest=8)
    assert await asked.make(Answers(GOOD), other, ledger) == GOOD, "each model has its own"

    breaker_time.pass_seconds(600)
    with pytest.raises(ModelUnavailable):
        await asked.make(answers, WHAT, ledger)
    with pytest.raises(CallPostponed) as caught:
        await asked.make(answers, WHAT, ledger)
    assert 600 < caught.value.seconds <= 1_200, "twice as long"
    breaker_time.pass_seconds(1_200)
    for _ in range(2):
        assert await asked.make(answers, WHAT, ledger) == GOOD
    assert causes(ledger) == [FailureCause.UNREACHABLE] * 2 + [None] + [FailureCause.UNREACHABLE] + [None] * 2


async def test_a_refusal_is_an_answer_to_the_breaker(calls: Callable[..., Calls]) -> None:
    asked, answers = calls(model_max_attempts=1, breaker_failures=2), Answers(ModelRejected("wrong key"))
    for _ in range(4):
        with pytest.raises(ModelRejected):
            await asked.make(answers, WHAT, [])


@pytest.mark.parametrize("ceiling", [{"daily_tokens": 1_500}, {"daily_cost": 0.0006}], ids=str)
async def test_a_ceiling_holds_before_anything_is_written(
    calls: Callable[..., Calls], ceiling: dict[str, float]
) -> None:
    """What one digest spends in many calls counts at once; another tenant's is another's."""
    asked, answers, ledger = calls(**ceiling), Answers(GOOD), list[ModelCall]()
    for _ in range(2):
        await asked.make(answers, WHAT, ledger)
    with pytest.raises(CallPostponed, match=r"today, of (1,500|\$0\.0006) .*; digests go on tomorrow") as caught:
        await asked.make(answers, WHAT, ledger)
    assert 0 < caught.value.seconds <= 600, "it may be raised meanwhile"
    assert len(ledger) == 2
    theirs = CallContext(model=PRICED, purpose=Purpose.DIGEST, tenant="another", digest=9)
    assert await asked.make(answers, theirs, ledger) == GOOD


@pytest.mark.parametrize("ceiling", [{"daily_tokens": 4_000}, {"daily_cost": 0.0012}], ids=str)
async def test_a_user_has_a_share_of_a_ceiling_where_there_are_others(
    calls: Callable[..., Calls], store: Store, ceiling: dict[str, float]
) -> None:
    """Whether what was spent is in the ledger or not yet; a user who is alone has all of it."""
    asked, answers, ledger = calls(**ceiling), Answers(GOOD), list[ModelCall]()
    mine, yours = (replace(WHAT, user=name, digest=None) for name in (SCOPE.user, "another"))
    await write(store, "c", user())
    for _ in range(3):
        await asked.make(answers, mine, ledger)
    await write(store, "c", user(), scope=replace(SCOPE, user="another"))
    with pytest.raises(CallPostponed, match=r"the user has .* today, of .*daily_user_share"):
        await asked.make(answers, mine, ledger)
    await store.note_calls(SCOPE, "c", ledger)
    asked.written(SCOPE.tenant, SCOPE.user, ledger)
    for one in (asked, calls(**ceiling)):
        with pytest.raises(CallPostponed, match="daily_user_share"):
            await one.make(answers, mine, ledger)
    await asked.make(answers, yours, [])
    await calls(**{name: 2 * most for name, most in ceiling.items()}).make(answers, mine, [])
