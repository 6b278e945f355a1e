"""The files of an agent: its configuration, and its tools."""

from __future__ import annotations

import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hitherto.errors import InvalidInput

if TYPE_CHECKING:
    from hitherto.other_systems.agent_service import AgentConfiguration


def configuration_in(path: Path) -> AgentConfiguration:
    """The configuration of an agent that keeps sessions. Raises InvalidInput naming the file, or the extra that is
    missing."""
    try:
        from hitherto.other_systems.agent_service import AgentConfiguration
    except ImportError as error:
        raise InvalidInput(str(error)) from error

    found = AgentConfiguration.read(_json(path), f"the configuration in {path}")
    if "memory" not in found.resources:
        raise InvalidInput(f'{path} has no "memory" in its resources; sessions are kept, so add it there')
    return found


def tools_in(path: Path | None) -> list[Any]:
    """The list TOOLS of a Python file; empty without one. Raises InvalidInput naming the file."""
    if path is None:
        return []
    try:
        found = runpy.run_path(str(path)).get("TOOLS")
    except (Exception, SystemExit) as error:  # it is the user's own program
        raise InvalidInput(f"cannot run {path}: {type(error).__name__}: {error}") from error
    if not isinstance(found, list):
        raise InvalidInput(f"{path} has no list TOOLS; define one, of tools of the OpenAI Agents SDK")
    return found  # pyright: ignore[reportUnknownVariableType]


def digest_model(one: AgentConfiguration, given: Mapping[str, Any]) -> dict[str, str]:
    """The settings with which the agent's own model makes the digests; none where one of `given`, the settings that are
    set, names a model, its provider, its address or its key. So each key goes to the address that it is for."""
    from hitherto.other_systems.agent_service.providers import PROVIDERS

    provider = PROVIDERS.get(one.provider)
    if one.model is None or provider is None or _OF_A_MODEL & given.keys():
        return {}
    found = {"model": one.model, "model_provider": provider.kind, "model_base_url": provider.address}
    if provider.kind == "azure":
        found["model_api_version"] = provider.version
    if provider.key is not None:
        found["model_key"] = provider.key
    return found


_OF_A_MODEL = {"model", "model_provider", "model_base_url", "model_api_version", "model_key"}


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from None
