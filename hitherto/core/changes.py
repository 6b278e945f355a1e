"""What one unit of work writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from hitherto.core.digests.digest import DigestOutcome, NewDigest, RewrittenDigest
from hitherto.core.facts.fact import LearnedFacts
from hitherto.core.ledger import ModelCall
from hitherto.core.log.conversations import Receipt
from hitherto.core.log.head import HeadWithCalls
from hitherto.core.log.message import Logged
from hitherto.core.log.ranges import Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """All that one unit of work writes. `head` is the conversation as it is afterwards; its `ref`, `digest`,
    `digest_sums`, `running`, `retracted`, `agent_policy`, `agent_cross_session`, `now` and `clock` are not read, and of
    its `latest` only `digest`; nor is its `ttl`. `key` and `receipt` go together.

    `title`, `metadata` (the JSON text of an object) and `ttl` are the conversation's new ones; None leaves them as they
    are, a title of "" unsets it. A change that nobody asked for is a `background` one: the conversation's `updated_at`
    stays. With `forget`, the facts that only the messages in `erase` say go even if a person confirmed them, unless
    somebody has added them by hand; with `keep_facts` all of them stay.

    `fire` are the new digest rows. `retract` are messages that are retracted at `head.rev`, `restored` those that the
    unit has brought back. `supersede` are completed rows, clears too, that views from `head.rev` on no longer use.
    `calls` go into the ledger. `learned` are facts about `learned.subject`. They rest on messages of this conversation,
    and the unit has asked for its `current_facts` first.
    """

    head: HeadWithCalls
    messages: tuple[Logged, ...] = ()
    key: str | None = None
    receipt: Receipt | None = None
    fire: tuple[NewDigest, ...] = ()
    outcomes: tuple[DigestOutcome, ...] = ()
    erase: Ranges = ()
    rewritten: tuple[RewrittenDigest, ...] = ()
    retract: Ranges = ()
    restored: Ranges = ()
    supersede: tuple[int, ...] = ()
    calls: tuple[ModelCall, ...] = ()
    learned: LearnedFacts | None = None
    title: str | None = None
    metadata: str | None = None
    ttl: timedelta | None = None
    background: bool = False
    forget: bool = False
    keep_facts: bool = False
