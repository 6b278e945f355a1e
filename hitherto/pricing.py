"""Loading price lists: the one that ships with Hitherto, and files of the user's own."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from hitherto.core.price import PriceList, price_list
from hitherto.errors import InvalidInput


@cache
def shipped() -> PriceList:
    """The list that ships with the package."""
    data = resources.files("hitherto").joinpath("data/prices.json").read_bytes()
    return price_list(data, "the built-in price list")


def listed(own: Path | None) -> PriceList:
    """The list in the file `own`, or without one the shipped list. Raises InvalidInput, naming the file, for one that
    cannot be read or is no price list."""
    if own is None:
        return shipped()
    try:
        data = own.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read the price list {own}: {error.strerror}") from error
    return price_list(data, str(own))
