"""Python's garbage collector while very many objects are made at once."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def few_collections() -> Generator[None]:
    """Inside, garbage is not looked for: thousands of objects that are all kept would set off a dozen vain searches,
    and every few calls one through the whole heap, which takes many times as long as making them. For work that does
    not wait."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
