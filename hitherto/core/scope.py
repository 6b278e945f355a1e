"""Scopes: the tenant, user and agent that a memory belongs to."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hitherto.errors import InvalidScope

LONGEST_NAME = 200
_LONGEST_IN_BYTES = 600
"""In UTF-8: four names stand in one index entry, which has room for 2,700 bytes."""

THE_USER = ""
"""The subject of facts about the user; no other subject can have this id."""


def checked_name(value: object, what: str) -> str:
    """`value` as a usable name. Raises InvalidScope unless it is a string, not blank, of at most LONGEST_NAME
    characters and 600 bytes in UTF-8, without NUL and lone surrogates.

    Names are compared exactly, in code and in the database; nothing is trimmed or folded.
    """
    if not isinstance(value, str) or not value or value.isspace():
        raise InvalidScope(f"{what} is {value!r}; give a non-empty string")
    if len(value) > LONGEST_NAME:
        raise InvalidScope(f"{what} has {len(value)} characters; at most {LONGEST_NAME} are kept as a name")
    if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidScope(f"{what} is {value!r}; NUL and lone surrogates cannot be part of a name")
    if len(value.encode()) > _LONGEST_IN_BYTES:
        raise InvalidScope(
            f"{what} has {len(value.encode())} bytes in UTF-8; at most {_LONGEST_IN_BYTES} are kept as a name"
        )
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Tenant, user and agent: every verb demands all three, so that a missing part can never mean "everything".

    Raises InvalidScope when a part is missing, empty, longer than 200 characters or not storable text.
    """

    tenant: str
    user: str
    agent: str

    def __post_init__(self) -> None:
        for field in fields(self):
            checked_name(getattr(self, field.name), field.name)

    @staticmethod
    def checked(value: object) -> Scope:
        """`value` if it is a `Scope`. Raises InvalidScope for anything else, None included."""
        if not isinstance(value, Scope):
            raise InvalidScope(f"scope is {value!r}; give Scope(tenant=…, user=…, agent=…)")
        return value

    def __str__(self) -> str:
        return f"{self.tenant}/{self.user}/{self.agent}"
