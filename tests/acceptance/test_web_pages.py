"""The programs of the pages for FastAPI, Flask and Django, each as a server of its own, with a scripted model."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

import hitherto
from hitherto import Scope
from tests.engine.turn import streams
from tests.patience import PATIENCE
from tests.ports import free_port
from tests.providers.models.endpoint import Answer, Endpoint

DOCS = Path(__file__).resolve().parents[2] / "docs"
SERVERS = {
    "fastapi": ["-m", "uvicorn", "app:app", "--port", "PORT", "--log-level", "warning"],
    "flask": ["-m", "flask", "--app", "app", "run", "--port", "PORT"],
    "django": ["app.py", "runserver", "--noreload", "127.0.0.1:PORT"],
}
SCOPE = Scope(tenant="shop", user="ada", agent="support")


@contextmanager
def served(framework: str, folder: Path, **settings: str) -> Generator[str]:
    """The address of the page's program, which runs as a process."""
    (program,) = re.findall(r"^```py\n(.*?)^```$", (DOCS / f"{framework}.md").read_text(), re.MULTILINE | re.DOTALL)
    (folder / "app.py").write_text(program)
    with running(SERVERS[framework], folder, **settings) as address:
        yield address


@contextmanager
def running(server: list[str], folder: Path, **settings: str) -> Generator[str]:
    """The address of a server, which runs in `folder` as `python` with these words."""
    port = free_port()
    words = [word.replace("PORT", str(port)) for word in server]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HITHERTO_", "OPENAI_"))}
    log = (folder / "log").open("w+")
    with (
        log,
        subprocess.Popen(
            [sys.executable, *words], cwd=folder, env={**kept, **settings}, stdout=log, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            until = time.monotonic() + PATIENCE
            while True:
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < until, (folder / "log").read_text()
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.mark.parametrize("framework", SERVERS)
async def test_the_program_of_the_page(framework: str, database: str, tmp_path: Path) -> None:
    pieces = streams.chat("It left ", "this morning.")
    broken = streams.chat("And it ", "ar")
    cut = Answer(body=broken.body, headers=broken.headers, cut=len(broken.body) - 200)
    refused = Answer(status=401)
    with Endpoint(pieces, cut, streams.chat("And it arrives today."), refused) as model:
        given: dict[str, Any] = {"HITHERTO_DATABASE": database, "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k"}
        with (
            served(framework, tmp_path, **given) as address,
            httpx.Client(base_url=address, timeout=PATIENCE) as client,
        ):

            def asked(question: str, key: str) -> str:
                headers = {"X-User": "ada", "Idempotency-Key": key}
                return client.post("/chats/c1", json={"question": question}, headers=headers).text

            for _ in range(2):
                assert asked("Is my order on its way?", "1") == "It left this morning."
            assert len(model.asked) == 1
            with suppress(httpx.HTTPError):  # the server breaks off too
                assert asked("When does it arrive?", "2").startswith("And it")
            assert asked("When does it arrive?", "2") == "And it arrives today."
            assert "It left this morning." in str(model.asked[-1])
            down = client.post("/chats/c2", json={"question": "Hello?"}, headers={"X-User": "ada"})
            assert (down.status_code, "ask again" in down.text) == (502, True)
    async with hitherto.open(database, worker=False) as memory:
        chat = memory.conversation("c1", scope=SCOPE)
        head = await chat.head()
        assert head is not None
        assert [one.message.text for one in await chat.messages() if one.live(head.rev)] == [
            "Is my order on its way?",
            "It left this morning.",
            "When does it arrive?",
            "And it arrives today.",
        ]
