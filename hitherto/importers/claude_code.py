"""Claude Code's transcripts: JSON lines, each with its `uuid` and its `parentUuid`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hitherto.core.log.message import ANTHROPIC, CHAT
from hitherto.importers.imported import (
    ImportedConversation,
    Node,
    Unreadable,
    UnreadableList,
    conversation_of,
    mapping_of,
    message_of,
    name_of_type,
    objects_of,
    text_of,
    time_of,
    try_message,
)

NAME = "Claude Code"

_LARGEST = 2**28
"""The most characters of the messages of a file, which is read as a whole."""

_TITLES = (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary"))
"""Types of lines with a title, and their fields; the first counts. A summary is that of the conversation with its
`leafUuid`, which may be in another file."""

_NOT_SAID = ("isMeta", "isCompactSummary", "isApiErrorMessage")
"""Marks of messages that neither the user nor the model said."""


def is_line(value: Mapping[str, Any]) -> bool:
    """Whether a line is one of a transcript of Claude Code."""
    known = "sessionId" in value and ("parentUuid" in value or isinstance(value.get("type"), str))
    return known or ("leafUuid" in value and value.get("type") == "summary")


@dataclass(eq=False, slots=True)
class _Branch:
    """The main conversation of a file, or what one of its subagents did."""

    nodes: list[Node] = field(default_factory=list[Node])
    last: str | None = None
    unreadable: list[Unreadable] = field(default_factory=UnreadableList)
    ends: dict[str, str] = field(default_factory=dict[str, str])
    """The newest line of a step, by the API's id of its message: the lines of its blocks, and of their results, follow
    each other, and are no branches, though the file has each result behind its own call."""
    steps: dict[str, str] = field(default_factory=dict[str, str])
    """The step that a line belongs to."""


def conversations(
    lines: Iterable[tuple[int, Mapping[str, Any]]], path: Path
) -> Iterator[ImportedConversation | Unreadable]:
    """The conversation in the lines of a file, with their numbers, and one for each subagent that worked there."""
    branches, titles, sessions, size = dict[str, _Branch](), list[tuple[str, str, str]](), dict[str, None](), 0
    agents, known = dict[str, str](), {""}
    for number, line in lines:
        kind, uuid = text_of(line.get("type")), text_of(line.get("uuid"))
        for of, key in _TITLES:
            if kind == of and text_of(line.get(key)).strip():
                titles.append((of, line[key], text_of(line.get("leafUuid"))))
        if not uuid:
            continue
        known.add(uuid)
        sessions[text_of(line.get("sessionId"))] = None
        size += len(str(line.get("message", "")))
        if size > _LARGEST:
            yield Unreadable(f"{path}, line {number}: its conversation is larger than {_LARGEST:,} characters", number)
            return
        parent = text_of(line.get("parentUuid")) or text_of(line.get("logicalParentUuid")) or None
        agent = ""
        if line.get("isSidechain") is True:
            agent = text_of(line.get("agentId")) or agents.get(parent or "", uuid)
            agents[uuid] = agent
        _add(branches.setdefault(agent, _Branch()), line, uuid, parent, path=path, number=number)
    session = path.stem if path.stem in sessions else next(filter(None, sessions), path.stem)
    own = {of: words for of, words, leaf in titles if leaf in known}
    title = next((own[of] for of, _ in _TITLES if of in own), None)
    for agent, branch in branches.items():
        name = f"{session}-{agent}" if agent else session
        named = title if not agent else f"{title} ({agent})" if title else None
        yield conversation_of(NAME, name, branch.nodes, title=named, current=branch.last, unreadable=branch.unreadable)


def _add(branch: _Branch, line: Mapping[str, Any], uuid: str, parent: str | None, *, path: Path, number: int) -> None:
    place = f"{path}, line {number}"
    message, kind = mapping_of(line.get("message")), line.get("type")
    content, api_id = message.get("content"), text_of(message.get("id"))
    step = branch.steps.get(parent or "")
    if step is not None:
        parent = branch.ends[step]
    own = api_id if kind == "assistant" and api_id else step if _has_results(content) else None
    if own is not None:
        if own in branch.ends and step != own:
            parent = branch.ends[own]
        branch.ends[own], branch.steps[uuid] = uuid, own
    kept = None
    if kind in ("user", "assistant") and not isinstance(line.get("message"), dict):
        branch.unreadable.append(Unreadable(f"{place}: its message is {name_of_type(line.get('message'))}", number))
    if kind in ("user", "assistant") and message and not any(line.get(mark) is True for mark in _NOT_SAID):
        wire = CHAT if isinstance(content, str) else ANTHROPIC
        item = {"role": message.get("role"), "content": content}
        read_message = partial(message_of, item, time_of(line.get("timestamp")), wire=wire, id=uuid)
        kept = try_message(read_message, place, branch.unreadable, number)
    branch.nodes.append(Node(uuid, parent, place, kept, number))
    branch.last = uuid


def _has_results(content: object) -> bool:
    return any(block.get("type") == "tool_result" for block in objects_of(content))
