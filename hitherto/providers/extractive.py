"""Digests of the conversation's own sentences, without a language model."""

from __future__ import annotations

import asyncio
import heapq
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from hitherto.core.digests.digest import Item
from hitherto.core.digests.prompts import ArchiveTask, CondenseTask, DigestTask, FactsOnlyTask
from hitherto.core.log.message import storable
from hitherto.core.plain_text import THINKING
from hitherto.core.prompt import Prompt, PromptLine, Task, json_line
from hitherto.core.recall.rerank import RerankTask
from hitherto.core.recall.stopwords import STOP_WORDS
from hitherto.ports.models import EXTRACTIVE, Completion, Model

SUBSTANCE = 2
"""The lowest weight of a sentence that says something. A user's plain sentence has exactly this."""

REMARKABLE = 3
"""The lowest weight of a sentence that is worth adding to a better one of the same round."""

_LONGEST_WORD = 40
"""Characters between two spaces that still pass for a word. A longer run (a hash, or Thai, which is written
without spaces) may be cut inside."""

# A match starts only where a run of stops does, and all quantifiers are possessive: linear on "......" too.
_STOP = re.compile(r"""(?<![.!?…])[.!?…]++["'”’»)\]*_]*+\s++|[。！？｡]++[」』”’）]*+\s*+""")
_ABBREVIATION = re.compile(
    r"""(?:^|[\s("'])(?:[^\W\d_]|mrs?|ms|dr|prof|st|vs|etc|approx|ca|bzw|usw|e\.g|i\.e|z\.b|d\.h)\Z|^\d{1,3}\Z""",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"\s*+(?:[-*+•>#]++|\d{1,3}[.)])\s++")
_BLANKS = re.compile(r"\s++")
_NOT_LETTERS = re.compile(r"[\W_]+")

