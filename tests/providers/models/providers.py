"""The providers as they answer on the wire: what each looks at first, what it says then, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hitherto.ports.models import Model
from hitherto.providers.anthropic import Anthropic
from hitherto.providers.azure import AzureOpenAI
from hitherto.providers.ollama import Ollama
from hitherto.providers.openai_compatible.model import OpenAICompatible
from tests.providers.models.endpoint import Answer, Body, Endpoint, said

KEY = "sk-quire-lane-7f3a"
MODEL = "small"
VERSION = "2024-10-21"


def error(status: int, body: object, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, body=json.dumps(body), headers=named)


class OpenAI:
    """api.openai.com."""

    name = "openai"
    path = "/v1/chat/completions"
    base_url = "/v1"
    bound = "max_tokens"
    make: Callable[..., Model] = staticmethod(OpenAICompatible)

    def model(self, root: str, **options: Any) -> Model:
        chosen: dict[str, Any] = {"model": MODEL, "base_url": root + self.base_url, "api_key": KEY, "timeout": 5}
        return self.make(**{**chosen, **options})

    def objection(self, path: str, body: Body, headers: Mapping[str, str]) -> Answer | None:
        if path != self.path:
            return self.failed(404, f"Invalid URL (POST {path})", "invalid_request_error", None)
        if headers.get("authorization") != f"Bearer {KEY}":
            return self.wrong_key(headers.get("authorization", "").removeprefix("Bearer "))
        return self.unknown_model(body["model"]) if body.get("model", MODEL) != MODEL else None

    def said(self, text: str | None, *, cut_short: bool = False) -> Answer:
        return said(text, finish="length" if cut_short else "stop")

    def texts(self, body: Body) -> tuple[str, str]:
        """What a request says to the model: the instructions and the user's part."""
        system, user = body["messages"]
        assert (system["role"], user["role"]) == ("system", "user")
        return system["content"], user["content"]

    def schema(self, body: Body) -> Any:
        assert body["response_format"]["type"] == "json_schema"
        return body["response_format"]["json_schema"]["schema"]

    def failed(self, status: int, message: str, kind: str, code: str | None, **headers: str) -> Answer:
        return error(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, **headers)

    def wrong_key(self, key: str) -> Answer:
        says = f"Incorrect API key provided: {key}. You can find your API key in your account."
        return self.failed(401, says, "invalid_request_error", "invalid_api_key")

    def unknown_model(self, model: str) -> Answer:
        says = f"The model `{model}` does not exist or you do not have access to it."
        return self.failed(404, says, "invalid_request_error", "model_not_found")

    def busy(self, **headers: str) -> Answer:
        says = "Rate limit reached for small in organization org-1 on requests per min (RPM): Limit 3, Used 3."
        return self.failed(429, says, "requests", "rate_limit_exceeded", **headers)

    def without_credit(self) -> Answer:
        says = "You exceeded your current quota, please check your plan and billing details."
        return self.failed(429, says, "insufficient_quota", "insufficient_quota")

    def broken(self, status: int, **headers: str) -> Answer:
        says = "The server had an error while processing your request. Sorry about that!"
        return self.failed(status, says, "server_error", None, **headers)


class Compatible(OpenAI):
    """vLLM behind a gateway, whose errors have no envelope."""

    name = "compatible"
    path = "/llm/v1/chat/completions"
    base_url = "/llm/v1"

    def failed(self, status: int, message: str, kind: str, code: str | None, **headers: str) -> Answer:
        flat = {"object": "error", "message": message, "type": kind, "param": None, "code": code or status}
        return error(status, flat, **headers)


class OllamaHere(OpenAI):
    """Ollama's OpenAI-compatible API, which takes any key."""

    name = "ollama"
    base_url = ""
    make = staticmethod(Ollama)

    def objection(self, path: str, body: Body, headers: Mapping[str, str]) -> Answer | None:
        if path != self.path:
            return Answer(status=404, body="404 page not found", headers={"Content-Type": "text/plain"})
        if headers.get("authorization") == "Bearer wrong":  # a proxy in front of it
            return Answer(status=401, body='{"error": "unauthorized"}')
        return self.unknown_model(body["model"]) if body["model"] != MODEL else None

    def unknown_model(self, model: str) -> Answer:
        return self.failed(404, f'model "{model}" not found, try pulling it first', "not_found_error", None)

    def broken(self, status: int, **headers: str) -> Answer:
        return self.failed(status, "model runner has unexpectedly stopped", "api_error", None, **headers)


