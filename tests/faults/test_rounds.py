"""All that can be killed is killed, with and without a network that falls silent."""

from __future__ import annotations

from tests.faults.rounds import WHO, play
from tests.lengths import examples, lasting


@lasting
async def test_nothing_is_lost_and_nothing_is_made_twice() -> None:
    each = 2 * examples(1)
    done = await play(each * len(WHO))
    assert [done[who] for who in WHO] == [each] * len(WHO)
    assert done["silent"] == each * len(WHO) // 2
