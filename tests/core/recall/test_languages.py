"""Which language a text tells that it is in."""

from __future__ import annotations

import pytest

from hitherto.core.recall.folding import lower
from hitherto.core.recall.languages import ENGLISH, UNKNOWN, language_of
from hitherto.core.recall.stopwords import OF_LANGUAGES


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wir haben das Fahrrad im Keller.", "german"),
        ("Nous avons mis le vélo à la cave.", "french"),
        ("Tenemos la bicicleta en el sótano.", "spanish"),
        ("A bicicleta está na cave com os livros.", "portuguese"),
        ("La bicicletta è nella cantina di mio zio.", "italian"),
        ("We hebben de fiets in de kelder gezet.", "dutch"),
        ("Vi har ställt cykeln i källaren.", "swedish"),
        ("Mamy rower w piwnicy, ale nie jest mój.", "polish"),
        ("Bisiklet bodrumda ama kilidi yok.", "turkish"),
        ("Işığı söndürdüğünü sanıyordum.", "turkish"),  # by its letters alone
        ("Pyörä on kellarissa, mutta se on rikki.", "finnish"),
        ("A bicikli a pincében van, de nem az enyém.", "hungarian"),
        ("Sepeda itu ada di ruang bawah tanah.", "indonesian"),
        ("The café is near the Hôtel de Ville.", ENGLISH),
        ("Take care, bye!", ENGLISH),
        ("I had to die another day, she was in the war", ENGLISH),
        ("Fahrrad", UNKNOWN),
        ("велосипед в подвале", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_a_text_tells_its_language(text: str, language: str) -> None:
    assert language_of(lower(text)) == language


def test_stop_words_are_as_texts_are_looked_up() -> None:
    for words in OF_LANGUAGES.values():
        assert words.split() == [lower(word) for word in words.split()]
