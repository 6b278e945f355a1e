"""A port for a program that has to be told one, and ports at which nobody listens."""

from __future__ import annotations

import random
import socket


def free_port() -> int:
    """A port of 127.0.0.1 at which nobody listens, below those that a system gives to who names none: no server of
    another test, nor of another run of the tests, gets it in the meantime."""
    while True:
        port = random.SystemRandom().randrange(15_000, 30_000)
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) != 0:
                return port
