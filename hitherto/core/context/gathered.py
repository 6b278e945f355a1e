"""What is read for a context, and how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hitherto.core.context.redaction import places
from hitherto.core.context.request import ContextRequest
from hitherto.core.context.written import halves
from hitherto.core.log.head import Head
from hitherto.core.log.message import Logged, Message, Role
from hitherto.core.policy.view import View

_STEP = 1_000
"""Characters of each text of a step that tell what it is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What was read for a context. `messages` ascend by seq: the verbatim ones from `read_from` on, a running sum, and
    before them the tool items that an incoming result may belong to and what is `lasting`."""

    view: View
    head: Head
    messages: Sequence[Logged]
    read_from: int = 0

    def newest_said(self) -> list[Logged]:
        """The newest user message: a list of one message, or an empty one."""
        found = next((one for one in reversed(self.messages) if one.message.opens_turn and not one.erased), None)
        return [] if found is None else [found]

    def step(self, until: int, incoming: Sequence[Message]) -> str:
        """What an agent with tools had said, called and been given last, before the message with the seq `until`; of a
        long text the beginning. `incoming` go on where the log ends. "" where nothing that was read calls a tool."""
        live = [one.message for one in self.messages if not one.erased and one.seq < until]
        live += incoming[: max(until - self.head.next_seq, 0)]
        if not any(one.calls for one in live):
            return ""
        spoken = max((at for at, one in enumerate(live) if one.role is Role.ASSISTANT), default=len(live))
        step = [one for one in live[spoken:] if one.answers or one.role is Role.ASSISTANT]
        return "\n".join(one.text[:_STEP] for one in step)


def read_from(view: View, head: Head, request: ContextRequest) -> int:
    """The running sum of what is shown (`Layout.place`) from which on messages must be read for a context: earlier ones
    cannot fit."""
    begin, total = extent(view, head)
    room = request.room - _taken(request)
    return begin + min(max(total - max(room, 0), 0), total)


def earlier(gathered: Gathered, request: ContextRequest, wanted: int) -> int | None:
    """The running sum of what is shown from which on messages must be read, further back than `Gathered.read_from`, for
    those from `wanted` on to be there: a long result that is redacted seems to have most of what is left of all. None
    where they are there."""
    view, layout = gathered.view, gathered.view.layout
    begin = layout.place(layout.start_sums.tokens)
    at = gathered.read_from
    read = [one for one in gathered.messages if one.seq >= view.start and layout.place(one.sums.tokens) >= at]
    if at <= begin or not read:
        return None
    budget = request.shorten_for or request.budget
    redactions = [(range(one.start, one.end + 1), one.action.within(budget)) for one in layout.redactions]

    def shown(one: Logged) -> int:
        tool = one.message.answers or one.message.calls
        leaves = [action.leaves for seqs, action in redactions if tool and one.seq in seqs]
        return min([one.tokens, *leaves])

    short = places(read, view, gathered.head, shown)[read[0].seq] - wanted
    first = layout.place(read[0].sums.tokens - read[0].tokens)
    return max(first - max(short, wanted - at), begin) if short > 0 else None


def _taken(request: ContextRequest) -> int:
    """The tokens of what is in the request in any case; the calls that incoming messages answer come to that."""
    incoming = request.sendable(request.codec.write(request.incoming), halves=halves(request.incoming))
    return sum(request.fixed().values()) + request.cost(incoming)


def extent(view: View, head: Head) -> tuple[int, int]:
    """Where what is shown begins, as a running sum, and how many tokens it has."""
    begin = view.layout.place(view.layout.start_sums.tokens)
    return begin, view.layout.place(head.sums.tokens) - begin
