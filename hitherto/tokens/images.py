"""What OpenAI's models charge for an image, at most (OpenAI, guide "Images and vision", section on cost, as of 2025).

By tiles: an image is scaled to fit 2,048 by 2,048 pixels, then to 768 on its shorter side, which leaves at most 8 tiles
of 512 pixels; a base and a rate per tile make the price, low detail costs the base alone. By patches: at most 1,536
patches of 32 pixels, times a factor of the model; low detail is charged no less here.
"""

from __future__ import annotations

import re
from typing import Final

_MOST_TILES: Final = 8
_MOST_PATCHES: Final = 1_536

LOW_DETAIL: Final = 85
TILES: Final = LOW_DETAIL + 170 * _MOST_TILES
"""The rate of GPT-4o, GPT-4.1 and GPT-4.5, taken for models of these encodings that are not listed."""


def _tiles(base: int, tile: int) -> tuple[int, int]:
    return base + tile * _MOST_TILES, base


def _patches(hundredths: int) -> tuple[int, int]:
    most = -(-_MOST_PATCHES * hundredths // 100)
    return most, most


_RATES: Final = (
    (re.compile(r"gpt-4o-mini"), _tiles(2_833, 5_667)),
    (re.compile(r"gpt-(4\.1|5)-nano"), _patches(246)),
    (re.compile(r"gpt-(4\.1|5)-mini"), _patches(162)),
    (re.compile(r"o4-mini"), _patches(172)),
    (re.compile(r"o[13](-|$)"), _tiles(75, 150)),
    (re.compile(r"gpt-5(-|$)"), _tiles(70, 140)),
)


def image_rates(model: str) -> tuple[int, int]:
    """The most tokens one image costs at high or automatic detail, and at low detail."""
    return next((rates for pattern, rates in _RATES if pattern.match(model)), (TILES, LOW_DETAIL))
