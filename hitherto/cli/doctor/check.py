"""The result of one check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CheckState(StrEnum):
    """How a check ended. `skipped`: it is not needed, or another check that it depends on failed."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was found, and what to do about it, if anything."""

    name: str
    state: CheckState
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Check:
    return Check(name=name, state=CheckState.OK, found=found)


def warning(name: str, found: str, advice: str) -> Check:
    return Check(name=name, state=CheckState.WARNING, found=found, advice=advice)


def failed(name: str, found: str | Exception, advice: str = "") -> Check:
    """A failed check. Messages of Hitherto's own errors say what to do, so they need no `advice`."""
    return Check(name=name, state=CheckState.FAILED, found=str(found), advice=advice)


def skipped(name: str, found: str) -> Check:
    return Check(name=name, state=CheckState.SKIPPED, found=found)
