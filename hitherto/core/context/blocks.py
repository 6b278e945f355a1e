"""The texts of a digest and of facts in a context, and what fits of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hitherto.arrays import NDArray, np
from hitherto.core.context.request import ContextRequest
from hitherto.core.facts.fact import fact_line
from hitherto.core.log.message import Message, Payload, Role, plain_message
from hitherto.core.plain_text import RECORD, fenced, one_line, statements
from hitherto.core.policy.parts import Prefix, ShadowTurn, SystemMessage
from hitherto.core.policy.view import View

HEADING = "Known facts about {name} from conversations:"
"""What stands above the facts."""

_PER_LINE, _HEADING = 8, 40
"""The usual tokens of a line beside its content, and of the block beside its lines."""

_SINGLY = 20
"""So many facts are tried one by one where the estimate lets none fit."""

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLine:
    """A fact as it is shown."""

    fact: int
    version: int
    category: str
    content: str
    shared: bool

    @property
    def text(self) -> str:
        """Always one line."""
        return fact_line(self.category, self.content, shared=self.shared)


def heading_of(name: str) -> str:
    """The heading of facts about a subject with this name: always one line."""
    return HEADING.format(name=one_line(name)[:_LONGEST_NAME])


def block(name: str, lines: Sequence[FactLine]) -> str:
    """The lines under the heading, in a fence: facts come from what people said."""
    return fenced(heading_of(name), (line.text for line in lines))


def own_facts_first(
    order: NDArray[np.int64], own: NDArray[np.bool_], tokens: NDArray[np.int32], *, room: int
) -> NDArray[np.int64]:
    """The same order, except that facts of others that go beyond half of the room come after all `own` ones: others who
    share much must not leave them no room."""
    others = ~own[order]
    taken = np.cumsum(np.where(others, tokens[order] + _PER_LINE, 0))
    behind = others & (taken > room // 2)
    return np.concatenate([order[~behind], order[behind]])


def fitting(
    order: Sequence[int],
    line: Callable[[int], FactLine],
    tokens: NDArray[np.int32],
    *,
    room: int,
    cost: Callable[[Sequence[FactLine]], int],
) -> list[FactLine]:
    """The lines of as many facts as fit into `room` tokens, chosen in `order` (places) and returned in the order of
    their extraction. A fact that is too long for what is left is skipped. `tokens` (of the contents) give an estimate
    of how many fit; `cost` is what lines really take."""
    scale = 1.0
    while taken := _taken(order, tokens, room / scale):
        lines = sorted((line(at) for at in taken), key=lambda one: one.fact)
        takes = cost(lines)
        if takes <= room:
            return lines
        # The estimate was by another tokenizer, or too low.
        scale *= max(takes / room, 1.02)
    by_themselves = [line(at) for at in (order[:_SINGLY] if scale > 1 else ())]
    return [one for one in by_themselves if cost([one]) <= room][:1]


def _taken(order: Sequence[int], tokens: NDArray[np.int32], room: float) -> list[int]:
    """The places that fit by the estimate."""
    left = room - _HEADING
    taken: list[int] = []
    for at in order:
        takes = int(tokens[at]) + _PER_LINE
        if takes <= left:
            taken.append(at)
            left -= takes
        elif left <= _PER_LINE:
            break
    return taken


def digest_tokens(view: View, request: ContextRequest) -> int:
    """The tokens of what stands for the older part, before it is known which message it is put in front of."""
    opaque = request.cost(request.opaque) if view.opaque is not None else 0
    if view.digest is None or view.render is None or not view.digest.text:
        return opaque
    match view.render:
        case Prefix() as prefix:
            return opaque + request.counter.count(prefix(_lines(view.digest.text)))
        case ShadowTurn() as shadow:
            return opaque + request.cost(request.codec.write(_shadow(shadow, view.digest.text)))
        case SystemMessage() as message:
            return opaque + request.codec.system_tokens(message(_in_a_fence(view.digest.text)), request.counter)
        case _:
            return opaque


def _lines(text: str) -> str:
    """A digest's text, a line a statement."""
    return "\n".join(statements(text))


def _in_a_fence(text: str) -> str:
    """The same for instructions: what people said must not have their authority."""
    return fenced(RECORD, map("- {}".format, statements(text)))


def _shadow(render: ShadowTurn, text: str) -> tuple[Message, Message]:
    """The digest as a turn of its own."""
    return plain_message(Role.USER, render.user), plain_message(Role.ASSISTANT, render(_lines(text)))


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
                items = [*items[:at], request.codec.prefixed(items[at], prefix(_lines(text))), *items[at + 1 :]]
                cost += request.codec.tokens(items[at], request.counter) - before
            case Prefix() | SystemMessage() as message:
                system.append(message(_in_a_fence(text)).rstrip())
                cost += request.codec.system_tokens(system[0], request.counter)
            case _:
                pass
    return [*front, *items], system, cost
