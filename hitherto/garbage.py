"""Keeping Python's garbage collector from running while very many objects are made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager


class _Blocks:
    """How many blocks are open, in all threads, and whether the collector was on before the first."""

    lock = threading.Lock()
    open = 0
    on = False


@contextmanager
def few_collections() -> Generator[None]:
    """Switch the garbage collector off inside the block. Thousands of objects that are all kept would set off a dozen
    useless collections, and every few calls one of the whole heap, which takes many times as long as making them. For
    code that awaits nothing."""
    with _Blocks.lock:
        if not _Blocks.open:
            _Blocks.on = gc.isenabled()
            gc.disable()
        _Blocks.open += 1
    try:
        yield
    finally:
        with _Blocks.lock:
            _Blocks.open -= 1
            if not _Blocks.open and _Blocks.on:
                gc.enable()
