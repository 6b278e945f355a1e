"""What files, sound and pictures cost: their pages, seconds and number, never the length of their base64."""

from __future__ import annotations

import base64
import io
import json
import wave
import zipfile
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.core.log.message import Payload, Wire
from hitherto.tokens import counter_for
from hitherto.wire import codec
from hitherto.wire.cost import PAGE, SECOND
from tests.wire.conversations import WIRES

COUNTER = counter_for("gpt-4o")
IMAGE = COUNTER.image_tokens
REST = 120
"""The most that such an item's other fields take here."""


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def pdf(pages: int) -> bytes:
    objects = b"".join([b"2 0 obj <</Type /Page /Parent 1 0 R>> endobj\n"] * pages)
    return b"%%PDF-1.4\n1 0 obj <</Type /Pages /Count %d>> endobj\n%s" % (pages, objects) + bytes(300_000)


def packed_pdf(pages: int) -> bytes:
    """As newer ones are written: the pages are in a compressed stream."""
    stream = zlib.compress(b"<</Type/Pages/Count %d>>" % pages + b"<</Type/Page/Parent 1 0 R>>" * pages)
    return b"%PDF-1.7\n3 0 obj\n<</Type/ObjStm/Filter/FlateDecode>>\nstream\r\n" + stream + b"\nendstream\nendobj\n"


def wav(seconds: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 2, 16_000, 0, "NONE", ""))
        sound.writeframes(bytes(32_000 * seconds))
    return file.getvalue()


def file(to: Wire, content: bytes, media: str = "application/pdf") -> dict[str, Any]:
    data = f"data:{media};base64,{encoded(content)}"
    match to:
        case "openai.chat":
            return {"type": "file", "file": {"filename": "a", "file_data": data}}
        case "openai.responses":
            return {"type": "input_file", "filename": "a", "file_data": data}
        case _:
            source = {"type": "base64", "media_type": media, "data": encoded(content)}
            return {"type": "document", "source": source, "title": "a"}


def picture(to: Wire, data: str, kind: str) -> dict[str, Any]:
    url = f"data:image/{kind};base64,{data}"
    match to:
        case "openai.chat":
            return {"type": "image_url", "image_url": {"url": url}}
        case "openai.responses":
            return {"type": "input_image", "image_url": url}
        case _:
            return {"type": "image", "source": {"type": "base64", "media_type": f"image/{kind}", "data": data}}


def tokens(to: Wire, *parts: dict[str, Any]) -> int:
    return codec(to).tokens({"role": "user", "content": list(parts)}, COUNTER)


@pytest.mark.parametrize("to", WIRES)
@pytest.mark.parametrize("made", [pdf, packed_pdf])
@given(pages=st.integers(1, 200))
def test_a_pdf_costs_its_pages(to: Wire, made: Any, pages: int) -> None:
    assert 0 <= tokens(to, file(to, made(pages))) - pages * (PAGE + IMAGE) <= REST


@pytest.mark.parametrize("to", WIRES)
def test_a_file_that_has_no_pages_costs_by_its_size(to: Wire) -> None:
    for content in (b"", b"%PDF-1.7 of no page", b"PK\x03\x04", packed_pdf(9)[:-400][:60]):
        assert 0 <= tokens(to, file(to, content)) - (PAGE + IMAGE) <= REST
    encrypted = b"%PDF-1.7\n9 0 obj <</Type/ObjStm/Filter/FlateDecode>>\nstream\n" + b"\xa7" * 29_000
    for content in (b"%PDF-1.7" + bytes(29_000), encrypted):
        assert 0 <= tokens(to, file(to, content)) - 3 * (PAGE + IMAGE) <= REST
    boasting = b"%PDF-1.7 <</Type/Pages/Count 999999999>>"
    assert tokens(to, file(to, boasting)) <= 600 * (PAGE + IMAGE) + REST


