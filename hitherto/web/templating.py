"""Templates, and how values read on pages."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, cast
from unicodedata import category
from urllib.parse import quote, unquote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hitherto.core.log.message import Message
from hitherto.web.manifests import why

HERE = Path(__file__).parent
ROOT = "/inspect"

_DOTS = re.compile(r"~*\.{1,2}")
"""Names that have a tilde more in an address: dots, and what reads as dots with a tilde before them."""

LONGEST = 4_000
"""Characters of a message that a page of many shows."""

_EMOJI = "\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
_JOINED = r"\u0600-\u10ff\u1780-\u18af"
"""Scripts whose letters a joiner joins or parts."""

_MARKS = "".join(chr(one) for one in range(0x300, 0x1F000) if category(chr(one)) in ("Mn", "Me"))
"""Combining marks, which are drawn above and below letters, and above each other."""

_ACTING = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufdd0-\ufdef\ufffe\uffff"
)
_BEYOND = r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U00013430-\U0001343f\U000e0000-\U0010ffff" + "".join(
    chr(plane << 16 | low) for plane in range(1, 14) for low in (0xFFFE, 0xFFFF)
)
_UNSEEN = re.compile(
    rf"[{_ACTING}{_BEYOND}]"
    rf"|(?<![{_EMOJI}#*0-9©®‼⁉™ℹ])[\ufe0e\ufe0f]|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]"
    rf"|(?!(?<=[{_JOINED}])[\u200c\u200d](?=[{_JOINED}])|(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}]))[\u200c\u200d]"
)
"""Signs that act on a terminal or on the direction of the text around them, or are not seen: all but the joiners of
letters and emoji that stand where they belong."""

_STACKED = re.compile(rf"([{_MARKS}](?:[\u200c\u200d]?[{_MARKS}]){{3}})((?:[\u200c\u200d]?[{_MARKS}])+)")
"""Marks above each other: the first four, and more, which would be drawn over other lines. A joiner between two parts
nothing."""

_JOINERS = re.compile("[\u200c\u200d]")
_RARE = re.compile(
    rf"[{_ACTING}{''.join(one for one in _MARKS if one <= chr(0xFFFF))}"
    r"\u200c\u200d\ufe0e\ufe0f\ud800-\udfff\U00010000-\U0010ffff]"
)
"""What has none of these is plain. It is found fast: one range has all characters beyond 16 bits."""

_FENCE = "```"
_PICTURE = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=]+)\Z")
_PICTURES = 4
"""Pictures of a message that are shown."""


def plain(text: object) -> str:
    """A text of a user with signs that act, or are not seen, shown as what they are, and of marks above each other the
    first four: none turns the text around it, is drawn over it, or hides."""
    whole = str(text)
    if not _RARE.search(whole):
        return whole
    whole = whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _STACKED.sub(
        lambda one: f"{one[1]}⟨{len(_JOINERS.sub('', one[2]))} marks⟩",
        _UNSEEN.sub(lambda one: f"⟨{ord(one[0]):04X}⟩", whole),
    )


def said(text: object, longest: int = LONGEST) -> Markup:
    """A text of a user as it stands, in a direction of its own, its beginning where it is long."""
    whole = str(text)
    shown = Markup('<bdi dir="auto">') + plain(whole[:longest]) + Markup("</bdi>")
    more = len(whole) - longest
    return shown + Markup(' <span class="cut">… {} more characters</span>').format(number(more)) if more > 0 else shown


def prose(text: str, longest: int = LONGEST) -> Markup:
    """As `said`, with what stands between fences as code."""
    kinds = (Markup('<bdi dir="auto">'), Markup("</bdi>")), (Markup('<pre><code dir="ltr">'), Markup("</code></pre>"))
    made = Markup().join(
        kinds[code][0] + "".join(lines) + kinds[code][1]
        for code, lines in _parts(plain(text[:longest]).splitlines(keepends=True))
    )
    more = len(text) - longest
    return made + Markup('<p class="cut">… {} more characters</p>').format(number(more)) if more > 0 else made


def _parts(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """The lines of a text and those of its code, which stands between fences, in their order."""
    ends = [at for at, line in enumerate(lines) if line.rstrip() == _FENCE]
    done = at = 0
    while at < len(lines):
        end = bisect_right(ends, at)
        if end < len(ends) and lines[at].startswith(_FENCE) and "`" not in lines[at][len(_FENCE) :]:
            if done < at:
                yield False, lines[done:at]
            yield True, lines[at : ends[end] + 1]
            done = at = ends[end] + 1
        else:
            at += 1
    if done < len(lines):
        yield False, lines[done:]


def pictures(message: Message) -> list[tuple[str, str]]:
    """The first pictures that a message has in itself, each as its media type and its data in base 64: none is fetched
    from elsewhere."""
    if "data:image/" not in message.raw and '"image"' not in message.raw:
        return []
    return list(islice(_pictures(message.payload), _PICTURES))


def _pictures(value: object) -> Iterator[tuple[str, str]]:
    match value:
        case str() if found := _PICTURE.match(value):
            yield found[1], found[2]
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            yield from _pictures(f"data:{kind};base64,{data}")
        case dict():
            for one in cast("dict[str, object]", value).values():
                yield from _pictures(one)
        case list():
            for one in cast("list[object]", value):
                yield from _pictures(one)
        case _:
            pass


def moment(when: datetime | None, empty: str = "–") -> Markup:
    """A time, which the reader's browser shows in its own zone."""
    if when is None:
        return Markup.escape(empty)
    utc = when.astimezone(UTC)
    return Markup('<time datetime="%s">%s UTC</time>') % (utc.isoformat(), utc.strftime("%Y-%m-%d %H:%M"))


