"""Promises 4 and 7 to 11 over random histories: any log, policies, digests, erasing, expiry, export and import."""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hitherto import Policy, wire
from hitherto.core.log.message import Payload, Wire
from hitherto.policies import PRESETS
from hitherto.store.store import Store
from tests.core.policy.policies import policies, presets
from tests.engine.held import OUTCOMES
from tests.engine.stacks import stacks
from tests.engine.worlds import ENDLESS, MODEL, World, world
from tests.lengths import examples, lasting
from tests.times import time_of
from tests.wire.conversations import WIRES, conversations

_names = count(1)

Step = tuple[Any, ...]

appends = st.tuples(st.just("append"), st.integers(1, 7), st.booleans())
digests = st.one_of(
    st.tuples(st.just("begin")),
    st.tuples(st.just("finish"), st.sampled_from(OUTCOMES)),
    st.tuples(st.just("settle"), st.sampled_from(OUTCOMES)),
    st.tuples(st.just("settle"), st.just("good")),
)
expiry = (
    st.tuples(st.just("append"), st.integers(1, 7), st.just(False), st.sets(st.integers(0, 6), min_size=1)),
    st.tuples(st.just("wait")),
)
others = st.one_of(
    st.tuples(st.just("policy"), st.integers(0, 2)),
    st.tuples(st.just("pop")),
    st.tuples(st.just("rewind"), st.integers(0, 9)),
    st.tuples(st.just("put"), st.integers(0, 9)),
    st.tuples(st.just("switch"), st.integers(0, 99), st.booleans()),
    st.tuples(st.just("fork"), st.integers(0, 99), st.booleans(), st.booleans()),
    st.tuples(st.just("turn to"), st.integers(0, 9)),
    st.tuples(st.just("clear")),
    st.tuples(st.just("replace"), st.integers(0, 3)),
    st.tuples(st.just("back")),
    st.tuples(st.just("erase"), st.sets(st.integers(0, 99), min_size=1, max_size=4)),
    st.tuples(st.just("move")),
    *expiry,
)
looks = st.tuples(
    st.integers(60, 3_000), st.sampled_from(WIRES), st.sampled_from(["nothing", "user", "user", "result"])
)
any_policy = st.one_of(presets(), stacks(), policies(max_stages=3))


@st.composite
def logs(draw: st.DrawFn, *wires: str) -> list[Payload]:
    """The items of one conversation or of two, one behind the other, perhaps of different formats; ids are unique."""
    found: list[Payload] = []
    for number in range(draw(st.sampled_from([1, 1, 1, 2]))):
        for item in draw(conversations(*wires, turns=8)).items:
            own = json.loads(re.sub(r'"call_(\d+)"', rf'"{number}-call-\1"', json.dumps(item)))
            if "id" in own:
                own["id"] = f"{own['id']}_{len(found)}"
            found.append(own)
    return found


@st.composite
def histories(draw: st.DrawFn, *, quiet: bool = False, longest: int = 24) -> list[Step]:
    """Steps of a history; a `quiet` one takes nothing back."""
    kinds = [appends, appends, appends, digests] if quiet else [appends, appends, appends, digests, digests, others]
    return draw(st.lists(st.tuples(st.one_of(kinds), looks), min_size=2, max_size=longest))


async def play(store: Store, items: list[Payload], governing: list[Policy], steps: list[Step]) -> None:
    """Take a conversation through `steps`, and hold it against the promises after each."""
    async with world(store, f"r{next(_names)}", items, time_of(store)) as here:
        await here.configure(governing[0])
        for step, look in steps:
            await do(here, governing, step)
            await here.check_all()
            await here.look(*look)
        await here.check_past()


async def do(here: World, governing: list[Policy], step: Step) -> None:
    match step:
        case ("append", int(size), bool(other)):
            await here.append(size, governing[-1] if other else None)
        case ("append", int(size), bool(_), set(expiring)):
            await here.append(size, expiring=expiring)
        case ("wait",):
            await here.wait()
        case ("begin",):
            await here.queue.begin()
        case ("finish", str(how)):
            await here.queue.finish(how)
        case ("settle", str(how)):
            await here.queue.wait_for_digests(how=how)
        case ("policy", int(which)):
            await here.configure(governing[which % len(governing)])
        case ("pop",):
            await here.pop()
        case ("rewind", int(by)):
            await here.rewind(by)
        case ("put", int(by)):
            await here.put(by)
        case ("switch", int(place), bool(back)):
            await here.switch(place, back=back)
        case ("fork", int(place), bool(goes), bool(deletes)):
            await here.fork(place, goes=goes, deletes=deletes)
        case ("turn to", int(place)):
            await here.turn_to(place)
        case ("clear",):
            await here.clear()
        case ("replace", int(size)):
            await here.replace([{"role": "user", "content": f"instead {at}"} for at in range(size)])
        case ("erase", set(places)):
            await here.erase(places)
        case ("move",):
            await here.move()
        case ("back",):
            await here.take_back_a_clear()
        case _:
            raise AssertionError(step)


quick = settings(
    max_examples=examples(7),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@lasting
@settings(quick, max_examples=examples(12))
@given(
    items=logs(),
    governing=st.lists(any_policy, min_size=1, max_size=3),
    steps=st.booleans().flatmap(lambda quiet: histories(quiet=quiet)),
)
async def test_4_7_8_9_10_any_history(
    store: Store, items: list[Payload], governing: list[Policy], steps: list[Step]
) -> None:
    await play(store, items, governing, steps)


@lasting
@quick
@given(
    items=logs(),
    policy=any_policy,
    steps=st.lists(
        st.tuples(
            st.one_of(appends, *expiry, *expiry, digests, st.tuples(st.just("pop"))),
            st.tuples(st.integers(60, 300), st.sampled_from(WIRES), st.just("nothing")),
        ),
        min_size=3,
        max_size=12,
    ),
)
async def test_4_7_8_what_is_left_of_what_expires(
    store: Store, items: list[Payload], policy: Policy, steps: list[Step]
) -> None:
    """Contexts without an incoming message, within budgets that cut, while the newest messages expire."""
    await play(store, items, [policy], steps)


@lasting
@pytest.mark.parametrize("preset", sorted({*PRESETS, "stack"} - {"sliding_window"}))
@settings(quick, max_examples=examples(2))  # of which the first is the shortest there is
@given(data=st.data(), items=st.sampled_from(WIRES).flatmap(logs), to=st.sampled_from(WIRES))
async def test_11_requests_begin_alike_between_firings(
    store: Store, preset: str, data: st.DataObject, items: list[Payload], to: Wire
) -> None:
    """Between two revisions at which a stage becomes visible, each request begins with the items of the one before,
    as long as no call waits for its result: that has to go where the call is. Cache breakpoints move on; see
    test_cache_breakpoints."""
    policy = data.draw(stacks() if preset == "stack" else presets(preset))
    async with world(store, f"r{next(_names)}", items, time_of(store), cache_breakpoints=False) as here:
        await here.configure(policy)
        before: tuple[object, list[str]] | None = None
        for item in items:
            if wire.read(item).opens_turn:
                context = await here.chat.context(item, budget=ENDLESS, wire=to, model=MODEL, instructions="Hm.")
                rows = [row.id for row in await here.chat.digests() if row.visible(context.manifest.rev)]
                start = [rows, context.request.get("instructions"), context.request.get("system")]
                sent = [json.dumps(one) for one in context.messages]
                if before is not None and before[0] == start:
                    assert sent[: len(before[1])] == before[1]
                before = (start, sent) if not await here.open_calls() else None
            await here.append(1)
            await here.queue.wait_for_digests()
