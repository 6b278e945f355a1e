"""Splits text into sentences and weighs them, for `extractive`. Each function takes any text, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

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
