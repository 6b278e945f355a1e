"""Promises 7, 9 to 12 and 14 with facts, over random histories of a family that talks and reviews what is known."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import hitherto
from hitherto import Context, Conversation, Fact, Memory, Scope, assistant, none, rolling, user
from hitherto.core.facts.fact import CATEGORIES as CATEGORIES_OF_THE_SEED
from hitherto.core.facts.fact import FactState, Visibility
from hitherto.core.log.message import Wire
from hitherto.core.plain_text import plain
from hitherto.core.policy.span import Reason
from hitherto.errors import BudgetExceeded, InvalidFact, NotFound, NotReproducible
from hitherto.ports.models import Prompt
from hitherto.providers.scripted import Scripted, ScriptedFact, items
from hitherto.store.store import Store
from tests.acceptance.dialogue import ONE_TRY, PLENTY
from tests.acceptance.family import HERS, ROSA, known_to, material, shown_by, system_of, text_of
from tests.acceptance.receipts import check
from tests.databases import Databases
from tests.engine.logs import HOSTILE
from tests.lengths import examples, lasting
from tests.memories import open_on

_names = count(1)

WHO = ("ana", "ben", "cat", "spy", "evil")
"""Three users of one tenant and agent; Ana's other agent; and a tenant with an Ana of its own."""

ABOUT = (ROSA, "")
TOPICS = ("tea", "chess", "bees", "jazz", "Turin", "Genoa")
WIRES = ("openai.chat", "openai.responses", "anthropic")
CATEGORIES: dict[str, Any] = {
    "fact_categories": ("hobby", "current city"),
    "single_fact_categories": ("current city",),
}

POLICY = rolling(threshold=2, keep_last=2, facts=True)
"""All but the newest turn is summed up, with facts."""


def says(who: str, topic: str) -> tuple[str, str]:
    """The category and content of a fact that tells whose it is."""
    name = f"q{who}"
    if topic in ("Turin", "Genoa"):
        return "current city", f"{name} says she lives in {topic}."
    return "hobby", f"{name} says she likes {topic}."


def listens(prompt: Prompt) -> str:
    """A model that finds a fact in each message of the form "qana tea", and says what becomes of what it is shown."""
    shown = material(prompt)
    numbers = {one["content"]: one["known"] for one in shown if "known" in one}
    facts: list[ScriptedFact] = []
    for one in shown:
        if said := re.fullmatch(r"q(\w+) (\w+)( instead of (\w+))?", one.get("text", "")):
            category, content = says(said[1], said[2])
            before = numbers.get(says(said[1], said[4])[1]) if said[4] else None
            relation = "new" if before is None else "replaces"
            facts.append(ScriptedFact(category, content, [one["seq"]], 0.9, relation, before or 0))
    seqs = [one["seq"] for one in shown if "seq" in one]
    return items((f"They talked of {len(seqs)} things.", seqs), facts=facts)


