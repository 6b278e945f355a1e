"""`hitherto serve` as a process of its own, and clients of it."""

from __future__ import annotations

import json
import re
import signal
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2 as httpx

import hitherto
from hitherto.core.key import ApiKey
from tests.acceptance.cli.commands import bare
from tests.forked import Program
from tests.patience import PATIENCE
from tests.providers.models.endpoint import Endpoint

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
AGENT = {"agent_id": "support", "resources": ["memory"], "model": "big", "allowed_regular_tools": ["get_order"]}
TOOLS = ("--tools", str(EXAMPLES / "agent_tools.py"))


class Service:
    """A service at `url`, on a database. Behind the names of its clients' users stands `suffix`."""

    def __init__(self, url: str, database: str, program: Program, suffix: str = "") -> None:
        self.url, self.database, self.program, self._suffix = url, database, program, suffix

    def of(self, suffix: str) -> Service:
        """The same service for other users, who share nothing with those before."""
        return Service(self.url, self.database, self.program, suffix)

    async def key(
        self, tenant: str, user: str | None = None, *, rights: str = "read,write,review"
    ) -> tuple[ApiKey, str]:
        """A new key, and its secret."""
        async with hitherto.open(self.database, worker=False) as memory:
            made = await memory.keys(tenant).create("tests", rights=rights.split(","), user=user)  # pyright: ignore[reportArgumentType]
        return made.key, made.secret

    def client(
        self, secret: str | None = None, *, user: str | None = None, agent: str | None = None
    ) -> httpx.AsyncClient:
        """Its requests have this key, and name this user and this agent."""
        named = {"Hitherto-User": user and user + self._suffix, "Hitherto-Agent": agent}
        headers = {name: quote(value) for name, value in named.items() if value is not None}
        if secret is not None:
            headers["Authorization"] = f"Bearer {secret}"
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=PATIENCE)


@contextmanager
def served(
    database: str, *words: str, agents: Iterable[Mapping[str, Any]] = (), model: Endpoint | None = None, **settings: str
) -> Generator[Service]:
    """A service with these agents. Their models are at `model`; that of digests too, unless a file of settings is
    given."""
    if model is not None:
        settings |= {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "none", "HITHERTO_MODEL_KEY": "none"}
    if model is not None and "HITHERTO_CONFIG" not in settings:
        settings |= {"HITHERTO_MODEL": "small", "HITHERTO_MODEL_BASE_URL": model.url}
    with tempfile.TemporaryDirectory() as folder:
        files = list[str]()
        for number, agent in enumerate(agents):
            (Path(folder) / f"{number}.json").write_text(json.dumps(agent))
            files += ["--agent", str(Path(folder) / f"{number}.json")]
        log = Path(folder) / "log"
        environment = bare.surroundings(HITHERTO_DATABASE=database, HITHERTO_EMBEDDER="none", **settings)
        with log.open("w") as told:
            end = told.fileno()
            program = Program(
                "serve", "--port", "0", "--other-systems", *files, *words, environment=environment, out=end, err=end
            )
        try:
            until = time.monotonic() + PATIENCE
            while not (found := re.search(r"Serving at (\S+):", log.read_text())):
                assert program.code is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.05)
            yield Service(found[1], database, program)
        finally:
            program.send_signal(signal.SIGTERM)
            ended = program.wait()
        assert (ended, "Traceback" in log.read_text()) == (0, False), log.read_text()


def events_of(body: str) -> list[dict[str, Any]]:
    """The events of a stream."""
    lines = [line for line in body.split("\n\n") if line and not line.startswith(":")]
    assert all(line.startswith("data: ") for line in lines), body
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def problem(response: httpx.Response, status: int) -> str:
    """The name of the error of a problem with this status."""
    assert response.status_code == status, response.text
    assert response.headers["Content-Type"] == "application/problem+json"
    return response.json()["type"].removeprefix("urn:hitherto:")
