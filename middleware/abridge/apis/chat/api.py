"""The row of Chat Completions, an API that clients and upstreams speak."""

from __future__ import annotations

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.chat.history import ChatHistory
from abridge.apis.chat.reader import ChatReader
from abridge.apis.chat.request import read_request, write_request
from abridge.apis.chat.translating_reader import ChatTranslatingReader
from abridge.apis.chat.translating_writer import ChatTranslatingWriter
from abridge.apis.chat.writer import ChatWriter
from abridge.apis.openai import error_body, read_error

CHAT = Api(
    name="chat",
    path="/chat/completions",
    default_exposure=(False, True),
    has_summary_field=False,
    stores_responses=False,
    effort_field="",
    verbosity_field="verbosity",
    reader=ChatReader,
    writer=ChatWriter,
    history=ChatHistory,
    read_request=read_request,
    wants_state=lambda _: None,
    translating_writer=ChatTranslatingWriter,
    write_error=error_body,
    upstream=UpstreamApi(
        name="chat",
        path="/chat/completions",
        translating_reader=ChatTranslatingReader,
        history=ChatHistory,
        write_request=write_request,
        read_error=read_error,
    ),
    fallbacks=("responses",),
)
