"""The APIs that clients speak, by the path they call."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote

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


@lru_cache(maxsize=1024)
def api_for(path: str, written: str = "") -> Api | None:
    """The API whose endpoint a request's path is, or None.

    Servers merge slashes and resolve dots, some before they decode what the client has `written`,
    others after: what any of them would take for an endpoint is one.
    """
    ends = _resolved(path.split("/")), _resolved(map(unquote, written.split("/")))
    return next((api for api in APIS if any(end.endswith(api.path) for end in ends)), None)


def _resolved(segments: Iterable[str]) -> str:
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return "/" + "/".join(kept)
