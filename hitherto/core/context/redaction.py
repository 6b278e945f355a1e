"""Messages as redactions leave them, and what became of each message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hitherto.core.context.request import WireFormat
from hitherto.core.log.group import Group
from hitherto.core.log.head import Head
from hitherto.core.log.message import Kind, Logged, Message
from hitherto.core.policy.parts import Redact, placeholder
from hitherto.core.policy.span import Fate, Reason, Span, merged, overlaid
from hitherto.core.policy.view import Layout, View


@dataclass(slots=True)
class Redactor:
    """Applies a layout's redactions to messages, to each message once and only when it is needed. `budget` is that of
    the context."""

    layout: Layout
    codec: WireFormat
    budget: int
    _made: dict[int, Message] = field(default_factory=dict[int, Message])

    def __call__(self, logged: Logged) -> Message:
        """The message as it is shown: the same object as in the log if nothing in it is redacted.

        Where several redactions cover it, each works on what the one before left.
        """
        made = self._made.get(logged.seq)
        if made is None:
            made = logged.message
            for one in self.layout.redactions:
                if one.start <= logged.seq <= one.end:
                    action = one.action.within(self.budget)
                    made = self.codec.redacted(made, self._safe(action, logged.seq), calls=action.calls)
            self._made[logged.seq] = made
        return made

    def redacts(self, logged: Logged) -> bool:
        """Whether anything in the message is redacted."""
        return self(logged) is not logged.message

    def _safe(self, action: Redact, seq: int) -> Callable[[str, str], str | None]:
        """The action's replacement; the plain placeholder where a custom action fails or gives no text."""

        def replacement(tool: str, text: str) -> str | None:
            try:
                found: object = action.shown(seq, tool, text)
            except Exception:  # noqa: BLE001 (a defect there must not keep a context from being made)
                found = NotImplemented
            return found if isinstance(found, str | None) else placeholder(tool)

        return replacement


def fates(shown: Sequence[Span], view: View, *, left: Sequence[Span], digest: bool) -> tuple[Span, ...]:
    """One fate for every message of the log, as merged ranges in order. `shown` are those that are in the payload,
    `left` the results whose calls are not; `digest` is whether what stands for the older part is shown."""
    under = list(view.before)
    if not digest:
        under = [
            Span(start=span.start, end=span.end, fate=Fate.DROPPED, reason=Reason.BUDGET)
            if span.reason in (Reason.SUMMARIZED, Reason.COMPACTED)
            else span
            for span in under
        ]
    if view.start < view.stop:
        rest = Span(start=view.start, end=view.stop - 1, fate=Fate.DROPPED, reason=Reason.BUDGET)
        under += overlaid(overlaid([rest], view.gone), left)
    return merged(overlaid(under, shown))


def places(messages: Sequence[Logged], view: View, head: Head, shown: Callable[[Logged], int]) -> dict[int, int]:
    """The running sum of what is shown before each of the messages, by seq. It is counted from the log's end, so that
    it stays the same as the log grows. `shown` is what is left of a message; of what was not read, a redaction counts
    as spread evenly, and a single long result would seem to have most of what is left."""
    layout, found = view.layout, dict[int, int]()
    begin = layout.place(layout.start_sums.tokens)
    at, place = head.sums.tokens, layout.place(head.sums.tokens)
    for one in reversed(messages):
        begins = one.sums.tokens - one.tokens
        takes = layout.place(one.sums.tokens) - layout.place(begins) if one.erased else shown(one)
        place -= layout.place(at) - layout.place(one.sums.tokens) + takes
        at, found[one.seq] = begins, max(place, min(layout.place(begins), begin))
    return found


def results_without_calls(
    found: Sequence[Group], kept: Sequence[Group], view: View, head: Head, reaches: Callable[[Logged], bool]
) -> tuple[Span, ...]:
    """The tool results that could be shown if their calls were not older than what is shown, as ascending spans.
    `reaches` tells what could be shown."""
    stays = {id(group) for group in kept}
    left: list[int] = []
    for group in found:
        if id(group) in stays or (len(group.members) == 1 and not group.members[0].message.answers):
            continue
        if group.first >= view.start and reaches(group.members[0]) and not group.orphan:
            continue
        for member in group.members:
            if member.message.kind is Kind.TOOL_RESULT and view.start <= member.seq < head.next_seq:
                left += [member.seq] if reaches(member) else []
    gone = (Span(start=seq, end=seq, fate=Fate.DROPPED, reason=Reason.CALL_NOT_IN) for seq in sorted(left))
    return merged(gone)
