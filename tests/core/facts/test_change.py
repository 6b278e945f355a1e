"""What may be done to a fact by hand, in which state, and what is said of the rest."""

from __future__ import annotations

from itertools import product

import pytest

from hitherto.core.facts.change import check_change, deleted_fact, no_such_fact
from hitherto.core.facts.fact import FactAction, FactState
from hitherto.core.scope import Scope
from hitherto.errors import InvalidFact, NotFound, StaleVersion

SCOPE = Scope(tenant="acme", user="ana", agent="planner")
CURRENT, ENDED = (FactState.CURRENT,), (FactState.SUPERSEDED, FactState.WITHDRAWN)
MAY = {
    FactAction.EDITED: CURRENT,
    FactAction.CONFIRMED: CURRENT,
    FactAction.SHARED: CURRENT,
    FactAction.UNSHARED: CURRENT + ENDED,
    FactAction.RESTORED: ENDED,
    FactAction.DELETED: CURRENT + ENDED,
}


@pytest.mark.parametrize(("action", "state"), list(product(FactAction, FactState)))
def test_what_may_be_done_in_which_state(action: FactAction, state: FactState) -> None:
    if state in MAY.get(action, ()):
        check_change(action, 2, state=state, version=3)
        check_change(action, 2, state=state, version=3, expect=3)
        with pytest.raises(StaleVersion, match="fact 2 is at version 3 and not 4") as told:
            check_change(action, 2, state=state, version=3, expect=4)
        assert told.value.actual == 3
        return
    with pytest.raises(NotFound if action in MAY and state is FactState.DELETED else InvalidFact):
        check_change(action, 2, state=state, version=3)


@pytest.mark.parametrize("action", MAY)
def test_two_current_facts_do_not_say_the_same(action: FactAction) -> None:
    state = MAY[action][0]
    if action in (FactAction.EDITED, FactAction.RESTORED):
        with pytest.raises(InvalidFact, match="fact 7 says already what 2 would say"):
            check_change(action, 2, state=state, version=3, alike=7)
    else:
        check_change(action, 2, state=state, version=3, alike=7)


def test_a_deleted_fact_is_called_deleted() -> None:
    """Whatever version it is expected to be at."""
    for action, expect in product(MAY, (None, 1)):
        with pytest.raises(NotFound) as told:
            check_change(action, 2, state=FactState.DELETED, version=3, expect=expect)
        assert f"{told.value}" == f"{deleted_fact(2)}"
    assert f"{deleted_fact(2)}".startswith("fact 2 is deleted: only ")


def test_who_has_no_such_fact_is_told_where_to_look() -> None:
    mine = f"{no_such_fact(SCOPE, 2)}"
    assert mine.startswith("scope acme/ana/planner has no fact 2; ")
    everywhere = f"{no_such_fact(SCOPE, 2, all_agents=True)}"
    assert everywhere.startswith("user 'ana' of tenant 'acme' has no fact 2; ")
    assert ("--all-agents" in mine, "--all-agents" in everywhere) == (True, False)
    for text in (mine, everywhere):
        assert "memory.facts(scope).list()" in text
        assert "`hitherto facts list`" in text
