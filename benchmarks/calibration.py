"""How well a score says how likely its hit is evidence: `python -m benchmarks.calibration FILE … [--plot PICTURE]`
(LoCoMo's shape).

Each session is a conversation of its own, and each question is asked in its own scope and in another one's, each once
whole and once as the sessions alone. Of the first hit, the score is compared with how often it is evidence; and the
weights of `core.recall.rank.relevance` are fitted to all files but one, and tested on that one. With `--no-names`
behind a file, its messages do not say who said them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hitherto
from hitherto.cli.bench.questions import LabeledConversation, append, load
from hitherto.cli.transcripts.transcript import FileConversation
from hitherto.core.recall import rank
from hitherto.core.recall.bm25 import WordScores
from hitherto.core.recall.filter import EntryKind
from hitherto.core.scope import Scope
from hitherto.engine.memory import Memory

Floats = NDArray[np.float64]
_BINS = 10
_ENOUGH = 20
"""Questions that a point of the picture has at least."""

_RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class FirstHits:
    """Of a file's questions, a row each: what the score of the first hit is made of, the score, and whether the hit is
    evidence (1) or not (0)."""

    name: str
    features: Floats
    scores: Floats
    evidence: Floats


@dataclass(frozen=True, slots=True)
class _Asked:
    """A scope, which of a conversation's messages it has, and where each session begins."""

    scope: Scope
    seqs: range
    starts: dict[str, int]


class _Watch:
    """Takes what `rank.relevance` is given, of the hit that comes first."""

    def __init__(self) -> None:
        self._fused, self._relevance = rank.fused, rank.relevance
        self._given: list[tuple[WordScores, Any]] = []
        self.features: list[float] | None = None

    def relevance(self, words: WordScores, covered: Any) -> Any:
        self._given.append((words, covered))
        return self._relevance(words, covered)

    def fused(self, first: rank.FirstStage, candidates: rank.Candidates) -> rank.Ranking:
        self._given, self.features = [], None
        ranking = self._fused(first, candidates)
        for words, covered in self._given:
            at = ranking.order[0]
            known = 1 - float(words.idf.mean()) / words.strange if len(words.idf) else 0.0
            self.features = [float(covered[at]), known, float(np.log(max(words.size, 1)))]
        return ranking

    def __enter__(self) -> _Watch:
        rank.fused, rank.relevance = self.fused, self.relevance
        return self

    def __exit__(self, *_: object) -> None:
        rank.fused, rank.relevance = self._fused, self._relevance


async def first_hits(name: str, conversations: Sequence[LabeledConversation], *, whole: bool) -> FirstHits:
    """The first hits of all questions, each asked in its own scope and in another one's. A scope is a whole
    conversation's sessions, or one session."""
    rows: list[tuple[list[float], float, float]] = []
    rnd = Random(1)
    async with hitherto.open("memory:", worker=False) as memory:
        scopes = [await _scopes(memory, labeled, whole=whole) for labeled in conversations]
        await memory.wait_for_index()
        with _Watch() as watch:
            for at, labeled in enumerate(conversations):
                for number, question in enumerate(one for one in labeled.questions if not one.adversarial):
                    other = (at + 1 + number % (len(conversations) - 1)) % len(conversations)
                    mine = [one for one in scopes[at] if question.evidence & {*one.seqs}]
                    for asked in (rnd.choice(mine), rnd.choice(scopes[other])):
                        found = await memory.recall(
                            question.text, scope=asked.scope, limit=30, kinds={EntryKind.MESSAGE}
                        )
                        if watch.features is None or not found.hits:
                            continue
                        hit = found.hits[0]
                        place = asked.starts[hit.conversation or ""] + (hit.start or 0)
                        right = asked in mine and place in question.evidence
                        rows.append((watch.features, hit.score, float(right)))
    features, scores, evidence = zip(*rows, strict=True)
    return FirstHits(name, np.array(features), np.array(scores), np.array(evidence))


