"""What stands for the older part of a conversation, as the model gets to see it."""

from __future__ import annotations

from hitherto.core.ask import Ask
from hitherto.core.message import Message, Payload, Role, plain_message
from hitherto.core.render import Prefix, ShadowTurn, SystemMessage
from hitherto.core.view import View


def digest_tokens(view: View, ask: Ask) -> int:
    """What stands for the older part takes so much, before it is known which message it is put in front of."""
    opaque = ask.cost(ask.opaque) if view.opaque is not None else 0
    if view.digest is None or view.render is None or not view.digest.text:
        return opaque
    match view.render:
        case Prefix() as prefix:
            return opaque + ask.counter.count(prefix(view.digest.text))
        case ShadowTurn() as shadow:
            return opaque + ask.cost(ask.codec.write(_shadow(shadow, view.digest.text)))
        case SystemMessage() as message:
            return opaque + ask.codec.system_tokens(message(view.digest.text), ask.counter)
        case _:
            return opaque


def _shadow(render: ShadowTurn, text: str) -> tuple[Message, Message]:
    """The digest as a turn of its own."""
    return plain_message(Role.USER, render.user), plain_message(Role.ASSISTANT, render(text))


def stood_in(view: View, ask: Ask, items: list[Payload]) -> tuple[list[Payload], list[str], int]:
    """`items` with the digest and the opaque items where they belong, the digest as a system text where it is one, and
    what they cost."""
    system: list[str] = []
    front = [*ask.opaque] if view.opaque is not None else []
    cost = ask.cost(front)
    text = "" if view.digest is None else view.digest.text
    if text and view.render is not None:
        match view.render:
            case ShadowTurn() as shadow:
                turn = ask.codec.write(_shadow(shadow, text))
                front, cost = [*turn, *front], cost + ask.cost(turn)
            case Prefix() as prefix if any(ask.codec.is_user(item) for item in items):
                at = next(at for at, item in enumerate(items) if ask.codec.is_user(item))
                before = ask.codec.tokens(items[at], ask.counter)
                items = [*items[:at], ask.codec.prefixed(items[at], prefix(text)), *items[at + 1 :]]
                cost += ask.codec.tokens(items[at], ask.counter) - before
            case Prefix() | SystemMessage() as message:
                system.append(message(text).rstrip())
                cost += ask.codec.system_tokens(system[0], ask.counter)
            case _:
                pass
    return [*front, *items], system, cost
