"""Documents, over HTTP."""

from __future__ import annotations

from tests.engine.documents.test_documents import *  # noqa: F403

LEFT_OUT = {
    # An argument of a wrong type is refused as the document says, and not in the verb's own words.
    "test_what_is_no_text_is_refused",
    "test_what_makes_no_sense_is_refused",
    "test_an_id_that_is_no_number_is_refused",
    # A service takes fewer bytes than the most characters of a document.
    "test_ten_megabytes_are_kept",
}
