"""The scope of commands: from options, the environment and a file; and what is said where another one is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import hitherto
from hitherto import Scope, user
from hitherto.errors import InvalidSettings
from tests.acceptance.cli.commands import Cli, Home

ANA = Scope(tenant="acme", user="ana", agent="support")


@pytest.fixture(scope="module")
async def cli(home: Home) -> Cli:
    async with hitherto.open(home.url, worker=False) as memory:
        await memory.conversation("trip", scope=ANA).append(user("We fly to Lisbon on Friday."))
        garage = memory.conversation("c", scope=Scope(tenant="acme", user="ana", agent="garage"))
        for text in (
            *("My bicycle was stolen in Porto.", "The car was washed.", "Where is the hotel?", "My tea is cold."),
            *("I sold my motorbike.", "We cycled to work.", "My bicycle is green.", "The rent of June is due."),
        ):
            await garage.append(user(text))
    return Cli(home.directory)


def test_options_then_the_environment_then_the_file(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('tenant = "acme"\nuser = "nobody"\nagent = "support"\n')
    environment = {"HITHERTO_CONFIG": str(file), "HITHERTO_USER": "ana"}
    assert cli("log", "trip", "--json", **environment).json["messages"]
    assert "acme/eve/support" in cli("log", "trip", "--user", "eve", **environment).failed(1)
    assert cli("conversations", "--json", **environment).json["conversations"]
    assert "local/ana/cli" in cli("log", "trip", HITHERTO_USER="ana").failed(1)
    exported = tmp_path / "export.jsonl"
    assert cli("export", exported, **environment).code == 0
    ran = cli("import", exported, "--json", **environment)
    assert ran.json["imported"]["skipped"] == 2, "an export has its own scope, whatever the settings say"


async def test_programs_name_a_scope_in_each_call() -> None:
    settings = {"tenant": "acme"}
    with pytest.raises(InvalidSettings, match="'tenant' is a setting of commands"):
        await hitherto.open("memory:", **settings)  # pyright: ignore[reportArgumentType] — what is refused


def test_a_conversation_in_another_scope_is_hinted_at(cli: Cli) -> None:
    said = cli("log", "trip", "--tenant", "acme").failed(1)
    assert "none, but other users or agents of the tenant have some" in said
    said = cli("log", "trip").failed(1)
    assert "none, but another tenant has some: name it with --tenant" in said
    for name in ("acme", "ana", "support", "demo"):
        assert name not in said


def test_recall_leaves_out_what_hardly_bears_on_it(cli: Cli) -> None:
    scope = ("--tenant", "acme", "--user", "ana", "--agent", "garage")
    assert "stolen in Porto" in " ".join(cli("recall", "Where was my bicycle stolen?", *scope).out.split())
    assert "sold my motorbike" in cli("recall", "What is for dinner?", "--min-score", "0", *scope).out
    said = " ".join(cli("recall", "What is for dinner?", *scope).out.split())
    assert "Nothing with a score of 0.05 or more was found" in said
    assert "--min-score 0 shows the nearest" in said
