"""Messages as redactions leave them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hitherto.core.context.request import WireFormat
from hitherto.core.log.message import Logged, Message
from hitherto.core.policy.action import Redact, placeholder
from hitherto.core.policy.layout import Layout


@dataclass(slots=True)
class Redactor:
    """Applies a layout's redactions to messages, to each message once and only when it is needed."""

    layout: Layout
    codec: WireFormat
    _made: dict[int, Message] = field(default_factory=dict[int, Message])

    def __call__(self, logged: Logged) -> Message:
        """The message as it is shown: the same object as in the log if nothing in it is redacted.

        Where several redactions cover it, each works on what the one before left.
        """
        reaching = [one.action for one in self.layout.redactions if one.start <= logged.seq <= one.end]
        if not reaching:
            return logged.message
        made = self._made.get(logged.seq)
        if made is None:
            made = logged.message
            for action in reaching:
                made = self.codec.redacted(made, _safe(action), calls=action.calls)
            self._made[logged.seq] = made
        return made

    def redacts(self, logged: Logged) -> bool:
        """Whether anything in the message is redacted."""
        return self(logged) is not logged.message


def _safe(action: Redact) -> Callable[[str, str], str | None]:
    """The action's replacement; the plain placeholder where a custom action fails or gives no text."""

    def replacement(tool: str, text: str) -> str | None:
        try:
            found: object = action.replacement(tool, text)
        except Exception:  # noqa: BLE001 (a defect there must not keep a context from being made)
            found = NotImplemented
        return found if isinstance(found, str | None) else placeholder(tool)

    return replacement