class Azure(OpenAI):
    """An Azure resource, asked through the API that has versions."""

    name = "azure"
    path = f"/openai/deployments/{MODEL}/chat/completions?api-version={VERSION}"
    base_url = "/"
    bound = "max_completion_tokens"
    make = staticmethod(AzureOpenAI)

    def model(self, root: str, **options: Any) -> Model:
        return super().model(root, **{"api_version": VERSION, **options})

    def objection(self, path: str, body: Body, headers: Mapping[str, str]) -> Answer | None:
        if headers.get("api-key") != KEY:
            return self.wrong_key(headers.get("api-key", ""))
        if path in (self.path, self.path.replace(f"/{MODEL}/", "/smal/")):
            return None if path == self.path and body["model"] == MODEL else self.unknown_model("smal")
        return error(404, {"error": {"code": "404", "message": "Resource not found"}})

    def failed(self, status: int, message: str, kind: str, code: str | None, **headers: str) -> Answer:
        return error(status, {"error": {"code": code or str(status), "message": message}}, **headers)

    def wrong_key(self, key: str) -> Answer:
        return self.failed(401, "Access denied due to invalid subscription key or wrong API endpoint.", "", "401")

    def unknown_model(self, model: str) -> Answer:
        return self.failed(404, "The API deployment for this resource does not exist.", "", "DeploymentNotFound")

    def busy(self, **headers: str) -> Answer:
        says = "Requests to the ChatCompletions_Create Operation have exceeded call rate limit. Please retry."
        return self.failed(429, says, "", "429", **headers)

    def broken(self, status: int, **headers: str) -> Answer:
        return self.failed(status, "Backend returned unexpected response.", "", "InternalServerError", **headers)


class AzureNewer(Azure):
    """An Azure resource, asked through the newer API, which takes OpenAI's own header."""

    name = "azure-v1"
    path = "/openai/v1/chat/completions"

    def model(self, root: str, **options: Any) -> Model:
        return super().model(root, **{"api_version": None, **options})

    def objection(self, path: str, body: Body, headers: Mapping[str, str]) -> Answer | None:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        return super().objection(path, body, {**headers, "api-key": token})


class AnthropicApi(OpenAI):
    """api.anthropic.com."""

    name = "anthropic"
    path = "/v1/messages"
    base_url = ""
    make = staticmethod(Anthropic)

    def objection(self, path: str, body: Body, headers: Mapping[str, str]) -> Answer | None:
        if "anthropic-version" not in headers:
            return self.failed(400, "anthropic-version: header is required", "invalid_request_error", None)
        # The API takes a key in either; which of them is sent is up to the SDK.
        key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return super().objection(path, body, {"authorization": f"Bearer {key}"})

    def said(self, text: str | None, *, cut_short: bool = False) -> Answer:
        content = [] if text is None else [{"type": "text", "text": text}]
        return message(*content, stop_reason="max_tokens" if cut_short else "end_turn")

    def texts(self, body: Body) -> tuple[str, str]:
        (user,) = body["messages"]
        assert user["role"] == "user"
        return body["system"], user["content"]

    def schema(self, body: Body) -> Any:
        assert body["output_config"]["format"]["type"] == "json_schema"
        return body["output_config"]["format"]["schema"]

    def failed(self, status: int, message: str, kind: str, code: str | None, **headers: str) -> Answer:
        body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
        return error(status, body, **headers)

    def wrong_key(self, key: str) -> Answer:
        return self.failed(401, "invalid x-api-key", "authentication_error", None)

    def unknown_model(self, model: str) -> Answer:
        return self.failed(404, f"model: {model}", "not_found_error", None)

    def busy(self, **headers: str) -> Answer:
        return self.failed(429, "This request would exceed your rate limit.", "rate_limit_error", None, **headers)

    def without_credit(self) -> Answer:
        return self.failed(402, "Your credit balance is too low to access the API.", "billing_error", None)

    def broken(self, status: int, **headers: str) -> Answer:
        kind = "overloaded_error" if status == 529 else "api_error"
        return self.failed(status, "Overloaded" if status == 529 else "Internal server error", kind, None, **headers)


def message(*content: object, **changed: object) -> Answer:
    """A message as Anthropic sends it."""
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 20,
            "cache_creation_input_tokens": 7,
            "cache_read_input_tokens": 64,
            "output_tokens": 17,
            "service_tier": "standard",
        },
        **changed,
    }
    return Answer(body=json.dumps(body))


class Service(Endpoint):
    """`provider` on 127.0.0.1: gives `answers` to a request that it has no objection to."""

    def __init__(self, provider: OpenAI, *answers: Answer | Callable[[Body], Answer]) -> None:
        super().__init__(*answers, path=None)
        self._provider = provider

    def answer(self, path: str, body: Body, headers: dict[str, str]) -> Answer:
        given = super().answer(path, body, headers)
        return self._provider.objection(path, body, headers) or given


PROVIDERS = [OpenAI(), Compatible(), OllamaHere(), Azure(), AzureNewer(), AnthropicApi()]
