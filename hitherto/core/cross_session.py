"""Cross-session memory: in which ways a conversation is shown content of the scope's other conversations."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, cast, get_args

from hitherto.errors import InvalidInput

Way = Literal["latest", "triggers", "always"]
WAYS: tuple[Way, ...] = get_args(Way)

RecallFrom = Literal["scope", "own", "off"]
"""Where contexts recall from: all conversations of the scope, the context's own, or none."""

MOST_PHRASES, LONGEST_PHRASE = 100, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossSession:
    """Which ways of cross-session memory are on. A request, a conversation, its agent and the settings each have such a
    value; None leaves the choice to the next in this order.

    `latest`: the newest digest of the scope's other conversations is shown in the instructions; it is chosen at the
    conversation's first append and stays the same. `triggers`: relevant content of other conversations is recalled when
    the incoming message contains one of the phrases `search_triggers`. `always`: it is recalled for every incoming
    message. What is recalled has a score of at least `relevance_threshold` (0 to 1). `recall`: where contexts recall
    from, whatever the message says ("scope", "own" or "off"; True and False stand for the first and the last).

    Raises InvalidInput for phrases without a word, for more of them than `MOST_PHRASES` or longer ones than
    `LONGEST_PHRASE`, and for another threshold.
    """

    latest: bool | None = None
    triggers: bool | None = None
    always: bool | None = None
    search_triggers: tuple[str, ...] | None = None
    relevance_threshold: float | None = None
    recall: RecallFrom | None = None

    def __post_init__(self) -> None:
        phrases, least = cast(object, self.search_triggers), cast(object, self.relevance_threshold)
        if phrases is not None:
            listed = tuple(cast("Collection[object]", phrases)) if isinstance(phrases, list | tuple) else ()
            if not listed or not all(isinstance(one, str) and any(map(str.isalnum, one)) for one in listed):
                raise InvalidInput(
                    f"search_triggers is {phrases!r:.200}; give a list of phrases, each with a word in it"
                )
            if len(listed) > MOST_PHRASES or any(len(cast(str, one)) > LONGEST_PHRASE for one in listed):
                raise InvalidInput(
                    f"search_triggers has {len(listed):,} phrases; give at most {MOST_PHRASES}, each of at most "
                    f"{LONGEST_PHRASE} characters: each message is looked through for all of them"
                )
            object.__setattr__(self, "search_triggers", listed)
        number = isinstance(least, int | float) and not isinstance(least, bool)
        if least is not None and not (number and 0 <= cast(float, least) <= 1):
            raise InvalidInput(f"relevance_threshold is {least!r}; give a number from 0 to 1")
        object.__setattr__(self, "recall", recall_from_of(self.recall))

    def over(self, weaker: CrossSession) -> CrossSession:
        """The two combined: a value of `weaker` counts where this one has None."""
        said = self._said()
        return replace(weaker, **said) if said else weaker

    @property
    def recalls(self) -> bool:
        """Whether other conversations may be searched."""
        return bool(self.triggers or self.always)

    def to_json(self) -> str | None:
        """Its values that are not None, as the text of a JSON object; None if there are none."""
        said = self._said()
        return json.dumps(said) if said else None

    @classmethod
    def from_json(cls, text: str | None) -> CrossSession:
        return UNSAID if text is None else cls(**json.loads(text))

    def _said(self) -> dict[str, Any]:
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) is not None}


def with_recall(crossing: CrossSession, recall: RecallFrom | bool | None) -> CrossSession:
    """`crossing`, with where contexts recall from if that is given. Raises InvalidInput."""
    return crossing if recall is None else replace(crossing, recall=recall_from_of(recall))


def recall_from_of(value: object) -> RecallFrom | None:
    """What a caller gave as `value`, as a `RecallFrom`: True is "scope", False is "off". Raises InvalidInput."""
    if isinstance(value, bool):
        return "scope" if value else "off"
    if value is not None and value not in get_args(RecallFrom):
        known = ", ".join(f'"{one}"' for one in get_args(RecallFrom))
        raise InvalidInput(f"recall is {value!r}; give {known}, True (scope) or False (off)")
    return cast("RecallFrom | None", value)


UNSAID = CrossSession()
"""The value that leaves all to the next."""


CrossSessionLike: TypeAlias = CrossSession | Way | Collection[Way]


def cross_session_of(value: object) -> CrossSession:
    """What a caller gave as `value`, as a `CrossSession`.

    None leaves everything open. One way or a collection of ways turns those on and the others off; `()` turns all off.
    A `CrossSession` is returned as it is. Raises InvalidInput for anything else.
    """
    if value is None:
        return UNSAID
    if isinstance(value, CrossSession):
        return value
    ways = (value,) if isinstance(value, str) else value
    if isinstance(ways, Collection):
        named = tuple(cast(Collection[object], ways))
        if all(way in WAYS for way in named):
            return CrossSession(latest="latest" in named, triggers="triggers" in named, always="always" in named)
    raise InvalidInput(f"cross_session is {value!r}; give any of {', '.join(map(repr, WAYS))}, or () for none of them")
