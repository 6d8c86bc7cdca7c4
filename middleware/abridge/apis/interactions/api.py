"""Gemini's Interactions API as upstreams speak it, beside generateContent (`apis/gemini/`).

No client of Abridge's speaks it, so that its answers are always translated. Google could keep the
conversation, and be told `previous_interaction_id`; here the client has it, and each request says
all of it, with `store: false` (ai.google.dev: gemini-api/docs/interactions).
"""

from __future__ import annotations

from functools import partial

from abridge.apis.api import UpstreamApi
from abridge.apis.interactions.errors import read_error
from abridge.apis.interactions.history import InteractionsHistory
from abridge.apis.interactions.reader import InteractionsReader
from abridge.apis.interactions.request import write_request
from abridge.apis.staged import StagedReader

INTERACTIONS = UpstreamApi(
    name="interactions",
    title="Interactions",
    path="/interactions",
    translating_reader=partial(StagedReader, InteractionsReader, alternating=True),
    history=InteractionsHistory,
    write_request=write_request,
    read_error=read_error,
    answer_keys=("steps",),
    headers={"api-revision": "2026-05-20"},  # as google-genai sends it: that with steps
    key_header="x-goog-api-key",
    requires_reasoning=True,
    whole_in_stream=(b'data: {"event_type": "interaction.completed", "interaction": ', b"}\n\n"),
)
