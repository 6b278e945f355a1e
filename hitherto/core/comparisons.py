"""Statements compared with what is known, each pair once, however often they are merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hitherto.core.repetition import LEAST_COSINE, Statement, Verdict, compared, fingerprint_of_fact, statement

Cosine = Callable[[str, str], float | None]
"""The cosine of two statements' vectors; None where there is none."""


@dataclass(slots=True, eq=False)
class Comparisons:
    """What comparing has found, by the texts. It holds for whoever merges statements with the same cosines: what is
    known by then and was not, and what is found by then and was not, is compared when he does."""

    repeated: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """Of each statement, what it repeats of what is known, with the cosines (-1 where there is none)."""

    _known: set[str] = field(default_factory=set[str])
    """With all of these has each statement in `repeated` been compared."""

    _fingerprints: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, found: Iterable[str], known: Iterable[str], cosine: Cosine) -> None:
        """Compare each statement with all that is known, as far as that has not been done."""
        everything = dict.fromkeys(known)
        new = [text for text in everything if text not in self._known]
        before, self.repeated, self._known = self.repeated, {}, set(everything)
        apart: dict[str, Statement] = {}
        for text in dict.fromkeys(found):
            earlier = before.get(text)
            repeated = {there: alike for there, alike in (earlier or {}).items() if there in everything}
            for other in everything if earlier is None else new:
                verdict, alike = judged(text, other, cosine, apart)
                if verdict is Verdict.REPEATS:
                    repeated[other] = alike
            self.repeated[text] = repeated

    def fingerprint(self, text: str) -> str:
        """A fact's fingerprint."""
        found = self._fingerprints.get(text)
        if found is None:
            found = self._fingerprints[text] = fingerprint_of_fact(text)
        return found


def judged(one: str, other: str, cosine: Cosine, apart: dict[str, Statement]) -> tuple[Verdict, float]:
    """The verdict on two statements, and their cosine (-1 where there is none). `apart` keeps those that were taken
    apart, which takes far longer than all else and is done only where the cosine does not tell already."""
    alike = cosine(one, other)
    if alike is not None and alike < LEAST_COSINE:
        # Nothing but the very same text, which is told by its fingerprint.
        return Verdict.DIFFERS, alike
    stated = [apart[text] if text in apart else apart.setdefault(text, statement(text)) for text in (one, other)]
    return compared(stated[0], stated[1], cosine=alike), -1.0 if alike is None else alike
