"""What the integration offers by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hitherto.integrations import openai_agents
from hitherto.other_systems import agent_service

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(("module", "page"), [(openai_agents, "openai-agents.md"), (agent_service, "agents.md")])
def test_every_name_is_there_and_on_the_page(module: ModuleType, page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for name in module.__all__:
        assert hasattr(module, name)
        assert f"`{name}" in text, f"{name} is not in {page}"


@pytest.mark.parametrize("name", ["integrations.openai_agents", "other_systems.agent_service"])
def test_without_the_sdk_the_import_says_what_to_install(name: str) -> None:
    program = f"import sys; sys.modules['agents'] = None; import hitherto.{name}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("install it with: pip install 'hitherto[agents]'")
