"""Checks of what callers give for a document: text, title, namespace, type and metadata."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, cast

from hitherto.core.documents.document import CONVERSATION, namespace_of
from hitherto.core.log.message import DEPTH, LONGEST_METADATA, storable
from hitherto.core.scope import LONGEST_NAME
from hitherto.errors import InvalidDocument, InvalidInput

MOST_CHARACTERS = 20_000_000
"""Characters of one document."""

LONGEST_NAMESPACE = len(namespace_of("")) + LONGEST_NAME
"""The most characters of a namespace: the namespace of any user's conversations fits."""

LONGEST_TITLE = 500

ALL = "all"
"""The doc_type that stands for every type in a search."""

_CONVERSATIONS = frozenset({CONVERSATION, CONVERSATION + "s"})
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SEEN = re.compile("[^\\W_]|[^\\s\x00-\x7f\u200b-\u200f\ufeff]")
"""What a search can find: a letter, a digit, or a visible character beyond ASCII, such as an emoji."""

_HEADING = re.compile(r"\s*#\s+(\S[^\n]*)")
_MARKDOWN = re.compile(r"^(?:#{1,6}\s+\S|```|~~~)", re.MULTILINE)


def checked_text(text: object) -> str:
    """`text`. Raises InvalidDocument if it is not a string, is too long, has NUL or lone surrogates, or has nothing
    that a search could find."""
    if not isinstance(text, str):
        raise InvalidDocument(f"the document is {type(text).__name__}, not text; decode it, or extract its text, first")
    if len(text) > MOST_CHARACTERS:
        raise InvalidDocument(
            f"the document has {len(text):,} characters; at most {MOST_CHARACTERS:,} are kept as one, so split it"
        )
    if found := _UNSTORABLE.search(text):
        raise InvalidDocument(
            f"the document has the character U+{ord(found[0]):04X} at {found.start()}, which no text has; if it is a "
            "binary file (PDF, Word, an image), extract its text first"
        )
    if not _SEEN.search(text):
        raise InvalidDocument("the document has no text that could be found: not one letter or digit; give it some")
    return text


def checked_title(title: object) -> str | None:
    """`title`, which may be None. Raises InvalidDocument if it is not text, is blank, or is too long."""
    return None if title is None else _name(title, "title", LONGEST_TITLE)


def checked_namespace(namespace: object) -> str:
    """`namespace`. Raises InvalidDocument if it is not a usable name."""
    return _name(namespace, "namespace", LONGEST_NAMESPACE)


def checked_type(doc_type: object) -> str:
    """The type under which a document is stored; "conversations" becomes "conversation". Raises InvalidDocument for
    "all" and for what is not a usable name."""
    kept = type_of(_name(doc_type, "doc_type", LONGEST_NAME))
    if kept is None:
        raise InvalidDocument(f"doc_type is {doc_type!r}, which stands for all types; give the document one of its own")
    return kept


def type_of(doc_type: object) -> str | None:
    """The type to search for: None (every type) for None and "all", "conversation" for "conversations" too. Raises
    InvalidInput for what is no text."""
    if doc_type is None:
        return None
    if not isinstance(doc_type, str):
        raise InvalidInput(f"{doc_type!r} is no type of documents; give one as text, or {ALL!r}")
    word = doc_type.strip().casefold()
    if word == ALL:
        return None
    return CONVERSATION if word in _CONVERSATIONS else storable(doc_type)


def metadata_json(metadata: object) -> str:
    """Metadata as the JSON text of an object; None gives an empty one. Characters of strings that PostgreSQL cannot
    store (NUL, lone surrogates) become U+FFFD. Raises InvalidDocument if it is not a JSON object, or its JSON is too
    long or nested too deep."""
    if metadata is None:
        return "{}"
    if not isinstance(metadata, Mapping):
        raise InvalidDocument(f"metadata is {type(metadata).__name__}; give an object, like {{'source': 'handbook'}}")
    try:
        given: Mapping[Any, Any] = cast("Mapping[Any, Any]", metadata)
        text = json.dumps(_storable(json.loads(json.dumps(dict(given), allow_nan=False))), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidDocument(f"metadata is not JSON: {error}; pass only what json.dumps can write") from error
    if len(text) > LONGEST_METADATA:
        raise InvalidDocument(
            f"metadata has {len(text):,} characters as JSON; at most {LONGEST_METADATA:,} are kept, so keep the "
            "rest elsewhere"
        )
    return text


def has(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether `metadata` has every entry of `wanted`: an equal value, or a list that contains it."""
    return all(key in metadata and _found(metadata[key], value) for key, value in wanted.items())


def fingerprint_of(*parts: str) -> str:
    """SHA-256 over the parts, each with its length in front, in hexadecimal."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in encoded)).hexdigest()


def heading_of(text: str) -> str | None:
    """The heading that a Markdown document begins with, if it begins with one."""
    found = _HEADING.match(text)
    return None if found is None else found[1].strip().rstrip("#").strip()[:LONGEST_TITLE] or None


def is_markdown(text: str) -> bool:
    """Whether the text has headings or code blocks as Markdown has them."""
    return _MARKDOWN.search(text) is not None


def _name(value: object, what: str, longest: int) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidDocument(f"{what} is {value!r}; give some text, or leave it out")
    if len(value) > longest:
        raise InvalidDocument(f"{what} has {len(value):,} characters; at most {longest} are kept")
    if _UNSTORABLE.search(value):
        raise InvalidDocument(f"{what} is {value!r}; NUL and lone surrogates cannot be part of it")
    return value


def _storable(value: Any, depth: int = 0) -> Any:
    if depth > DEPTH:
        raise ValueError(f"it is nested more than {DEPTH} deep")
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_storable(one, depth + 1) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {storable(key): _storable(one, depth + 1) for key, one in cast("dict[str, Any]", value).items()}
    return value


def _found(value: Any, wanted: Any) -> bool:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return _same(value, wanted) or any(_same(one, wanted) for one in listed)


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; true is not 1, in JSON."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        these, those = cast("list[Any]", one), cast("list[Any]", other)
        return len(these) == len(those) and all(_same(a, b) for a, b in zip(these, those, strict=True))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        mine, yours = cast("Mapping[str, Any]", one), cast("Mapping[str, Any]", other)
        return mine.keys() == yours.keys() and all(_same(value, yours[key]) for key, value in mine.items())
    return one == other
