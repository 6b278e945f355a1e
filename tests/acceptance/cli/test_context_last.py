"""`hitherto context --last`: what the model saw, as its users meet it."""

from __future__ import annotations

import hitherto
from hitherto import Scope, assistant, user
from tests.acceptance.cli.commands import bare

MINE = Scope(tenant="local", user="me", agent="cli")


async def test_what_the_model_saw(database: str) -> None:
    shows = ("context", "cards", "--last")
    async with hitherto.open(database, worker=False, keep_contexts=9) as memory:
        chat = memory.conversation("cards", scope=MINE)
        await chat.append(user("My card is lost."), assistant("Which one?"))
        none = bare(*shows, HITHERTO_DATABASE=database)
        assert (none.code, "HITHERTO_KEEP_CONTEXTS" in none.err) == (1, True)
        await chat.context("The green one.", instructions="Be brief.", budget=900)
        first = bare(*shows, HITHERTO_DATABASE=database)
        assert (first.code, first.err) == (0, "")
        for said in ("Be brief.", "My card is lost.", "The green one.", "of 900 tokens", "Context 1, kept at 20"):
            assert said in first.out
        assert "Since the one before" not in first.out
        await chat.append(user("The green one."), assistant("It is blocked."))
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'A' * 2_000}"}}
        sent = await chat.context({"role": "user", "content": [picture]}, budget=1_900)
        found = bare(*shows, "--json", HITHERTO_DATABASE=database).json
        assert found["request"] == sent.request
        assert found["manifest"] == sent.manifest.to_json()
        assert (found["id"], found["changes"]["added"]) == (2, 2)
        second = bare(*shows, HITHERTO_DATABASE=database)
        assert ("base64,…" in second.out, "AAA" in second.out) == (True, False)
        assert "Since the one before: 2 messages added, 0 removed, 0 recalled, +" in second.out
        for more in (("--message", "Hello"), ("--budget", "4000")):
            wrong = bare(*shows, *more, HITHERTO_DATABASE=database)
            assert (wrong.code, "leave the other options out" in wrong.err) == (2, True)
        await memory.conversation("failed", scope=MINE).context("The first request.")
        first = bare("context", "failed", "--last", HITHERTO_DATABASE=database)
        assert (first.code, "The first request." in first.out) == (0, True), "nothing was appended"
