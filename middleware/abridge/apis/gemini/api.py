"""Gemini's own API as upstreams speak it, on the Gemini API and on Vertex AI.

No client of Abridge's speaks it, so that its answers are always translated. The model is in the
path, and the method says whether the answer streams (ai.google.dev: api/generate-content).
"""

from __future__ import annotations

from abridge.apis.api import UpstreamApi
from abridge.apis.gemini.errors import read_error
from abridge.apis.gemini.history import GeminiHistory
from abridge.apis.gemini.reader import GeminiReader
from abridge.apis.gemini.request import write_request

GEMINI = UpstreamApi(
    name="gemini",
    path="/models/{model}:generateContent?alt=json",
    stream_path="/models/{model}:streamGenerateContent?alt=sse",
    translating_reader=GeminiReader,
    history=GeminiHistory,
    write_request=write_request,
    read_error=read_error,
    key_header="x-goog-api-key",
    requires_reasoning=True,
)
