"""`hitherto serve`: everything over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitherto import logs
from hitherto.cli import options
from hitherto.cli.doctor.command import checks_of
from hitherto.cli.options import LOCAL_TENANT
from hitherto.cli.service.worker import LogFormat, open_memory, warn_of_ignored_variables
from hitherto.engine.memory import Memory
from hitherto.errors import InvalidInput
from hitherto.other_systems.agent_files import configuration_in, digest_model, tools_in
from hitherto.other_systems.settings_aliases import AliasedSettings
from hitherto.settings import Settings
from hitherto.watching import watch_of
from hitherto.wiring import IN_MEMORY

log = logs.logger("hitherto.http")

if TYPE_CHECKING:
    from socket import socket

    from hitherto.http.server.app import MorePaths
    from hitherto.other_systems.agent_service import AgentConfiguration


def serve(
    database: options.Database = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen (HITHERTO_HOST). [default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="0 finds a free one (HITHERTO_PORT). [default: 8480]")
    ] = None,
    require_keys: Annotated[
        bool, typer.Option("--require-keys", help="Ask for keys on this machine too (HITHERTO_REQUIRE_KEYS).")
    ] = False,
    agent: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="The configuration of an agent that runs at /agent/run, with --other-systems. Can be repeated.",
        ),
    ] = None,
    tools: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A Python file with TOOLS, a list of tools that configurations can name."),
    ] = None,
    other_systems: Annotated[
        bool, typer.Option("--other-systems", help="Serve the paths of other systems too, for clients that call them.")
    ] = False,
    policy: options.Policy = None,
    model: options.Model = None,
    model_base_url: options.ModelBaseUrl = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Leave digests and indexing to `hitherto worker`.")
    ] = False,
    lines: Annotated[
        LogFormat, typer.Option("--log", help="Log in lines for people, or one JSON object a line.")
    ] = LogFormat.TEXT,
) -> None:
    """Serve everything over HTTP, until stopped.

    On this machine alone, requests are the tenant local's and need no key; from elsewhere each needs one (see hitherto
    keys). The service makes digests too, unless workers do. On SIGTERM or Ctrl-C it ends the requests in progress
    within the grace, then its digests within as long again, and exits with 0.
    """
    kind = AliasedSettings if other_systems else Settings
    given: dict[str, Any] = {
        "database": database,
        "policy": policy,
        "model": model,
        "model_base_url": model_base_url,
        "host": host,
        "port": port,
        "require_keys": require_keys or None,
        "worker": False if no_worker else None,
    }
    settings = kind.load(**given)
    try:
        import uvloop

        from hitherto.http.server.serve import listening
    except ImportError as error:
        raise InvalidInput(f"the service needs {error.name}: pip install 'hitherto[server]'") from error
    if (agent or tools) and not other_systems:
        raise InvalidInput("agents run at /agent/run, which is a path of another system: add --other-systems")
    configurations = [configuration_in(file) for file in agent or []]
    if configurations:
        settings = kind.load(**given | digest_model(configurations[0], settings.model_dump(exclude_unset=True)))
    (logs.json_lines if lines is LogFormat.JSON else logs.plain_lines)()
    warn_of_ignored_variables(aliases=other_systems)
    uvloop.run(_serve(settings, listening(settings), configurations, tools, other_systems=other_systems))


async def _serve(
    settings: Settings,
    at: socket,
    configurations: Sequence[AgentConfiguration],
    tools: Path | None,
    *,
    other_systems: bool,
) -> None:
    from hitherto.http.server.serve import needs_keys
    from hitherto.http.server.serve import serve as serve_memory
    from hitherto.web.app import create_inspector
    from hitherto.web.templating import ROOT

    with at:
        keys = needs_keys(settings, at)
        if keys and settings.database == IN_MEMORY:
            raise InvalidInput(
                "each request would need a key, and none can be made for memory:, which is this process's own; name a "
                "PostgreSQL server (--database), or none for Hitherto's own, or serve this machine alone without keys"
            )
        settings = settings.model_copy(update={"row_security": keys or settings.row_security})
        async with await open_memory(settings, watch_of(settings)) as memory:
            more = _more_paths(memory, configurations, tools) if other_systems else None
            pages = partial(create_inspector, doctor=partial(checks_of, settings))
            await serve_memory(memory, settings, at, keys=keys, more=more, beside={ROOT: pages})
    log.info("Service stopped")


def _more_paths(memory: Memory, configurations: Sequence[AgentConfiguration], tools: Path | None) -> MorePaths:
    from hitherto.other_systems.paths import paths

    if not configurations:
        return paths()
    from hitherto.other_systems.agent_service.setup import configure_agents

    return paths(configure_agents(memory, tenant=LOCAL_TENANT, configurations=configurations, tools=tools_in(tools)))
