"""The command `agent`."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from hitherto.cli import options
from hitherto.cli.memory import run
from hitherto.core.scope import Scope
from hitherto.errors import InvalidInput
from hitherto.other_systems.agent_files import configuration_in, digest_model, tools_in
from hitherto.other_systems.settings_aliases import AliasedSettings
from hitherto.wiring import open_with


def agent(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The agent's configuration, as JSON.")],
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Read commands from standard input, a JSON object a line, and write events.")
    ] = False,
    tools: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A Python file with TOOLS, a list of tools that the configuration can name."),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="The tenant (HITHERTO_TENANT). [default: local]")
    ] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="The user (HITHERTO_USER). [default: me]")] = None,
    database: options.Database = None,
    policy: options.Policy = None,
    model: options.Model = None,
    model_base_url: options.ModelBaseUrl = None,
) -> None:
    """Run an agent: commands in, events out, a JSON object a line."""
    if not stdio:
        raise InvalidInput("give --stdio: commands are read from standard input, one a line")
    configuration = configuration_in(file)
    given: dict[str, Any] = {"database": database, "tenant": tenant, "user": user}
    given |= {"policy": policy, "model": model, "model_base_url": model_base_url}
    settings = AliasedSettings.load(**given)
    settings = AliasedSettings.load(**given | digest_model(configuration, settings.model_dump(exclude_unset=True)))
    from hitherto.other_systems.agent_service import configure_agents
    from hitherto.other_systems.session_strategies.loop import AgentLoop, standard_input

    descriptor = standard_input()

    events = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what tools print is no event

    def write(event: dict[str, Any]) -> None:
        try:
            events.write(json.dumps(event, default=datetime.isoformat) + "\n")
            events.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), events.fileno())
            raise _NobodyReads from None

    async def work() -> None:
        async with await open_with(settings) as memory:
            configure_agents(memory, tenant=settings.tenant, configurations=[configuration], tools=tools_in(tools))
            scope = Scope(tenant=settings.tenant, user=settings.user, agent=configuration.agent_id)
            await AgentLoop(memory, scope, write).run(descriptor)

    with suppress(_NobodyReads):
        run(work())


class _NobodyReads(BaseException):
    """Nobody reads the events any more: no error of a command, and not for a tool to catch."""
