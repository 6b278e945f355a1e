"""How the time of a function grows with its text, measured here and now."""

from __future__ import annotations

import time
from collections.abc import Callable

TIMES = 4
_LEAST, _MOST = 0.004, 4_000_000


def growth(work: Callable[[str], object], unit: str) -> float:
    """How many times as long `work` takes for TIMES times as much text: about TIMES where it is linear, and TIMES
    squared where it is quadratic. The text is `unit` so often that it takes some time."""
    times = 1_000
    while (short := took(work, unit * times)) < _LEAST and times < _MOST:
        times *= 2
    return took(work, unit * times * TIMES) / short


def took(work: Callable[[str], object], text: str) -> float:
    """Seconds of the processor, the best of three."""

    def once() -> float:
        began = time.process_time()
        work(text)
        return time.process_time() - began

    return min(once() for _ in range(3))
