"""The operations of the HTTP API: one table, from which the service's endpoints and the client's methods are made.

Each is a verb of a public class, with the method and the path under which it stands. Its parameters and its answer are
the verb's own: what is not in the path comes with the query (GET, DELETE) or in a JSON body. Of a scope, the tenant
comes with the key, user and agent in headers; the same goes for a `tenant` parameter.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_type_hints

from hitherto.core.key import Right
from hitherto.engine.conversation import Conversation
from hitherto.engine.documents.documents import Documents
from hitherto.engine.facts.facts import Facts
from hitherto.engine.memory import Memory
from hitherto.engine.runs import Runs

PREFIX = "/api/v1"

MCP = "/mcp"
"""The path of the tools for coding agents."""

USER, AGENT, TENANT = "Hitherto-User", "Hitherto-Agent", "Hitherto-Tenant"
POLICY, SUBJECT, REMEMBER = "Hitherto-Policy", "Hitherto-Subject", "Hitherto-Remember"
IDEMPOTENCY_KEY = "Idempotency-Key"

HEADERS = (USER, AGENT, TENANT, POLICY, SUBJECT, REMEMBER, IDEMPOTENCY_KEY)

LINES = "application/jsonl"
"""The type of an export."""

MESSAGES = frozenset({"messages", "incoming", "question"})
"""Parameters that are messages."""

EXAMPLES: Mapping[str, list[Any]] = {
    "messages": [[{"role": "user", "content": "We meet in Lisbon."}, {"role": "assistant", "content": "Noted."}]],
    "incoming": ["Where do we meet?"],
    "question": ["Where do we meet?"],
}
"""Values of parameters in a body, as the OpenAPI document shows them."""

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Owner = type[Memory] | type[Conversation] | type[Documents] | type[Facts] | type[Runs]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A verb under its method and path. `names` are parameters that have another name in the path than in the verb.

    `repeatable`: the client sends it again when it does not know whether it was done; done twice, it changes nothing
    more, nor what others did in between. `none_is_404`: the answer None is a 404. `optional_scope`: the headers may
    name a user, an agent, both or none. `waits`: it may take as long as the service allows."""

    owner: Owner
    verb: str
    method: Method
    path: str
    right: Right
    names: Mapping[str, str]
    repeatable: bool
    none_is_404: bool
    optional_scope: bool
    waits: bool

    @property
    def name(self) -> str:
        """Its name in the OpenAPI document."""
        return f"{self.owner.__name__.lower()}_{self.verb.strip('_')}"

    @property
    def summary(self) -> str:
        """What it does, in a few words."""
        return summary_of(inspect.getdoc(self.function) or "")

    @cached_property
    def function(self) -> Callable[..., Any]:
        return getattr(self.owner, self.verb)

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The types of its parameters and, as "return", of its answer."""
        return get_type_hints(self.function)

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """Its parameters but `self`."""
        return dict(list(inspect.signature(self.function).parameters.items())[1:])

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """The names in braces in the path, in their order."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH")

    @property
    def has_scope(self) -> bool:
        """Whether the headers must name a user and an agent."""
        return self.owner is not Memory or ("scope" in self.parameters and not self.optional_scope)

    @cached_property
    def given(self) -> dict[str, inspect.Parameter]:
        """The parameters that come with the query or in the body."""
        elsewhere = {"tenant", "scope", "key", *self.in_path, *self.names}
        return {name: parameter for name, parameter in self.parameters.items() if name not in elsewhere}

    def named(self, in_path: str) -> str:
        """The parameter of the verb that stands in the path under this name."""
        return next((name for name, other in self.names.items() if other == in_path), in_path)


def summary_of(text: str) -> str:
    """The first sentence of a description, without what follows a colon or stands in parentheses."""
    return re.split(r"[.:;](?=\s|$)| \(", " ".join(text.split()), maxsplit=1)[0]


_FLAGS = frozenset({"repeatable", "none_is_404", "optional_scope", "waits"})


def _operations(owner: Owner, right: Right, rows: str) -> list[Operation]:
    """Those of a table with a verb, its method, its path, names in the path and flags in each row."""
    operations = list[Operation]()
    for row in filter(None, map(str.strip, rows.splitlines())):
        verb, method, path, *more = row.split()
        names = dict(word.split("=") for word in more if "=" in word)
        flags = {word for word in more if "=" not in word}
        assert flags <= _FLAGS, row
        operations.append(
            Operation(
                owner=owner,
                verb=verb,
                method=method,  # pyright: ignore[reportArgumentType] — one of the words below
                path=path,
                right=right,
                names=names,
                repeatable=method == "GET" or "repeatable" in flags,
                none_is_404="none_is_404" in flags,
                optional_scope="optional_scope" in flags,
                waits="waits" in flags,
            )
        )
    return operations


