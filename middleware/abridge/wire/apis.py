"""The APIs that clients speak, by the path they call."""

from __future__ import annotations

from abridge.wire.api import Api
from abridge.wire.chat.conversation import ChatConversation
from abridge.wire.chat.reader import ChatReader
from abridge.wire.chat.writer import ChatWriter
from abridge.wire.responses.conversation import ResponsesConversation
from abridge.wire.responses.reader import ResponsesReader
from abridge.wire.responses.writer import ResponsesWriter

CHAT = Api(
    name="chat",
    path="/chat/completions",
    auto=(False, True),
    knows_summary=False,
    reader=ChatReader,
    writer=ChatWriter,
    conversation=ChatConversation,
)
RESPONSES = Api(
    name="responses",
    path="/responses",
    auto=(True, True),
    knows_summary=True,
    reader=ResponsesReader,
    writer=ResponsesWriter,
    conversation=ResponsesConversation,
)
APIS = (CHAT, RESPONSES)


def api_for(path: str) -> Api | None:
    """The API whose endpoint `path` is, or None."""
    return next((api for api in APIS if path.rstrip("/").endswith(api.path)), None)
