"""The command line, `hitherto`."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point. To import the rest takes a moment, in which Ctrl-C ends it with 130 too."""
    try:
        from hitherto.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("hitherto: interrupted\n")
        raise SystemExit(130) from None
    run()
