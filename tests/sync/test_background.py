"""One event loop in the background, for any thread, in a running loop, after a fork; and it never waits for itself."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import hitherto
from hitherto import Memory, SyncMemory, assistant, user
from hitherto.core.prompt import Prompt
from hitherto.errors import DatabaseUnavailable, InvalidInput, InvalidScope
from hitherto.ports.models import Completion, Model
from hitherto.sync.base import BackgroundMemory
from tests.conftest import SCOPE
from tests.patience import PATIENCE


def loops() -> int:
    return sum(thread.name == "hitherto" for thread in threading.enumerate())


def test_all_memories_share_one_loop() -> None:
    with hitherto.open_sync("memory:") as one, hitherto.open_sync("memory:") as two:
        for memory in (one, two):
            memory.conversation("c", scope=SCOPE).append(user("Hello."))
        assert loops() == 1
    with hitherto.open_sync("memory:") as three:
        assert three.conversations(SCOPE).conversations == ()
    assert loops() == 1


def test_many_threads_lose_nothing(database: str) -> None:
    with hitherto.open_sync(database, worker=False) as memory, ThreadPoolExecutor(8) as threads:
        chat = memory.conversation("c", scope=SCOPE)
        found = list(threads.map(lambda n: chat.append(user(f"{n}"), key=f"{n}").start, range(80)))
        assert sorted(found) == list(range(80))
        assert {one.message.text for one in chat.messages()} == {f"{n}" for n in range(80)}


async def test_it_works_where_a_loop_runs() -> None:
    """As in a notebook: the cell is code without `await`, and the kernel's loop runs."""
    with hitherto.open_sync("memory:") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        chat.append(user("Hello."), assistant("Hello."))
        assert [one.seq for one in chat.messages()] == [0, 1]


def test_the_first_error_is_told_by_open_sync() -> None:
    with pytest.raises(DatabaseUnavailable):
        hitherto.open_sync("postgresql://127.0.0.1:1/none", database_timeout=0.2)
    with pytest.raises(InvalidInput):
        hitherto.open_sync("memory:", budgte=7)  # pyright: ignore[reportCallIssue]


def test_what_cannot_be_a_conversation_is_told_at_once() -> None:
    with hitherto.open_sync("memory:") as memory, pytest.raises(InvalidScope):
        memory.conversation("", scope=SCOPE)


def test_a_closed_memory_is_refused() -> None:
    memory = hitherto.open_sync("memory:")
    chat = memory.conversation("c", scope=SCOPE)
    memory.close()
    memory.close()
    for verb in (lambda: chat.append(user("Hello.")), lambda: memory.conversations(SCOPE), lambda: chat.id):
        with pytest.raises(InvalidInput, match=r"this memory is closed; open another one with hitherto.open_sync"):
            verb()


def test_closing_ends_what_is_still_running() -> None:
    begun = threading.Event()

    async def hang(_: Memory) -> None:
        begun.set()
        await asyncio.Event().wait()

    background = BackgroundMemory(hitherto.open("memory:"))
    with ThreadPoolExecutor(2) as threads:
        waits = threads.submit(background.run, hang)
        awaits = threads.submit(asyncio.run, background.arun(hang))
        assert begun.wait(PATIENCE)
        while len(background._tasks) < 2:
            pass
        background.close()
        for one in (waits, awaits):
            with pytest.raises(InvalidInput, match="closed before the work was done"):
                one.result(timeout=PATIENCE)


def test_a_caller_that_is_cancelled_cancels_the_work() -> None:
    begun, ended = threading.Event(), threading.Event()

    async def hang(_: Memory) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def use() -> None:
        asking = asyncio.create_task(background.arun(hang))
        await asyncio.to_thread(begun.wait, PATIENCE)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await asyncio.to_thread(ended.wait, PATIENCE)

    background = BackgroundMemory(hitherto.open("memory:"))
    asyncio.run(use())
    background.close()


def test_ctrl_c_ends_the_wait_and_the_work() -> None:
    program = (
        "import asyncio, os, hitherto\n"
        "memory = hitherto.open_sync('memory:')\n"
        "async def hang(_):\n"
        "    os.write(1, b'waits\\n')\n"
        "    try: await asyncio.Event().wait()\n"
        "    finally: os.write(1, b'cancelled\\n')\n"
        "try: memory._background.run(hang)\n"
        "except KeyboardInterrupt: os.write(1, b'interrupted\\n')\n"
        "memory.close()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "waits\n"
        running.send_signal(signal.SIGINT)
        assert sorted(running.stdout.read().split()) == ["cancelled", "interrupted"]
    assert running.returncode == 0


class Asking(Model):
    """A model of somebody's own that uses the synchronous memory where it must not: it would wait for itself."""

    memory: SyncMemory | None = None
    told: BaseException | None = None

    @property
    def name(self) -> str:
        return "asking"

    @property
    def input_limit(self) -> int:
        return 10_000

    async def complete(self, prompt: Prompt) -> Completion:
        assert self.memory is not None
        try:
            self.memory.conversations(SCOPE)
        except InvalidInput as error:
            self.told = error
        return Completion(text="{}")

    async def aclose(self) -> None:
        pass


def test_it_never_waits_for_itself() -> None:
    model = Asking()
    with hitherto.open_sync("memory:", model=model, policy="rolling:threshold=2,keep_last=1") as memory:
        model.memory = memory
        memory.conversation("c", scope=SCOPE).append(*[user(f"{n}") for n in range(5)])
        memory.wait_for_digests()
    assert "would wait for itself for ever" in str(model.told)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_closing_never_waits_for_itself() -> None:
    async def close(_: Memory) -> None:
        with pytest.raises(InvalidInput, match="wait for itself"):
            background.close()

    background = BackgroundMemory(hitherto.open("memory:"))
    background.run(close)
    background.close()


def test_whoever_closes_waits_until_it_is_closed() -> None:
    background = BackgroundMemory(hitherto.open("memory:"))
    left = background._leave
    background.run(_nothing)

    async def slowly() -> None:
        await asyncio.sleep(0.2)
        await left()
        ended.set()

    ended = threading.Event()
    background._leave = slowly
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(background.close) for _ in range(2)]
        for one in both:
            one.result(timeout=PATIENCE)
            assert ended.is_set()