@dataclass(eq=False)
class Family:
    """Conversations and facts of everybody in `WHO`, each about Rosa and about himself; `members` are hers. `taken` are
    contexts with whose they are."""

    memory: Memory
    tenant: str
    members: tuple[str, ...] = ()
    taken: list[tuple[str, Conversation, Context]] = field(default_factory=list[tuple[str, Conversation, Context]])
    gone: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def scope(self, who: str) -> Scope:
        scope = Scope(tenant=self.tenant, user=who, agent="a")
        if who == "spy":
            return replace(scope, user="ana", agent="spy")
        return replace(scope, tenant=f"{self.tenant}-evil", user="ana") if who == "evil" else scope

    def chat(self, who: str, about: str) -> Conversation:
        name = "of Rosa" if about else "of me"
        return self.memory.conversation(name, scope=self.scope(who), policy=POLICY, subject=about or None)

    async def own(self, who: str, *, state: FactState | None = FactState.CURRENT) -> list[Fact]:
        return await self.memory.facts(self.scope(who)).list(shared=False, state=state, limit=1_000)

    # Steps.

    async def begin(self) -> None:
        """Some of them know something already, and share some of it."""
        for who in ("ana", "ben", "cat", "spy", "evil"):
            for topic in ("tea", "chess", "Turin"):
                await self.add(who, ROSA, topic)
        for who in ("ana", "ben"):
            await self.review(who, "share", 1, "tea")

    async def say(self, who: str, about: str, text: str) -> None:
        await self.chat(who, about).append(user(text), assistant("I see."))
        await self.memory.wait_for_digests()

    async def add(self, who: str, about: str, topic: str) -> None:
        category, content = says(who, topic)
        await self.memory.facts(self.scope(who), subject=about).add(content, category=category)

    async def review(self, who: str, verb: str, nth: int, topic: str) -> None:
        """Something that a person does to a fact of his own, or to one of somebody else's."""
        facts = self.memory.facts(self.scope(who))
        found = await self.own(who, state=None)
        if not found:
            return
        number = found[nth % len(found)].id
        with suppress(InvalidFact, NotFound):  # it is not current, or deleted; it cannot be shared
            match verb:
                case "edit":
                    await facts.edit(number, content=says(who, topic)[1])
                case "confirm":
                    await facts.confirm(number)
                case "share":
                    await facts.share(number)
                case "unshare":
                    await facts.unshare(number)
                case "restore":
                    await facts.restore(number)
                case _:
                    await facts.delete(number)

    async def join(self, members: Sequence[str]) -> None:
        self.members = tuple(members)
        await self.memory.configure_subject(tenant=self.tenant, subject=ROSA, name="Rosa", members=self.members)

    async def take_away(self, who: str, about: str, how: str) -> None:
        chat = self.chat(who, about)
        match how:
            case "pop":
                await chat.pop()
            case "clear":
                await chat.clear()
            case _:
                await chat.delete(facts=how.endswith("facts"))
                self.gone.add((who, about))

    async def look(self, who: str, about: str, budget: int, wire: Wire, topic: str) -> None:
        """Promises 7, 9 and 10 of one context."""
        chat = self.chat(who, about)
        question = user(f"What of {topic}?")
        given: dict[str, Any] = {"wire": wire, "instructions": "Be kind."}
        over = 0
        try:
            context = await chat.context(question, budget=budget, **given)
        except BudgetExceeded as error:
            over = error.over_by
            context = await chat.context(question, budget=budget + over, **given)
        assert not over or (context.tokens == budget + over and shown_by(context) is None)
        await check(chat, context)
        known_to(context)
        assert text_of(context.messages[-1]) == f"What of {topic}?"
        self.taken.append((who, chat, context))

    # What must hold.

    async def check_scopes(self) -> None:
        """Promise 12: everybody sees his own facts and what is shared with him, in lists and contexts alike."""
        owned = {who: await self.own(who) for who in WHO}
        for who in WHO:
            visible = [one for owner in WHO for one in owned[owner] if owner == who or self.is_shown(one, owner, who)]
            visible.sort(key=lambda one: one.id)
            listed = await self.memory.facts(self.scope(who)).list(limit=1_000)
            assert [(one.id, one.content) for one in listed] == [(one.id, one.content) for one in visible]
            for about in ABOUT:
                chat = self.memory.conversation("new", scope=self.scope(who), subject=about or None)
                context = await chat.context(user("?"), budget=PLENTY)
                assert known_to(context) == [
                    f"- [{one.category}] {one.content} ({'shared' if one.visibility == 'shared' else 'personal'})"
                    for one in visible
                    if one.subject == about
                ]
        for facts in owned.values():
            cities = [
                (one.subject, one.category) for one in facts if one.category == "current city" and not one.confirmed
            ]
            assert len(cities) == len(set(cities)), "one value at a time"
            said = [(one.subject, one.content.casefold()) for one in facts]
            assert len(said) == len(set(said)), "nothing twice"

    def is_shown(self, one: Fact, owner: str, to: str) -> bool:
        """Whether another's fact is shown to somebody."""
        of, his = self.scope(owner), self.scope(to)
        return (
            one.subject == ROSA
            and one.visibility is Visibility.SHARED
            and (of.tenant, of.agent) == (his.tenant, his.agent)
            and {of.user, his.user} <= set(self.members)
        )

    async def check_recall(self) -> None:
        """A search finds one's own current facts and nobody else's."""
        for who in WHO:
            question = " ".join((*TOPICS, *(f"q{one}" for one in WHO)))
            found = await self.memory.recall(question, scope=self.scope(who), kinds=["fact"], limit=50)
            own = {one.id for one in await self.own(who)}
            assert {hit.fact for hit in found.hits} <= own
            assert not own or found.hits

    async def check_past(self) -> None:
        """Promise 10: a context comes back as it was, as long as all that it showed may still be shown."""
        owned = {who: await self.own(who, state=None) for who in WHO}
        for who, chat, context in self.taken:
            if (who, ROSA if chat.id == "of Rosa" else "") in self.gone:
                continue
            shown = [] if context.manifest.facts is None else context.manifest.facts.shown
            if all(self.may_see(owned, who, one.fact) for one in shown):
                # What only a deleted conversation told is forgotten, even where somebody has put it in other words.
                with suppress(*[NotReproducible] if self.gone else []):
                    again = await chat.rebuild(context.manifest)
                    assert json.dumps(again.request) == json.dumps(context.request)
                    assert again.manifest == context.manifest
            else:
                with pytest.raises(NotReproducible):
                    await chat.rebuild(context.manifest)

    def may_see(self, owned: Mapping[str, Sequence[Fact]], who: str, number: int) -> bool:
        """Whether a fact is still somebody's own, whatever became of it, or current and shared with him."""
        for owner, facts in owned.items():
            for one in facts:
                if one.id == number and one.state is not FactState.DELETED:
                    return owner == who or (one.state is FactState.CURRENT and self.is_shown(one, owner, who))
        return False


