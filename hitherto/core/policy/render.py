"""Renders: how a digest is shown to the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hitherto.core.policy.component import Component, quoted, register, whole
from hitherto.errors import InvalidPolicy


@dataclass(frozen=True)
class Render(Component):
    """Says how a digest is shown."""

    slot: ClassVar[str] = "render"


@register
@dataclass(frozen=True)
class Prefix(Render):
    """Show the digest in front of the first user message's text; `{text}` stands for it."""

    template: str = "[Previous context: {text}]\n\n"
    word: ClassVar[str] = "prefix"

    def __post_init__(self) -> None:
        _check_template(self, self.template)

    def __call__(self, text: str) -> str:
        return self.template.replace("{text}", text)


@register
@dataclass(frozen=True)
class SystemMessage(Render):
    """Show the digest as a system message after the instructions; `{text}` stands for it."""

    template: str = "Summary of the conversation so far:\n{text}"
    word: ClassVar[str] = "system_message"

    def __post_init__(self) -> None:
        _check_template(self, self.template)

    def __call__(self, text: str) -> str:
        return self.template.replace("{text}", text)


@register
@dataclass(frozen=True)
class ShadowTurn(Render):
    """Show the digest as a turn of its own ahead of the verbatim ones: the line `user`, answered by the digest."""

    user: str = "What have we talked about so far?"
    template: str = "{text}"
    word: ClassVar[str] = "shadow_turn"

    def __post_init__(self) -> None:
        _check_template(self, self.template)
        # A value from JSON may have any type.
        if not isinstance(self.user, str) or not self.user.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidPolicy(f"ShadowTurn.user is {quoted(self.user)}; give the line that the digest answers")

    def __call__(self, text: str) -> str:
        return self.template.replace("{text}", text)


@register
@dataclass(frozen=True)
class Recalled(Render):
    """Show the `top_k` digests that a recall finds for the incoming message."""

    top_k: int = 3
    word: ClassVar[str] = "recalled"

    def __post_init__(self) -> None:
        whole(self, top_k=self.top_k)


def _check_template(owner: Component, template: object) -> None:
    if not isinstance(template, str) or template.count("{text}") != 1:
        raise InvalidPolicy(
            f"{type(owner).__name__}.template is {quoted(template)}; it must contain {{text}} exactly once"
        )
