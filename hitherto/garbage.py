"""Keeping Python's garbage collector from running while very many objects are made."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def few_collections() -> Generator[None]:
    """Switch the garbage collector off inside the block. Thousands of objects that are all kept would set off a dozen
    useless collections, and every few calls one of the whole heap, which takes many times as long as making them. For
    code that awaits nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