whose = st.sampled_from(("ana", "ana", "ana", "ben", "ben", "cat", "spy", "evil"))
about = st.sampled_from((ROSA, ROSA, ROSA, ""))
topics = st.sampled_from(TOPICS)
talks = st.tuples(st.just("say"), whose, about, topics, st.one_of(st.none(), st.none(), topics))
steps = st.one_of(
    talks,
    talks,
    talks,
    st.tuples(st.just("hostile"), whose, about, st.sampled_from(HOSTILE)),
    st.tuples(st.just("add"), whose, about, topics),
    st.tuples(
        st.just("review"),
        whose,
        st.sampled_from(["share", "share", "share", "unshare", "edit", "confirm", "restore", "delete"]),
    ),
    st.tuples(st.just("join"), st.sampled_from([("ana", "ben"), ("ana", "ben", "cat"), ("ben", "cat"), ("ana",), ()])),
    st.tuples(st.just("take away"), whose, about, st.sampled_from(["pop", "pop", "clear", "delete", "delete facts"])),
)
looks = st.tuples(whose, about, st.sampled_from([40, 150, 250, 400, 3_000]), st.sampled_from(WIRES), topics)
histories = st.lists(st.tuples(steps, st.integers(0, 9), looks), min_size=3, max_size=16)


@asynccontextmanager
async def family(store: Store, tenant: str, **given: Any) -> AsyncGenerator[Family]:
    options: dict[str, Any] = {**ONE_TRY, "embedder": "none", "facts_share": 0.3, **CATEGORIES, **given}
    async with open_on(store, model=Scripted(then=listens), **options) as memory:
        made = Family(memory, tenant)
        await made.join(("ana", "ben"))
        yield made


