"""Memory of a scope's earlier conversations: whether it is wanted, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from hitherto.core.head import Head
from hitherto.core.injection import injected
from hitherto.core.manifest import Injected
from hitherto.engine.place import Place
from hitherto.errors import Unreproducible
from hitherto.ports.store import Defaults, Earlier


@dataclass(frozen=True, slots=True)
class Source:
    """The text for the instructions and what a manifest says of it."""

    text: str
    says: Injected


def wanted(place: Place, head: Head, request: bool | None, defaults: Defaults) -> bool:
    """Whether it goes into the instructions: as the request says, the conversation, its agent, the settings."""
    for said in (request, head.injection.enabled, defaults.injection):
        if said is not None:
            return said
    return place.parts.settings.injection


async def chosen(place: Place, head: Head, request: bool | None, defaults: Defaults) -> Source | None:
    """What goes into the instructions now: the digest that was chosen for the conversation when it began, so that they
    stay the same; before that, and for a request that asks for it in a conversation that began without, the newest of
    the scope's other conversations. None where it is not wanted or there is none."""
    if not wanted(place, head, request, defaults):
        return None
    kept = head.injection
    if kept.digest is not None and kept.conversation is not None and kept.text is not None:
        earlier = Earlier(conversation=kept.conversation, digest=kept.digest, text=kept.text)
    elif head.next_seq and not request:
        return None
    else:
        found = await earlier_than(place)
        if found is None:
            return None
        earlier = found
    return _source(place, earlier, place.parts.settings.injection_tokens)


async def earlier_than(place: Place) -> Earlier | None:
    """The newest summary of the scope's other conversations, if it is not too old."""
    age = place.parts.settings.injection_age
    return await place.parts.store.earlier(place.scope, place.id, within=age)


async def again(place: Place, says: Injected | None) -> Source | None:
    """What a manifest says went into the instructions. Raises Unreproducible when that digest is gone."""
    if says is None:
        return None
    for digest in await place.parts.store.digests(place.scope, says.conversation):
        if digest.id == says.digest:
            return _source(
                place, Earlier(conversation=says.conversation, digest=digest.id, text=digest.text), says.limit
            )
    raise Unreproducible(
        f"digest {says.digest} of {says.conversation!r}, which this context had in its instructions, was erased since"
    )


def _source(place: Place, earlier: Earlier, limit: int) -> Source | None:
    text = injected(earlier.text, limit, place.parts.canonical)
    if text is None:
        return None
    return Source(text, Injected(conversation=earlier.conversation, digest=earlier.digest, limit=limit))