def number(value: float) -> str:
    """A number with commas; at most two digits behind the point."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def duration(seconds: float) -> str:
    """About how long, such as "8 minutes"."""
    for one, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return plural(round(seconds / length), one)
    return plural(round(seconds), "second")


def dollars(value: float | None) -> str:
    """An amount; "–" where no price is known."""
    return "–" if value is None else f"${value:,.4f}" if value < 1 else f"${value:,.2f}"


def path(*parts: object, **query: object) -> str:
    """The address of a page: its parts and its query, percent-encoded. A tuple stands for its parts. Names of
    one or two dots have a tilde before them: browsers would take them, encoded too, for this part or the one above.
    Query values that are None, False or "" are left out."""
    flat = [one for part in parts for one in (cast("tuple[object, ...]", part) if isinstance(part, tuple) else (part,))]
    told = "/".join(_part(str(part)) for part in flat)
    given = {name: value for name, value in query.items() if value is not None and value is not False and value != ""}
    asked = urlencode(given, doseq=True) if given else ""
    return f"{ROOT}{'/' if told else ''}{told}{'?' if asked else ''}{asked}"


def _part(part: str) -> str:
    return quote(f"~{part}" if _DOTS.fullmatch(part) else part, safe="", errors="surrogatepass")


def name_in(part: str) -> str:
    """The name that a part of an address stands for, of which "/" and "%" are encoded."""
    name = unquote(part)
    return name[1:] if name[:1] == "~" and _DOTS.fullmatch(name[1:]) else name


def plural(count: int, one: str, many: str | None = None) -> str:
    """ "1 message", "2 messages"."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def environment() -> Environment:
    """The templates with these functions. What a template writes is escaped, and a name that is not there an error."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {
        one.__name__: one for one in (said, prose, plain, pictures, moment, number, duration, dollars, why)
    }
    named: dict[str, Any] = {"path": path, "plural": plural, "root": ROOT}
    cast("dict[str, Any]", made.filters).update(filters)
    cast("dict[str, Any]", made.globals).update(named)
    return made
