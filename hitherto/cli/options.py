"""The options and arguments that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitherto.core.scope import Scope

if TYPE_CHECKING:
    from hitherto.settings import Settings

LARGEST = 2**63 - 1
"""The largest number that the store takes."""

Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A PostgreSQL server, or memory: for a throw-away memory that ends with the command. Without it: "
        "HITHERTO_DATABASE, or Hitherto's own server.",
    ),
]
Tenant = Annotated[
    str, typer.Option(metavar="NAME", help="The tenant of the scope (HITHERTO_TENANT). [default: local]")
]
User = Annotated[str, typer.Option(metavar="NAME", help="The user of the scope (HITHERTO_USER). [default: me]")]
Agent = Annotated[str, typer.Option(metavar="NAME", help="The agent of the scope (HITHERTO_AGENT). [default: cli]")]
_SETTINGS = {Tenant: "tenant", User: "user", Agent: "agent"}
"""The settings that stand for these options where they are not given."""

AllAgents = Annotated[bool, typer.Option("--all-agents", help="Include the user's other agents.")]
Policy = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        help="What governs conversations that have no policy (HITHERTO_POLICY): rolling:threshold=40,keep_last=12.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The model that makes digests (HITHERTO_MODEL). [default: the agent's]"),
]
ModelBaseUrl = Annotated[str | None, typer.Option(metavar="URL", help="Where that model is (HITHERTO_MODEL_BASE_URL).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, and nothing else.")]
Budget = Annotated[int, typer.Option(min=1, metavar="TOKENS", help="The most tokens of one request.")]
Conversation = Annotated[str, typer.Argument(metavar="ID", help="The conversation.")]
Question = Annotated[str, typer.Argument(metavar="QUESTION", help="What to search for.")]
TranscriptFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Conversations in any format that `hitherto import` reads; - for standard input.",
    ),
]
SampleId = Annotated[
    str | None,
    typer.Option("--conversation", metavar="ID", help="Of a file with several conversations, only this one."),
]

LOCAL_TENANT = "local"


@dataclass(frozen=True, slots=True)
class Target:
    """Which memory a command works on."""

    database: str | None
    scope: Scope


def _target(
    *, database: Database = None, tenant: Tenant = LOCAL_TENANT, user: User = "me", agent: Agent = "cli"
) -> Target:
    """The options that a parameter `target` stands for. Raises InvalidScope."""
    return Target(database, Scope(tenant=tenant, user=user, agent=agent))


def _settings() -> Settings:
    from hitherto.settings import Settings  # not while commands are only listed

    return Settings.load()


def default_scope() -> Scope:
    """The scope of commands without options. Raises InvalidSettings and InvalidScope."""
    settings = _settings()
    return Scope(tenant=settings.tenant, user=settings.user, agent=settings.agent)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: a parameter `target: Target` becomes the options of `_target`, and what is not
    given of a scope comes from the settings."""
    signature = inspect.signature(command, eval_str=True)
    shared: Mapping[str, inspect.Parameter] = MappingProxyType({})
    if "target" in signature.parameters:
        shared = inspect.signature(_target, eval_str=True).parameters
    parameters = [
        option
        for name, parameter in signature.parameters.items()
        for option in (shared.values() if name == "target" else [parameter])
    ]
    scoped = {one.name: _SETTINGS[one.annotation] for one in parameters if one.annotation in _SETTINGS}
    if not scoped:
        return command

    @wraps(command)
    def run(**given: Any) -> None:
        if missing := {name: setting for name, setting in scoped.items() if given[name] is None}:
            settings = _settings()
            given |= {name: getattr(settings, setting) for name, setting in missing.items()}
        if shared:
            given["target"] = _target(**{name: given.pop(name) for name in shared})
        command(**given)

    parameters = [one.replace(default=None) if one.name in scoped else one for one in parameters]
    # typer reads it; the type of a function does not know it.
    run.__signature__ = signature.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]
    return run
