"""The APIs that clients speak, by path, and those that upstreams speak, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import unquote

from abridge.wire.api import Api, UpstreamApi
from abridge.wire.chat.asking import question as chat_question
from abridge.wire.chat.attributing import AttributingChat
from abridge.wire.chat.composer import ChatComposer
from abridge.wire.chat.conversation import ChatConversation
from abridge.wire.chat.reader import ChatReader
from abridge.wire.chat.teller import ChatTeller
from abridge.wire.chat.writer import ChatWriter
from abridge.wire.messages.api import MESSAGES
from abridge.wire.responses.asking import question as responses_question
from abridge.wire.responses.attributing import AttributingResponses
from abridge.wire.responses.composer import ResponsesComposer
from abridge.wire.responses.conversation import ResponsesConversation
from abridge.wire.responses.reader import ResponsesReader
from abridge.wire.responses.rounds import RoundsConversation
from abridge.wire.responses.teller import ResponsesTeller
from abridge.wire.responses.writer import ResponsesWriter

CHAT = Api(
    name="chat",
    path="/chat/completions",
    auto=(False, True),
    knows_summary=False,
    stores=False,
    reader=ChatReader,
    writer=ChatWriter,
    conversation=ChatConversation,
    question=chat_question.read_question,
    sealed=lambda _: None,
    composer=ChatComposer,
    attributing=AttributingChat,
    upstream=UpstreamApi(
        name="chat",
        path="/chat/completions",
        teller=ChatTeller,
        conversation=ChatConversation,
        write=chat_question.write_question,
    ),
)
RESPONSES = Api(
    name="responses",
    path="/responses",
    auto=(True, True),
    knows_summary=True,
    stores=True,
    reader=ResponsesReader,
    writer=ResponsesWriter,
    conversation=ResponsesConversation,
    question=responses_question.read_question,
    sealed=responses_question.asks_for_state,
    composer=ResponsesComposer,
    attributing=AttributingResponses,
    upstream=UpstreamApi(
        name="responses",
        path="/responses",
        teller=ResponsesTeller,
        conversation=RoundsConversation,
        write=responses_question.write_question,
    ),
)
APIS = (CHAT, RESPONSES)

UPSTREAM_APIS: Mapping[str, UpstreamApi] = MappingProxyType(
    {api.name: api for api in (CHAT.upstream, RESPONSES.upstream, MESSAGES)}
)
"""The APIs that upstreams speak, by their names in the settings."""


@lru_cache(maxsize=1024)
def api_for(path: str, written: str = "") -> Api | None:
    """Return the API whose endpoint a request's path is, or None.

    Servers merge slashes and resolve dots, some before they decode the client's path (`raw_path`),
    some after it. A path that any of them would take for an endpoint is one.
    """
    ends = _ends(path, written)
    return next((api for api in APIS if any(end.endswith(api.path) for end in ends)), None)


def may_hold_answers(path: str, written: str) -> bool:
    """Return True if a path is an API's endpoint or below it, where stored answers may be."""
    ends = _ends(path, written)
    return any(f"{api.path}/" in f"{end}/" for api in APIS for end in ends)


def _ends(path: str, written: str) -> tuple[str, str]:
    return _resolved(path.split("/")), _resolved(map(unquote, written.split("/")))


def _resolved(segments: Iterable[str]) -> str:
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    return "/" + "/".join(kept)
