"""The default embedder: from its wheel's files alone, the same each time, and fast."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hitherto.providers.wordllama import Wordllama
from hitherto.testing.embedders import check_embedder
from tests.patience import PATIENCE


async def test_it_does_what_every_embedder_promises() -> None:
    await check_embedder(Wordllama())


async def test_nearer_in_meaning_is_nearer() -> None:
    embedder = Wordllama()
    documents = (
        "We adopted a puppy from the shelter.",
        "The invoice is due at the end of the month.",
        "She practices the violin every evening.",
    )
    vectors = (await embedder.documents(documents)).vectors
    for question, nearest in (
        ("Do they have a dog?", 0),
        ("When must the bill be paid?", 1),
        ("What music does she play?", 2),
    ):
        cosines = vectors @ (await embedder.query(question)).vectors[0]
        assert cosines.argmax() == nearest


async def test_words_that_say_nothing_hardly_count() -> None:
    embedder = Wordllama()
    with_them, without = (await embedder.documents(["What did she do with the cello?", "cello"])).vectors
    assert with_them @ without > 0.9


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
async def test_nothing_to_be_told_by_is_zeros(text: str) -> None:
    embedder = Wordllama()
    assert not (await embedder.documents([text])).vectors.any()
    assert not (await embedder.query(text)).vectors.any()


async def test_its_space_says_what_makes_its_vectors() -> None:
    # Vectors in users' databases were made so; if these change, the space needs another name.
    vectors = (await Wordllama().documents(["The barge leaves Utrecht at dawn."])).vectors
    assert Wordllama().space.name == "wordllama-256/7b8c876d-1"
    assert vectors.dtype == np.float32
    assert vectors[0, :4].tolist() == pytest.approx([0.09418, -0.00708, -0.03033, 0.00848], abs=1e-4)


async def test_a_call_went_to_no_endpoint() -> None:
    assert (await Wordllama().query("cello")).asked is False


def test_it_starts_without_the_network() -> None:
    code = (
        "import socket, asyncio\n"
        "def refused(*_): raise AssertionError('the network was asked')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refused\n"
        "from hitherto.providers.wordllama import Wordllama\n"
        "print(asyncio.run(Wordllama().query('cello')).vectors.any())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "True\n"
