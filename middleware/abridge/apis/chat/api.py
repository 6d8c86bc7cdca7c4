"""TODO."""

from __future__ import annotations

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.chat import request as chat_question
from abridge.apis.chat.history import ChatHistory
from abridge.apis.chat.reader import ChatReader
from abridge.apis.chat.translating_reader import ChatTranslatingReader
from abridge.apis.chat.translating_writer import ChatTranslatingWriter
from abridge.apis.chat.writer import ChatWriter
from abridge.attribution.chat import ChatAttributingWriter

CHAT = Api(
    name="chat",
    path="/chat/completions",
    default_exposure=(False, True),
    has_summary_field=False,
    stores_responses=False,
    reader=ChatReader,
    writer=ChatWriter,
    history=ChatHistory,
    read_request=chat_question.read_request,
    wants_state=lambda _: None,
    translating_writer=ChatTranslatingWriter,
    attributing_writer=ChatAttributingWriter,
    upstream=UpstreamApi(
        name="chat",
        path="/chat/completions",
        translating_reader=ChatTranslatingReader,
        history=ChatHistory,
        write_request=chat_question.write_request,
    ),
)
