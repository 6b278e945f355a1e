"""`hitherto facts` as its users meet it: a process of its own each time, on a real PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import hitherto
from hitherto import assistant, user
from hitherto.core.scope import Scope
from hitherto.providers.scripted import Scripted, items
from tests.acceptance.cli.commands import Cli, Home, Ran, bare

SAID = datetime(2024, 5, 6, 9, tzinfo=UTC)


def done(ran: Ran) -> Ran:
    assert (ran.code, ran.err) == (0, "")
    return ran


def added(cli: Cli, who: str, text: str, *words: str) -> str:
    """The number of a fact that was added."""
    return str(done(cli("facts", "add", text, "--user", who, "--json", *words)).json["fact"]["id"])


def listed(cli: Cli, who: str, *words: str) -> list[dict[str, Any]]:
    return done(cli("facts", "list", "--user", who, "--json", *words)).json["facts"]


def opened(cli: Cli, who: str, number: str) -> dict[str, Any]:
    return done(cli("facts", "show", number, "--user", who, "--json")).json


def test_a_fact_is_added_shown_edited_confirmed_and_deleted(cli: Cli) -> None:
    number = added(cli, "ada", "Plays the cello", "--category", "Hobby")
    (one,) = listed(cli, "ada")
    assert (one["category"], one["content"], one["confirmed"], one["visibility"]) == (
        "hobby",
        "Plays the cello",
        True,
        "private",
    )
    assert "It was added by hand." in done(cli("facts", "show", number, "--user", "ada")).out

    ran = cli("facts", "edit", number, "--content", "Plays the viola", "--expect", "1", "--user", "ada")
    assert done(ran).out == f"Fact {number} reads now, in version 2: [hobby] Plays the viola\n"
    ran = cli("facts", "edit", number, "--category", "habit", "--user", "ada", "--json")
    assert (ran.json["fact"]["category"], ran.json["fact"]["content"]) == ("habit", "Plays the viola")
    assert done(cli("facts", "confirm", number, "--user", "ada", "--json")).json["fact"]["version"] == 4
    history = opened(cli, "ada", number)["history"]
    assert [(one["action"], one["by"], one["content"]) for one in history] == [
        ("added", "ada", "Plays the cello"),
        ("edited", "ada", "Plays the viola"),
        ("edited", "ada", "Plays the viola"),
        ("confirmed", "ada", "Plays the viola"),
    ]

    assert done(cli("facts", "delete", number, "--user", "ada")).out == f"Fact {number} is gone.\n"
    assert listed(cli, "ada") == []
    (left,) = listed(cli, "ada", "--state", "deleted")
    assert (left["id"], left["content"], left["metadata"]) == (int(number), "", {})
    shown = done(cli("facts", "show", number, "--user", "ada")).out
    assert "(deleted)" in shown
    assert "viola" not in shown
    assert "cello" not in shown
    for verb in ("delete", "confirm", "unshare", "restore", "share"):
        assert f"fact {number} is deleted" in cli("facts", verb, number, "--user", "ada").failed(1)


async def test_a_fact_that_was_learned_opens_its_messages(home: Home, cli: Cli) -> None:
    answer = items(
        "She told of herself.",
        facts=[("occupation", "Is a nurse", [0]), ("diet", "Eats no meat", [0, 2]), ("hobby", "Climbs", [2])],
    )
    scope = Scope(tenant="local", user="cai", agent="planner")
    policy = "chunks:threshold=4,batch=4,context=2"
    async with hitherto.open(home.url, model=Scripted([answer]), policy=policy) as memory:
        chat = memory.conversation("monday", scope=scope)
        for text in ("I'm a nurse \x1b[31mand eat no meat.", "Really, none.\nAnd I climb.", "So."):
            await chat.append(user(text).dated(SAID), assistant("I see."))
        await memory.wait_for_digests()
        await chat.context(user("What do you know?"))

    assert "--all-agents" in done(cli("facts", "list", "--user", "cai")).out
    facts = listed(cli, "cai", "--all-agents")
    assert {one["content"]: one["category"] for one in facts} == {
        "Is a nurse": "occupation",
        "Eats no meat": "other",
        "Climbs": "hobby",
    }
    meat = next(one for one in facts if one["content"] == "Eats no meat")
    assert meat["metadata"] == {"category": "diet"}
    planner = ("--user", "cai", "--agent", "planner")
    shown = done(cli("facts", "show", str(meat["id"]), *planner)).out
    assert "other (given as 'diet')" in shown
    assert "monday:0" in shown
    assert "user: I'm a nurse \ufffd[31mand eat no meat." in shown
    assert "a digest" in shown
    sources = cli("facts", "show", str(meat["id"]), *planner, "--json").json["sources"]
    assert [(one["conversation"], one["seq"], one["role"]) for one in sources] == [
        ("monday", 0, "user"),
        ("monday", 2, "user"),
    ]
    assert sources[1]["text"] == "Really, none.\nAnd I climb."
    assert datetime.fromisoformat(sources[1]["said_at"]) == SAID
    assert "2024-05-06" in shown

    assert len(listed(cli, "cai", "--agent", "planner", "--conversation", "monday")) == 3
    assert [one["content"] for one in listed(cli, "cai", "--all-agents", "--category", "hobby")] == ["Climbs"]
    assert "no conversation 'tuesday'" in cli("facts", "list", *planner, "--conversation", "tuesday").failed(1)

    said = done(cli("context", "monday", *planner, "--message", "And now?")).out
    assert "Known facts about cai from conversations:" in said
    assert "All 3 facts about cai, at the end of the instructions" in said


def test_a_shared_fact_is_seen_by_members_and_by_nobody_else(cli: Cli) -> None:
    done(cli("facts", "subject", "rosa", "--name", "Rosa", "--member", "dora", "--member", "eli"))
    number = added(cli, "dora", "Was a nurse in Lyon", "--subject", "rosa")
    assert listed(cli, "eli") == []
    ran = cli("facts", "share", number, "--user", "dora")
    assert done(ran).out == f"Fact {number} is shared with all members of rosa: [other] Was a nurse in Lyon\n"

    (theirs,) = listed(cli, "eli")
    assert (theirs["user"], theirs["visibility"], theirs["evidence"]) == ("dora", "shared", [])
    assert [theirs[name] for name in ("confidence", "confirmed", "repeated")] == [None, None, None]
    assert theirs["updated_at"] == theirs["extracted_at"]
    assert listed(cli, "eli", "--mine") == listed(cli, "eli", "--subject", "") == listed(cli, "dora", "--shared") == []
    assert len(listed(cli, "eli", "--shared", "--subject", "rosa")) == len(listed(cli, "dora", "--mine")) == 1
    assert "of dora" in done(cli("facts", "list", "--user", "eli")).out
    shown = opened(cli, "eli", number)
    assert (shown["sources"], shown["history"]) == ([], [])
    assert "Only user dora can see" in done(cli("facts", "show", number, "--user", "eli")).out
    for words in (("edit", number, "--content", "x"), ("confirm", number), ("unshare", number), ("delete", number)):
        assert "dora, who shares it, can change it" in cli("facts", *words, "--user", "eli").failed(1)

    for whose in (("--user", "fay"), ("--user", "eli", "--agent", "other"), ("--user", "eli", "--tenant", "other")):
        assert f"has no fact {number}" in cli("facts", "show", number, *whose).failed(1)
        assert done(cli("facts", "list", *whose, "--json")).json == {"facts": [], "next": None}

    done(cli("facts", "unshare", number, "--user", "dora"))
    assert listed(cli, "eli") == []
    assert f"has no fact {number}" in cli("facts", "show", number, "--user", "eli").failed(1)


def test_what_cannot_be_shared_is_told(cli: Cli) -> None:
    himself = added(cli, "gus", "Is tall")
    assert "only facts about a subject" in cli("facts", "share", himself, "--user", "gus").failed(2)
    alone = added(cli, "gus", "Is tall", "--subject", "nobodys")
    said = cli("facts", "share", alone, "--user", "gus").failed(2)
    assert "no member of the subject 'nobodys'" in said
    done(cli("facts", "subject", "nobodys", "--member", "ben"))
    assert cli("facts", "share", alone, "--user", "gus").failed(2) == said
    shows = said[said.index("hitherto facts") : said.index(" --member")]
    assert shows == "hitherto facts subject nobodys --tenant local"
    assert "Members: ben." in done(cli(*shows.split()[1:])).out
    done(cli(*shows.split()[1:], "--member", "ben", "--member", "gus"))
    assert done(cli("facts", "share", alone, "--user", "gus", "--json")).json["fact"]["visibility"] == "shared"


def test_pages_have_every_fact_once(cli: Cli) -> None:
    ids = [int(added(cli, "kim", f"Has read volume {number}")) for number in range(5)]
    found: list[int] = []
    after: int | None = 0
    while after is not None:
        page = done(cli("facts", "list", "--user", "kim", "--limit", "2", "--after", str(after), "--json")).json
        found += [one["id"] for one in page["facts"]]
        after = page["next"]
    assert found == ids
    assert f"--after {ids[1]}" in done(cli("facts", "list", "--user", "kim", "--limit", "2")).out
    assert "--after" not in done(cli("facts", "list", "--user", "kim", "--limit", "5")).out
    assert done(cli("facts", "list", "--user", "kim", "--after", str(ids[-1]))).out == "There are no more.\n"


def test_an_undefined_category_is_kept_as_other(cli: Cli) -> None:
    ran = cli("facts", "add", "Eats no meat", "--category", "diet", "--user", "lea", "--json")
    assert ran.code == 0
    assert "'diet' is not defined" in ran.err
    fact = ran.json["fact"]
    assert (fact["category"], fact["metadata"]) == ("other", {"category": "diet"})
    defined = cli("facts", "edit", str(fact["id"]), "--category", "Diet", "--user", "lea", "--json",
                  HITHERTO_FACT_CATEGORIES="hobby,diet")  # fmt: skip
    assert (done(defined).json["fact"]["category"], defined.json["fact"]["metadata"]) == ("diet", {})
    said = cli("facts", "edit", str(fact["id"]), "--category", "taste", "--user", "lea").failed(2)
    assert "'taste' is not defined" in said
    assert "HITHERTO_FACT_CATEGORIES" in said
    assert listed(cli, "lea")[0]["category"] == "diet"
    assert "the category is ''" in cli("facts", "add", "Is here", "--category", "", "--user", "lea").failed(2)


def test_a_category_of_the_programs_own_is_not_lost_in_a_shell_without_it(cli: Cli) -> None:
    """And where another value may hold beside it, that is said: this shell cannot know."""
    program = {
        "HITHERTO_FACT_CATEGORIES": "current city,hobby",
        "HITHERTO_SINGLE_FACT_CATEGORIES": "Current-City",
    }
    lyon, porto = (
        str(done(cli("facts", "add", f"Lives in {city}", "--category", "current city", "--user", "ren", "--json",
                     **program)).json["fact"]["id"])
        for city in ("Lyon", "Porto")
    )  # fmt: skip
    assert [one["content"] for one in listed(cli, "ren")] == ["Lives in Porto"]
    for words in (("edit", porto, "--category", "current city"), ("restore", lyon)):
        ran = cli("facts", *words, "--user", "ren", "--json")
        assert (ran.code, ran.json["fact"]["category"], ran.json["fact"]["metadata"]) == (0, "current city", {})
        assert "'current city'" in ran.err
        assert "whether it holds one value at a time is not known" in ran.err
    done(cli("facts", "restore", "--help"))
    assert done(cli("facts", "confirm", porto, "--user", "ren", **program)).err == ""
    assert "current city" in cli("facts", "edit", porto, "--category", "curent city", "--user", "ren").failed(2)


def test_a_subject_keeps_what_it_is_not_told(cli: Cli) -> None:
    where = ("--tenant", "subjects")
    assert "has no subjects" in done(cli("facts", "subjects", *where)).out
    assert "has no subject 'garden'" in cli("facts", "subject", "garden", *where).failed(1)
    ran = cli("facts", "subject", "garden", "--member", "ana", "--member", "ben", *where, "--json")
    assert done(ran).json == {"id": "garden", "name": "garden", "members": ["ana", "ben"]}
    ran = cli("facts", "subject", "garden", "--name", "The garden", *where)
    assert done(ran).out == "Subject garden is called The garden. Members: ana, ben.\n"
    done(cli("facts", "subject", "garden", "--member", "cem", *where))
    assert cli("facts", "subject", "garden", *where, "--json").json["members"] == ["cem"]
    assert cli("facts", "subjects", *where, "--json").json == {
        "subjects": [{"id": "garden", "name": "The garden", "members": ["cem"]}]
    }
    assert "The garden" in done(cli("facts", "subjects", *where)).out
    assert "no members" in done(cli("facts", "subject", "garden", "--no-members", *where)).out
    assert cli("facts", "subject", "garden", *where, "--json").json["members"] == []


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("frobnicate",),
        ("add",),
        ("show", "one"),
        ("show", "0"),
        ("show", "99999999999999999999"),
        ("edit", "1", "--expect", "0"),
        ("list", "--state", "forgotten"),
        ("list", "--limit", "0"),
        ("list", "--limit", "1001"),
        ("list", "--after", "-1"),
        ("subject",),
        ("subject", "rosa", "--member", "ana", "--no-members"),
    ],
)
def test_wrong_usage_is_told(words: tuple[str, ...]) -> None:
    assert bare("facts", *words).code == 2


def test_a_listing_without_any(cli: Cli) -> None:
    ran = cli("facts", "list", "--user", "nobody", COLUMNS="120")
    said = "User nobody has no facts with agent cli. Try: --all-agents, or hitherto facts add TEXT\n"
    assert (ran.code, ran.out) == (0, said)
    assert "fewer options" in done(cli("facts", "list", "--user", "nobody", "--category", "hobby", COLUMNS="120")).out
