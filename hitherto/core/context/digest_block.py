"""How a context shows what stands for the older part of a conversation: the digest and opaque items."""

from __future__ import annotations

from hitherto.core.context.request import ContextRequest
from hitherto.core.log.message import Message, Payload, Role, plain_message
from hitherto.core.policy.render import Prefix, ShadowTurn, SystemMessage
from hitherto.core.policy.view import View


def digest_tokens(view: View, request: ContextRequest) -> int:
    """The tokens of what stands for the older part, before it is known which message it is put in front of."""
    opaque = request.cost(request.opaque) if view.opaque is not None else 0
    if view.digest is None or view.render is None or not view.digest.text:
        return opaque
    match view.render:
        case Prefix() as prefix:
            return opaque + request.counter.count(prefix(view.digest.text))
        case ShadowTurn() as shadow:
            return opaque + request.cost(request.codec.write(_shadow(shadow, view.digest.text)))
        case SystemMessage() as message:
            return opaque + request.codec.system_tokens(message(view.digest.text), request.counter)
        case _:
            return opaque


def _shadow(render: ShadowTurn, text: str) -> tuple[Message, Message]:
    """The digest as a turn of its own."""
    return plain_message(Role.USER, render.user), plain_message(Role.ASSISTANT, render(text))


def with_digest(view: View, request: ContextRequest, items: list[Payload]) -> tuple[list[Payload], list[str], int]:
    """`items` with the digest and the opaque items put in, the system texts (the digest, if it is shown as one), and
    the tokens that the digest and the opaque items take."""
    system: list[str] = []
    front = [*request.opaque] if view.opaque is not None else []
    cost = request.cost(front)
    text = "" if view.digest is None else view.digest.text
    if text and view.render is not None:
        match view.render:
            case ShadowTurn() as shadow:
                turn = request.codec.write(_shadow(shadow, text))
                front, cost = [*turn, *front], cost + request.cost(turn)
            case Prefix() as prefix if any(request.codec.is_user(item) for item in items):
                at = next(at for at, item in enumerate(items) if request.codec.is_user(item))
                before = request.codec.tokens(items[at], request.counter)
                items = [*items[:at], request.codec.prefixed(items[at], prefix(text)), *items[at + 1 :]]
                cost += request.codec.tokens(items[at], request.counter) - before
            case Prefix() | SystemMessage() as message:
                system.append(message(text).rstrip())
                cost += request.codec.system_tokens(system[0], request.counter)
            case _:
                pass
    return [*front, *items], system, cost
