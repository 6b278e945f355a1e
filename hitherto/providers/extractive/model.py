"""Digests of the conversation's own sentences, without a language model: for the demo and for offline use."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hitherto.core.digests.digest import Item
from hitherto.core.digests.prompts import ArchiveTask, CondenseTask, DigestTask
from hitherto.core.log.message import storable
from hitherto.core.prompt import Prompt, PromptLine, Task
from hitherto.core.recall.rerank import RerankTask
from hitherto.ports.models.model import EXTRACTIVE, Completion, Model
from hitherto.providers.extractive.sentences import REMARKABLE, SUBSTANCE, key, plain, sentences, shortened, weight
from hitherto.providers.extractive.topics import names, topics

_SHARE = 0.4
"""The maximum share of the new messages' tokens that their statements take, besides one statement a round."""

_LONGEST = 240
"""Characters of one statement."""

_INLINE = 50_000
"""Characters of a prompt up to which it is answered on the event loop; a longer one is answered in a thread."""


class Extractive(Model):
    """Picks the sentences that matter and quotes them: deterministic, offline, in linear time.

    A statement is one sentence with its speaker ("User: …") and rests on the one message it is from. Nothing
    is merged or reworded: a decision that is changed later stays beside the new one, in the order in which
    they were made. A known statement that rests partly on messages which left the window is dropped, because
    nobody can tell which part of it that is. For an archive, topics are the most frequent words, and entities the
    most frequent names; it does not judge what is a decision or an open question. It finds no facts, which takes
    understanding, and its answers have no list of them. Tokens are estimated as a quarter of the UTF-8 bytes.
    """

    @property
    def name(self) -> str:
        return EXTRACTIVE

    @property
    def input_limit(self) -> int:
        return 10_000_000

    async def complete(self, prompt: Prompt) -> Completion:
        if len(prompt.user) <= _INLINE:
            return Completion(text=_answer(prompt.task), asked=False)
        return Completion(text=await asyncio.to_thread(_answer, prompt.task), asked=False)

    async def aclose(self) -> None:
        pass


def _answer(task: Task) -> str:
    match task:
        case DigestTask():
            added = [{"text": one.text, "sources": [one.seq]} for one in _picked(task)]
            changes = {"add": added, "replace": [], "drop": []}
        case CondenseTask():
            changes = {"items": [{"text": text, "items": [number]} for number, text in _condensed(task)]}
        case ArchiveTask():
            changes = _archived(task)
        case RerankTask():  # ranking takes understanding: they stay in their order
            changes = {"ranking": list(range(1, len(task.passages) + 1))}
        case _:
            raise NotImplementedError(f"extractive does not know the task {type(task).__name__}")
    # A reader may look for a code fence in an answer first; quoted backticks must not pass for one.
    return json.dumps(changes).replace("`", "\\u0060")


@dataclass(frozen=True, slots=True, order=True)
class _Candidate:
    """A statement that could be made. Ordered by weight; among equals the newer one wins."""

    weight: int
    place: tuple[int, int]
    seq: int
    text: str

    @property
    def size(self) -> int:
        return _size(self.text)


