"""`hitherto documents` as its users meet it: a process of its own each time, on a real PostgreSQL."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.acceptance.cli.commands import Cli, Ran, bare
from tests.patience import PATIENCE

HANDBOOK = "# Handbook\n\n## Hours\nWe open at nine.\n\n## Alarm\nThe code of the alarm is 4711.\n"
BROKEN = {
    "empty.txt": (b"", "is empty"),
    "blank.md": (b" \n\t\n", "is empty"),
    "marks.md": (b"---\n***\n", "no text that could be found"),
    "latin.txt": ("caf\xe9".encode("latin-1"), "not UTF-8"),
    "wide.txt": ("text".encode("utf-16"), "UTF-16"),
    "scan.pdf": (b"%PDF-1.4\n1 0 obj", "a PDF"),
    "letter.docx": (b"PK\x03\x04\x00\x00", "Word"),
    "program": (b"\x7fELF\x02\x00\x00", "a binary file"),
    "late.bin": (b"text " * 500 + b"\0", "a binary file"),
}


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    path = tmp_path / "handbook.md"
    path.write_text(HANDBOOK)
    return path


def listed(cli: Cli, who: str, *words: str) -> list[dict[str, object]]:
    ran = cli("documents", "list", "--user", who, "--json", *words)
    assert (ran.code, ran.err) == (0, "")
    return ran.json["documents"]


def test_a_document_is_added_found_shown_and_removed(cli: Cli, handbook: Path) -> None:
    ran = cli("documents", "add", handbook, "--user", "ada")
    assert (ran.code, ran.err) == (0, "")
    (one,) = listed(cli, "ada")
    assert ran.out == f"handbook.md is kept as document {one['id']}.\n"
    assert (one["title"], one["doc_type"], one["namespace"]) == ("Handbook", "document", "documents:ada")
    assert (one["metadata"], one["agent"], one["conversation"]) == ({"source": "handbook.md"}, None, None)

    found = cli("documents", "search", "what is the code of the alarm?", "--user", "ada")
    assert (found.code, found.err) == (0, "")
    assert f"document {one['id']}" in found.out.splitlines()[0]
    assert "4711" in found.out
    hits = cli("documents", "search", "what is the code of the alarm?", "--user", "ada", "--json").json["hits"]
    assert hits[0]["document"] == one["id"]
    assert 0 < hits[0]["score"] <= 1

    shown = cli("documents", "show", str(one["id"]), "--user", "ada")
    assert shown.out.endswith(HANDBOOK)
    assert cli("documents", "show", str(one["id"]), "--user", "ada", "--json").json["text"] == HANDBOOK

    assert cli("documents", "remove", str(one["id"]), "--user", "ada").out == f"Document {one['id']} is gone.\n"
    gone = cli("documents", "search", "the alarm", "--user", "ada")
    assert (gone.code, gone.out) == (0, "Nothing was found.\n")
    for command in ("show", "remove"):
        assert "has no document" in cli("documents", command, str(one["id"]), "--user", "ada").failed(1)


def test_of_several_files_the_good_ones_are_kept(cli: Cli, handbook: Path, tmp_path: Path) -> None:
    for name, (data, _) in BROKEN.items():
        (tmp_path / name).write_bytes(data)
    files = [tmp_path / name for name in BROKEN]
    ran = cli("documents", "add", *files, handbook, tmp_path / "nowhere.md", tmp_path, "--user", "eve", "--json")
    assert ran.code == 1
    assert [one["file"] for one in ran.json["documents"]] == ["handbook.md"]
    refused = [str(one) for one in ran.json["refused"]]
    assert len(refused) == len(BROKEN) + 2
    for name, (_, why) in BROKEN.items():
        assert any(str(tmp_path / name) in one and why in one for one in refused), name
    assert len(listed(cli, "eve")) == 1


def piped(cli: Cli, data: bytes, *words: str) -> Ran:
    command = cli.command("documents", "add", "-", *words)
    done = subprocess.run(
        command, input=data, capture_output=True, check=False, timeout=PATIENCE, env=cli.surroundings()
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_standard_input_is_a_document_too(cli: Cli) -> None:
    ran = piped(cli, "\ufeffLunch is at noon.".encode(), "--title", "Lunch", "--type", "note", "--user", "cai")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("standard input is kept as document ")
    (one,) = listed(cli, "cai", "--type", "note")
    assert (one["title"], one["metadata"]) == ("Lunch", {})
    assert cli("documents", "show", str(one["id"]), "--user", "cai", "--json").json["text"] == "Lunch is at noon."
    assert piped(cli, b"", "--user", "cai").failed(1) == "standard input: it is empty; give a file with text in it"


def test_wrong_usage_is_told(cli: Cli, handbook: Path) -> None:
    assert "--title" in cli("documents", "add", handbook, handbook, "--title", "T").failed(2)
    assert bare("documents").code == 2
    assert "add" in bare("documents", "-h").out
    assert bare("documents", "add").code == bare("documents", "show", "one").code == 2


def test_a_listing_without_any(cli: Cli) -> None:
    ran = cli("documents", "list", "--user", "nobody")
    assert (ran.code, ran.out) == (0, "User nobody has no documents here. Try: hitherto documents add FILE\n")
