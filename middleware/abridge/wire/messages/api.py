"""The table entry of the Anthropic Messages API."""

from __future__ import annotations

from abridge.wire.api import UpstreamApi
from abridge.wire.messages.asking.question import write_question
from abridge.wire.messages.conversation import MessagesConversation
from abridge.wire.messages.errors import say_problem
from abridge.wire.messages.reader import MessagesReader

MESSAGES = UpstreamApi(
    name="messages",
    path="/messages",
    teller=MessagesReader,
    conversation=MessagesConversation,
    write=write_question,
    problem=say_problem,
    headers={"anthropic-version": "2023-06-01"},
    key_header="x-api-key",
)
