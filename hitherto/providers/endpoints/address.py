"""Base URLs and keys of endpoints, checked before the first call."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from hitherto.addresses import http_parts, shown_address
from hitherto.errors import InvalidSettings

_CALLS = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings", "/rerank")
"""Paths of single calls, which a base URL must not end in: whoever makes the call adds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettingNames:
    """The settings that an endpoint's error messages refer to, as environment variables. `smaller` says how to make a
    request smaller; `form` and `example` say what a base URL looks like."""

    model: str = "HITHERTO_MODEL"
    key: str = "HITHERTO_MODEL_KEY"
    base_url: str = "HITHERTO_MODEL_BASE_URL"
    timeout: str = "HITHERTO_MODEL_TIMEOUT"
    api_version: str = "HITHERTO_MODEL_API_VERSION"
    smaller: str = "lower HITHERTO_MODEL_INPUT_LIMIT"
    form: str = "it often ends in /v1"
    example: str = "http://localhost:11434/v1"


def usable_key(key: str | None, named: EndpointSettingNames) -> str:
    """`key` without blanks around it, "" for none. Raises InvalidSettings where no header can carry it."""
    key = (key or "").strip()
    if not _is_one_word(key):
        raise InvalidSettings(
            f"the model's key ({named.key}) has a blank or a character beyond ASCII in it, which no "
            "HTTP header can carry; copy it again"
        )
    return key


def shown_url(url: str, named: EndpointSettingNames) -> str:
    """`url` without what may be secret (user, password, query). Raises InvalidSettings if it is not a base URL."""
    try:
        parts = http_parts(url)
        usable = _is_host(parts.hostname or "") and _is_one_word(url)
    except ValueError:
        usable = False
    if not usable:
        raise InvalidSettings(
            f"the model's base URL ({named.base_url}) needs the form http(s)://host[:port]/path in ASCII, "
            f"e.g. {named.example}"
        )
    shown = shown_address(url)
    for call in _CALLS:
        if urlsplit(url).path.rstrip("/").endswith(call):
            raise InvalidSettings(
                f"the model's base URL ({named.base_url}) is {shown}, the address of a single call; leave out {call} "
                "and what follows"
            )
    return shown


def with_path(url: str, path: str) -> str:
    """`url`, with `path` where it has none: people copy the address of the server alone."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url  # shown_url says what is wrong with it
    return parts._replace(path=path).geturl() if parts.path in ("", "/") else url


def _is_host(host: str) -> bool:
    """Whether each label has a length that DNS allows; on other lengths, the SDKs raise errors that are not ours."""
    return ":" in host or all(0 < len(label) < 64 for label in host.removesuffix(".").split("."))


def _is_one_word(text: str) -> bool:
    """Whether `text` is printable ASCII without a blank: all that a header or a URL can carry."""
    return text.isascii() and text.isprintable() and " " not in text
