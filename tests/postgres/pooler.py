"""PgBouncer before a server, in transaction mode: the next transaction of a client may get another connection."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.patience import PATIENCE
from tests.ports import free_port

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

_SETTINGS = """
[databases]
* = host={host} port={port} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = any
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = 2
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
"""


@contextmanager
def pooled(url: str) -> Generator[str]:
    """The address of PgBouncer before the server at `url`, with two connections to it."""
    assert PGBOUNCER is not None
    asked = conninfo_to_dict(url)
    listen = free_port()
    user = str(asked["user"])
    # It refuses to run as root; the embedded server lets in its own account alone.
    owner = Path(str(asked["host"])).stat()
    user_id, group = (owner.st_uid, owner.st_gid) if os.getuid() == 0 else (None, None)
    others = None if group is None else list[int]()
    with tempfile.TemporaryDirectory(prefix="hitherto-") as made:
        folder = Path(made)
        folder.chmod(0o777)
        (folder / "users.txt").write_text(f'"{user}" ""\n')
        (folder / "pgbouncer.ini").write_text(
            _SETTINGS.format(host=asked["host"], port=asked["port"], user=user, listen=listen, folder=folder)
        )
        with subprocess.Popen(
            [PGBOUNCER, "-q", folder / "pgbouncer.ini"], user=user_id, group=group, extra_groups=others
        ) as running:
            address = make_conninfo(url, host="127.0.0.1", port=listen)
            try:
                _wait(address, running)
                yield address
            finally:
                running.terminate()


def _wait(address: str, running: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(address, connect_timeout=2).close()
        except psycopg.OperationalError:
            if running.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
