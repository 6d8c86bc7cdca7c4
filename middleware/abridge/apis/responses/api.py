"""Responses as an API of clients and of upstreams.

One reader and one writer serve both manners of a response. Where client and upstream speak this API
alike, events carry their frames; else they are translated.
"""

from __future__ import annotations

from functools import partial

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.compaction.responses import RESPONSES_COMPACTION
from abridge.apis.openai import error_body, read_error
from abridge.apis.responses.errors import encode_error_body
from abridge.apis.responses.history import ResponsesHistory
from abridge.apis.responses.reader import ResponsesReader
from abridge.apis.responses.request import REQUEST_SHAPE, read_request, wants_state, write_request
from abridge.apis.responses.shapes import ECHOED
from abridge.apis.responses.writer import ResponsesWriter

RESPONSES = Api(
    name="responses",
    path="/responses",
    default_exposure=(True, True),
    conversation_field="input",
    has_summary_field=True,
    has_summary_parts=True,
    effort_field="reasoning.effort",
    verbosity_field="text.verbosity",
    reader=ResponsesReader,
    writer=lambda _, display, echo, limit: ResponsesWriter(display, echo, limit),
    history=ResponsesHistory,
    read_request=read_request,
    request_shape=REQUEST_SHAPE,
    wants_state=wants_state,
    counts_tokens_at="/responses/input_tokens",
    token_count={"object": "response.input_tokens"},
    compaction=RESPONSES_COMPACTION,
    write_error=error_body,
    stream_error=encode_error_body,
    attribution=None,
    echoed_fields=tuple(ECHOED),
    carries_images=True,
    upstream=UpstreamApi(
        name="responses",
        title="Responses",
        path="/responses",
        translating_reader=partial(ResponsesReader, translates=True),
        history=partial(ResponsesHistory, is_translated=True),
        write_request=write_request,
        read_error=read_error,
        answer_keys=("output",),
        stores_responses=True,
        whole_in_stream=(b'data: {"type": "response.completed", "response": ', b"}\n\n"),
    ),
    fallbacks=("chat",),
)