async def _scopes(memory: Memory, labeled: LabeledConversation, *, whole: bool) -> list[_Asked]:
    """The scopes of a conversation."""
    sessions = labeled.sessions()
    starts = {name: seqs.start for name, seqs in sessions.items()}
    found: list[_Asked] = []
    for name, seqs in sessions.items():
        scope = Scope(tenant="bench", user=labeled.transcript.id if whole else name, agent="bench")
        await append(memory, FileConversation(name, labeled.transcript.messages[seqs.start : seqs.stop]), scope=scope)
        found.append(_Asked(scope, seqs, starts))
    every = range(len(labeled.transcript.messages))
    return [_Asked(found[0].scope, every, starts)] if whole else found


def calibration_error(scores: Floats, evidence: Floats) -> float:
    """The expected calibration error: in ten bins of scores, how far the mean score is from the share of evidence,
    weighed by the questions in each (Naeini et al., 2015)."""
    bins = reliability(scores, evidence)
    return sum(abs(score - share) * count for score, share, count in bins) / len(scores)


def reliability(scores: Floats, evidence: Floats) -> list[tuple[float, float, int]]:
    """In ten bins of scores, without empty ones: the mean score, the share of evidence, and how many there are."""
    bins = np.minimum((scores * _BINS).astype(int), _BINS - 1)
    of_bins = [bins == one for one in range(_BINS) if (bins == one).any()]
    return [(float(scores[one].mean()), float(evidence[one].mean()), int(one.sum())) for one in of_bins]


def fit(sets: Sequence[FirstHits]) -> Floats:
    """The weights of a logistic function, the constant first, by Newton's method; each set counts the same."""
    features = np.concatenate([np.insert(one.features, 0, 1.0, axis=1) for one in sets])
    evidence = np.concatenate([one.evidence for one in sets])
    weight = np.concatenate([np.full(len(one.evidence), 1 / len(one.evidence)) for one in sets])
    weights = np.zeros(features.shape[1])
    ridge = _RIDGE * np.diag([0.0, *np.ones(features.shape[1] - 1)])
    for _ in range(50):
        likely = 1 / (1 + np.exp(-features @ weights))
        gradient = features.T @ (weight * (likely - evidence)) + ridge @ weights
        curvature = (features * (weight * likely * (1 - likely))[:, None]).T @ features + ridge
        weights = weights - np.linalg.solve(curvature, gradient)
    return weights


def fitted_scores(weights: Floats, one: FirstHits) -> Floats:
    return 1 / (1 + np.exp(-np.insert(one.features, 0, 1.0, axis=1) @ weights))


def draw(sets: Sequence[FirstHits], path: Path) -> None:
    """A reliability diagram: a line a set, a point a bin of at least 20 questions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="as promised")
    for one in sets:
        points = [(score, share) for score, share, count in reliability(one.scores, one.evidence) if count >= _ENOUGH]
        axes.plot(*zip(*points, strict=True), marker="o", markersize=3.5, label=one.name)
    axes.set(xlabel="score of the first hit", ylabel="share that is evidence", xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


async def main(words: Sequence[str]) -> None:
    picture = Path(words[words.index("--plot") + 1]) if "--plot" in words else None
    words = [word for word in words if word not in ("--plot", str(picture))]
    files: list[tuple[str, list[LabeledConversation]]] = []
    for at, word in enumerate(words):
        if word != "--no-names":
            named = words[at + 1 : at + 2] != ["--no-names"]
            files.append((f"{Path(word).name}{'' if named else ', no names'}", load(Path(word), named=named)))
    found = [
        (name, await first_hits(f"{name}, {kind}", conversations, whole=kind == "whole"))
        for name, conversations in files
        for kind in ("whole", "sessions")
    ]
    print("first hits: questions, evidence, calibration error of the score; fitted to the other files")
    for name, one in found:
        others = [other for file, other in found if file.split(",")[0] != name.split(",")[0]]
        left_out = f"{calibration_error(fitted_scores(fit(others), one), one.evidence):.3f}" if others else "–"
        error = calibration_error(one.scores, one.evidence)
        print(f"{one.name}: {len(one.evidence):,}, {one.evidence.mean():.3f}, {error:.3f}; {left_out}")
    if picture is not None:
        draw([one for _, one in found], picture)
    weights = dict(zip(("constant", "covered", "known", "size"), fit([one for _, one in found]), strict=True))
    print("fitted to all:", ", ".join(f"{name} {weight:.2f}" for name, weight in weights.items()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