def office(parts: dict[str, bytes]) -> bytes:
    """As docx, xlsx, pptx and odt are: parts in a zip archive."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return archive.getvalue()


def test_an_office_file_costs_by_the_size_of_its_text_before_it_was_packed() -> None:
    cells = b'<c r="B12" t="n"><v>1234.5</v></c>' * 10_000
    styles = {"xl/styles.xml": bytes(50_000), "word/theme/theme1.xml": bytes(50_000), "xl/media/image1.png": bytes(900)}
    for name in ("xl/worksheets/sheet1.xml", "word/document.xml", "content.xml"):
        cost = tokens("openai.chat", file("openai.chat", office({**styles, name: cells})))
        assert 0 <= cost - 35 * (PAGE + IMAGE) <= REST
    honest = office({"content.xml": bytes(10_000)})
    entry = honest.rindex(b"PK\x01\x02")
    bomb = honest[: entry + 24] + b"\xff" * 4 + honest[entry + 28 :]
    for content in (bomb, honest[: entry + 60], b"PK\x03\x04" + b"PK\x01\x02" * 100):
        assert tokens("openai.chat", file("openai.chat", content)) <= 3 * (PAGE + IMAGE) + REST


def test_an_office_file_of_very_many_parts_costs_no_less_than_its_text() -> None:
    pictures = {f"ppt/media/{number}.png": b"" for number in range(10_000)}
    found = office({**pictures, "ppt/slides/slide1.xml": b"<a:t>So it goes.</a:t>" * 200_000})
    assert tokens("openai.chat", file("openai.chat", found)) >= 400 * (PAGE + IMAGE)


@pytest.mark.parametrize("to", WIRES)
def test_a_pdf_that_is_cut_off_costs_what_can_still_be_counted(to: Wire) -> None:
    whole = packed_pdf(200)
    for end in range(0, len(whole), 9):
        pages = round((tokens(to, file(to, whole[:end])) - REST / 2) / (PAGE + IMAGE))
        assert pages in (1, 200)


@pytest.mark.parametrize("to", WIRES)
def test_what_is_no_base64_costs_by_its_length(to: Wire) -> None:
    for wrong in ("%" * 40_000, "ö" * 40_000, "A" * 39_997, "-_" * 20_000):
        part = json.loads(json.dumps(file(to, b"")).replace('base64,"', f'base64,{wrong}"'))
        if to == "anthropic":
            part["source"]["data"] = wrong
        assert 0 <= tokens(to, part) - 3 * (PAGE + IMAGE) <= REST
        sound = {"type": "input_audio", "input_audio": {"data": wrong, "format": "mp3"}}
        if to != "anthropic":
            assert 0 <= tokens(to, sound) - 40 * SECOND <= REST
    wrapped = base64.encodebytes(packed_pdf(3)).decode()
    part = json.loads(json.dumps(file(to, b"")).replace('base64,"', f"base64,{json.dumps(wrapped)[1:]}"))
    if to == "anthropic":
        part["source"]["data"] = wrapped
    assert 0 <= tokens(to, part) - 3 * (PAGE + IMAGE) <= REST, "line ends are no fault"


@pytest.mark.parametrize("to", WIRES)
def test_a_text_in_a_file_costs_its_tokens(to: Wire) -> None:
    text = "Where were we? " * 500
    assert 0 <= tokens(to, file(to, text.encode(), "text/plain")) - COUNTER.count(text) <= REST


@pytest.mark.parametrize("to", WIRES)
@pytest.mark.parametrize("field", ["alt", "text", "detail"])
def test_words_beside_a_picture_cost_their_tokens(to: Wire, field: str) -> None:
    plain, words = picture(to, "iVBORw0KGgo=", "png"), "A heron in the pond. " * 100
    inner = {"anthropic": "source", "openai.chat": "image_url"}.get(to)
    within = [{**plain, inner: {**plain[inner], field: words}}] if inner else []
    for part in ({**plain, field: words}, *within):
        assert COUNTER.count(words) <= tokens(to, part) - tokens(to, plain) <= COUNTER.count(words) + REST
    assert tokens(to, {**plain, "detail": "high"}) == tokens(to, plain)


@pytest.mark.parametrize("to", ["openai.chat", "openai.responses"])
@given(seconds=st.integers(0, 20))
def test_sound_costs_its_seconds(to: Wire, seconds: int) -> None:
    part = {"type": "input_audio", "input_audio": {"data": encoded(wav(seconds)), "format": "wav"}}
    assert seconds * SECOND <= tokens(to, part) <= (seconds + 1) * SECOND + REST


def test_sound_of_an_unknown_format_costs_by_the_lowest_rate() -> None:
    liars = [b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0" + rate * 2 for rate in (bytes(4), b"\xff" * 4)]
    for begin in (b"", b"RIFF", *liars):
        content = begin.ljust(7_500, b"\0")
        part = {"type": "input_audio", "input_audio": {"data": encoded(content), "format": "???"}}
        assert 10 * SECOND <= tokens("openai.chat", part) <= 10 * SECOND + REST


def test_sound_that_the_model_spoke_costs_its_seconds() -> None:
    audio = {"id": "a", "data": encoded(wav(9)), "expires_at": 1}
    item = {"role": "assistant", "content": None, "audio": audio}
    assert 9 * SECOND <= codec("openai.chat").tokens(item, COUNTER) <= 10 * SECOND + REST


@pytest.mark.parametrize(
    "fields",
    [
        {"content": None, "audio": {"id": "a", "data": "AAAA", "expires_at": 1, "transcript": "Noted."}},
        {"content": "Noted.", "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example"}}]},
    ],
)
def test_an_answer_of_chat_costs_what_is_sent_of_it(fields: Payload) -> None:
    chat, item = codec("openai.chat"), {"role": "assistant", **fields}
    (sent,) = chat.sendable([item])
    assert chat.tokens(item, COUNTER) == chat.tokens(sent, COUNTER) < 10


def test_pictures_and_files_in_tools_results_cost_the_same() -> None:
    plot = {"type": "image", "url": f"data:image/png;base64,{encoded(bytes(300_000))}"}
    item = {"type": "code_interpreter_call", "id": "c", "code": "plot()", "outputs": [plot, plot]}
    assert 0 <= codec("openai.responses").tokens(item, COUNTER) - 2 * IMAGE <= REST
    page = {"type": "web_fetch_result", "url": "https://example.com", "content": file("anthropic", packed_pdf(2))}
    fetched = {"type": "web_fetch_tool_result", "tool_use_id": "t", "content": page}
    assert 0 <= tokens("anthropic", fetched) - 2 * (PAGE + IMAGE) <= REST
    result = {"type": "tool_result", "tool_use_id": "t", "content": [file("anthropic", pdf(2))]}
    assert 0 <= tokens("anthropic", result) - 2 * (PAGE + IMAGE) <= REST


@pytest.mark.parametrize("to", WIRES)
@pytest.mark.parametrize("size", [0, 10_000, 2**31 - 1])
def test_a_picture_costs_the_most_of_one_whatever_its_header_claims(to: Wire, size: int) -> None:
    """Providers scale pictures down. What is in one is never read."""
    short = min(size, 2**16 - 1)
    headers = {
        "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + size.to_bytes(4, "big") * 2,
        "jpeg": b"\xff\xd8\xff\xc0\0\x11\x08" + short.to_bytes(2, "big") * 2,
        "gif": b"GIF89a" + short.to_bytes(2, "little") * 2,
        "webp": b"RIFF\x1e\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + min(size, 2**24 - 1).to_bytes(3, "little") * 2,
    }
    for kind, header in headers.items():
        assert tokens(to, picture(to, encoded(header), kind)) == IMAGE + tokens(to)


def test_base64_in_a_text_is_text() -> None:
    text = f"data:application/pdf;base64,{encoded(bytes(range(256)) * 4)}"
    assert tokens("openai.chat", {"type": "text", "text": text}) >= COUNTER.count(text)


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=20), st.just("data:"), st.just("%%%")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["type", "data", "file_data", "content", "source", "media_type"]), inner),
    ),
    max_leaves=8,
)


@given(
    kind=st.sampled_from(["file", "input_file", "document", "input_audio", "image"]),
    key=st.sampled_from(["file", "file_data", "source", "input_audio", "content"]),
    value=junk,
)
def test_nonsense_has_a_cost(kind: str, key: str, value: object) -> None:
    for to in WIRES:
        assert tokens(to, {"type": kind, key: value}) > 0
