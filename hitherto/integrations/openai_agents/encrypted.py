"""Items that the SDK's `EncryptedSession` has sealed: the log keeps them, as what it cannot read.

Nobody can tell a user's message from a tool's result in them, so no policy has anything to count or to cut.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from hitherto.core.log.message import Payload, to_json

_MARK = "__enc__"
_OPENS = f'{{"{_MARK}"'


def sealed(item: Mapping[str, object]) -> Payload:
    """The item as the log takes it: itself, or a reasoning item around it if it is sealed."""
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
