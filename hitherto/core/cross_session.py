"""Memory across sessions: in which ways a conversation is shown what others of its scope have."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias, cast, get_args

from hitherto.errors import InvalidInput

Way = Literal["latest", "triggers", "always"]
WAYS: tuple[Way, ...] = get_args(Way)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossSession:
    """What a request, a conversation, an agent or the settings say of each way; of None the next in this order decides.

    `latest`: the newest digest of the scope's other conversations stands in the instructions, the same from a
    conversation's first append on. `triggers`: what is relevant in them is recalled where the incoming message has one
    of the setting `search_triggers`; `always`: for every incoming message.
    """

    latest: bool | None = None
    triggers: bool | None = None
    always: bool | None = None

    def over(self, weaker: CrossSession) -> CrossSession:
        """What both say together: `weaker` counts where this one says nothing."""
        return CrossSession(
            latest=weaker.latest if self.latest is None else self.latest,
            triggers=weaker.triggers if self.triggers is None else self.triggers,
            always=weaker.always if self.always is None else self.always,
        )

    @property
    def recalls(self) -> bool:
        """Whether other conversations may be searched."""
        return bool(self.triggers or self.always)

    def to_json(self) -> str | None:
        """What it says as a JSON object; None where it says nothing."""
        said = {way: value for way, value in asdict(self).items() if value is not None}
        return json.dumps(said) if said else None

    @classmethod
    def from_json(cls, text: str | None) -> CrossSession:
        return cls() if text is None else cls(**json.loads(text))


CrossSessionLike: TypeAlias = CrossSession | Way | Collection[Way]


def cross_session_of(value: object, *, memory_injection: bool | None = None) -> CrossSession:
    """What a caller says: None for nothing; a way or several, and no other; `()` for none of them; or a `CrossSession`.
    `memory_injection` says it of `latest` alone. Raises InvalidInput for anything else, and for two that differ."""
    said = _said(value)
    if memory_injection is None:
        return said
    if said.latest not in (None, memory_injection):
        raise InvalidInput("cross_session and memory_injection say different things of 'latest'; give one of them")
    return CrossSession(latest=bool(memory_injection)).over(said)


def _said(value: object) -> CrossSession:
    if value is None:
        return CrossSession()
    if isinstance(value, CrossSession):
        return value
    ways = (value,) if isinstance(value, str) else value
    if isinstance(ways, Collection):
        named = tuple(cast(Collection[object], ways))
        if all(way in WAYS for way in named):
            return CrossSession(latest="latest" in named, triggers="triggers" in named, always="always" in named)
    raise InvalidInput(f"cross_session is {value!r}; give any of {', '.join(map(repr, WAYS))}, or () for none of them")
