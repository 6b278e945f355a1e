"""The "latest" digest of the scope's other conversations, for the instructions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hitherto.core.context.budget import injected
from hitherto.core.context.manifest import Injected
from hitherto.core.cross_session import CrossSession
from hitherto.core.digests.digest import EarlierDigest
from hitherto.core.log.conversations import AgentDefaults
from hitherto.core.log.head import Head
from hitherto.engine.handle import Handle
from hitherto.errors import NotReproducible


@dataclass(frozen=True, slots=True)
class InjectedText:
    """The text for the instructions, and its entry in the manifest."""

    text: str
    says: Injected


async def chosen(
    handle: Handle, head: Head, request: CrossSession, defaults: AgentDefaults, until: datetime | None = None
) -> InjectedText | None:
    """The digest that goes into the instructions; None where it is not wanted or there is none. It is the one chosen
    when the conversation began, so that the instructions stay the same. Before that, and for a request that asks for it
    in a conversation that began without, it is the newest of the scope's other conversations, at `until` if given."""
    if not handle.crossing(head, request, defaults).latest:
        return None
    kept = head.latest
    if kept.digest is not None and kept.conversation is not None and kept.text is not None:
        earlier = EarlierDigest(conversation=kept.conversation, digest=kept.digest, text=kept.text)
    elif head.next_seq and not request.latest:
        return None
    else:
        found = await earlier_than(handle, until)
        if found is None:
            return None
        earlier = found
    return _source(handle, earlier, handle.services.settings.injection_tokens)


async def earlier_than(handle: Handle, until: datetime | None = None) -> EarlierDigest | None:
    """The newest summary of the scope's other conversations, of those made by `until` if given; None if it is older
    than the setting `injection_age`."""
    age = handle.services.settings.injection_age
    return await handle.services.store.earlier(handle.scope, handle.id, within=age, until=until)


async def again(handle: Handle, says: Injected | None) -> InjectedText | None:
    """The text that a manifest's context had in its instructions. Raises NotReproducible when that digest is gone."""
    if says is None:
        return None
    other = handle.beside(says.conversation)
    await other.head()  # which erases what has expired
    digest = await handle.services.store.digest(other.scope, other.id, says.digest)
    if digest is None:
        raise NotReproducible(
            f"digest {says.digest} of {says.conversation!r}, which this context had in its instructions, was erased "
            "since"
        )
    return _source(
        handle, EarlierDigest(conversation=says.conversation, digest=digest.id, text=digest.text), says.limit
    )


def _source(handle: Handle, earlier: EarlierDigest, limit: int) -> InjectedText | None:
    text = injected(earlier.text, limit, handle.services.canonical)
    if text is None:
        return None
    return InjectedText(text, Injected(conversation=earlier.conversation, digest=earlier.digest, limit=limit))
