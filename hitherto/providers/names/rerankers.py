"""Makes the reranker that the settings name."""

from __future__ import annotations

from hitherto.errors import InvalidSettings
from hitherto.ports.models.model import Model
from hitherto.ports.models.reranker import Reranker
from hitherto.providers.extractive.model import Extractive
from hitherto.settings import Settings

_MODEL = "model"


def reranker_of(settings: Settings, model: Model) -> Reranker | None:
    """The reranker, None if the settings name none; close it with `aclose`. That leaves `model`, the one for digests,
    open.

    Nothing is sent. Raises InvalidSettings if the settings contradict each other, or cannot be used.
    """
    name, url = settings.reranker, settings.reranker_base_url
    if name is None:
        if url is not None:
            raise InvalidSettings(
                "HITHERTO_RERANKER_BASE_URL is set, and no model there; name one with HITHERTO_RERANKER, or leave "
                "it out"
            )
        return None
    if name == _MODEL:
        if isinstance(model, Extractive):
            raise InvalidSettings(
                f"HITHERTO_RERANKER is {_MODEL!r}, and HITHERTO_MODEL is {model.name!r}, which cannot read; name a "
                "model there, or a cross-encoder here"
            )
        if url is not None:
            raise InvalidSettings(
                f"HITHERTO_RERANKER is {_MODEL!r}, the model for digests, and HITHERTO_RERANKER_BASE_URL the address "
                "of another; leave that out, or name the model that is there"
            )
        from hitherto.providers.chat_model_reranker import ChatModelReranker

        return ChatModelReranker(model, timeout=settings.reranker_timeout)
    if url is None:
        raise InvalidSettings(
            f"the cross-encoder {name!r} (HITHERTO_RERANKER) needs the address of its endpoint in "
            "HITHERTO_RERANKER_BASE_URL, e.g. http://localhost:8080, or https://api.jina.ai/v1"
        )
    from hitherto.providers.cross_encoder import CrossEncoder

    key = settings.reranker_key
    return CrossEncoder(
        model=name,
        base_url=url,
        api_key=None if key is None else key.get_secret_value(),
        timeout=settings.reranker_timeout,
    )
