"""The text of a fact cut into words as they stand: one width, no contractions, numbers apart from their units."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b


def level(text: str) -> str:
    """`text` in one width, with plain quotation marks and dashes and without what is invisible."""
    text = _INVISIBLE.sub("", text)
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFKC", piece[0]) for piece in _PIECE.finditer(text.translate(_TYPED)))


_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1b\x7f\u00ad\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff]+")
_TYPED = str.maketrans({**dict.fromkeys("’‘ʼ＇`´", "'"), **dict.fromkeys("“”„«»", '"'), **dict.fromkeys("‐‑–—", "-")})
# Normalising takes the square of the longest run of marks, so it goes in pieces, cut at a space where there is one.
_PIECE = re.compile(r"(?s).{1,500}(?:\s|\Z)|.{1,500}")


CHUNK = re.compile(r"(?:\d,(?=\d)|[^\s,;!?()\[\]{}\"…。！？，、；])+")
_PLAIN_WORD = re.compile(r"([^\W\d_]+)(?:'([^\W\d_]{1,2}))?")
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)*)([^\W\d_]{0,3})")
_COMPOUND = re.compile(r"(?=.*[^\W\d_])[^\W_]+(?:-[^\W_]+)+|[^\W\d_]+(?:/[^\W\d_]+)+")
_THOUSANDS = re.compile(r",(?=\d{3}(?!\d))")
UNSPACED = re.compile(
    "[\u0e00-\u0e4e\u0e80-\u0ece\u1000-\u103f\u1780-\u17d3\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_CONTRACTED = {
    **{"ca": "can", "wo": "will", "sha": "shall"},
    **{"re": "are", "m": "am", "ve": "have", "ll": "will", "d": "would"},
}


def _uncontracted(word: str, ending: str | None) -> tuple[str, ...]:
    if ending is None:
        return (word,)
    if ending == "t" and word[-1] == "n":
        base = word if word == "can" else word[:-1]
        return (_CONTRACTED.get(base, base), "not")
    return (word, "'s" if ending == "s" else _CONTRACTED.get(ending, ending))


@lru_cache(maxsize=20_000)
def parts(chunk: str) -> tuple[str, ...]:
    """The words of what stands between spaces; an address, an order number and the like is one."""
    plain = _PLAIN_WORD.fullmatch(chunk)
    if plain is not None:
        return _uncontracted(plain[1], plain[2])
    chunk = chunk.replace("a.m", "am").replace("p.m", "pm").removesuffix(":00")
    number = _NUMBER.fullmatch(chunk)
    if number is not None:
        digits, unit = _THOUSANDS.sub("", number[1]), number[2]
        if unit in ("st", "nd", "rd", "th"):
            return (f"#{digits}",)
        return (digits, unit) if unit else (digits,)
    if _COMPOUND.fullmatch(chunk):
        return tuple(word for part in re.split("[-/]", chunk) for word in parts(part))
    return (chunk,)


def digest(chunk: str) -> str:
    """A word for what is too long to be one."""
    return blake2b(chunk.casefold().encode("utf-8", "surrogatepass"), digest_size=16).hexdigest() + "x"


LONGEST = 100
"""Characters of what can be words; longer text without a space counts as one, and is not kept in memory."""
