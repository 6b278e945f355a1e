"""Groups: messages that are sent together or not at all. `hitherto.wire.exchange` writes a call with its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from hitherto.core.log.message import RESPONSES, Kind, Logged, Role
from hitherto.core.log.ranges import Ranges, all_in, joined


@dataclass(slots=True, eq=False)
class Group:
    """A tool call with its siblings and all their results, a reasoning item with what it precedes, or one message.

    `members` are in the order in which an API wants them: a result that arrived turns later stands right behind its
    calls, at the place of the group's first member. `first` and `last` are the seqs of the first and the last member.
    `open` are calls without a result, also one whose id was used again before it had one. `orphan`: it has a result
    whose call is not among the messages that were grouped.
    """

    members: list[Logged]
    first: int
    last: int
    open: set[str]
    orphan: bool = False

    def add(self, logged: Logged) -> None:
        self.members.append(logged)
        self.last = logged.seq

    @property
    def pending(self) -> set[str]:
        """The calls that may be sent without a result when nothing follows the group: those of its last response, if
        no other response made any, none of the group's calls has a result yet, and no message of the response comes
        after them."""
        if any(member.message.answers for member in self.members):
            return set()
        called = next((at for at, member in enumerate(self.members) if self.open & set(member.message.calls)), None)
        if any(member.message.kind is Kind.TEXT for member in self.members[called:]):
            return set()
        last = self.members[-1].message
        return self.open if last.wire == RESPONSES or self.open <= {*last.calls} else set()


def groups(messages: Sequence[Logged], retracted: Sequence[tuple[int, int]] = ()) -> list[Group]:
    """`messages` (ascending by seq) as groups, ordered by their first member; erased messages are left out. `retracted`
    are inclusive ranges of seqs that were retracted and so are not among `messages`: those on both sides of a range are
    adjacent.

    One response of a model is one group: its reasoning items, then its tool calls, parallel ones together, up to the
    first result.
    """
    found: list[Group] = []
    by_call: dict[str, Group] = {}
    run: Group | None = None
    retracted = joined(retracted)
    for logged in messages:
        if logged.erased:
            run = None
            continue
        message = logged.message
        if message.kind is Kind.TOOL_RESULT:
            run = None
            _answer(logged, found, by_call)
            continue
        joins = (
            run is not None
            and _adjacent(run.members[-1].seq, logged.seq, retracted)
            and not message.opens_turn
            and not (message.kind is Kind.TEXT and message.role is Role.SYSTEM)
            and run.open.isdisjoint(message.calls)
            and (message.kind in (Kind.TOOL_CALL, Kind.REASONING) or run.members[-1].message.goes_on)
        )
        if joins:
            assert run is not None
            run.add(logged)
        else:
            run = Group([logged], logged.seq, logged.seq, set())
            found.append(run)
        for call in message.calls:
            run.open.add(call)
            by_call[call] = run
        if message.kind not in (Kind.TOOL_CALL, Kind.REASONING):
            run = None
    return found


def newest(found: Sequence[Group]) -> Group | None:
    """The group with the newest message, among those that can be sent; None where there is none."""
    return max([group for group in found if not group.orphan], key=attrgetter("last"), default=None)


def ending(found: Sequence[Group]) -> Group | None:
    """The last group, if it has the newest message too; None where a result of earlier calls is newer, so that nothing
    may be left open at the end."""
    return found[-1] if found and max([group.last for group in found]) == found[-1].last else None


def _adjacent(seq: int, following: int, retracted: Ranges) -> bool:
    return following == seq + 1 or all_in(retracted, seq + 1, following - 1)


def _answer(logged: Logged, found: list[Group], by_call: dict[str, Group]) -> None:
    """Add a result to the group of its calls. A message that answers calls of several groups joins them. The group
    becomes an orphan if one of the calls is missing."""
    owners: list[Group] = []
    parted = False
    for call in logged.message.answers:
        owner = by_call.pop(call, None)
        parted = parted or owner is None
        if owner is not None:
            owner.open.discard(call)
            if owner not in owners:
                owners.append(owner)
    if not owners:
        found.append(Group([logged], logged.seq, logged.seq, set(), orphan=True))
        return
    first = min(owners, key=lambda group: group.first)
    for other in owners:
        if other is not first:
            first.members += other.members
            first.open |= other.open
            found.remove(other)
            by_call.update(dict.fromkeys(other.open, first))
        first.orphan |= other.orphan
    first.add(logged)
    first.orphan |= parted
