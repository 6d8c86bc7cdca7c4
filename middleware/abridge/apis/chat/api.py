"""Chat Completions as an API of clients and of upstreams.

One reader and one writer serve both manners of a response. Where client and upstream speak this API
alike, events carry their frames; else they are translated.
"""

from __future__ import annotations

from functools import partial

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.chat.errors import encode_error_body
from abridge.apis.chat.history import ChatHistory
from abridge.apis.chat.reader import ChatReader
from abridge.apis.chat.request import REQUEST_SHAPE, ask_for_usage, read_request, write_request
from abridge.apis.chat.tools import ChatCallAttribution
from abridge.apis.chat.writer import ChatWriter
from abridge.apis.openai import error_body, read_error

CHAT = Api(
    name="chat",
    path="/chat/completions",
    conversation_field="messages",
    reader=ChatReader,
    writer=ChatWriter,
    history=ChatHistory,
    read_request=read_request,
    request_shape=REQUEST_SHAPE,
    wants_state=lambda _: None,
    write_error=error_body,
    stream_error=encode_error_body,
    attribution=ChatCallAttribution,
    verbosity_field="verbosity",
    ask_for_usage=ask_for_usage,
    carries_images=True,
    upstream=UpstreamApi(
        name="chat",
        title="Chat Completions",
        path="/chat/completions",
        translating_reader=partial(ChatReader, translates=True),
        history=ChatHistory,
        write_request=write_request,
        read_error=read_error,
        answer_keys=("choices",),
        whole_in_stream=(b"data: ", b"\n\ndata: [DONE]\n\n"),
    ),
    fallbacks=("responses",),
)
