"""Each kind of item that the APIs know has a rule: what it says, and how other formats say it."""

from __future__ import annotations

import pytest

from hitherto import user
from hitherto.core.log.message import ANTHROPIC, CHAT, RESPONSES
from hitherto.testing.requests import refusals
from hitherto.wire import codec, read
from hitherto.wire.neutral import text_of
from tests.wire.samples import BESIDE, SAMPLES, SILENT, Sample, known

WIRES = (CHAT, RESPONSES, ANTHROPIC)
EACH = [pytest.param(wire, sample, id=f"{wire}-{kind}") for wire in WIRES for kind, sample in SAMPLES[wire].items()]


@pytest.mark.parametrize("wire", WIRES)
def test_every_kind_of_the_sdk_has_a_rule(wire: str) -> None:
    ruled = SAMPLES[wire].keys() | BESIDE[wire] | SILENT[wire]
    assert known(wire) - ruled == set()


@pytest.mark.parametrize(("wire", "sample"), EACH)
def test_its_words_are_in_the_text_and_in_the_other_formats(wire: str, sample: Sample) -> None:
    items, words = sample
    messages = [read(item, wire) for item in items]
    text = "\n".join(one.text for one in messages)
    named = [] if "name" in items[0] and wire == CHAT else words
    assert [word for word in named if word not in text] == []
    for other in WIRES:
        if other != wire:
            written = codec(other).sendable(codec(other).write([user("Go on."), *messages]))
            shown = "\n".join(text_of(item, other) for item in written)
            assert [word for word in words if word not in shown] == [], other
            assert refusals(codec(other).request(system=[], items=written, tools=[]), wire=other) == [], other