def _picked(task: DigestTask) -> list[_Candidate]:
    """The statements to add, in the order of the conversation.

    They may take what the known statements leave of `limit`, but always a quarter of `limit`: otherwise a full
    digest would take in nothing new. A digest that is then above the limit is condensed, oldest
    statements first.
    """
    known = [item for number, item in enumerate(task.known, 1) if number not in task.leaving]
    room = max(task.limit - sum(_size(item.text) for item in known), task.limit // 4)
    share = min(room, int(_SHARE * sum(_size(line.text) for line in task.lines)))
    best_of_round: dict[int, _Candidate] = {}
    remarkable: list[_Candidate] = []
    best: _Candidate | None = None
    for number, one in _distinct(task, known):
        if one.weight >= SUBSTANCE:
            rival = best_of_round.get(number)
            if rival is None or one.weight > rival.weight:
                best_of_round[number] = one
        if best is None or one.weight > best.weight:
            best = one
        if one.weight >= REMARKABLE:
            # No more than `room` statements can be taken, so no more need to be held.
            (heapq.heappush if len(remarkable) < room else heapq.heappushpop)(remarkable, one)
    picked = _fitting(best_of_round.values(), room)
    left = share - sum(one.size for one in picked)
    chosen = set(picked)
    picked += _fitting((one for one in remarkable if one not in chosen), left)
    if not picked and not known and best:
        picked = [best]
    return sorted(picked, key=lambda one: one.place)


def _distinct(task: DigestTask, known: Sequence[Item]) -> Iterator[tuple[int, _Candidate]]:
    """The candidates that repeat nothing, each with the number of its round."""
    seen = {key(_speaker_and_words(item.text)[1]) for item in known} | {""}
    longest = max(min(_LONGEST, task.limit), 40)
    turn = 0
    for index, line in enumerate(task.lines):
        turn += line.role == "user"
        for position, (text, words) in enumerate(_statements(line, longest)):
            if (mark := key(words)) not in seen:
                worth = weight(words, line.role)
                if worth >= SUBSTANCE:
                    seen.add(mark)
                yield turn, _Candidate(worth, (index, position), line.seq, text)


def _statements(line: PromptLine, longest: int) -> Iterator[tuple[str, str]]:
    speaker = " ".join(storable(line.role).split()).capitalize()
    prefix = f"{speaker}: " if speaker else ""
    for sentence in sentences(storable(line.text)):
        words = plain(sentence, longest)
        yield prefix + words, words


def _fitting(candidates: Iterable[_Candidate], room: int) -> list[_Candidate]:
    """The candidates of the highest weight that together fit into `room` tokens."""
    fitting: list[_Candidate] = []
    for one in sorted(candidates, reverse=True):
        if one.size <= room:
            fitting.append(one)
            room -= one.size
    return fitting


def _condensed(task: CondenseTask) -> list[tuple[int, str]]:
    """The statements of the highest weight that fit, each with its number and in the old order. Long ones are first
    cut to half of the limit, so that a single one cannot take it all."""

    def rank(number: int) -> tuple[int, int]:
        speaker, words = _speaker_and_words(task.items[number - 1].text)
        return weight(words, speaker), number

    kept: list[tuple[int, str]] = []
    room = task.limit
    for number in sorted(range(1, len(task.items) + 1), key=rank, reverse=True):
        text = _within(task.items[number - 1].text, max(task.limit // 2, 10))
        if kept and _size(text) > room:
            continue
        text = _within(text, room)
        if text:
            kept.append((number, text))
            room -= _size(text)
    return sorted(kept)


def _archived(task: ArchiveTask) -> dict[str, object]:
    """An archive's answer: the summary has the conversation's own sentences, or the digest's statements if there are
    none; topics and entities are what comes often."""
    everything = DigestTask(known=(), leaving=frozenset(), lines=task.lines, limit=task.limit)
    summary = "\n".join(one.text for one in _picked(everything)) or task.digest
    texts = [storable(line.text) for line in task.lines if line.role != "tool"]
    return {
        "summary": summary,
        "topics": topics(texts),
        "entities": names(texts),
        "decisions": [],
        "questions": [],
    }


def _within(text: str, tokens: int) -> str:
    """`text` cut after a word to at most `tokens`; empty where no word fits."""
    text = storable(text)
    size = _size(text)
    if size <= tokens:
        return text
    words = _speaker_and_words(text)[1]
    prefix = text[: len(text) - len(words)]
    kept = shortened(words, len(text) * max(tokens - 2, 0) // size - len(prefix))
    return prefix + kept if kept else ""


def _speaker_and_words(statement: str) -> tuple[str, str]:
    """A statement's role and its words; a statement without a known speaker counts as the user's."""
    speaker, colon, words = statement.partition(": ")
    role = speaker.lower()
    if colon and role in ("user", "assistant", "tool", "system"):
        return role, words
    return "user", statement


def _size(text: str) -> int:
    """The estimated tokens of a line, with its end."""
    return len(text.encode("utf-8", "replace")) // 4 + 1
