"""Workers that cannot work, or not as they are set up: one clear line, an exit code, and no crash loop."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.faults.conftest import Api, Crew
from tests.faults.processes import Program
from tests.faults.tables import Tables
from tests.faults.thinking import ThinkingModel
from tests.faults.waiting import until
from tests.ports import free_port
from tests.providers.models.endpoint import refused


async def _refused(code: int, *, database: str, **settings: object) -> str:
    """The one line with which a worker ends that does not even begin."""
    program = await Program.start("worker", "hitherto", "worker", database=database, **settings)
    assert await program.ended() == code, program.err
    assert program.out == []
    assert len(program.err) == 1, program.err
    assert program.err[0].startswith("hitherto: ")
    return program.err[0]


@pytest.mark.parametrize("words", [("worker",), ("serve", "--port", "0")], ids=lambda words: words[0])
async def test_names_of_other_systems_are_ignored_with_a_warning_each(database: str, words: tuple[str, ...]) -> None:
    program = await Program.start(
        words[0], "hitherto", *words, database=database, summary_enabled="true", memory_model="large"
    )
    await program.said("Worker started" if words == ("worker",) else "Serving at")
    of_model, of_summary = [line for line in program.err if "WARNING" in line]
    assert "HITHERTO_MEMORY_MODEL" in of_model
    assert "HITHERTO_SUMMARY_ENABLED" in of_summary
    assert "serve --other-systems" in of_summary
    program.send(signal.SIGTERM)
    assert await program.ended() == 0


class TestItDoesNotBegin:
    async def test_a_ceiling_of_zero(self, database: str) -> None:
        for said, ceiling in zip(
            await asyncio.gather(
                _refused(2, database=database, daily_cost=0), _refused(2, database=database, daily_tokens="0")
            ),
            ("HITHERTO_DAILY_COST", "HITHERTO_DAILY_TOKENS"),
            strict=True,
        ):
            assert ceiling in said
            assert "would stop all digests" in said

    async def test_no_database(self) -> None:
        own, none = await asyncio.gather(
            _refused(2, database="memory:"),
            _refused(1, database="postgresql://127.0.0.1:9/none", database_timeout=1),
        )
        assert "a worker needs a database" in own
        assert "cannot connect to the database" in none


class TestItGoesOn:
    async def test_nobody_listens_at_the_models_address(
        self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables
    ) -> None:
        """Its digests are put off, again and again and ever longer; another worker makes them."""
        nowhere = f"http://127.0.0.1:{free_port()}/v1"
        worker = await crew.worker(model_base_url=nowhere, model_max_attempts=1, backoff=0.1)
        digest = await api.fire()
        await worker.said("put off for c: ModelUnavailable")
        await until(lambda: sum("put off" in line for line in worker.err) >= 2, "it is tried again")
        assert (await tables.digest(digest)).status == "processing"
        await worker.kill()
        assert not [line for line in worker.err if "Traceback" in line]
        await crew.worker()
        await tables.wait_for_digests([digest])
        assert (await tables.digest(digest)).status == "completed"

    async def test_a_wrong_key(self, api: Api, crew: Crew, model: ThinkingModel, tables: Tables) -> None:
        """Each digest fails with one call and one line, and the conversation waits longer and longer for another."""
        model.answer_at_once(*[refused(401, "Incorrect API key provided.")] * 9)
        worker = await crew.worker(backoff=600)
        for _ in range(2):
            await tables.wait_for_digests([await api.fire()])

        def lines() -> list[str]:
            return [line for line in worker.err if "Summarization failed for c" in line]

        await until(lambda: len(lines()) >= 2, "it says so each time")
        assert all("HITHERTO_MODEL_KEY" in line for line in lines())
        for _ in range(5):
            assert (await api.append()).digest is None
        assert [row.status for row in await tables.digests()] == ["failed"] * 2
        assert len(lines()) == len(model.calls) == 2
        assert worker.running
        assert not [line for line in worker.err if "Traceback" in line]
