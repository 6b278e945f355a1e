"""`hitherto inspect`: it opens a browser on pages that this machine alone reaches."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import psutil

from tests.acceptance.cli.commands import bare
from tests.patience import PATIENCE

BROWSER = f"""
import sys, urllib.request
page = urllib.request.urlopen(sys.argv[2], timeout={PATIENCE})
open(sys.argv[1], "w").write(f"{{sys.argv[2]}} {{page.url}}")
"""


def test_it_opens_pages_that_this_machine_alone_reaches(tmp_path: Path) -> None:
    program, seen = tmp_path / "browser.py", tmp_path / "seen"
    program.write_text(BROWSER)
    browser = shlex.join([sys.executable, str(program), str(seen), "%s"])  # which waits for the page, as lynx does
    command, environment = bare.command("inspect", "--database", "memory:"), bare.surroundings(BROWSER=browser)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            found = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/inspect", address)
            assert found
            with httpx.Client(base_url=found[1], follow_redirects=True, timeout=PATIENCE) as client:
                page = client.get("/")
                assert (page.status_code, page.url.path) == (200, "/inspect/local/conversations")
                assert "<h1>Conversations</h1>" in page.text
            listening = [one for one in psutil.Process(process.pid).net_connections() if one.status == "LISTEN"]
            assert [one.laddr.ip for one in listening] == ["127.0.0.1"]
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    assert seen.read_text() == f"{address} {page.url}"
