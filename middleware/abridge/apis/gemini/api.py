"""Gemini's own API as upstreams speak it, on the Gemini API and on Vertex AI.

No client of Abridge's speaks it, so that its answers are always translated. The model is in the
path, and the method says whether the answer streams (ai.google.dev: api/generate-content).
"""

from __future__ import annotations

from functools import partial

from abridge.apis.api import UpstreamApi
from abridge.apis.gemini.errors import read_error
from abridge.apis.gemini.history import GeminiHistory
from abridge.apis.gemini.reader import GeminiReader
from abridge.apis.gemini.request import write_request
from abridge.apis.json import objects, string
from abridge.apis.staged import StagedReader
from abridge.core.conversation import Json

GEMINI = UpstreamApi(
    name="gemini",
    title="Gemini",
    path="/models/{model}:generateContent?alt=json",
    stream_path="/models/{model}:streamGenerateContent?alt=sse",
    translating_reader=partial(StagedReader, GeminiReader, alternating=True),
    history=GeminiHistory,
    write_request=write_request,
    read_error=read_error,
    answer_keys=("candidates", "promptFeedback"),
    key_header="x-goog-api-key",
    requires_reasoning=True,
)


# Its lists of models

MODELS_PREFIX = "models/"
"""Begins the names of models in a list; in a request they may be without it."""


def as_openais(body: Json) -> Json:
    """Return a list of models, or one model, in OpenAI's shape; anything else as it is.

    Gemini has `{"models": [{"name": "models/…", "displayName"}]}` (ai.google.dev: api/models).
    Servers that send `data` as well, as llama.cpp's does, have OpenAI's shape already.
    """
    if isinstance(body.get("models"), list) and "data" not in body:
        return {"object": "list", "data": [_as_openais(model) for model in objects(body["models"])]}
    is_model = string(body.get("name")).startswith(MODELS_PREFIX) and "id" not in body
    return _as_openais(body) if is_model else body


def _as_openais(model: Json) -> Json:
    title = string(model.get("displayName"))
    return {
        "id": string(model.get("name")).removeprefix(MODELS_PREFIX),
        "object": "model",
        "created": 0,
        "owned_by": "",
        **({"display_name": title} if title else {}),
    }
