"""Services: the adapters that the engine works with, passed in. The engine knows ports, never adapters."""

from __future__ import annotations

from asyncio import Event
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from hitherto.aside import aside, weight
from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.request import WireFormat
from hitherto.core.digests.digest import Needs
from hitherto.core.log.frontier import DigestAction
from hitherto.core.log.message import Message, check_item
from hitherto.core.log.speaker import Voice
from hitherto.core.log.time_zone import zone_named
from hitherto.core.policy.plan import Means
from hitherto.core.policy.policy import Policy
from hitherto.core.policy.presets import policy_of
from hitherto.core.price import Price
from hitherto.engine.digests.tasks import TaskQueue
from hitherto.errors import InvalidPolicy
from hitherto.limiter import FairLimiter
from hitherto.ports.models import EXTRACTIVE, Compactor, Embedder, Model, Reranker, family_of
from hitherto.ports.watch import Watch
from hitherto.settings import Settings

if TYPE_CHECKING:
    from hitherto.store.store import Store


class ItemReader(Protocol):
    """Reads an item in the wire format `wire`; without it, its shape tells. The message has its id, unless `take_id` is
    False. Raises InvalidMessage."""

    def __call__(
        self, payload: Message | Mapping[str, Any], wire: str | None = None, *, take_id: bool = True
    ) -> Message: ...


class Formats(Protocol):
    """The wire formats of messages: the codec of a name, and what reads an item."""

    @property
    def codec(self) -> Callable[[str], WireFormat]: ...

    @property
    def read(self) -> ItemReader: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """What applies in a memory where nothing else is said. `policy` is JSON text, None where `balanced` governs;
    `budget` are the tokens of a context. `embedders` are the names of the embedder, as the setting has it and as the
    ledger has it; none where words alone are compared. `embedder_provider` is None for an embedder in the process.
    Calls of models stop for a day after `daily_cost` (US dollars) or `daily_tokens`, None where there is no limit;
    for a user, where there are others, after `daily_user_share` of these. `fact_categories` are those under
    which facts are kept."""

    policy: str | None
    budget: int
    embedders: tuple[str, ...]
    embedder_provider: str | None
    daily_cost: float | None = None
    daily_tokens: int | None = None
    daily_user_share: float = 0.5
    fact_categories: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Services:
    """The adapters of one memory. `canonical` counts the tokens for triggers and running sums (o200k_base). `counter`
    gives the token counter for a model or encoding (None: the settings'), `codec` the wire format of a name.
    `compactor` makes opaque items, None without an endpoint that can; `policy` applies where no other is set. `price`
    gives what a model's calls cost, None where that is not known; `watch` receives metrics and traces.

    `embedder` makes the vectors; `previous` are embedders used before it, which still embed questions while the index
    has more of their vectors. `reranker` reorders hits. `appended` is set when something waits to be indexed.
    `searches` limits how many load a large scope at once; `large_scopes` are those (tenant, user and agent, or None
    for all agents) that were large when they were last searched.
    """

    store: Store
    model: Model
    queue: TaskQueue
    settings: Settings
    canonical: TokenCounter
    counter: Callable[[str | None], TokenCounter]
    codec: Callable[[str], WireFormat]
    read: ItemReader
    policy: Policy | None = None
    compactor: Compactor | None = None
    price: Callable[[str], Price | None] = lambda _: None
    watch: Watch = field(default_factory=Watch)
    embedder: Embedder | None = None
    previous: tuple[Embedder, ...] = ()
    reranker: Reranker | None = None
    appended: Event = field(default_factory=Event)
    large_scopes: set[tuple[str, str, str | None]] = field(default_factory=set[tuple[str, str, str | None]])
    searches: FairLimiter = field(default_factory=lambda: FairLimiter(4, most=2))

    async def read_messages(
        self, given: Sequence[Message | Mapping[str, Any]], wire: str | None = None, *, take_ids: bool = True
    ) -> tuple[Message, ...]:
        """What a caller gave as messages; long items are read in a thread. Raises as `read` does."""
        if {*map(type, given)} <= {Message}:
            return cast("tuple[Message, ...]", tuple(given))
        for one in given:
            check_item(one)
        return await aside(weight(given), tuple, map(partial(self.read, wire=wire, take_id=take_ids), given))

    @cached_property
    def zone(self) -> tzinfo:
        """The zone of days where nothing else says one."""
        return zone_named(self.settings.time_zone)

    def means(self, budget: int | None) -> Means:
        """What this process fires stages with. `budget` is that of the conversation's contexts, None the setting."""
        budget = budget or self.settings.budget
        window = self.settings.context_window or budget
        model, family = Needs.MODEL in self.able, self.family(None)
        return Means(window=window, budget=min(window, budget), model=model, facts=self.finds_facts, family=family)

    @property
    def finds_facts(self) -> bool:
        """Whether this process has a model that finds facts, and facts are wanted."""
        return Needs.MODEL in self.able and self.settings.facts and self.settings.model_output == "json"

    @cached_property
    def able(self) -> frozenset[Needs]:
        """What this process has to make digests with."""
        named = [] if self.model.name == EXTRACTIVE else [Needs.MODEL]
        return frozenset([*named, *([] if self.compactor is None else [Needs.COMPACTOR])])

    def family(self, model: str | None) -> str | None:
        """The model family that a context is for: that of `model`, or without one that of the compactor."""
        if model is not None:
            return family_of(model)
        return None if self.compactor is None else self.compactor.family

    def usable(self, policy: object) -> Policy | None:
        """The policy that a caller gave in any of its forms (see `policy_of`). Raises InvalidPolicy for an unusable
        one, and for one that compacts where no compaction endpoint is configured."""
        found = policy_of(policy)
        if found is not None and self.compactor is None and found.doing(DigestAction.COMPACT):
            raise InvalidPolicy(
                f"policy {found.name!r} needs a model whose endpoint compacts; name it with the setting compact_model, "
                "or choose another policy, such as summarize"
            )
        return found

    def voices(self, message: Message) -> list[Voice]:
        """See `WireFormat.voices`."""
        return self.codec(message.wire).voices(message)
