"""The command line, `hitherto`."""

from hitherto.cli.app import main

__all__ = ["main"]
