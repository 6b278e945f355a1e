"""What pages name between backticks is there: verbs, parameters, settings, commands and their options."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import pytest

from hitherto import sliding_window
from hitherto.other_systems.settings_aliases import ALIASES
from hitherto.settings import Settings
from tests.test_docs import COMMANDS, PAGES, ROOT

SPAN = re.compile(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

ELSEWHERE = {
    **dict.fromkeys(("absent", "max", "rate", "sum"), "PromQL"),
    **dict.fromkeys(("Agent", "OpenAIResponsesCompactionSession", "RunContextWrapper"), "the Agents SDK"),
    **dict.fromkeys(("hooks", "underlying_session"), "the Agents SDK"),
    **dict.fromkeys(("Path", "field", "str", "timedelta"), "Python"),
    **dict.fromkeys(("--help", "--version", "--install-completion", "--show-completion"), "every command has it"),
    "Guest": "a class of the page's program",
    "Slow": "a class of the page's program",
    "rent": "a tool of the page's program",
    "exclude_none": "pydantic",
    "parameter": "the form of a policy on the command line",
    "--app": "Flask",
    "--config": "an option before the command",
    "--default-non-nullable": "openapi-typescript",
    "--only": "python -m benchmarks",
    "HITHERTO_CONFIG": "the file of the settings, which is none of them",
    "HITHERTO_KEY": "of the command line alone",
    "HITHERTO_TRACEBACK": "of the command line alone",
    "--add-mcp": "VS Code",
    "--env": "Codex",
}
"""Names of other libraries, of programs and of pages' own code, and where each is from."""

ANYTHING = "**"
"""Stands for the parameters of what passes them on."""


def spans() -> Iterator[tuple[str, str]]:
    """The name of each page with each of its spans of code."""
    for page in PAGES:
        for found in SPAN.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
            yield page.name, re.sub(r"\bclient\.[\w.]+", "", found[1])  # an API's SDK


def signatures() -> dict[str, set[str]]:
    """By the name of each function and class of the package the parameters that those of this name take."""
    found, bases = defaultdict[str, set[str]](set), dict[str, set[str]]()
    for file in (ROOT / "hitherto").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name] |= parameters(node)
            elif isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base).partition("[")[0] for base in node.bases}
                for one in node.body:
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                        found[node.name].add(one.target.id)
                    elif isinstance(one, ast.FunctionDef) and one.name in ("__init__", "__new__"):
                        found[node.name] |= parameters(one)
    for name, above in bases.items():
        found[name] = found[name].union(*(found.get(base, set()) for base in above))
    return found


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    said = function.args
    named = {one.arg for one in (*said.posonlyargs, *said.args, *said.kwonlyargs)}
    return named | ({ANYTHING} if said.kwarg is not None else set())


SIGNATURES = signatures()
TAKEN = {*Settings.model_fields, *chain.from_iterable(SIGNATURES.values())}
CALL = re.compile(r"(?<![\w-])(?:\w+\.)*(\w+)\(((?:[^()]|\([^()]*\))*)\)?")
KEYWORD = re.compile(r"(?<![\w.?&-])([a-z]\w*)=(?!=)")


def strange(found: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(page, name) for page, name in found if name not in ELSEWHERE}


def test_verbs_and_their_parameters() -> None:
    assert (
        strange((page, call[1]) for page, span in spans() for call in CALL.finditer(span) if call[1] not in SIGNATURES)
        == set()
    )
    wrong = {
        (page, f"{call[1]}({keyword}=)")
        for page, span in spans()
        for call in CALL.finditer(span)
        if call[1] in SIGNATURES and ANYTHING not in SIGNATURES[call[1]]
        for keyword in KEYWORD.findall(re.sub(r"\w+\([^()]*\)", "", call[2]))
        if keyword not in {*SIGNATURES[call[1]], *ELSEWHERE}
    }
    assert wrong == set()


def test_parameters() -> None:
    assert (
        strange((page, name) for page, span in spans() for name in KEYWORD.findall(span) if name not in TAKEN) == set()
    )


@pytest.mark.parametrize(("page", "of"), [("sliding-window.md", sliding_window)])
def test_tables_of_parameters(page: str, of: Callable[..., object]) -> None:
    table = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("| parameter |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) <= set(inspect.signature(of).parameters)


def test_settings() -> None:
    assert (
        strange(
            (page, name)
            for page, span in spans()
            for name in re.findall(r"\bHITHERTO_\w+", span)
            if name.removeprefix("HITHERTO_").lower() not in Settings.model_fields and name not in ALIASES.values()
        )
        == set()
    )


def options() -> set[str]:
    found = set[str]()
    left = list(COMMANDS.values())
    while left:
        command = left.pop()
        left += getattr(command, "commands", {}).values()
        found |= {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
    return found


@pytest.mark.parametrize(
    ("pattern", "known"), [(r"^hitherto ([a-z]+)", set(COMMANDS)), (r"(?<![\w-])--[a-z][\w-]*", options())]
)
def test_commands_and_options(pattern: str, known: set[str]) -> None:
    named = ((page, name) for page, span in spans() for name in re.findall(pattern, span) if name not in known)
    assert strange(named) == set()


def test_each_exception_is_one() -> None:
    written = "\n".join(span for _, span in spans())
    assert [name for name in ELSEWHERE if not re.search(rf"(?<!\w){name}\b", written)] == []
    assert [name for name in ELSEWHERE if name in SIGNATURES and name in TAKEN] == []
