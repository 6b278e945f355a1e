"""What goes over the wire between Hitherto and a model's server, recorded on its way."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from hitherto.core.digests.prompts import CONDENSE_SCHEMA, DIGEST_SCHEMA, digest_schema
from hitherto.core.facts.fact import CATEGORIES
from tests.providers.models.endpoint import Answer, Body, Endpoint

SCHEMAS = (DIGEST_SCHEMA, CONDENSE_SCHEMA, digest_schema(CATEGORIES))

_PATIENCE = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its response, both as JSON."""

    asked: Body
    status: int
    answered: Body

    @property
    def schema(self) -> Any:
        """The schema that was asked for: as OpenAI takes it, or beside "json_object", as llama-cpp-python takes it."""
        asked = self.asked.get("response_format", {})
        return asked.get("json_schema", asked).get("schema")

    @property
    def finish(self) -> str:
        return self.answered["choices"][0]["finish_reason"]

    @property
    def content(self) -> Any:
        """What the model wrote, read as JSON. llama-cpp-python's grammar lets line breaks stand in strings."""
        return json.loads(self.answered["choices"][0]["message"]["content"], strict=False)

    @property
    def tokens(self) -> tuple[int, int]:
        """Those of the prompt and of the answer."""
        usage = self.answered["usage"]
        return usage["prompt_tokens"], usage["completion_tokens"]


class Recorder(Endpoint):
    """Passes each request on to the server at `url` as it is, and its response back; `exchanges` are both."""

    def __init__(self, url: str) -> None:
        super().__init__(self._passed_on)
        self._at = f"{url}/chat/completions"
        self.exchanges: list[Exchange] = []

    def __enter__(self) -> Recorder:
        super().__enter__()
        return self

    def _passed_on(self, body: Body) -> Answer:
        response = httpx.post(self._at, json=body, timeout=_PATIENCE, trust_env=False)
        self.exchanges.append(Exchange(asked=body, status=response.status_code, answered=response.json()))
        return Answer(status=response.status_code, body=response.text)
