"""LoCoMo files: a JSON list of samples, each a long conversation of two people over many sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hitherto.core.log.message import CHAT, Message
from hitherto.errors import InvalidMessage, InvalidTranscript
from hitherto.importers.imported import mapping_of
from hitherto.wire import read

_SESSION = re.compile(r"session_([0-9]{1,9})")
_ROLES = ("User", "Assistant")


@dataclass(frozen=True, slots=True)
class Sample:
    """One conversation of the file, named by its `sample_id`, and its questions (`qa`) as the file has them."""

    name: str
    messages: tuple[Message, ...]
    qa: object = None


def samples(data: bytes, path: Path, *, named: bool = False) -> list[Sample]:
    """The conversations of a LoCoMo file; `speaker_a` is the user.

    A picture's caption stands for it. Messages are dated as their session is; their metadata has their dia_id, session
    and date. With `named`, messages have their speaker in the field `name`, and there may be more than two speakers;
    but "User" and "Assistant" are roles, not names. Raises InvalidTranscript.
    """
    names = set[str]()
    listed = [sample(one, number, path, names, named=named) for number, one in enumerate(_list(data, path))]
    if not listed:
        raise InvalidTranscript(f"{path} has no conversation")
    return listed


def sample(value: object, number: int, path: Path, names: set[str], *, named: bool = False) -> Sample:
    """The conversation that is entry `number`, from 0, of a list, as `samples` reads it; `names` are those before it,
    to which its own is added. Raises InvalidTranscript."""
    fields = mapping_of(value)
    conversation = fields.get("conversation")
    if not isinstance(conversation, dict):
        raise InvalidTranscript(
            f"{path}: entry {number} of its list is no LoCoMo sample (it has no 'conversation'); a conversation in "
            "OpenAI chat shape is written one message a line, without a list around them"
        )
    name = fields.get("sample_id", f"{path.stem}-{number}")
    if not isinstance(name, str) or name in names:
        raise InvalidTranscript(f"{path}: entry {number} has the sample_id {name!r}; give each a text of its own")
    names.add(name)
    messages = tuple(_messages(cast("Mapping[str, Any]", conversation), f"{path}: {name}", named=named))
    if not messages:
        raise InvalidTranscript(f"{path}: {name} has no session_1, session_2, … with turns in them")
    return Sample(name, messages, fields.get("qa"))


def _list(data: bytes, path: Path) -> list[object]:
    try:
        return cast("list[object]", json.loads(data))
    except (ValueError, RecursionError) as error:
        raise InvalidTranscript(f"{path} begins like a LoCoMo file (a JSON list) but is not JSON: {error}") from error


def _messages(conversation: Mapping[str, Any], where: str, *, named: bool) -> Iterator[Message]:
    speakers = (conversation.get("speaker_a"), conversation.get("speaker_b"))
    if not all(isinstance(speaker, str) for speaker in speakers):
        raise InvalidTranscript(f"{where} needs speaker_a and speaker_b, the names of the two who talk")
    numbered = sorted((int(match[1]), key) for key in conversation if (match := _SESSION.fullmatch(key)))
    for session, key in numbered:
        turns: object = conversation[key]
        if not isinstance(turns, list):
            raise InvalidTranscript(f"{where}, {key} is not a list of turns")
        for number, turn in enumerate(cast("list[object]", turns), 1):
            date: object = conversation.get(f"{key}_date_time")
            try:
                message = _message(turn, speakers, {"session": session, "date": date}, named=named)
            except InvalidMessage as error:
                raise InvalidTranscript(f"{where}, {key}, turn {number} is unusable: {error}") from error
            at = _time(date)
            yield message if at is None else message.dated(at)


def _time(date: object) -> datetime | None:
    """The time of a session, such as "1:56 pm on 8 May, 2023", taken as UTC; None where it is not written like that."""
    try:
        return datetime.strptime(str(date), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return None


def _message(turn: object, speakers: tuple[object, ...], notes: Mapping[str, Any], *, named: bool) -> Message:
    if not isinstance(turn, dict):
        raise InvalidMessage("it is not an object with speaker and text")
    # The field `query` comes from the annotator and is not part of what was said.
    fields = cast("Mapping[str, Any]", turn)
    speaker, text, caption = fields.get("speaker"), fields.get("text"), fields.get("blip_caption")
    if named and not isinstance(speaker, str):
        raise InvalidMessage(f"its speaker is {speaker!r}; give a name")
    if not named and speaker not in speakers:
        raise InvalidMessage(f"its speaker is {speaker!r}, neither speaker_a nor speaker_b")
    if not isinstance(text, str) or not isinstance(caption, str | None):
        raise InvalidMessage("its text (or its blip_caption) is not text")
    content = f"{text}\n[shares a picture: {caption}]" if caption else text
    role = "user" if speaker in (speakers[0], "User") else "assistant"
    author = {"name": speaker} if named and speaker not in _ROLES else {}
    item = {"role": role, **author, "content": content}
    return read(item, CHAT).with_metadata({"dia_id": fields.get("dia_id"), **notes})
