"""What holds of every context, whatever was recalled for it."""

from __future__ import annotations

import json

from hitherto import Context, Conversation
from hitherto.core.policy.span import Fate


async def check(chat: Conversation, context: Context) -> None:
    """Within its budget, its sections add up, every message has one fate, and its manifest gives it once more."""
    manifest = context.manifest
    assert manifest.total + manifest.reserve <= manifest.budget
    assert sum(manifest.sections.values()) == manifest.total
    covered = [seq for span in manifest.fates for seq in range(span.start, span.end + 1)]
    assert covered == list(range(manifest.next_seq))
    own = {
        seq
        for one in manifest.recalled
        if (one.agent, one.conversation, one.kind) == (chat.scope.agent, chat.id, "message")
        and one.start is not None
        and one.end is not None
        for seq in (one.start, one.end)
    }
    recalled = {seq for span in manifest.fates if span.fate is Fate.RECALLED for seq in range(span.start, span.end + 1)}
    assert own <= recalled, "what is recalled of the conversation itself is its messages' fate"
    assert bool(own) == bool(recalled)
    assert bool(manifest.recalled) == ("recalled" in manifest.sections)
    again = await chat.rebuild(type(manifest).from_json(json.dumps(manifest.to_json())))
    assert json.dumps(again.request) == json.dumps(context.request), "byte for byte"
    assert again.manifest == manifest
