"""Chat Completions as an API of clients and of upstreams.

One reader and one writer serve both manners of a response. Where client and upstream speak this API
alike, events carry their frames; else they are translated.
"""

from __future__ import annotations

from abridge.apis.api import Api, RequestEcho, UpstreamApi
from abridge.apis.chat.completion import TranslatedCompletion, UpstreamCompletion
from abridge.apis.chat.framing import OriginalFrames
from abridge.apis.chat.history import ChatHistory
from abridge.apis.chat.reader import ChatReader
from abridge.apis.chat.request import REQUEST_SHAPE, ask_for_usage, read_request, write_request
from abridge.apis.chat.translation import TranslatedEvents
from abridge.apis.chat.writer import ChatWriter
from abridge.apis.display import Display
from abridge.apis.openai import error_body, read_error
from abridge.providers.profile import Profile


def _make_reader(profile: Profile, display: Display, limit: int) -> ChatReader:
    return ChatReader(profile, display, limit, OriginalFrames(obfuscate=display.obfuscate))


def _make_writer(profile: Profile, display: Display) -> ChatWriter:
    return ChatWriter(display, UpstreamCompletion(profile, display))


def _make_translating_reader(profile: Profile, display: Display, limit: int) -> ChatReader:
    return ChatReader(profile, display, limit, TranslatedEvents())


def _make_translating_writer(
    _: Profile, display: Display, echo: RequestEcho, limit: int
) -> ChatWriter:
    return ChatWriter(display, TranslatedCompletion(display, echo, limit))


CHAT = Api(
    name="chat",
    path="/chat/completions",
    default_exposure=(False, True),
    conversation_field="messages",
    has_summary_field=False,
    has_summary_parts=False,
    reader=_make_reader,
    writer=_make_writer,
    history=ChatHistory,
    read_request=read_request,
    request_shape=REQUEST_SHAPE,
    wants_state=lambda _: None,
    translating_writer=_make_translating_writer,
    write_error=error_body,
    effort_field="",
    verbosity_field="verbosity",
    echoed_fields=(),
    ask_for_usage=ask_for_usage,
    upstream=UpstreamApi(
        name="chat",
        path="/chat/completions",
        translating_reader=_make_translating_reader,
        history=ChatHistory,
        write_request=write_request,
        read_error=read_error,
    ),
    fallbacks=("responses",),
)
