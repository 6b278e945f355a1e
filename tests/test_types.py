"""What users mistype is found by their type checkers, and what public verbs return can be named."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest

import hitherto
from hitherto import policies
from hitherto.settings import Settings
from hitherto.settings.definitions import ServiceSettings, SettingsOptions
from tests.lengths import at_length, lasting

PROGRAM = """
import hitherto
from hitherto import Policy, Scope, chunks, redact, rolling, trim

trim(max_turns=3)
trim(max_turn=3)  # wrong
rolling(threshold=3)
rolling(treshold=3)  # wrong
rolling(threshold="4")  # wrong
chunks(bacth=3)  # wrong
redact(trigger_turns=6)
hitherto.open(budget=5, model_key="key", lease_timeout=30)
hitherto.open(bugdet=5)  # wrong
hitherto.open(budget="5")  # wrong
hitherto.open(model_provider="opnai")  # wrong


async def main() -> Policy:
    async with hitherto.open("memory:") as memory:
        chat = memory.conversation("c", scope=Scope(tenant="t", user="u", agent="a"))
        await chat.append(hitherto.user("hello"), wire="openai.chta")  # wrong
        await chat.context("hello", budjet=3)  # wrong
        await chat.context("hello", wire="openai.chta")  # wrong
        await memory.recall("x", kinds=["mesage"], scope=chat.scope)  # wrong
        await memory.costs(by="dya")  # wrong
        found = await memory.recall("x", limit=3, kinds=["message"], scope=chat.scope)
        print(found.hits[0].scores.fused)
        return await chat.policy()


hitherto.open_sync("memory:", bugdet=5)  # wrong
with hitherto.open_sync("memory:") as memory:
    chat = memory.conversation("c", scope=Scope(tenant="t", user="u", agent="a"))
    start: int = chat.append(hitherto.user("hello")).start
    chat.append(hitherto.user("hello"), wire="openai.chta")  # wrong
    chat.turn("hello", budjet=3)  # wrong
    with chat.turn("hello", budget=3) as turn:
        turn.add("hello")
        whole: str = turn.result  # wrong
    first: str = memory.recall("x", scope=chat.scope).hits[0].text
    ids: list[str] = memory.conversations(scope=chat.scope)  # wrong
"""
WRONG = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}
CHECKERS = {
    "basedpyright": ["basedpyright", "--pythonpath", sys.executable],
    "mypy": ["mypy", "--follow-imports=silent", "--no-error-summary", "--hide-error-context"],
}


@lasting
@pytest.mark.parametrize("checker", CHECKERS if at_length() else ["basedpyright"])
def test_a_mistyped_option_is_found(checker: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", *CHECKERS[checker], str(file)]
    if checker == "mypy":
        command[4:4] = ["--cache-dir", str(pytestconfig.cache.mkdir("mypy"))] if pytestconfig.cache else []
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    found = re.findall(r"program\.py:(\d+)(?::\d+)?(?: -)?:? error", ran.stdout)
    assert {int(line) for line in found} == WRONG, ran.stdout + ran.stderr


def test_the_options_of_open_are_the_settings() -> None:
    own = {*inspect.signature(hitherto.open).parameters, *ServiceSettings.model_fields, "tenant", "user", "agent"} - {
        "settings"
    }
    assert set(SettingsOptions.__annotations__) == set(Settings.model_fields) - own


def named(hint: Any) -> Iterator[type]:
    """The classes of this package that a type is made of."""
    if isinstance(hint, type) and hint.__module__.startswith("hitherto."):
        yield hint
    for part in get_args(hint):
        yield from named(part)
    if isinstance(hint, Sequence) and not isinstance(hint, str):
        for part in hint:
            yield from named(part)


def returned(cls: type) -> Iterator[type]:
    """What the public verbs of a class return."""
    for name, member in inspect.getmembers(cls):
        verb = member.fget if isinstance(member, property) else member
        if not name.startswith("_") and inspect.isfunction(verb):
            answer = SimpleNamespace(__annotations__={"return": verb.__annotations__.get("return")})
            yield from named(get_type_hints(answer, verb.__globals__)["return"])


def test_what_public_verbs_return_is_public() -> None:
    with_verbs = (hitherto.Memory, hitherto.Conversation, hitherto.Context, hitherto.Facts, hitherto.Documents)
    found = {cls.__name__ for one in with_verbs for cls in returned(one)}
    assert {"Context", "Logged", "RecallResult"} <= found
    assert sorted(found - {*hitherto.__all__, *policies.__all__}) == []
