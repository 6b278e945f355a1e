"""Hitherto inside other people's frameworks: each in a package of its own, each an extra."""
