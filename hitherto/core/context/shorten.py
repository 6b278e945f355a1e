"""Texts that are cut in the middle because they are too long for a context."""

from __future__ import annotations

from functools import cached_property

from hitherto.core.context.budget import TokenCounter
from hitherto.core.context.request import ContextRequest
from hitherto.core.log.message import Message, plain_message
from hitherto.core.plain_text import mark_at

MARK = "\n⟦{left:,} characters left out⟧\n"
"""Stands where the middle of a text was."""

FRAME = 16
"""Tokens that a message takes beside its text, at most."""


def shortened(text: str, most: int, counter: TokenCounter) -> str:
    """The text, or as much of its beginning and its end, half each, as takes at most `most` tokens with what says how
    many characters are left out; "" where there is no room for any of it. Takes time in proportion to what fits."""
    fits, too_long = 0, max(most, 1)
    while too_long < len(text) and counter.count(_cut(text, too_long)) <= most:
        fits, too_long = too_long, 2 * too_long
    if too_long >= len(text):
        if counter.count(text) <= most:
            return text
        too_long = len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if counter.count(_cut(text, middle)) <= most:
            fits = middle
        else:
            too_long = middle
    return _cut(text, fits) if fits else ""


def _cut(text: str, kept: int) -> str:
    """The first and last characters, `kept` in all, and between them how many are left out."""
    tail = len(text) - kept // 2
    return text[: kept - kept // 2] + MARK.format(left=len(text) - kept) + mark_at(text, tail) + text[tail:]


class Shortener:
    """Cuts a message to several lengths. It is read once, however long it is: each length takes what it shows."""

    def __init__(self, message: Message, request: ContextRequest) -> None:
        self._message, self._request = message, request
        self._results: list[str] = []

    def __call__(self, most: int) -> Message:
        """The message with its text, or those of the results or of the calls' arguments in it, cut to about `most`
        tokens each; the same object where none is longer."""
        message, request = self._message, self._request
        if len(message.raw) <= most:
            return message
        if message.answers:
            empty, texts = self._without_results, iter(self._results)

            def shorter(_tool: str, _mark: str) -> str:
                return shortened(next(texts), most, request.counter)

            cut = request.codec.redacted(empty, shorter, calls=False)
            return message if cut.raw == message.raw else cut
        if message.calls:
            return request.codec.redacted(message, lambda _, text: self._cut_arguments(text, most), calls=True)
        text = shortened(message.text, max(most - FRAME, 0), request.counter)
        return message if text == message.text else plain_message(message.role, text)

    def _cut_arguments(self, text: str, most: int) -> str | None:
        cut = shortened(text, most, self._request.counter)
        return None if cut == text else cut

    @cached_property
    def _without_results(self) -> Message:
        """The message with a mark in place of each of its results, which are kept apart."""

        def take(_tool: str, text: str) -> str:
            self._results.append(text)
            return "…"

        return self._request.codec.redacted(self._message, take, calls=False)
