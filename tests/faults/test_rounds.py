"""All that can be killed is killed, with and without a network that falls silent."""

from __future__ import annotations

from tests.faults.rounds import WHO, play


async def test_nothing_is_lost_and_nothing_is_made_twice() -> None:
    done = await play(2 * len(WHO))
    assert [done[who] for who in WHO] == [2] * len(WHO)
    assert done["silent"] == len(WHO)
