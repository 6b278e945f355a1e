"""The command `hitherto`: its commands, their errors and their exit codes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from hitherto.cli.options import expanded
from hitherto.cli.terminal import output
from hitherto.errors import HithertoError, InvalidDocument, InvalidExport, InvalidInput, InvalidTranscript

COMMANDS = {
    "demo": "Replay a conversation that ships with Hitherto, and ask about its beginning.",
    "replay": "Replay a transcript, and say what it would have cost.",
    "simulate": "Simulate policies on a transcript: what each would cost, and what it would show.",
    "agent": "Run an agent: commands in, events out, a JSON object a line.",
    "conversations": "List conversations, the one in which something was said last first.",
    "scopes": "List tenants, users or agents, and how much is kept of each.",
    "log": "Show the log: every message as it was stored.",
    "branches": "List the branches: what has stood in the place of messages, and what is shown of it.",
    "fork": "Fork a conversation: make one that begins with its messages, and goes on by itself.",
    "context": "Show the context of the next request, or the last one kept, and its manifest.",
    "digests": "Show the chain of digests, and the newest in full.",
    "runs": "List an agent's runs in a conversation, or show what happened in one.",
    "recall": "Search messages, digests, documents and facts for what answers a question.",
    "facts": "Review facts about a user or another subject, with their sources.",
    "documents": "Add, list and search the documents of a user's knowledge base.",
    "erase": "Erase messages, a user or a tenant, with everything made from them.",
    "export": "Write everything that is kept of a tenant or a user to a file.",
    "import": "Import an export, or conversations and facts of another system.",
    "costs": "Show what model calls cost, by day, model, purpose, tenant or user.",
    "serve": "Serve everything over HTTP, until stopped.",
    "inspect": "Look into the memory in a browser, and put it right.",
    "mcp": "Serve the memory's tools to a coding agent, over standard input and output.",
    "keys": "Make, list and revoke keys to the service.",
    "worker": "Make the digests that other processes request, until stopped.",
    "migrate": "Set up the database, or bring its schema up to date.",
    "config": "Show the settings that are in force, and where each comes from.",
    "doctor": "Check the database, the schema, the queue, the models and the rest, and say what to do.",
    "bench": "Measure Hitherto on your own data.",
}
"""Each command's name and the first paragraph of its help. The function, or the group, of that name is in the module
of that name, which is imported when the command is used, but for `_ELSEWHERE`."""

_ELSEWHERE = {
    "serve": ("service.serve", "serve"),
    "inspect": ("service.inspect", "inspect"),
    "mcp": ("service.mcp", "mcp"),
    "keys": ("service.keys", "keys"),
    "worker": ("service.worker", "worker"),
    "migrate": ("service.migrate", "migrate"),
    "branches": ("log", "branches"),
    "fork": ("log", "fork"),
    "digests": ("log", "digests"),
    "conversations": ("lists", "conversations"),
    "scopes": ("lists", "scopes"),
    "runs": ("lists", "runs"),
    "import": ("export", "import_"),
}

_STYLE: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
_INTERRUPTED = 130
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]  # ClickException, for which Typer has no public name


class _Commands(TyperGroup):
    """Lists `COMMANDS` without importing their modules, so that the help and the completion of names are fast."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and command_of(str(name)), rest


def command_of(name: str) -> Any:
    """The command or group `name` in full, its module imported, as Typer runs it."""
    module, function = _ELSEWHERE.get(name, (name, name))
    found = getattr(import_module(f"hitherto.cli.{module}"), function)
    if not isinstance(found, typer.Typer):
        found, command = typer.Typer(add_completion=False, **_STYLE), found
        found.command(name)(expanded(command))
    return get_command(found)


def group(name: str, commands: Mapping[str, Callable[..., None]]) -> typer.Typer:
    """A group of commands by name."""
    found = typer.Typer(name=name, help=COMMANDS[name], add_completion=False, **_STYLE)
    found.callback(invoke_without_command=True)(_help)
    for command_name, command in commands.items():
        found.command(command_name)(expanded(command))
    return found


def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hitherto {version('hitherto')}")
        raise typer.Exit


app = typer.Typer(name="hitherto", cls=_Commands, **_STYLE)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The file of settings, TOML or YAML. Without it: HITHERTO_CONFIG, or hitherto.toml in this folder.",
        ),
    ] = None,
) -> None:
    """Conversation memory for LLM agents: every message kept, every turn within its token budget."""
    _help(context)
    if config is not None:
        os.environ["HITHERTO_CONFIG"] = config  # where the settings look for it, whoever loads them
    from hitherto.policies import discover

    discover()


def _listed() -> None:
    """Stands for a command in the list of commands."""


for _name, _text in COMMANDS.items():
    app.command(_name, help=_text)(_listed)


def main() -> None:
    """The entry point: exit code 0, 1 for a failure, 2 for wrong usage; an error is one line on standard error."""
    output.prepare()
    try:
        code = app(prog_name="hitherto", standalone_mode=False)
    except HithertoError as error:
        usage = isinstance(error, InvalidInput) and not isinstance(
            error, InvalidTranscript | InvalidExport | InvalidDocument
        )
        output.fail(str(error), 2 if usage else 1)
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except _UsageError as error:
        output.fail(_usage(error), 2)
    except OSError as error:
        output.fail(f"the system refused: {error}", 1)
    except Exception as error:  # noqa: BLE001 (the edge of a command: a bug of ours is one line too)
        output.fail(
            f"a bug in Hitherto: {type(error).__name__}: {error}. Please report it, with the traceback that "
            "HITHERTO_TRACEBACK=1 shows",
            1,
        )
    if code == _INTERRUPTED:
        output.fail("interrupted", _INTERRUPTED)
    raise SystemExit(code or 0)


def _usage(error: Exception) -> str:
    context: typer.Context | None = getattr(error, "ctx", None)
    message: Callable[[], str] = getattr(error, "format_message", error.__str__)
    return f"{message().rstrip('.')}; see: {context.command_path if context else 'hitherto'} -h"
