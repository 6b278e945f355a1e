"""Addresses of databases and services: read so that no part of a password is taken for something else, and shown so
that nothing in them is secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

_SCHEME = re.compile(r"(postgresql|postgres|https?)://", re.IGNORECASE)
_HOST = re.compile(r"@?[\w.-]*|/.*")
_PATH = re.compile(r"[\w./~:+-]*", re.ASCII)
_LARGEST_PORT = 65_535


def shown_address(address: str) -> str:
    """An address with nothing secret in it: host, port and database of a PostgreSQL server; scheme, host, port and path
    of an http(s) URL. Of one that cannot be read without doubt, the scheme alone."""
    scheme = _SCHEME.match(address)
    try:
        if scheme is not None and scheme[1].lower().startswith("http"):
            return _shown_url(http_parts(address))
        parts = database_parts(address)
    except ValueError:
        return "an address that cannot be read" if scheme is None else f"{scheme[0].lower()}…"
    return f"{parts.get('host') or 'the default socket'}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"


def http_parts(address: str) -> SplitResult:
    """The parts of an http(s) URL. Raises ValueError, which quotes nothing, for what is none, and for one whose user
    and password may end elsewhere than it seems."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise ValueError("no URL") from None
    if parts.scheme not in ("http", "https") or not address.isprintable() or not parts.hostname:
        raise ValueError("no URL")
    _check_user(address, "/?#")
    return parts


def _shown_url(parts: SplitResult) -> str:
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    path = parts.path if _PATH.fullmatch(parts.path) else "/…"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{path}"


def database_parts(address: str) -> Mapping[str, str]:
    """The parts of a PostgreSQL URL, or of key=value pairs, as libpq names them.

    Raises ValueError, which quotes nothing, for what is neither, and for what libpq would take a part of the password
    for: `postgresql://app:SECR/ET@host` has the host `app` for it, and errors would show the rest.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    except psycopg.Error:
        raise ValueError("no address") from None
    if _SCHEME.match(address):
        _check_user(address, "/")
        if ":" in parts.get("user", ""):
            raise ValueError("a colon in the user")
    for port in filter(None, parts.get("port", "").split(",")):
        if not (port.isdecimal() and 0 < int(port) <= _LARGEST_PORT):
            raise ValueError("a port that is none")
    if not all(map(_is_host, parts.get("host", "").split(","))) or "://" in parts.get("dbname", ""):
        raise ValueError("a host or a database that is none")
    return parts


def borrows_a_password(address: str) -> bool:
    """Whether libpq would send the server at `address` a password or a ticket that does not stand in it: from the
    environment, or from a file of passwords or services."""
    try:
        parts = database_parts(address)
    except ValueError:
        return False  # nothing is sent there
    if not _BORROWING.isdisjoint(parts):
        return True
    there = any(os.environ.get(name) for name in _BORROWED_FROM)
    return not parts.get("password") and (there or Path("~/.pgpass").expanduser().exists())


_BORROWING = {"service", "passfile", "gssdelegation"}
_BORROWED_FROM = ("PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGGSSDELEGATION")


def _check_user(url: str, ends: str) -> None:
    """Raises ValueError where the user and the password may end elsewhere than at the first "@": there are more of it,
    or one of the characters `ends` comes before, or a query."""
    user, at, rest = url.partition("://")[2].partition("@")
    if at and ("@" in rest or any(end in user for end in ends) or "=" in user.partition("?")[2]):
        raise ValueError("the password may end elsewhere")


def _is_host(host: str) -> bool:
    if _HOST.fullmatch(host):
        return True
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
