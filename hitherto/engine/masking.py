"""Showing messages as redactions leave them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hitherto.core.ask import Codec
from hitherto.core.layout import Layout
from hitherto.core.message import Logged


def masked(messages: Sequence[Logged], lies: Layout, codec: Codec) -> tuple[list[Logged], frozenset[int]]:
    """`messages` with the placeholders of the layout's redactions, and the seqs of those that have some now.

    Where several redactions reach a message, each works on what the one before it left.
    """
    shown: list[Logged] = []
    changed: set[int] = set()
    for logged in messages:
        message = logged.message
        for redaction in lies.redactions:
            if redaction.start <= logged.seq <= redaction.end:
                action = redaction.action
                message = codec.redacted(message, action.replacement, calls=action.calls)
        if message is logged.message:
            shown.append(logged)
        else:
            changed.add(logged.seq)
            shown.append(replace(logged, message=message))
    return shown, frozenset(changed)
