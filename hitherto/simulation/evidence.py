"""How much of what answers a question a context shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean

from hitherto.core.log.message import Message
from hitherto.core.policy.span import Fate
from hitherto.engine.context.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Labeled:
    """A question and its evidence: the seqs of the messages that answer it, at least one."""

    text: str
    evidence: frozenset[int]


def evidence_shown(context: Context, messages: Sequence[Message], evidence: Collection[int]) -> float:
    """The share of the evidence that the payload shows word for word, from 0 to 1: each message counts by the share of
    its characters. `messages` are the conversation's, by their seq."""
    whole = {
        seq
        for span in context.manifest.fates
        if span.fate is Fate.IN
        for seq in evidence
        if span.start <= seq <= span.end
    }
    parts: dict[int, float] = {}
    for one in context.manifest.recalled:
        if one.kind == "message" and one.conversation == context.manifest.conversation and one.start is not None:
            parts |= _shares(messages, range(one.start, (one.end or one.start) + 1), one.characters)
    return fmean(1.0 if seq in whole else parts.get(seq, 0.0) for seq in evidence)


def _shares(
    messages: Sequence[Message], seqs: Sequence[int], characters: Sequence[tuple[int, int]]
) -> dict[int, float]:
    """What is shown of each message of a recalled group, whose texts stand one a line in the text that `characters` are
    ranges of; all of it where there are none."""
    found: dict[int, float] = {}
    begin = 0
    for seq in seqs:
        text = messages[seq].text
        inside = sum(max(min(end, begin + len(text)) - max(start, begin), 0) for start, end in characters)
        found[seq] = min(inside / max(len(text), 1), 1.0) if characters else 1.0
        begin += len(text) + 1 if text.strip() else 0
    return found