OPERATIONS = (
    *_operations(
        Conversation,
        Right.READ,
        """
        info      GET   /conversations/{conversation}                   none_is_404
        head      GET   /conversations/{conversation}/head              none_is_404
        policy    GET   /conversations/{conversation}/policy
        view      GET   /conversations/{conversation}/view
        items     GET   /conversations/{conversation}/items
        branches  GET   /conversations/{conversation}/branches
        log_page  GET   /conversations/{conversation}/log
        transcript  GET   /conversations/{conversation}/transcript
        injected  POST  /conversations/{conversation}/injected          repeatable
        known     GET   /conversations/{conversation}/known
        get       POST  /conversations/{conversation}/message           repeatable none_is_404
        digests   GET   /conversations/{conversation}/digests
        context   POST  /conversations/{conversation}/contexts          repeatable
        contexts  GET   /conversations/{conversation}/contexts
        rebuild   POST  /conversations/{conversation}/contexts/rebuild  repeatable
        expand    POST  /conversations/{conversation}/expand            repeatable
        """,
    ),
    *_operations(
        Conversation,
        Right.WRITE,
        """
        append         POST    /conversations/{conversation}/messages  repeatable
        _retry         POST    /conversations/{conversation}/retries   repeatable
        configure      PATCH   /conversations/{conversation}           repeatable
        finish         POST    /conversations/{conversation}/finish    repeatable
        remember       POST    /conversations/{conversation}/facts
        start_digests  POST    /conversations/{conversation}/digests   repeatable
        pop            POST    /conversations/{conversation}/pop
        rewind         POST    /conversations/{conversation}/rewind
        switch         POST    /conversations/{conversation}/switch
        _fork          POST    /conversations/{conversation}/forks     repeatable
        replace        PUT     /conversations/{conversation}/items
        clear          POST    /conversations/{conversation}/clear
        erase          POST    /conversations/{conversation}/erase     repeatable
        delete         DELETE  /conversations/{conversation}
        """,
    ),
    *_operations(
        Conversation,
        Right.REVIEW,
        """
        forget  POST  /conversations/{conversation}/facts/{fact}/forget
        """,
    ),
    *_operations(
        Memory,
        Right.READ,
        """
        conversations  GET   /conversations  optional_scope
        recall         POST  /recall         repeatable
        around         POST  /around         repeatable
        settings       GET   /settings
        agent          GET   /agents/{agent}  id=agent
        """,
    ),
    *_operations(
        Memory,
        Right.ADMIN,
        """
        scopes             GET     /scopes/{by}
        kept_about         GET     /subjects/{subject}/kept
        subjects           GET     /subjects
        subject            GET     /subjects/{subject}  id=subject none_is_404
        configure_subject  PUT     /subjects/{subject}  repeatable
        configure_agent    PUT     /agents/{agent}      repeatable
        user               GET     /users/{user}        id=user
        configure_user     PUT     /users/{user}        repeatable
        configure_tenant   PUT     /tenant              repeatable
        costs              GET     /costs
        backlog            GET     /backlog
        erase_user         DELETE  /users/{user}
        erase_tenant       DELETE  /tenant
        erase_subject      DELETE  /subjects/{subject}
        wait_for_erasure   POST    /wait/erasure        repeatable waits
        """,
    ),
    *_operations(
        Memory,
        Right.WRITE,
        """
        wait_for_digests  POST  /wait/digests  repeatable waits
        wait_for_index    POST  /wait/index    repeatable waits
        """,
    ),
    *_operations(
        Documents,
        Right.READ,
        """
        list  GET  /documents
        get   GET  /documents/{document}  id=document none_is_404
        """,
    ),
    *_operations(
        Documents,
        Right.WRITE,
        """
        add     POST    /documents             repeatable
        remove  DELETE  /documents/{document}  id=document
        """,
    ),
    *_operations(
        Facts,
        Right.READ,
        """
        list     GET  /facts
        get      GET  /facts/{fact}          id=fact none_is_404
        history  GET  /facts/{fact}/history  id=fact
        sources  GET  /facts/{fact}/sources  id=fact
        replaced  GET  /facts/{fact}/replaced  id=fact
        """,
    ),
    *_operations(
        Facts,
        Right.REVIEW,
        """
        add             POST    /facts                    repeatable
        edit            PATCH   /facts/{fact}             id=fact
        restore         POST    /facts/{fact}/restore     id=fact
        confirm         POST    /facts/{fact}/confirm     id=fact
        share           POST    /facts/{fact}/share       id=fact
        unshare         POST    /facts/{fact}/unshare     id=fact
        set_visibility  PUT     /facts/{fact}/visibility  id=fact
        delete          DELETE  /facts/{fact}             id=fact
        """,
    ),
    *_operations(
        Runs,
        Right.READ,
        """
        list    GET  /conversations/{conversation}/runs
        get     GET  /runs/{run}                         none_is_404
        events  GET  /runs/{run}/events
        """,
    ),
    *_operations(
        Runs,
        Right.WRITE,
        """
        begin  POST  /conversations/{conversation}/runs
        add    POST  /runs/{run}/events
        end    POST  /runs/{run}/end
        """,
    ),
)
"""All but the lists that are streamed: messages of a conversation, exports and imports. The service compares a path
with each in turn, so the most used ones come first."""
