"""The OpenAPI document says what the service does: schemathesis sends what it allows and what it does not, and finds no
failure of the service and no answer that the document does not have."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from openapi_spec_validator import validate

from hitherto import Memory, assistant, chunks, user
from hitherto.http.operations import AGENT, POLICY, USER
from hitherto.http.server.app import application
from hitherto.other_systems.agent_service.providers import Provider
from hitherto.other_systems.agent_service.setup import configure_agents
from hitherto.other_systems.paths import paths
from tests.conftest import SCOPE
from tests.engine.test_verbs import rounds
from tests.http.serving import serving
from tests.lengths import at_length, lasting
from tests.providers.models.endpoint import Body, Endpoint, said

UNCHECKED = {
    "positive_data_acceptance": "a document says nothing of what no type can: a text without a letter, an unknown name",
}
"""The checks that are left out, and why."""


def test_it_is_one_that_generators_can_read() -> None:
    document = application(paths().add).openapi()
    validate(document)
    schemas = document["components"]["schemas"]
    assert {name: one["title"] for name, one in schemas.items()} == {name: name for name in schemas}


def test_operations_say_what_they_do() -> None:
    document = application(paths().add).openapi()
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in operations]
    assert len({*ids}) == len(ids)
    assert {"service_health", "service_ready", "service_metrics", "conversation_append"} <= {*ids}
    assert [one["summary"] for one in operations if one["summary"] == one["operationId"].replace("_", " ")] == []
    append = document["components"]["schemas"]["ConversationAppendRequest"]["properties"]["messages"]
    assert append["examples"][0][0]["role"] == "user"


@lasting
async def test_nothing_that_is_sent_gets_an_answer_that_the_document_does_not_have(
    memory: Memory, tmp_path: Path
) -> None:
    whole = ("--phases=coverage,fuzzing,stateful", "--max-examples=2")
    await check(memory, tmp_path, {}, *(whole if at_length() else ("--phases=coverage", "--mode=negative")))


async def test_nor_does_what_is_sent_about_things_that_there_are(memory: Memory, tmp_path: Path) -> None:
    """Answers are full here: the document is right about each part of them."""
    chat = memory.conversation("c", scope=SCOPE, policy=chunks(threshold=2, batch=2))
    documents, runs = memory.documents(SCOPE), memory.runs(SCOPE)
    run = await runs.begin("c")
    await runs.add(run.id, {"kind": "tool_call", "payload": {"n": [1]}, "name": "f", "call_id": "1"})
    await rounds(chat, memory, range(12))
    added = await memory.facts(SCOPE).add("The user lives in Lisbon.", category="other")
    document = await documents.add("# Lisbon\n\nLisbon has seven hills.", title="Lisbon", markdown=True)
    assert await memory.wait_for_index()
    await chat.append(user("Where is Lisbon?"), assistant("In Portugal."))
    await chat.context("What do I know about Lisbon?")
    known: dict[str, object] = {
        "path.conversation": "c",
        "path.fact": added.id,
        "path.document": document.id,
        "path.run": str(run.id),
        f"header.{POLICY}": "balanced",
    }
    leave = "--exclude-operation-id-regex=delete|erase|remove|clear|rewind|replace|pop|end$"
    assert await check(memory, tmp_path, known, leave, "--phases=coverage", "--mode=positive"), "a model was asked"


async def check(memory: Memory, folder: Path, known: dict[str, object], *words: str) -> list[Body]:
    """What the model of the service's agents was asked."""
    made = await memory.keys(SCOPE.tenant).create("tests", rights=["admin"])
    settings = folder / "schemathesis.toml"
    parameters = (f"{json.dumps(name)} = {json.dumps(value)}" for name, value in known.items())
    settings.write_text("\n".join(["[parameters]", *parameters]))
    with Endpoint(lambda _: said("Hello.")) as model:
        agents = configure_agents(
            memory,
            tenant=SCOPE.tenant,
            configurations=[{"agent_id": SCOPE.agent, "resources": ["memory"], "model": "big"}],
            providers={"openai": Provider(base_url=model.url, api_key="none")},
        )
        async with serving(memory, more=paths(agents)) as url:
            told = await schemathesis(url, made.secret, settings, *words)
        assert not told, told
        return model.asked


async def schemathesis(url: str, secret: str, settings: Path, *words: str) -> str:
    """What it finds wrong; nothing if all is well."""
    headers = {"Authorization": f"Bearer {secret}", USER: SCOPE.user, AGENT: SCOPE.agent}
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("schemathesis"),
        f"--config-file={settings}",
        "--no-color",
        "run",
        f"{url}/openapi.json",
        *(f"--header={name}: {value}" for name, value in headers.items()),
        "--seed=1",
        "--continue-on-failure",
        "--exclude-operation-id=memory_erase_tenant",  # which takes the key with it
        f"--exclude-checks={','.join(UNCHECKED)}",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.http.hooks", "PYTHONPATH": os.getcwd()},
        cwd=settings.parent,
    )
    told, _ = await process.communicate()
    return "" if process.returncode == 0 else told.decode()
