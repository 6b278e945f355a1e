"""Warnings about categories that are not defined here."""

from __future__ import annotations

from hitherto.cli.terminal import output
from hitherto.core.facts.fact import category_of
from hitherto.settings import Settings


def warn_of_category(category: str, outcome: str) -> None:
    """Warn if an option names a category that is not defined, with what becomes of it."""
    known = Settings.load().fact_categories
    if category_of(category, known)[1]:
        output.warn(
            f"the category {category!r} is not defined here, so {outcome}; there are {', '.join(known)}, and "
            "HITHERTO_FACT_CATEGORIES defines others"
        )


def warn_of_other_values(fact_id: int, category: str) -> None:
    """Warn if the category of a fact is not defined, so that another fact of it may hold too."""
    if category_of(category, Settings.load().fact_categories)[1]:
        output.warn(
            f"the category {category!r} of fact {fact_id} is not defined here, so whether it holds one value at a "
            "time is not known, and another fact of it may hold too; give HITHERTO_FACT_CATEGORIES and "
            "HITHERTO_SINGLE_FACT_CATEGORIES as your program has them"
        )
