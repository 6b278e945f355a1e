"""Requests of random logs, fitted without a database: no API has a reason to refuse one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hitherto.core.context.fit import Fitting
from hitherto.core.context.gathered import Gathered
from hitherto.core.context.request import ContextRequest
from hitherto.core.log.head import empty
from hitherto.core.log.message import RESPONSES, Logged, Message, Sums, Wire
from hitherto.core.log.tail import ending
from hitherto.core.policy.view import view
from hitherto.errors import BudgetExceeded
from hitherto.policies import none
from hitherto.testing.requests import refusals
from hitherto.wire import codec, system, tool_result, user
from tests.lengths import at_length, lasting
from tests.wire.conversations import WIRES
from tests.wire.items import COUNTER
from tests.wire.odd import accepted, odd_logs

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLOCK = codec(RESPONSES).read({"type": "function_call_output", "name": "clock", "output": "noon"})
apart = st.lists(st.sampled_from([system("Rule."), system(" "), CLOCK]), max_size=2)


def gathered(messages: Sequence[Message]) -> Gathered:
    """The messages as a log, each of 10 tokens."""
    sums, logged = Sums(), list[Logged]()
    for seq, one in enumerate(messages):
        sums = sums.after(one, 10)
        logged.append(Logged(seq=seq, message=one, tokens=10, sums=sums, rev=0, created_at=NOW))
    head = ending(replace(empty(NOW), next_seq=len(logged), sums=sums), logged)
    return Gathered(view=view(none(), head), head=head, messages=logged)


def refused(log: Gathered, incoming: Sequence[Message], budget: int, to: Wire) -> list[str]:
    """Why the API would refuse the request; nothing where the budget is too small for one."""
    request = ContextRequest(
        incoming=tuple(incoming), instructions="Be kind.", budget=budget, reserve=0, counter=COUNTER, codec=codec(to)
    )
    try:
        made = Fitting(request, log).fit(request)
    except BudgetExceeded:
        return []
    sent = request.codec.request(system=made.system, items=made.items, tools=())
    json.dumps(sent).encode()
    return refusals(sent, wire=to, model="claude-opus-4-5" if to == "anthropic" else "gpt-5.2")


@st.composite
def logs(draw: st.DrawFn) -> list[Message]:
    """Odd logs, with system messages and what a tool says without a call."""
    if draw(st.sampled_from([False, False, False, True])):
        return draw(apart)
    return [*draw(apart), *draw(odd_logs(turns=4)), *draw(apart), *draw(odd_logs(turns=3))]


@lasting
@settings(
    max_examples=3_500 if at_length() else 20,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(said=logs(), budgets=st.lists(st.integers(50, 2_000), min_size=3, max_size=3))
def test_no_api_refuses_what_is_fitted(said: list[Message], budgets: list[int]) -> None:
    """At length more than 20,000 requests of each format."""
    kept, waiting = accepted(said)
    log = gathered(kept)
    results = [tool_result(call, "") for call in waiting[-1:]]
    # Without an incoming message, open calls stay open: the caller adds the results.
    for incoming in ([user("Go on.")], results, [*results, system("Be brief."), user("Well?")]):
        for to, budget in product(WIRES, budgets):
            assert refused(log, incoming, budget, to) == []
