"""Token counters: exact where the model's tokenizer is available, a named upper estimate where it is not."""

from __future__ import annotations

from hitherto.tokens.by_model import CANONICAL, counter_for
from hitherto.tokens.counters import BpeCounter, ByteCounter
from hitherto.tokens.estimate import EstimateCounter

__all__ = ["CANONICAL", "BpeCounter", "ByteCounter", "EstimateCounter", "counter_for"]
