"""All that can be killed is killed, with and without a network that falls silent."""

from __future__ import annotations

from tests.faults.rounds import WHO, play
from tests.lengths import at_length, lasting


@lasting
async def test_nothing_is_lost_and_nothing_is_made_twice() -> None:
    each = 12 if at_length() else 1
    done = await play(each * len(WHO))
    assert [done[who] for who in WHO] == [each] * len(WHO)
    assert done["silent"] == each * len(WHO) // 2
