"""Turns what ends a run into Hitherto's errors, without the endpoint's text: that may quote the request."""

from __future__ import annotations

from agents.exceptions import AgentsException, MaxTurnsExceeded
from openai import APIConnectionError, APIStatusError, OpenAIError

from hitherto.errors import (
    HithertoError,
    InvalidModelAnswer,
    ModelError,
    ModelRateLimited,
    ModelRejected,
    ModelUnavailable,
)
from hitherto.providers.endpoints.retry_after import retry_after


def failure_of(error: BaseException) -> HithertoError | None:  # noqa: PLR0911 (a case each)
    """The error for what `run_agent` has raised; None for what is no fault of the agent's model."""
    match error:
        case HithertoError():
            return error
        case APIConnectionError():
            return ModelUnavailable("the agent's model did not answer; see whether its endpoint can be reached")
        case APIStatusError(status_code=429):
            wait = retry_after(error.response.headers)
            return ModelRateLimited("the agent's model takes no more requests for now (429)", retry_after=wait)
        case APIStatusError(status_code=status) if status in (408, 409) or status >= 500:
            wait = retry_after(error.response.headers)
            return ModelUnavailable(f"the agent's model is failing ({status}); try again later", retry_after=wait)
        case APIStatusError(status_code=status):
            return ModelRejected(f"the agent's model refused the request ({status}); the run's last event says why")
        case MaxTurnsExceeded():
            return ModelError("the agent's model was asked as often as its configuration allows, and had no answer")
        case AgentsException() | OpenAIError():
            name = type(error).__name__
            return InvalidModelAnswer(
                f"the agent's model gave no usable answer ({name}); the run's last event says why"
            )
        case _:
            return None
