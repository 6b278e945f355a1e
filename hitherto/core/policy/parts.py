"""The parts of a stage but its trigger: what it keeps, what it does, how it shows that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, cast

from hitherto.core.log.frontier import DigestAction
from hitherto.core.policy.component import Component, flags, names, quoted, register, share, whole
from hitherto.core.policy.key_values import gist
from hitherto.errors import InvalidPolicy


@dataclass(frozen=True)
class Keep(Component):
    """Says what stays verbatim."""

    slot: ClassVar[str] = "keep"


@register
@dataclass(frozen=True)
class Nothing(Keep):
    """Keep nothing verbatim but what came after the last digest (the gap)."""

    word: ClassVar[str] = "nothing"


@register
@dataclass(frozen=True)
class LastMessages(Keep):
    """Keep at least the newest `k` messages (user and final assistant ones), from the start of their turn on."""

    k: int
    word: ClassVar[str] = "last_messages"

    def __post_init__(self) -> None:
        whole(self, k=self.k)


@register
@dataclass(frozen=True)
class LastTurns(Keep):
    """Keep the newest `k` turns."""

    k: int
    word: ClassVar[str] = "last_turns"

    def __post_init__(self) -> None:
        whole(self, k=self.k)


@register
@dataclass(frozen=True)
class LastTokens(Keep):
    """Keep the newest turns that make up at most `t` tokens, and in any case the newest turn."""

    t: int
    word: ClassVar[str] = "last_tokens"

    def __post_init__(self) -> None:
        whole(self, t=self.t)


@register
@dataclass(frozen=True)
class LastFraction(Keep):
    """Keep the newest turns that make up at most the share `f` of a context's budget (of the model's window, if that is
    smaller), and in any case the newest turn."""

    f: float
    word: ClassVar[str] = "last_fraction"

    def __post_init__(self) -> None:
        share(self, f=self.f)


@register
@dataclass(frozen=True)
class Window(Keep):
    """What is older than the newest `n` messages (user and final assistant ones) leaves the digest too.

    The window starts at a user message: a start in the middle of a turn moves on to the next turn. `keep` says what of
    the window stays verbatim.
    """

    n: int
    keep: Keep = field(default=Nothing(), metadata={"slot": "keep"})
    word: ClassVar[str] = "window"

    def __post_init__(self) -> None:
        whole(self, n=self.n)
        if not isinstance(cast(object, self.keep), Keep):
            raise InvalidPolicy(f"Window.keep is {quoted(self.keep)}; give a keep such as LastTurns(2)")
        match self.keep:
            case LastMessages(k) if k >= self.n:
                raise InvalidPolicy(
                    f"Window.n is {self.n}, which is not more than its keep's {k}; a window has to be larger than "
                    "what it keeps verbatim"
                )
            case LastTurns(k) if 2 * k >= self.n:
                raise InvalidPolicy(
                    f"Window.n is {self.n}, but its keep's {k} turns are {2 * k} messages at least, once they are "
                    "answered; a window has to be larger than what it keeps verbatim"
                )
            case Window():
                raise InvalidPolicy("Window.keep is a window itself; give one of the other keeps")
            case _:
                pass


_PER_TOKEN = 3
"""Characters of a token among ids and numbers, about."""

_CHARACTERS = 300
"""What `Shorten` leaves of a result in a small budget."""

_UNIT = 2_000
"""Tokens of a budget, of which four times as many are twice the characters: they follow the root of it."""

_LONG = 10_000
_PLACEHOLDER = 12
"""The estimated tokens of a placeholder, its tool's name included."""


@dataclass(frozen=True)
class Action(Component):
    """Says what becomes of a range. `digest_action` is what its digest rows record. A custom action derives from the
    built-in one that it refines, and is recorded as that one."""

    slot: ClassVar[str] = "action"
    digest_action: ClassVar[DigestAction]

    @property
    def at_once(self) -> bool:
        """Whether it takes effect with the append that fires it: it derives nothing, so no model is asked."""
        return self.digest_action in (DigestAction.DROP, DigestAction.REDACT)


