"""No error, log line, repr, command or exported file shows a password in an address, whatever characters it has."""

from __future__ import annotations

import asyncio
import logging
import traceback
from pathlib import Path
from typing import get_args
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

import hitherto
from hitherto.addresses import shown_address
from hitherto.errors import DatabaseUnavailable, HithertoError, InvalidSettings
from hitherto.providers.endpoints.failures import Endpoint
from hitherto.providers.names import model_of
from hitherto.settings import Settings
from hitherto.settings.values import ModelProvider
from tests.acceptance.cli.commands import bare
from tests.conftest import SCOPE
from tests.lengths import examples, lasting

SECRET = "qxsecret"

PASSWORDS = (
    st.lists(st.sampled_from([SECRET, *"/@:?#%[] '\"\n\\=&,;$ü", "5432", "1", "%40", "://"]), max_size=7)
    .map(lambda parts: "".join([SECRET, *parts]))
    .flatmap(lambda password: st.sampled_from([password, f"1/{password}", f"5432?{password}", f"@{password}"]))
)
DATABASES = st.sampled_from(
    [
        "postgresql://app:{}@127.0.0.1:1/db",
        "postgres://app:{}@127.0.0.1:1,127.0.0.1:2/db",
        "postgresql://app%3A{}@127.0.0.1:1/db",
        "postgresql://app%3A{}%40127.0.0.1:1/db",
        "postgresql://app@127.0.0.1:1/db?password={}",
        "postgresql://127.0.0.1:1?user=app&password={}",
        "postgresql://app@127.0.0.1:1/db?sslpassword={}&connect_timeout=1",
        "host=127.0.0.1 port=1 user=app dbname=db password={}",
        "password={} host=127.0.0.1 port=1",
        "host=127.0.0.1 port=1 password='{}' dbname=db",
        "host=127.0.0.1 port=1 dbname=postgresql://app:{}@127.0.0.1/db",
        "app:{}@127.0.0.1:1/db",
        " postgresql://app:{}@127.0.0.1:1/db",
    ]
)
URLS = st.sampled_from(
    [
        "http://app:{}@127.0.0.1:1/v1",
        "https://{}@127.0.0.1:1/v1",
        "http://127.0.0.1:1/v1?api-key={}",
        "http://127.0.0.1:1/v1#{}",
        "http://127.0.0.1:1/v1;key={}",
        "app:{}@127.0.0.1:1",
        "http:/app:{}@127.0.0.1:1",
    ]
)


def encoded(password: str) -> str:
    return quote(password, safe="")


ENCODED = st.sampled_from([str, encoded])


def checked(*shown: object) -> None:
    for one in shown:
        text = "".join(traceback.format_exception(one)) if isinstance(one, BaseException) else str(one)
        assert SECRET not in text.lower()


@lasting
@given(DATABASES, PASSWORDS, ENCODED)
@settings(deadline=None, max_examples=examples(50))
def test_of_a_database(form: str, password: str, encode: type[str]) -> None:
    address = form.format(encode(password))
    asked = Settings.load(database=address)
    checked(shown_address(address), repr(asked), asked)
    with pytest.raises(DatabaseUnavailable) as raised:
        asyncio.run(opened(address))
    checked(raised.value)


async def opened(address: str) -> None:
    async with hitherto.open(address, database_timeout=0.1):
        pass


@given(URLS, PASSWORDS, ENCODED, st.sampled_from(get_args(ModelProvider)))
@settings(deadline=None, max_examples=50)
def test_of_an_endpoint_and_a_service(form: str, password: str, encode: type[str], provider: str) -> None:
    address = form.format(encode(password))
    asked = Settings.load(model="m", model_base_url=address, model_provider=provider)
    checked(shown_address(address), repr(asked), asked)
    try:
        checked(asyncio.run(failure(asked)))
    except InvalidSettings as error:
        checked(error)
    with pytest.raises(HithertoError) as raised:
        asyncio.run(connected(address))
    checked(raised.value)


async def failure(asked: Settings) -> str:
    """What a model says of its endpoint that fails."""
    model = model_of(asked)
    endpoint: Endpoint = getattr(model, "_endpoint")  # noqa: B009 (each model has one of its own class)
    said = str(endpoint.failure(500, "", {}))
    await model.aclose()
    return f"{said} {model!r} {endpoint!r}"


async def connected(address: str) -> None:
    async with hitherto.connect(address, timeout=0.1):
        pass


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://app:SECR/ETpw@db.example.com/agents", "postgresql://…"),
        ("postgresql://app:SECR%2FETpw@db.example.com/agents", "db.example.com:5432/agents"),
        ("postgresql://me@a:1,b:2/agents", "a,b:1,2/agents"),
        ("postgresql://app:se?c#ret@[::1]:5433/agents", "::1:5433/agents"),
        ("postgresql:///agents?host=%2Frun%2Fpg", "/run/pg:5432/agents"),
        ("host=db dbname=agents password='a b'", "db:5432/agents"),
        ("postgresql://app:SECRETpw", "postgresql://…"),
        ("http://app:SECRETpw", "http://…"),
        ("memory", "an address that cannot be read"),
        ("https://me:pw@models.example.com:8443/v1?api-key=secret", "https://models.example.com:8443/v1"),
        ("http://[::1]:8480", "http://[::1]:8480"),
        ("http://app:1/ETpw@models.example.com/v1", "http://…"),
    ],
)
def test_what_is_shown(address: str, shown: str) -> None:
    assert shown_address(address) == shown


async def test_of_an_open_memory(database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    address = make_conninfo(database, password=f"{SECRET}/{SECRET}@")
    async with hitherto.open(address, model="extractive", embedder="none") as memory:
        services = memory._services  # pyright: ignore[reportPrivateUsage] — what they show is looked at
        connections = services.store._connections  # pyright: ignore[reportPrivateUsage] — what they show is looked at
        pool = connections._pool  # pyright: ignore[reportPrivateUsage] — what they show is looked at
        checked(repr(memory), repr(services), repr(services.store), repr(connections), repr(pool), vars(pool))
        await memory.conversation("c", scope=SCOPE).append(hitherto.user("Hello."))
        with (tmp_path / "export.jsonl").open("wb") as file:
            await memory.export_to(file, tenant=SCOPE.tenant)
    checked((tmp_path / "export.jsonl").read_text(), caplog.text)


@pytest.mark.parametrize("setting", ["database", "embedder_base_url"])
def test_of_commands(setting: str) -> None:
    form = "postgresql://app:{}@127.0.0.1:1/db" if setting == "database" else "http://app:{}@127.0.0.1:1/v1"
    names = {"HITHERTO_MODEL": "m", "HITHERTO_EMBEDDER": "m", "HITHERTO_RERANKER": "m", "HITHERTO_COMPACT_MODEL": "m"}
    for password in (f"1/{SECRET}@", f"{SECRET}%"):
        variables = {**names, f"HITHERTO_{setting.upper()}": form.format(password), "HITHERTO_DATABASE_TIMEOUT": "0.1"}
        for command in (["config", "--json"], ["doctor", "--json"], ["serve", "--port", "0"], ["worker"]):
            if setting == "database" or command[-1] == "--json":
                ran = bare(*command, **({"HITHERTO_DATABASE": "memory:"} | variables))
                checked(ran.out, ran.err)
                assert ran.out or ran.err


def test_of_a_yaml_file_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"database: postgresql://app:{SECRET}@host: x\n")
    with pytest.raises(HithertoError, match="at line 1") as raised:
        Settings.load(file)
    checked(raised.value)
