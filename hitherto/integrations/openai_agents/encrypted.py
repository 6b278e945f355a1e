"""Items that the SDK's `EncryptedSession` has encrypted: the log keeps them as reasoning items that it cannot read.

A user's message and a tool's result look the same in them, so there is nothing that a policy could count or cut.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from hitherto.core.log.message import Payload, to_json

_MARK = "__enc__"
_OPENS = f'{{"{_MARK}"'


def sealed(item: Mapping[str, object]) -> Payload:
    """The item as the log accepts it: a copy, or a reasoning item around it if it is encrypted."""
    if _MARK not in item:
        return dict(item)
    first = {_MARK: item[_MARK]}
    return {"type": "reasoning", "summary": [], "encrypted_content": to_json({**first, **item}, what="a sealed item")}


def unsealed(item: Payload) -> Payload:
    """The item as it was given to `sealed`."""
    content = item.get("encrypted_content")
    if item.get("type") != "reasoning" or not isinstance(content, str) or not content.startswith(_OPENS):
        return item
    return json.loads(content)
