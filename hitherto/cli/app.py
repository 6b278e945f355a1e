"""The command `hitherto` itself, and the options that its commands share."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

app = typer.Typer(
    name="hitherto",
    help="Conversation memory for LLM agents: every message kept, every turn within its token budget.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DatabaseOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="PostgreSQL, or memory: for one that ends with the command. Without it: HITHERTO_DATABASE, or a server of "
        "Hitherto's own.",
    ),
]
TenantOption = Annotated[str, typer.Option(metavar="NAME", help="Whose memory: the tenant.")]
UserOption = Annotated[str, typer.Option(metavar="NAME", help="Whose memory: the user.")]
AgentOption = Annotated[str, typer.Option(metavar="NAME", help="Whose memory: the agent.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else.")]
BudgetOption = Annotated[int, typer.Option(min=1, metavar="TOKENS", help="Tokens that one request may take.")]
IdArgument = Annotated[str, typer.Argument(help="The conversation.", metavar="ID")]

TENANT, USER, AGENT = "local", "me", "cli"
DEFAULT_SCOPE = {"tenant": TENANT, "user": USER, "agent": AGENT}


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hitherto {version('hitherto')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Conversation memory for LLM agents: every message kept, every turn within its token budget."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)
