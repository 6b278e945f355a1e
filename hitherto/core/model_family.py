"""Model families: names of models that are the same model, in different snapshots or from different providers."""

from __future__ import annotations

import re

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})\Z")
_GPT = re.compile(r"gpt-(\d)(?:\.(\d+))?(?![\d.])")


def family_of(model: str) -> str:
    """The family of `model`: its name without provider, fine-tuning and snapshot. Models of one family understand one
    another's opaque items.

    "openai/gpt-5.2-2025-12-11" and "ft:gpt-5.2:acme:support:a1" are both "gpt-5.2". A size or variant is a separate
    family ("gpt-5.2-mini"), and so is any name that does not follow OpenAI's scheme.
    """
    name = model.strip()
    base = without_provider(name)
    if base.startswith("ft:"):
        base = base.removeprefix("ft:").split(":", 1)[0]
    return _SNAPSHOT.sub("", base) or name


def without_provider(model: str) -> str:
    """The name of `model` without its provider: "openai/gpt-5.2-2025-12-11" gives "gpt-5.2-2025-12-11"."""
    return model.strip().rsplit("/", 1)[-1]


def takes_cache_breakpoints(model: str) -> bool:
    """Whether `model` is one of OpenAI's that take cache breakpoints: GPT-5.6 and later (source: OpenAI's guide "Prompt
    caching"). Older ones refuse them, and servers of other models may refuse a cache key too."""
    version = _GPT.match(family_of(model))
    return version is not None and (int(version[1]), int(version[2] or 0)) >= (5, 6)
