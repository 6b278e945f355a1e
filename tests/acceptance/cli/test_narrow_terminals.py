"""What the tables of the command line are read for is there whole, however narrow the terminal: every character of a
text, and the number or place by which the row is asked for again."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

import hitherto
from hitherto import Scope, assistant, user
from hitherto.providers.scripted import Scripted, items
from tests.acceptance.cli.commands import Cli, Home

WIDTH = 30
SUBJECT = "rosa-lindqvist"
ME = Scope(tenant="local", user="me", agent="cli")
JAPANESE = "日本語で毎日日記を書いています。東京に住んでいて、猫が二匹います。名前はクロとシロです"
ADDRESS = "Keeps-a-diary-at-https://diary.example.org/rosa/lindqvist/2026/11/30/of-the-garden-and-of-the-cats.html"
NAMES = "Married to Wertherstein-Higginbottom, zoologist at Königswinter, and to nobody else"
COUSINS = [f"cousin-{number:03}" for number in range(250)]
TEXTS = (JAPANESE, ADDRESS, NAMES)


@pytest.fixture(scope="module")
async def cli(home: Home) -> Cli:
    told = [("relationship", text, [at]) for at, text in zip((0, 2, 4), TEXTS, strict=True)]
    answer = items(*((text, [at]) for at, text in zip((0, 2, 4), TEXTS, strict=True)), facts=told)
    policy = "chunks:threshold=6,batch=6,context=2"
    async with hitherto.open(home.url, model=Scripted([answer]), policy=policy) as memory:
        await memory.configure_subject(
            tenant="local", subject=SUBJECT, name="Rosa Lindqvist", members=["me", ADDRESS[:60], "ben", *COUSINS]
        )
        chat = memory.conversation("a-conversation-of-a-long-name", scope=ME, subject=SUBJECT)
        for text in (*TEXTS, "So."):
            await chat.append(user(text), assistant("I see."))
        await memory.wait_for_digests()
        assert await memory.wait_for_index()
    return Cli(home.directory)


def cells(line: str, start: int, end: int | None) -> str:
    """What stands in these columns of a terminal."""
    at, found = 0, ""
    for character in line:
        if at >= start and (end is None or at < end):
            found += character
        at += cell_len(character)
    return found


def column(out: str, name: str, *, after: str = "") -> str:
    """All that stands under a heading of the table that begins at the line `after`, without the spaces."""
    lines = out.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith(after))
    top = next(at for at in range(begin, len(lines)) if re.search(rf"(^| ){re.escape(name)}( |$)", lines[at]))
    headings = [(cell_len(lines[top][: one.start()]), one[0]) for one in re.finditer(r"\S+(?: \S+)*", lines[top])]
    place = next(at for at, (_, heading) in enumerate(headings) if heading == name)
    rule = lines[top + 1]
    assert set(rule.strip()) <= set("─- ")
    start = headings[place][0]
    end = headings[place + 1][0] if place + 1 < len(headings) else None
    body = lines[top + 2 :]
    body = body[: body.index("")] if "" in body else body
    return "".join(cells(line, start, end) for line in body).replace(" ", "")


def run(cli: Cli, width: int, *words: str) -> str:
    ran = cli(*words, COLUMNS=str(width))
    assert (ran.code, ran.err) == (0, ""), ran
    assert max(map(cell_len, ran.out.splitlines())) <= width
    return ran.out


def bare(text: str) -> str:
    return text.replace(" ", "")


def test_facts_are_listed(cli: Cli) -> None:
    out = run(cli, WIDTH, "facts", "list", "--all-agents")
    for text in TEXTS:
        assert bare(text) in column(out, "fact")
    assert re.findall(r"^ *(\d) ", out, re.MULTILINE) == ["1", "2", "3"], "each has its number"


@pytest.mark.parametrize("number", [1, 2])
def test_a_fact_is_shown(cli: Cli, number: int) -> None:
    """With what says so, and what happened to it."""
    out = run(cli, WIDTH, "facts", "show", str(number))
    text = bare(TEXTS[number - 1])
    assert bare(out).replace("\n", "").startswith(f"Fact{number}:{text}")
    assert f"user:{text}" in column(out, "text", after="What says so")
    assert f"a-conversation-of-a-long-name:{(number - 1) * 2}" in column(out, "where", after="What says so")
    assert f"[relationship]{text}" in column(out, "fact", after="History")
    assert "relationship" in out


def test_subjects_are_listed(cli: Cli) -> None:
    out = run(cli, WIDTH, "facts", "subjects")
    assert column(out, "id", after="Subjects") == SUBJECT
    members = column(out, "members", after="Subjects")
    assert all(one in members for one in (ADDRESS[:60], *COUSINS))


def test_what_was_recalled(cli: Cli) -> None:
    out = run(cli, WIDTH, "recall", "diary cats 日記 Higginbottom married", "--all-agents", "--kind", "fact")
    for number, text in enumerate(TEXTS, 1):
        assert bare(text) in column(out, "text")
        assert f"fact{number}" in column(out, "where")
    out = run(cli, WIDTH, "recall", "diary cats 日記 Higginbottom married", "--kind", "message", "--limit", "3")
    for number in range(3):
        assert f":{number * 2}" in column(out, "where"), "where the rest can be read"
    assert all(text[:3] in column(out, "text") for text in TEXTS), "the beginning, on one line"


def test_the_log_and_the_digests(cli: Cli) -> None:
    log = run(cli, WIDTH, "log", "a-conversation-of-a-long-name")
    digests = run(cli, WIDTH, "digests", "a-conversation-of-a-long-name")
    for text in TEXTS:
        assert bare(text) in column(log, "text")
        assert bare(text) in column(digests, "statement", after="Digest 1 in full")
    assert re.findall(r"^ *(\d) ", log, re.MULTILINE) == [str(seq) for seq in range(8)]


def test_a_new_key_says_whose_it_is(cli: Cli) -> None:
    made = cli("keys", "create", "app")
    assert made.out.startswith("hitherto_")
    assert "for any user of the tenant 'local'" in made.err
    made = cli("keys", "create", "app", "--tenant", "acme", "--user", "ada")
    assert "for the user 'ada' of the tenant 'acme'" in made.err


@pytest.mark.parametrize("width", [80, 40])
def test_keys_are_listed(cli: Cli, width: int) -> None:
    tenant = f"of-{width}"
    names = (
        "the backend of the shop",
        "--tenant",
        tenant,
        "--user",
        "ada-of-the-long-name",
        "--rights",
        "read,write,review",
    )
    for revoked in (False, True):
        made = cli("keys", "create", *names, "--json").json["id"]
        if revoked:
            cli("keys", "revoke", made, "--tenant", tenant)
        assert re.search(rf"^{made}( |$)", run(cli, width, "keys", "list", "--tenant", tenant), re.MULTILINE)
    out = run(cli, width, "keys", "list", "--tenant", tenant)
    if width >= 80:
        assert column(out, "user").startswith("ada-of-the")
        assert re.search(r"–\d{4}-\d\d-\d\d$", column(out, "revoked"))
