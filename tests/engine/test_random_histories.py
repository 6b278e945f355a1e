"""Promises 4, 7, 8, 9 and 10 over random histories: any log, any policies, digests fast, slow and failing, verbs that take back."""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitherto import Policy, none
from hitherto.core.message import Payload
from hitherto.ports.store import Store
from hitherto.stores.inmemory import InMemoryStore
from tests.core.policies import policies, presets
from tests.engine.held import OUTCOMES
from tests.engine.stacks import stacks
from tests.engine.worlds import World, world
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
others = st.one_of(
    st.tuples(st.just("policy"), st.integers(0, 2)),
    st.tuples(st.just("pop")),
    st.tuples(st.just("clear")),
    st.tuples(st.just("replace"), st.integers(0, 3)),
    st.tuples(st.just("back")),
)
looks = st.tuples(
    st.integers(60, 3_000), st.sampled_from(WIRES), st.sampled_from(["nothing", "user", "user", "result"])
)
any_policy = st.one_of(presets(), stacks(), policies(max_stages=3))


@st.composite
def logs(draw: st.DrawFn) -> list[Payload]:
    """The items of one conversation or of two, one behind the other, perhaps of different formats; ids are unique."""
    found: list[Payload] = []
    for number in range(draw(st.sampled_from([1, 1, 1, 2]))):
        for item in draw(conversations(turns=8)).items:
            if "D" in SKIP and isinstance(item.get("content"), list) and item["content"][0]["type"] == "tool_result":
                item["content"] = [one for one in item["content"] if one["type"] == "tool_result"]
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


async def play(store: Store, items: list[Payload], governing: list[Policy], steps: list[Step]) -> World:
    """Take a conversation through `steps`, and hold it against the promises after each."""
    async with world(store, f"r{next(_names)}", items) as here:
        await here.configure(governing[0])
        for step, look in steps:
            await do(here, governing, step)
            await here.check_log()
            await here.check_digests()
            await here.look(*look)
            await here.note_state()
        await here.check_past()
        return here


async def do(here: World, governing: list[Policy], step: Step) -> None:
    match step:
        case ("append", int(size), bool(other)):
            await here.append(size, governing[-1] if other else None)
        case ("begin",):
            await here.queue.begin()
        case ("finish", str(how)):
            await here.queue.finish(how)
        case ("settle", str(how)):
            await here.queue.settled(how)
        case ("policy", int(which)):
            await here.configure(governing[which % len(governing)])
        case ("pop",):
            await here.pop()
        case ("clear",):
            await here.clear()
        case ("replace", int(size)):
            await here.replace([{"role": "user", "content": f"instead {at}"} for at in range(size)])
        case ("back",):
            await here.take_back_a_clear()
        case _:
            raise AssertionError(step)


import os
from hypothesis import Phase
SKIP=os.environ.get("SKIP","")
quick = settings(
    phases=[Phase.explicit, Phase.generate] if os.environ.get("NOSHRINK") else list(Phase), report_multiple_bugs=False,
    max_examples=int(os.environ.get("N","300")), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@quick
@given(items=logs(), policy=any_policy, steps=histories(quiet=True))
async def test_4_7_8_9_10_one_policy(items: list[Payload], policy: Policy, steps: list[Step]) -> None:
    await play(InMemoryStore(), items, [policy], steps)


@quick
@given(items=logs(), governing=st.lists(any_policy, min_size=2, max_size=3), steps=histories())
async def test_4_7_8_9_10_any_history(items: list[Payload], governing: list[Policy], steps: list[Step]) -> None:
    await play(InMemoryStore(), items, governing, steps)


@settings(quick, max_examples=10)
@given(items=logs(), governing=st.lists(any_policy, min_size=1, max_size=3), steps=histories(longest=14))
async def test_10_both_stores_agree(
    make_database: Any, items: list[Payload], governing: list[Policy], steps: list[Step]
) -> None:
    raise NotImplementedError
