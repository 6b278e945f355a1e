"""The names of models: which of them are the same model in another dress."""

from __future__ import annotations

import re

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})\Z")


def family_of(model: str) -> str:
    """The models that understand one another's opaque items: `model` without provider, fine-tuning and snapshot.

    "openai/gpt-5.2-2025-12-11" and "ft:gpt-5.2:acme:support:a1" are both "gpt-5.2". A size or variant is a family of
    its own ("gpt-5.2-mini"), and so is any name that is not made like OpenAI's.
    """
    name = model.strip()
    base = without_provider(name)
    if base.startswith("ft:"):
        base = base.removeprefix("ft:").split(":", 1)[0]
    return _SNAPSHOT.sub("", base) or name


def without_provider(model: str) -> str:
    """ "openai/gpt-5.2-2025-12-11" as "gpt-5.2-2025-12-11"."""
    return model.strip().rsplit("/", 1)[-1]
