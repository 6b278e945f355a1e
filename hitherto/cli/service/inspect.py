"""`hitherto inspect`: the web pages of the inspector, for one's own machine."""

from __future__ import annotations

import asyncio
import webbrowser
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hitherto import logs
from hitherto.cli import options
from hitherto.cli.doctor.command import checks_of
from hitherto.cli.memory import run
from hitherto.cli.service.worker import open_memory
from hitherto.cli.terminal import output
from hitherto.errors import InvalidInput
from hitherto.settings import Settings
from hitherto.watching import watch_of

if TYPE_CHECKING:
    from socket import socket

    from starlette.types import ASGIApp


def inspect(
    database: options.Database = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 finds a free one.")] = 0,
) -> None:
    """Look into the memory in a browser, and put it right.

    Serves the pages to this machine alone, without keys, until Ctrl-C, and opens them in the browser if there is one.
    """
    try:
        from hitherto.http.server.serve import listening
    except ImportError as error:
        raise InvalidInput(f"the pages need {error.name}: pip install 'hitherto[server]'") from error
    settings = Settings.load(database=database)
    logs.plain_lines()
    run(_inspect(settings, listening(settings.model_copy(update={"host": "127.0.0.1", "port": port}))))


async def _inspect(settings: Settings, at: socket) -> None:
    from hitherto.http.server.callers import Limits
    from hitherto.http.server.serve import server
    from hitherto.web.app import create_inspector
    from hitherto.web.templating import ROOT

    with at:
        async with await open_memory(settings, watch_of(settings)) as memory:
            limits = Limits(requests=None, size=settings.request_size, seconds=settings.request_seconds)
            app: ASGIApp = create_inspector(memory, False, limits, doctor=partial(checks_of, settings))
            address = f"http://127.0.0.1:{at.getsockname()[1]}{ROOT}"
            output.say(address)
            # It may wait for the browser, which waits for the page: beside the server.
            opened = asyncio.create_task(asyncio.to_thread(webbrowser.open, address))
            await server(app, grace=settings.grace, greeting="Ctrl-C ends it").serve(sockets=[at])
            await opened
