"""The package as a reader finds it: one name for one class, and rooms that can be taken in at a glance."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "hitherto"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_no_two_classes_share_a_name() -> None:
    found = defaultdict[str, list[str]](list)
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(module.relative_to(PACKAGE)))
    assert len(found) > 200
    assert {name: modules for name, modules in found.items() if len(modules) > 1} == {}


def test_no_folder_is_a_heap() -> None:
    sizes = Counter(module.parent.relative_to(PACKAGE) for module in MODULES if module.name != "__init__.py")
    assert {str(folder): size for folder, size in sizes.items() if size > 15} == {}


def test_each_promise_names_a_test_that_is_there() -> None:
    project = PACKAGE.parent
    page = (project / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The promises and their tests")[2]
    rows = re.findall(r"^\| (\d+) \|.*$", page, re.MULTILINE)
    assert rows == [str(number) for number in range(1, 16)]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) >= len(rows)
    for file, name in named:
        assert re.search(rf"^ *(async )?def {name}\(", (project / file).read_text(encoding="utf-8"), re.MULTILINE), name
