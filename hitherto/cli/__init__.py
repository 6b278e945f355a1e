"""The command line."""

from __future__ import annotations

from collections.abc import Callable

import typer

from hitherto.cli import (
    bench,
    costs,
    doctor,
    documents,
    fact_review,
    fact_subjects,
    facts,
    recall,
    replay,
    simulate,
    stored,
    terminal,
    worker,
)
from hitherto.cli.app import app
from hitherto.errors import HithertoError, InvalidDocument, InvalidInput, InvalidTranscript
from hitherto.policies import discover

__all__ = [
    "app",
    "bench",
    "costs",
    "doctor",
    "documents",
    "fact_review",
    "fact_subjects",
    "facts",
    "main",
    "recall",
    "replay",
    "simulate",
    "stored",
    "worker",
]

_INTERRUPTED = 130
_Misuse: type[Exception] = typer.BadParameter.__mro__[2]  # ClickException, for which Typer has no public name


def main() -> None:
    """The entry point: exit code 0, 1 for a failure, 2 for wrong usage; an error is one line on standard error."""
    terminal.prepare()
    discover()
    try:
        code = app(prog_name="hitherto", standalone_mode=False)
    except HithertoError as error:
        misuse = isinstance(error, InvalidInput) and not isinstance(error, InvalidTranscript | InvalidDocument)
        terminal.fail(str(error), 2 if misuse else 1)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except _Misuse as error:
        terminal.fail(_usage(error), 2)
    except OSError as error:
        terminal.fail(f"the system refused: {error}", 1)
    except Exception as error:  # noqa: BLE001 (the edge of a command: a defect of ours is one line too)
        terminal.fail(
            f"a defect of Hitherto: {type(error).__name__}: {error}. Please report it, with the traceback that "
            "HITHERTO_TRACEBACK=1 shows",
            1,
        )
    if code == _INTERRUPTED:
        terminal.fail("interrupted", _INTERRUPTED)
    raise SystemExit(code or 0)


def _usage(error: Exception) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    say: Callable[[], str] = getattr(error, "format_message", error.__str__)
    return f"{say().rstrip('.')}; see: {context.command_path if context else 'hitherto'} -h"