_DECISION = re.compile(
    r"\b(?:decid\w+|decision|let[’']?s|(?:we|i)(?:[’']ll| will| take| took| chose)|"
    r"(?:go|going|went) (?:with|for)|book(?:ed|s)?|cho(?:ose|osing|sen)|settled|agreed|confirmed|done|final|"
    r"instead|after all|rather than|no longer|any ?more|chang(?:e|ed|ing)|cancel\w*|"
    r"switch(?:ed)?|moved?|replaces?)\b|\s[=→]\s",
    re.IGNORECASE,
)
_MATTERS = re.compile(
    r"\b(?:my|our|call me|i[’']m|i am|we[’']re|we are|prefers?|favou?rite|hates?|loves?|wants?|needs?|must|"
    r"never|always|can[’']?t|cannot|won[’']t|mustn[’']t|ha(?:s|ve) to|allerg\w+|deadline|due|until|remember|"
    r"don[’']t forget|important|budget|limit|promised?|open question|still open)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(r"\b(?:perhaps|maybe|might|could|would|should|if|(?:i|you|we|he|she|they)[’']d)\b", re.IGNORECASE)
_PLEASANTRY = re.compile(
    r"(?:thanks?|thank you|hello|hi|hey|good (?:morning|afternoon|evening|night|question|idea)|ok(?:ay)?|"
    r"sure|great|fine|cool|perfect|happy to|you[’']re welcome|no problem|(?:i[’']m )?sorry|bye|noted)\b",
    re.IGNORECASE,
)
_MONEY = re.compile(r"[$€£¥₹%]")


def sentences(text: str) -> Iterator[str]:
    """The sentences of `text`, in order and unchanged. The end of a line ends a sentence; none is blank."""
    for line in text.splitlines():
        start = 0
        for stop in _STOP.finditer(line):
            if _ends_sentence(line, stop):
                if sentence := line[start : stop.end()].strip():
                    yield sentence
                start = stop.end()
        if sentence := line[start:].strip():
            yield sentence


def _ends_sentence(line: str, stop: re.Match[str]) -> bool:
    if line[stop.start()] != ".":
        return True
    if line[stop.end() : stop.end() + 1].islower():
        return False
    before = max(stop.start() - 8, 0)
    return not _ABBREVIATION.search(line[before : stop.start()])


def plain(sentence: str, chars: int) -> str:
    """A sentence in at most `chars` characters, with single spaces, without the marker of a list or a heading."""
    markup = _MARKUP.match(sentence)
    words = _BLANKS.sub(" ", sentence[markup.end() :] if markup else sentence)
    return shortened(words.strip(), chars)


def shortened(text: str, chars: int) -> str:
    """`text`, or as many of its first words as fit into `chars` characters with "…" after them. Empty where
    not even one fits."""
    if len(text) <= chars:
        return text
    if chars < 2:
        return ""
    cut = chars - 1
    space = text.rfind(" ", 0, cut + 1)
    after = text.find(" ", cut, space + 2 + _LONGEST_WORD)
    in_word = after != -1 or len(text) <= space + 1 + _LONGEST_WORD
    if in_word and not "\u2e80" <= text[cut] < "\ua000":  # Chinese and Japanese may break anywhere.
        cut = max(space, 0)
    kept = text[:cut].rstrip(" ,;:…")
    return kept + "…" if kept else ""


def key(text: str) -> str:
    """Equal for two spellings of the same sentence (case, punctuation, spaces); "" without letters and digits."""
    return _NOT_LETTERS.sub("", text.casefold())


def weight(text: str, role: str) -> int:
    """How much a sentence of `role` is worth remembering.

    Decisions, what matters to the speaker, names (capitals inside the sentence), numbers and money count for
    it; questions, doubts, pleasantries and data against it. What the user says counts more than what the
    assistant says, and a tool's output least. The words are English; in other languages the rest decides.
    """
    words = text.split()
    names = sum(1 for before, word in pairwise(words) if _is_name(word, before))
    numbers = sum(1 for word in words if any(map(str.isdigit, word)))
    total = {"user": 2, "assistant": 0}.get(role, -3)
    total += min(names, 3) + min(numbers, 3)
    total += 3 * bool(_DECISION.search(text)) + 2 * bool(_MATTERS.search(text)) + bool(_MONEY.search(text))
    total -= bool(_DOUBT.search(text)) * (1 if role == "user" else 3)
    total -= 4 * text.endswith(("?", "？", "?”", '?"')) + 2 * text.endswith((":", "："))
    total -= 4 * (len(words) < 5 and bool(_PLEASANTRY.match(text)))
    total -= 3 * (text[0] in "{[<|`" or text[-1] in "{};|`") if text else 0
    total -= len(text.encode("utf-8", "replace")) < 12
    return total


def _is_name(word: str, before: str) -> bool:
    word = word.lstrip("\"'“‘«(")
    return word[:1].isupper() and word[1:2] not in ("", "'", "’") and before[-1] not in ".!?…:"


_MOST = 6
_TWICE = 2
_LONGEST_TOPIC = 60
"""Characters of a word that still passes for one."""

_WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?")


def topics(texts: Iterable[str]) -> list[str]:
    """The most frequent words of more than three letters, at least twice each; words of the same count in the order in
    which they first occur. Names and English stop words are left out."""
    counted: Counter[str] = Counter()
    named: set[str] = set()
    for words in _sentences(texts):
        named.update(word.casefold() for word in _capitals(words))
        counted.update(word.casefold() for word in words if len(word) > 3)
    frequent = (word for word, times in counted.most_common() if times >= _TWICE)
    return list(islice((word for word in frequent if not _is_common(word) and word not in named), _MOST))


def names(texts: Iterable[str]) -> list[str]:
    """The most frequent runs of capitalized words that do not begin a sentence, at least twice each."""
    counted: Counter[str] = Counter()
    for words in _sentences(texts):
        counted.update(_runs(words))
    return [name for name, times in counted.most_common() if times >= _TWICE][:_MOST]


def _sentences(texts: Iterable[str]) -> Iterable[Sequence[str]]:
    for text in texts:
        for sentence in sentences(text):
            yield [word for word in _WORD.findall(sentence) if len(word) <= _LONGEST_TOPIC]


def _capitals(words: Sequence[str]) -> list[str]:
    """Capitalized words that do not begin a sentence. In German these are all nouns, not only names."""
    return [word for _, word in pairwise(words) if word[0].isupper() and not _is_common(word.casefold())]


def _runs(words: Sequence[str]) -> list[str]:
    found: list[list[str]] = []
    running = False
    for at, word in enumerate(words):
        is_name = at > 0 and word[0].isupper() and not _is_common(word.casefold())
        if is_name and running:
            found[-1].append(word)
        elif is_name:
            found.append([word])
        running = is_name
    return [" ".join(run) for run in found]


def _is_common(word: str) -> bool:
    return re.sub(r"['’]", "", word) in STOP_WORDS


_SHARE = 0.4
"""The maximum share of the new messages' tokens that their statements take, besides one statement a round."""

_LONGEST = 240
"""Characters of one statement."""

_ROLES = ("user", "assistant", "tool", "system")

_INLINE = 50_000
"""Characters of a prompt up to which it is answered on the event loop; a longer one is answered in a thread."""


class Extractive(Model):
    """Picks the sentences that matter and quotes them: deterministic, offline, in linear time.

    A statement is one sentence with its speaker ("User: …", "Mika: …") and rests on the one message it is from. Nothing
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
        case FactsOnlyTask():  # so does finding facts
            changes = {"facts": list[str]()}
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
            if (mark := key(words if line.speaker is None else text)) not in seen:
                worth = weight(words, line.role)
                if worth >= SUBSTANCE:
                    seen.add(mark)
                yield turn, _Candidate(worth, (index, position), line.seq, text)


def _statements(line: PromptLine, longest: int) -> Iterator[tuple[str, str]]:
    role = " ".join(storable(line.role).split()).capitalize()
    speaker = role if line.speaker is None else _name(line.speaker)
    prefix = f"{speaker}: " if speaker else ""
    text = _without_thoughts(line.text) if line.role == "assistant" else line.text
    for sentence in sentences(storable(text)):
        words = plain(sentence, longest)
        yield prefix + words, words


def _without_thoughts(text: str) -> str:
    """`text` without what a model only thought."""
    return "\n".join(one for one in text.splitlines() if not one.startswith(THINKING))


def _name(speaker: str) -> str:
    """A person's name; in quotes where it would pass for a role."""
    name = " ".join(storable(speaker).split())
    return json_line(name) if name.lower() in _ROLES else name


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
    if colon and role in _ROLES:
        return role, words
    return "user", statement


def _size(text: str) -> int:
    """The estimated tokens of a line, with its end."""
    return len(text.encode("utf-8", "replace")) // 4 + 1
