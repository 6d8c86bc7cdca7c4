"""Gemini's lists of models, in OpenAI's shape."""

from __future__ import annotations

from abridge.apis.json import objects, string
from abridge.core.conversation import Json

PREFIX = "models/"
"""Begins the names of models in a list; in a request they may be without it."""


def as_openais(body: Json) -> Json:
    """Return a list of models, or one model, in OpenAI's shape; anything else as it is.

    Gemini has `{"models": [{"name": "models/…", "displayName"}]}` (ai.google.dev: api/models).
    Servers that send `data` as well, as llama.cpp's does, have OpenAI's shape already.
    """
    if isinstance(body.get("models"), list) and "data" not in body:
        return {"object": "list", "data": [_as_openais(model) for model in objects(body["models"])]}
    is_model = string(body.get("name")).startswith(PREFIX) and "id" not in body
    return _as_openais(body) if is_model else body


def _as_openais(model: Json) -> Json:
    title = string(model.get("displayName"))
    return {
        "id": string(model.get("name")).removeprefix(PREFIX),
        "object": "model",
        "created": 0,
        "owned_by": "",
        **({"display_name": title} if title else {}),
    }
