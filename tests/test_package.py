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


def test_the_inspector_uses_public_verbs() -> None:
    """Its app and its sessions alone, which know keys, look behind them."""
    pages = sorted((PACKAGE / "web").rglob("*.py"))
    behind = re.compile(r"\._services\b|\bhitherto\.store\b")
    found = [one.name for one in pages if behind.search(one.read_text(encoding="utf-8"))]
    assert found == ["app.py", "sessions.py"]


def test_each_promise_names_a_test_that_is_there() -> None:
    project = PACKAGE.parent
    page = (project / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The promises and their tests")[2]
    rows = re.findall(r"^\| (\d+) \|.*$", page, re.MULTILINE)
    assert rows == [str(number) for number in range(1, 16)]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) >= len(rows)
    for file, name in named:
        assert re.search(rf"^ *(async )?def {name}\(", (project / file).read_text(encoding="utf-8"), re.MULTILINE), name


def test_what_to_open_for_a_change_is_there() -> None:
    """Each path of the table can be opened, and each name stands in a file of its row."""
    project = PACKAGE.parent
    page = (project / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("To change …")[2].partition("\n## ")[0]
    rows = [row for row in page.splitlines() if row.startswith("| ") and "---" not in row and "open first" not in row]
    assert len(rows) > 50
    for row in rows:
        said = re.findall(r"`(\w[\w./-]*)`", row.partition("|")[2].partition("|")[2])
        files = [found for one in said if (found := opened(one, project)) is not None]
        text = "".join(part.read_text(encoding="utf-8") for file in files for part in parts_of(file))
        missing = [one for one in said if opened(one, project) is None and not re.search(rf"\b{one}\b", text)]
        assert missing == [], row


def opened(path: str, project: Path) -> Path | None:
    places = (PACKAGE, PACKAGE / "store" / "migrations", project)
    return next((place / path for place in places if (place / path).exists()), None)


def parts_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.sql")]
