"""Vectors, and the spaces they are in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hitherto.arrays import NDArray, np

Vector: TypeAlias = "NDArray[np.float32]"
"""A vector of unit length, or all zeros for a text with nothing to embed."""

Vectors: TypeAlias = "NDArray[np.float32]"
"""One vector per row."""


@dataclass(frozen=True, slots=True)
class Space:
    """A space of vectors that can be compared with each other. `name` is the model and whatever else makes its vectors
    different (a version, a prefix of questions)."""

    name: str
    dimensions: int
