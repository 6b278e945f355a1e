"""What the integration offers by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hitherto.integrations import openai_agents

PAGE = Path(__file__).resolve().parents[2] / "docs" / "openai-agents.md"


def test_every_name_is_there_and_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in openai_agents.__all__:
        assert hasattr(openai_agents, name)
        assert f"`{name}" in page, f"{name} is not in {PAGE.name}"


def test_without_the_sdk_the_import_says_what_to_install() -> None:
    program = "import sys; sys.modules['agents'] = None; import hitherto.integrations.openai_agents"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("install it with: pip install 'hitherto[agents]'")
