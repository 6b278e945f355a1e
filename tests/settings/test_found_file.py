"""What a hitherto.toml that was only found must not say: where a key or a password from elsewhere goes, and which
files a server runs on."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import hitherto
from hitherto.errors import InvalidSettings
from hitherto.settings import Settings
from tests.acceptance.cli.commands import bare

ELSEWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture(autouse=True)
def cloned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, and the user's home; nothing is in the environment."""
    for name in [name for name in os.environ if name.startswith(("HITHERTO_", "PG", "OPENAI_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hitherto.toml"


@pytest.mark.parametrize(
    ("key", "address", "value"),
    [
        ("model_key", "model_base_url", ELSEWHERE),
        ("model_key", "model_provider", "ollama"),
        ("model_key", "model_provider", "anthropic"),
        ("compact_key", "compact_base_url", ELSEWHERE),
        ("embedder_key", "embedder_base_url", ELSEWHERE),
        ("embedder_key", "embedder_provider", "ollama"),
        ("reranker_key", "reranker_base_url", ELSEWHERE),
    ],
)
def test_a_key_goes_to_no_address_from_a_found_file(
    cloned: Path, monkeypatch: pytest.MonkeyPatch, key: str, address: str, value: str
) -> None:
    cloned.write_text(f'{address} = "{value}"\n')
    assert getattr(Settings.load(), address) == value, "without a key, nothing is given away"
    refused = rf"hitherto.toml: {address} .*--config or HITHERTO_CONFIG, or set HITHERTO_{address.upper()}"
    with pytest.raises(InvalidSettings, match=refused):
        Settings.load(**{key: "sk-call"})
    monkeypatch.setenv(f"HITHERTO_{key.upper()}", "sk-environment")
    with pytest.raises(InvalidSettings, match=refused):
        Settings.load()
    assert getattr(Settings.load(cloned), address) == value, "a file that is named is the user's"
    monkeypatch.setenv(f"HITHERTO_{address.upper()}", value)
    assert getattr(Settings.load(), address) == value, "the user's own address comes before the file's"


def test_a_found_file_has_its_own_key_and_its_own_address(cloned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cloned.write_text(f'model_base_url = "{ELSEWHERE}"\nmodel_key = "sk-file"\n')
    assert Settings.load().model_base_url == ELSEWHERE
    monkeypatch.setenv("HITHERTO_MODEL_KEY", "sk-environment")
    with pytest.raises(InvalidSettings, match="comes from elsewhere"):
        Settings.load()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('data_dir = "prepared"', "commands in them"),
        ('cors_origins = ["*"]', "web pages could read"),
        ('tenant = "acme"', "another's memory"),
        ('user = "ana"', "another's memory"),
        ('embedder_provider = "sentence_transformers"', "code in it"),
    ],
)
def test_a_found_file_says_neither_which_files_are_used_nor_whose_memory_is_read(
    cloned: Path, line: str, why: str
) -> None:
    cloned.write_text(f"{line}\n")
    with pytest.raises(InvalidSettings, match=rf"{why}.*--config or HITHERTO_CONFIG"):
        Settings.load()
    Settings.load(cloned)


@pytest.mark.parametrize("name", ["embedder", "previous_embedder"])
def test_a_found_file_names_no_model_that_may_have_code(
    cloned: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cloned.write_text(f'{name} = "model"\n')
    assert getattr(Settings.load(), name) == "model", "an endpoint's model has none"
    monkeypatch.setenv("HITHERTO_EMBEDDER_PROVIDER", "sentence_transformers")
    with pytest.raises(InvalidSettings, match=rf"{name} .*code in it.*--config or HITHERTO_CONFIG"):
        Settings.load()
    assert getattr(Settings.load(cloned), name) == "model"


def test_a_provider_that_is_the_default_or_at_an_address_of_the_users(
    cloned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HITHERTO_MODEL_KEY", "sk-environment")
    cloned.write_text('model_provider = "openai"\n')
    assert Settings.load().model_provider == "openai"
    cloned.write_text('model_provider = "ollama"\n')
    assert Settings.load(model_base_url=ELSEWHERE).model_provider == "ollama"


@pytest.mark.parametrize(
    ("address", "environment"),
    [
        ("postgresql://me@host/db", {"PGPASSWORD": "pw"}),
        ("host=host dbname=db", {"PGPASSFILE": "passwords"}),
        ("postgresql://host/db", {"PGSERVICE": "production"}),
        ("postgresql://host/db?service=production", {}),
        ("postgresql://me:pw@host/db?passfile=passwords", {}),
    ],
)
def test_a_password_goes_to_no_database_from_a_found_file(
    cloned: Path, monkeypatch: pytest.MonkeyPatch, address: str, environment: dict[str, str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    cloned.write_text(f'database = "{address}"\n')
    with pytest.raises(InvalidSettings, match=r"hitherto.toml: database .* or set HITHERTO_DATABASE"):
        Settings.load()
    assert Settings.load(cloned).database == address
    monkeypatch.setenv("HITHERTO_DATABASE", address)
    assert Settings.load().database == address


def test_a_database_of_a_found_file_without_a_password_to_borrow(cloned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cloned.write_text('database = "postgresql://me@localhost/agents"\n')
    assert Settings.load().database
    (cloned.parent / "home" / ".pgpass").write_text("*:*:*:me:pw\n")
    with pytest.raises(InvalidSettings, match=r"\.pgpass"):
        Settings.load()
    cloned.write_text('database = "postgresql://me:own@localhost/agents"\n')
    monkeypatch.setenv("PGPASSWORD", "pw")
    assert Settings.load().database, "its own password is used, and no other"
    cloned.write_text('database = "memory:"\n')
    assert Settings.load().database == "memory:"


class _Listener(BaseHTTPRequestHandler):
    requests: list[str]

    def do_POST(self) -> None:
        self.requests.append(str(self.headers))
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """An address at which every request is noted down."""
    requests: list[str] = []
    server = HTTPServer(("127.0.0.1", 0), type("Listener", (_Listener,), {"requests": requests}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", requests
    server.shutdown()
    thread.join()
    server.server_close()


def test_nothing_is_sent_whoever_opens(
    cloned: Path, monkeypatch: pytest.MonkeyPatch, listener: tuple[str, list[str]]
) -> None:
    address, requests = listener
    cloned.write_text(f'database = "memory:"\nembedder = "small"\nembedder_base_url = "{address}"\n')
    keys = {"HITHERTO_EMBEDDER_KEY": "sk-environment", "OPENAI_API_KEY": "sk-openai"}
    checks = {one["name"]: one for one in bare("doctor", "--json", **keys).json["checks"]}
    assert "hitherto.toml: embedder_base_url" in checks["settings"]["found"]
    assert checks["embedder"]["state"] == "skipped"
    for command in (["config"], ["serve", "--port", "0"], ["worker"], ["recall", "hello"], ["migrate"]):
        assert "name it with --config" in bare(*command, **keys).failed(2)
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettings, match="embedder_base_url"):
        hitherto.open_sync()
    assert requests == []
    monkeypatch.delenv("HITHERTO_EMBEDDER_KEY")
    with hitherto.open_sync():
        assert requests, "it is asked, without a key"
    assert "sk-" not in "".join(requests)
