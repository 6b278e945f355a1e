"""What a context shows however far back in the log it is: the rules, the question, and how the conversation began."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from hitherto.core.log.conversations import SAID, Lasting
from hitherto.core.log.group import Group
from hitherto.core.log.head import Head
from hitherto.core.log.message import Kind, Message, Role
from hitherto.core.policy.span import Span
from hitherto.core.policy.view import View


def lasting(view: View, head: Head) -> Lasting:
    """What of this must be read beside the newest messages."""
    first = head.view_sums.turns + 1
    return Lasting(start=_beyond(view.gone, head.view_start), first=first, last=max(head.sums.turns, first))


def rules(found: Sequence[Group], view: View, head: Head) -> list[Group]:
    """The system messages with which the conversation begins."""
    leading: list[Group] = []
    at = _beyond(view.gone, head.view_start)
    for group in found:
        if group.first < at:  # the call of a result that came after the conversation was cleared
            continue
        if group.first != at or not says_rules(group.members[0].message) or at >= head.next_seq:
            break
        leading.append(group)
        at = _beyond(view.gone, at + 1)
    return leading


def says_rules(message: Message) -> bool:
    """Whether it is a system message."""
    return message.kind is Kind.TEXT and message.role is Role.SYSTEM


def question(found: Sequence[Group], view: View, head: Head) -> list[Group]:
    """What the user said in the turn that is not finished: the newest user message, and those before it that have no
    answer either, unless a stage digested or dropped their turns whole. None where the log ends with an answer to it.
    """
    opening = (one for one in reversed(found) if one.members[0].message.opens_turn and one.first >= head.view_start)
    said = [*islice(opening, SAID)][::-1]
    if not said or (head.closed and said[-1].first < head.next_seq):
        return []
    answers = _answers(said[-1])
    following = next((group.first for group in said if group.first >= view.start), None)
    start = view.start if following == view.start or view.opaque is not None else 0  # 0: it begins within a turn
    earlier = [group for group in said[:-1] if _answers(group) == answers and group.first >= start]
    return [*earlier, said[-1]]


def beginning(found: Sequence[Group], view: View, head: Head) -> Group | None:
    """The first user message of the conversation; None where no view shows it, as a stage digested or dropped it."""
    for group in found:
        first = group.members[0]
        if first.message.opens_turn and head.view_start <= group.first < head.next_seq:
            begins = first.sums.turns == head.view_sums.turns + 1 and group.first >= view.start
            return group if begins else None
    return None


def _answers(group: Group) -> int:
    """How many final answers of the assistant there were before it."""
    sums = group.members[0].sums
    return sums.dialogue - sums.turns


def _beyond(gone: Sequence[Span], seq: int) -> int:
    """The first seq from `seq` on that is neither erased nor retracted."""
    for span in gone:
        if span.start <= seq <= span.end:
            seq = span.end + 1
    return seq
