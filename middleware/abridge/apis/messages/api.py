"""The row of Anthropic Messages, an API that upstreams speak."""

from __future__ import annotations

from abridge.apis.api import UpstreamApi
from abridge.apis.messages.errors import read_error
from abridge.apis.messages.history import MessagesHistory
from abridge.apis.messages.reader import MessagesReader
from abridge.apis.messages.request import write_request

MESSAGES = UpstreamApi(
    name="messages",
    path="/messages",
    translating_reader=MessagesReader,
    history=MessagesHistory,
    write_request=write_request,
    read_error=read_error,
    headers={"anthropic-version": "2023-06-01"},
    key_header="x-api-key",
)
