"""Changes to a fact by hand: which are allowed, and the errors for the others."""

from __future__ import annotations

from hitherto.core.facts.fact import FactAction, FactState
from hitherto.core.scope import Scope
from hitherto.errors import InvalidFact, NotFound, StaleVersion

_BY_HAND = (
    FactAction.EDITED,
    FactAction.CONFIRMED,
    FactAction.SHARED,
    FactAction.UNSHARED,
    FactAction.RESTORED,
    FactAction.DELETED,
)

_ALWAYS = (FactAction.DELETED, FactAction.RESTORED, FactAction.UNSHARED)
"""What can be done to a fact that is not current."""


def check_change(
    action: FactAction, id: int, *, state: FactState, version: int, expect: int | None = None, alike: int | None = None
) -> None:
    """Raises the errors of `FactStore.change` for doing `action` to a fact of the user's own that is in that state and
    version. `alike` is another current fact that says what this one would say afterwards."""
    if action not in _BY_HAND:
        raise InvalidFact(
            f"{action.value!r} is nothing that a person does to a fact; give one of {', '.join(_BY_HAND)}"
        )
    if state is FactState.DELETED:
        raise deleted_fact(id)
    if expect is not None and expect != version:
        raise StaleVersion(
            f"fact {id} is at version {version} and not {expect}: somebody changed it meanwhile; look at it again, and "
            "say what is to be done to it as it is now",
            actual=version,
        )
    if action is FactAction.RESTORED and state is FactState.CURRENT:
        raise InvalidFact(f"fact {id} is current; there is nothing to restore")
    if action not in _ALWAYS and state is not FactState.CURRENT:
        raise InvalidFact(
            f"fact {id} is {state}: it can only be restored, unshared or deleted; restore it before anything else"
        )
    if action in (FactAction.EDITED, FactAction.RESTORED) and alike is not None:
        raise InvalidFact(f"fact {alike} says already what {id} would say then; delete one of the two")


def no_such_fact(scope: Scope, id: object, *, all_agents: bool = False) -> NotFound:
    """The error for a fact that is not the scope's own; it does not reveal whether anybody has it."""
    whose = f"user {scope.user!r} of tenant {scope.tenant!r}" if all_agents else f"scope {scope}"
    others = "" if all_agents else "; those of all agents: all_agents=True, or --all-agents"
    return NotFound(
        f"{whose} has no fact {id}; list them: memory.facts(scope).list(), or `hitherto facts list`{others}"
    )


def deleted_fact(id: int) -> NotFound:
    """The error for a fact of the user's own that was deleted."""
    return NotFound(
        f"fact {id} is deleted: only its number, category and dates are left; add it anew, if it holds after all: "
        "memory.facts(scope).add(…), or `hitherto facts add`"
    )