async def _nothing(_: Memory) -> None:
    pass


def ran(program: str, database: str) -> tuple[str, str]:
    """What a program says that ends well."""
    command = [sys.executable, "-c", program, database]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_a_program_that_never_closes_ends_in_silence(database: str) -> None:
    program = (
        "import sys, hitherto\n"
        "memory = hitherto.open_sync(sys.argv[1], worker=False)\n"
        "chat = memory.conversation('c', scope=hitherto.Scope(tenant='acme', user='u-17', agent='planner'))\n"
        "chat.append(hitherto.user('Hello.'))\n"
    )
    assert ran(program, database) == ("", "")


def test_a_fork_starts_afresh(database: str) -> None:
    """As the workers of a server that has loaded the application before it forks. The parent goes on."""
    program = (
        "import os, sys, hitherto\n"
        "memory = hitherto.open_sync(sys.argv[1], worker=False)\n"
        "chat = memory.conversation('c', scope=hitherto.Scope(tenant='acme', user='u-17', agent='planner'))\n"
        "chat.append(hitherto.user('parent'))\n"
        "told = memory.conversation('told', scope=chat.scope, policy='none')\n"
        "told.append(hitherto.user('parent')); told.configure(policy='rolling')\n"
        "children = []\n"
        "for number in range(3):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        for _ in range(5): chat.append(hitherto.user(f'child {number}'))\n"
        "        told.append(hitherto.user('child'))\n"
        "        memory.close()\n"
        "        os._exit(0)\n"
        "    children.append(child)\n"
        "for _ in range(5): chat.append(hitherto.user('parent'))\n"
        "codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]\n"
        "print(codes, len(chat.messages()), told.policy().name)\n"
        "memory.close()\n"
    )
    assert ran(program, database) == ("[0, 0, 0] 21 rolling\n", "")


def test_a_turn_does_not_go_on_in_a_fork(database: str) -> None:
    program = (
        "import os, sys, hitherto\n"
        "memory = hitherto.open_sync(sys.argv[1], worker=False)\n"
        "chat = memory.conversation('c', scope=hitherto.Scope(tenant='acme', user='u-17', agent='planner'))\n"
        "with chat.turn('Hello?', budget=1_000) as turn:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        try: turn.add('From the child.')\n"
        "        except hitherto.errors.InvalidInput as error: print(error, flush=True)\n"
        "        memory.close()\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
        "    turn.add('Yes.')\n"
        "print(len(chat.messages()))\n"
        "memory.close()\n"
    )
    told = "this turn was made before the process forked; make another one with chat.turn(…)\n2\n"
    assert ran(program, database) == (told, "")


def test_a_conversation_goes_by_what_is_stored_after_its_first_append() -> None:
    """As the asynchronous one: the object is the same for all calls."""
    with hitherto.open_sync("memory:") as memory:
        chat = memory.conversation("c", scope=SCOPE, policy="none")
        chat.append(user("Hello."))
        memory.conversation("c", scope=SCOPE).configure(policy="rolling", create=True)
        assert chat.policy().name == "rolling"
        assert (chat.id, chat.scope, repr(chat)) == ("c", SCOPE, f"<Conversation 'c' of {SCOPE}>")


def piece(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


def test_a_turn() -> None:
    with hitherto.open_sync("memory:") as memory:
        chat = memory.conversation("c", scope=SCOPE)
        for _ in range(2):
            with chat.turn("Is it?", key="k", budget=1_000) as turn:
                if not turn.replayed:
                    assert turn.request["messages"][-1]["content"] == "Is it?"
                    turn.add(assistant(calls=[hitherto.Call(id="1", name="look")]))
                    assert [call.name for call in turn.calls] == ["look"]
                    turn.add(hitherto.tool_result("1", "It is."))
                    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
                    assert len(list(turn.stream([piece("Ye"), piece("s."), end]))) == 3
            assert (turn.done, turn.text) == (True, "Yes.")
        assert [one.message.role for one in chat.messages()] == ["user", "assistant", "tool", "assistant"]