async def play(store: Store, tenant: str, history: Sequence[tuple[Any, int, tuple[Any, ...]]]) -> None:
    """Take a family through a history, and hold it against the promises after each step."""
    async with family(store, tenant) as here:
        await here.begin()
        for step, nth, look in history:
            match step:
                case ("say", str(who), str(subject), str(topic), other):
                    text = f"q{who} {topic}" + (f" instead of {other}" if other else "")
                    await here.say(who, subject, text)
                case ("hostile", str(who), str(subject), str(text)):
                    await here.say(who, subject, text)
                case ("add", str(who), str(subject), str(topic)):
                    await here.add(who, subject, topic)
                case ("review", str(who), str(verb)):
                    await here.review(who, verb, nth, look[-1])
                case ("join", members):
                    await here.join(members)
                case ("take away", str(who), str(subject), str(how)):
                    await here.take_away(who, subject, how)
                case _:
                    raise AssertionError(step)
            await here.look(*look)
            await here.check_scopes()
        await here.check_recall()
        await here.check_past()


few = settings(
    max_examples=examples(5),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@lasting
@few
@given(history=histories)
async def test_7_9_10_12_any_history(store: Store, history: list[tuple[Any, int, tuple[Any, ...]]]) -> None:
    await play(store, f"t{next(_names)}", history)


# 11. Stable prefix.


def zones(context: Context) -> tuple[str, list[str]]:
    """Its instructions, and its items but for the facts that were chosen for the incoming message, to the byte."""
    said = [item for item in context.messages if not text_of(item).startswith(HERS)]
    return system_of(context), [json.dumps(item) for item in said if item.get("role") != "system"]


def cut_of(context: Context) -> object:
    """What a context's start may depend on: its digest, where its verbatim part begins, and what is shown of before."""
    manifest = context.manifest
    first = next((span.start for span in manifest.fates if span.reason == Reason.VERBATIM), manifest.next_seq)
    before = [span for span in manifest.fates if span.reason in (Reason.RULES, Reason.QUESTION, Reason.BEGINNING)]
    return manifest.digest, first, before


lengths = st.lists(st.sampled_from([3, 5, 8, 20, 60, 110]), max_size=30)


@asynccontextmanager
async def informed(databases: Databases, sizes: Sequence[int], **given: Any) -> AsyncGenerator[tuple[Memory, Scope]]:
    """A memory with facts of so many words about the user of a scope."""
    scope = Scope(tenant="acme", user="ana", agent="a")
    options: dict[str, Any] = {**ONE_TRY, "embedder": "none", "model": "extractive", **given}
    async with open_on(await databases.store(), **options) as memory:
        for at, size in enumerate(sizes):
            words = " ".join(TOPICS[(at + word) % len(TOPICS)] for word in range(size))
            await memory.facts(scope, subject="").add(f"Fact {at} of {words}"[:500])
        yield memory, scope


@pytest.mark.parametrize("embedder", ["none", "wordllama"])
@lasting
@settings(few, max_examples=examples(3))
@given(
    sizes=lengths,
    dialogue=st.lists(st.tuples(topics, st.integers(1, 60), st.integers(1, 60)), min_size=3, max_size=14),
    budget=st.integers(300, 5_000),
    summed_up=st.booleans(),
    wire=st.sampled_from(WIRES),
    model=st.sampled_from([None, "claude-sonnet-4-5"]),
)
async def test_11_contexts_begin_alike_between_firings_and_cuts(
    databases: Databases,
    embedder: str,
    sizes: list[int],
    dialogue: list[tuple[str, int, int]],
    budget: int,
    summed_up: bool,
    wire: Wire,
    model: str | None,
) -> None:
    """While no fact changes; also where the facts that are shown change from question to question."""
    async with informed(databases, sizes, embedder=embedder, cache_breakpoints=False) as (memory, scope):
        await memory.wait_for_index()
        policy = rolling(threshold=8, keep_last=4) if summed_up else none()
        chat = memory.conversation("c", scope=scope, policy=policy)
        before: Context | None = None
        for topic, asks, answers in dialogue:
            question = user(f"What of {topic}?" + " So?" * asks)
            try:
                context = await chat.context(question, budget=budget, wire=wire, model=model, instructions="Be kind.")
            except BudgetExceeded:
                before = None
            else:
                if before is not None and cut_of(before) == cut_of(context):
                    earlier, now = zones(before), zones(context)
                    assert now[0] == earlier[0]
                    assert now[1][: len(earlier[1])] == earlier[1]
                before = context
            await chat.append(question, assistant("Well," * answers))
            await memory.wait_for_digests()


@lasting
@settings(few, max_examples=examples(5))
@given(
    sizes=lengths,
    rounds=st.integers(0, 30),
    budget=st.integers(200, 5_000),
    model=st.sampled_from([None, "claude-sonnet-4-5"]),
    share=st.sampled_from([0.05, 0.15, 0.4]),
)
async def test_11_what_is_chosen_moves_nothing(
    databases: Databases, sizes: list[int], rounds: int, budget: int, model: str | None, share: float
) -> None:
    """Of two questions that take as much, all but the facts chosen for them and themselves is the same."""
    async with informed(databases, sizes, facts_share=share) as (memory, scope):
        chat = memory.conversation("c", scope=scope, policy="none")
        for number in range(rounds):
            await chat.append(user(f"Number {number}, and" + " so on" * 9), assistant("Indeed." * 9))
        seen: dict[int, tuple[str, list[str]]] = {}
        for topic in TOPICS:
            context = await chat.context(user(f"What of {topic}?"), budget=budget, model=model)
            instructions, turns = zones(context)
            same = seen.setdefault(context.manifest.sections["incoming"], (instructions, turns[:-1]))
            assert same == (instructions, turns[:-1])


# 14. Inert text.


@lasting
@settings(few, max_examples=examples(5))
@given(
    contents=st.lists(st.one_of(st.text(max_size=60), st.sampled_from(HOSTILE)), min_size=1, max_size=5),
    categories=st.lists(st.one_of(st.text(max_size=60), st.sampled_from(HOSTILE)), min_size=5, max_size=5),
    said=st.one_of(st.text(max_size=60), st.sampled_from(HOSTILE)),
    name=st.one_of(st.text(min_size=1, max_size=60), st.sampled_from(HOSTILE)),
)
async def test_14_whatever_a_model_answers_is_data(
    store: Store, contents: list[str], categories: list[str], said: str, name: str
) -> None:
    """A digest is made, its facts are lines, and the next prompt shows each of them as one line of its material."""
    answer = items(
        ("They talked.", [0]), facts=[(at, content) for at, content in zip(categories, contents, strict=False)]
    )
    model = Scripted(then=answer)
    scope = Scope(tenant="acme", user=f"u{next(_names)}", agent="a")
    subject = f"s{next(_names)}"
    async with open_on(store, model=model, embedder="none", policy=POLICY, **ONE_TRY) as memory:
        with suppress(hitherto.HithertoError):
            await memory.configure_subject(tenant=scope.tenant, subject=subject, name=name)
        chat = memory.conversation("c", scope=scope, subject=subject)
        for _ in range(3):
            await chat.append(user(said), assistant("I see."))
            await memory.wait_for_digests()
        assert {row.status.value for row in await chat.digests()} == {"completed"}
        facts = await memory.facts(scope).list()
        context = await chat.context(user("?"), budget=PLENTY)
        lines = known_to(context)
        assert len(lines) == len(facts) <= len(contents)
        assert {one.category for one in facts} <= {*CATEGORIES_OF_THE_SEED}
        for prompt in model.calls:
            shown = material(prompt)
            assert len(prompt.user.splitlines()) == len(shown) + prompt.user.splitlines().count("(none)") + 5
        known = [one["content"] for one in material(model.calls[-1]) if "known" in one]
        assert {plain(one.content) for one in facts} >= {plain(one) for one in known}