def placeholder(tool: str) -> str:
    """What is shown in the place of a tool's result."""
    return f"⟦removed: {tool}⟧"


@register
@dataclass(frozen=True)
class Drop(Action):
    """Stop showing the range. The log keeps it."""

    word: ClassVar[str] = "drop"
    digest_action: ClassVar[DigestAction] = DigestAction.DROP


@register
@dataclass(frozen=True)
class Redact(Action):
    """Show placeholders in the place of tool results; with `calls`, in the place of the calls' arguments too.

    Names and call ids stay. Tools named in `never` are not redacted. Fires only when that frees at least `at_least`
    tokens.
    """

    calls: bool = False
    never: tuple[str, ...] = ()
    at_least: int = 0
    word: ClassVar[str] = "redact"
    digest_action: ClassVar[DigestAction] = DigestAction.REDACT

    def __post_init__(self) -> None:
        flags(self, calls=self.calls)
        if isinstance(cast(object, self.never), list):
            object.__setattr__(self, "never", tuple(self.never))
        names(self, never=self.never)
        whole(self, 0, at_least=self.at_least)

    def replacement(self, tool: str, text: str) -> str | None:
        """What is shown for `text`, the readable content of a result (or a call's arguments) of `tool`; None leaves
        it as it is. Pure."""
        return None if tool in self.never else placeholder(tool)

    def within(self, budget: int) -> Redact:
        """The action as it works in a context of `budget` tokens."""
        return self

    def shown(self, seq: int, tool: str, text: str) -> str | None:
        """The replacement in message `seq`."""
        return self.replacement(tool, text)

    @property
    def leaves(self) -> int:
        """An estimate of the tokens that a replacement takes: those of the replacement of a very long text."""
        try:
            left = self.replacement("tool", "word " * _LONG)
        except Exception:  # noqa: BLE001 (a custom action; what it cannot replace becomes a placeholder)
            left = None
        # A custom action may return anything.
        return max(_PLACEHOLDER, len(left) // 4 if isinstance(left, str) else 0)  # pyright: ignore[reportUnnecessaryIsInstance]


@register
@dataclass(frozen=True)
class Shorten(Redact):
    """Show of tool results what later steps are likely to need: their ids, numbers and names, in their order, in at
    most about `characters` characters, with what says how to read the rest. A result that is hardly longer stays.

    Without `characters` they are 300, 600 from a budget of 8,000 tokens on, 1,200 from 32,000 on, and so forth.
    What is shown depends on that and the result alone, so it stays the same. `never` and `at_least` as in `Redact`.
    """

    characters: int | None = None
    word: ClassVar[str] = "shorten"

    def __post_init__(self) -> None:
        Redact.__post_init__(self)
        if self.characters is not None:
            whole(self, 50, characters=self.characters)
        if self.calls:
            raise InvalidPolicy("Shorten.calls is true; the arguments of calls are not shortened: take Redact")

    def replacement(self, tool: str, text: str) -> str | None:
        most = self.characters or _CHARACTERS
        return None if tool in self.never or len(text) - most < most // 4 else gist(text, most)

    def within(self, budget: int) -> Shorten:
        if self.characters is not None:
            return self
        doublings = max((budget // _UNIT).bit_length() - 1, 0) // 2
        return replace(self, characters=_CHARACTERS << doublings)

    def shown(self, seq: int, tool: str, text: str) -> str | None:
        found = self.replacement(tool, text)
        return None if found is None else f"⟦{len(text):,} characters, shortened; expand message {seq} for all⟧ {found}"

    @property
    def leaves(self) -> int:
        return _PLACEHOLDER + (self.characters or _CHARACTERS) // _PER_TOKEN


@register
@dataclass(frozen=True)
class Summarize(Action):
    """Derive a digest of the range, built on the digest before; at most `max_tokens` tokens of text.

    With `archive`, the messages that are new to it also become a document of the user's knowledge base, which is cut
    into passages of `passage_tokens` tokens, of which neighbors share `passage_overlap` (None: the settings of these
    names). With `facts`, the same call to the model finds facts about the conversation's subject in them. With
    `needs_model` it fires only where a language model is named: not with "extractive".
    """

    max_tokens: int = 1_000
    archive: bool = False
    facts: bool = field(default=False, metadata={"later": True})
    needs_model: bool = field(default=False, metadata={"later": True})
    passage_tokens: int | None = field(default=None, metadata={"later": True})
    passage_overlap: int | None = field(default=None, metadata={"later": True})
    word: ClassVar[str] = "summarize"
    digest_action: ClassVar[DigestAction] = DigestAction.SUMMARIZE

    def __post_init__(self) -> None:
        whole(self, max_tokens=self.max_tokens)
        flags(self, archive=self.archive, facts=self.facts, needs_model=self.needs_model)
        if self.passage_tokens is not None:
            whole(self, 16, passage_tokens=self.passage_tokens)
        if self.passage_overlap is not None:
            whole(self, 0, passage_overlap=self.passage_overlap)


@register
@dataclass(frozen=True)
class Chunk(Action):
    """Derive a separate digest, of at most `max_tokens` tokens, from the oldest `batch` messages that are in no digest.

    With `facts`, the same call to the model finds facts about the conversation's subject in them.
    """

    batch: int = 20
    max_tokens: int = 300
    facts: bool = field(default=True, metadata={"later": True})
    word: ClassVar[str] = "chunk"
    digest_action: ClassVar[DigestAction] = DigestAction.CHUNK

    def __post_init__(self) -> None:
        whole(self, batch=self.batch, max_tokens=self.max_tokens)
        flags(self, facts=self.facts)


@register
@dataclass(frozen=True)
class FindFacts(Action):
    """Let a language model find facts about the conversation's subject in the range. It stays in view as it is.

    Each message is read once, whichever stage found facts in it. Only turns that are finished are read, and nothing
    where no user spoke. Beside its trigger it is due when the conversation is finished, and when it rests. Its trigger
    counts no tokens of tool results, as those are not read.
    """

    word: ClassVar[str] = "find_facts"
    digest_action: ClassVar[DigestAction] = DigestAction.FACTS


@register
@dataclass(frozen=True)
class Compact(Action):
    """Let the model's own endpoint make an opaque item that stands for the range, for models of its family alone."""

    word: ClassVar[str] = "compact"
    digest_action: ClassVar[DigestAction] = DigestAction.COMPACT


@dataclass(frozen=True)
class Render(Component):
    """Says how a digest is shown."""

    slot: ClassVar[str] = "render"


class _Templated(Render):
    template: str

    def __post_init__(self) -> None:
        if not isinstance(cast(object, self.template), str) or self.template.count("{text}") != 1:
            raise InvalidPolicy(
                f"{type(self).__name__}.template is {quoted(self.template)}; it must contain {{text}} exactly once"
            )

    def __call__(self, text: str) -> str:
        return self.template.replace("{text}", text)


@register
@dataclass(frozen=True)
class Prefix(_Templated):
    """Show the digest in front of the first user message's text; `{text}` stands for it."""

    template: str = "[Previous context: {text}]\n\n"
    word: ClassVar[str] = "prefix"


@register
@dataclass(frozen=True)
class SystemMessage(_Templated):
    """Show the digest as a system message after the instructions; `{text}` stands for it."""

    template: str = "Summary of the conversation so far:\n{text}"
    word: ClassVar[str] = "system_message"


@register
@dataclass(frozen=True)
class ShadowTurn(_Templated):
    """Show the digest as a turn of its own ahead of the verbatim ones: the line `user`, answered by the digest."""

    user: str = "What have we talked about so far?"
    template: str = "{text}"
    word: ClassVar[str] = "shadow_turn"

    def __post_init__(self) -> None:
        super().__post_init__()
        # A value from JSON may have any type.
        if not isinstance(self.user, str) or not self.user.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidPolicy(f"ShadowTurn.user is {quoted(self.user)}; give the line that the digest answers")


@register
@dataclass(frozen=True)
class Recalled(Render):
    """Show the `top_k` digests that a recall finds for the incoming message."""

    top_k: int = 3
    word: ClassVar[str] = "recalled"

    def __post_init__(self) -> None:
        whole(self, top_k=self.top_k)
