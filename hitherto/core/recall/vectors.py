"""Vectors, and the spaces they are in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""A vector of unit length, or all zeros for a text with nothing to embed."""

Vectors = NDArray[np.float32]
"""One vector per row."""


@dataclass(frozen=True, slots=True)
class Space:
    """A space of vectors that can be compared with each other. `name` is the model and whatever else makes its vectors
    different (a version, a prefix of questions)."""

    name: str
    dimensions: int
