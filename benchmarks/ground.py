"""The ground all benchmarks stand on: one embedded PostgreSQL, databases on it, and what is said in them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

import hitherto
from hitherto import Context, Memory, Message
from hitherto.ports.models import Compactor
from hitherto.store import schema
from hitherto.store.embedded.server import EmbeddedServer
from hitherto.tokens import CANONICAL, counter_for

BUDGET = 2_000

_numbers = count(1)
_OPENERS = ("We", "They", "Today", "Then", "Our", "This", "Now", "Here", "But", "So")
_WORDS = (  # noqa: SIM905 (a list would take a line for each word)
    "team market river price winter engine letter garden window budget meeting report summer travel ticket music "
    "kitchen doctor school project table bridge train station hotel weather morning dinner coffee sister brother "
    "question answer about before after under with from into over near bring keep find build write read open close "
    "change plan move start finish send call visit paint small large early late quiet simple green heavy short long"
).split()


@dataclass(frozen=True, slots=True)
class Ground:
    """A running server. `quick` cuts everything down to a smoke run, whose ratios mean nothing; `full` is for what
    takes minutes at its whole size."""

    server: EmbeddedServer
    quick: bool
    full: bool = False

    @classmethod
    @asynccontextmanager
    async def open(cls, *, quick: bool, full: bool = False) -> AsyncGenerator[Ground]:
        """A server in a temporary directory; both are gone afterwards."""
        folder = Path(tempfile.mkdtemp(prefix="hitherto-bench-"))
        try:
            server = await EmbeddedServer.start(folder / "pg")
            try:
                yield cls(server, quick, full)
            finally:
                await server.stop()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def size(self, full: int, *, quick: int) -> int:
        return quick if self.quick else full

    @asynccontextmanager
    async def database(self) -> AsyncGenerator[str]:
        """The URL of a fresh database with the schema in it; it is dropped afterwards."""
        name = f"bench_{next(_numbers)}"
        async with self.admin() as connection:
            await connection.execute(sql.SQL("create database {} owner hitherto").format(sql.Identifier(name)))
            url = make_conninfo(self.server.url, dbname=name)
            try:
                await schema.ensure(url, patience=10)
                yield url
            finally:
                await connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    @asynccontextmanager
    async def admin(self, url: str | None = None) -> AsyncGenerator[psycopg.AsyncConnection[Any]]:
        """A superuser's connection, to the database of `url` if one is given."""
        target = make_conninfo(url, user="postgres") if url else self.server.admin_url
        async with await psycopg.AsyncConnection[Any].connect(target, autocommit=True) as connection:
            yield connection

    async def settle(self, url: str) -> None:
        """Do now what the server would do in the background sooner or later: vacuum, statistics, a checkpoint.

        Only where every table that grows has rows already: plans made for an empty table go on reading all of it.
        """
        async with self.admin(url) as connection:
            await connection.execute("vacuum (analyze)")
            await connection.execute("checkpoint")


@asynccontextmanager
async def memory_on(url: str, *, compactor: Compactor | None = None, worker: bool = True) -> AsyncGenerator[Memory]:
    """A memory whose digests need no model, or are made by another process."""
    async with hitherto.open(url, model="extractive", encoding=CANONICAL, compactor=compactor, worker=worker) as memory:
        yield memory


def text(random: Random, tokens: int) -> str:
    """Sentences of exactly so many tokens, about five characters each."""
    pieces: list[str] = []
    length = 0
    for left in range(tokens, 0, -1):
        if length and (left == 1 or length > random.randint(7, 14)):
            pieces.append(".")
            length = 0
        else:
            pieces.append(f" {random.choice(_WORDS if length else _OPENERS)}")
            length += 1
    made = "".join(pieces).removeprefix(" ")
    counted = counter_for(CANONICAL).count(made)
    if counted != tokens:
        raise RuntimeError(f"{made!r} has {counted} tokens, not {tokens}: a word of the list is more than one")
    return made


def turn(random: Random, tokens: int) -> tuple[Message, Message]:
    """A user's message and its answer, so many tokens of text each."""
    return hitherto.user(text(random, tokens)), hitherto.assistant(text(random, tokens))


def carried(context: Context) -> str:
    """How much of the log is in a context."""
    verbatim = sum(span.end - span.start + 1 for span in context.manifest.fates if span.fate == "in")
    digest = context.manifest.sections["digest"]
    return (
        f"{verbatim} messages"
        + (f" and a digest of {digest} tokens" if digest else "")
        + f", {context.tokens:,} tokens"
    )
