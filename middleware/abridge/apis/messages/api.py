"""Anthropic Messages as an API of clients and of upstreams.

One reader and one writer serve both manners of a response. Where client and upstream speak this API
alike, events carry their frames; else they are translated.
"""

from __future__ import annotations

from functools import partial

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.compaction.messages import MESSAGES_COMPACTION
from abridge.apis.display import Display
from abridge.apis.messages.errors import encode_error_body, error_body, read_error
from abridge.apis.messages.history import MessagesHistory
from abridge.apis.messages.reader import MessagesReader
from abridge.apis.messages.reasoning import ask_to_think, read_wish, wants_progress
from abridge.apis.messages.request import REQUEST_SHAPE, read_request, write_request
from abridge.apis.messages.tools import follow_calls
from abridge.apis.messages.writer import MessagesWriter, TranslatedMessagesWriter
from abridge.apis.protocols import RequestEcho
from abridge.apis.staged import StagedReader
from abridge.providers.profile import Profile


def _make_writer(
    _: Profile, display: Display, echo: RequestEcho | None, limit: int
) -> MessagesWriter | TranslatedMessagesWriter:
    if echo is None:
        return MessagesWriter(display)
    return TranslatedMessagesWriter(display, echo, limit)


MESSAGES = Api(
    name="messages",
    path="/messages",
    endpoint="/v1/messages",
    counts_tokens_at="/v1/messages/count_tokens",
    conversation_field="messages",
    reader=partial(StagedReader, MessagesReader, alternating=False),
    writer=_make_writer,
    history=MessagesHistory,
    read_request=read_request,
    request_shape=REQUEST_SHAPE,
    wants_state=lambda _: None,
    compaction=MESSAGES_COMPACTION,
    write_error=error_body,
    stream_error=encode_error_body,
    attribution=follow_calls,
    effort_field="output_config.effort",
    other_efforts={
        "none": {"thinking": {"type": "disabled"}},
        "minimal": {"output_config": {"effort": "low"}},
    },
    upstream=UpstreamApi(
        name="messages",
        title="Messages",
        path="/messages",
        translating_reader=partial(
            StagedReader, partial(MessagesReader, translates=True), alternating=True
        ),
        history=partial(MessagesHistory, is_translated=True),
        write_request=write_request,
        read_error=read_error,
        answer_keys=("content",),
        headers={"anthropic-version": "2023-06-01"},
        key_header="x-api-key",
        header_prefix="anthropic-",
        query_names=frozenset({"beta"}),  # of the SDKs' beta resource
        requires_reasoning=True,
        whole_in_stream=(
            b'data: {"type": "message_start", "message": ',
            b'}\n\ndata: {"type": "message_stop"}\n\n',
        ),
    ),
    fallbacks=("chat", "responses"),
    read_wish=read_wish,
    wants_progress=wants_progress,
    wish_needle=b'"thinking"',
    reasons_on_request=True,
    ask_to_think=ask_to_think,
    ends_with_text=True,  # clients take the last block for the result
    returns_signatures=True,
    statuses={503: 529},
    request_id_header=b"request-id",
)
