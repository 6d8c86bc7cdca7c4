"""The row of Responses, an API that clients and upstreams speak."""

from __future__ import annotations

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.openai import error_body, read_error
from abridge.apis.responses.history import ResponsesHistory, TranslatedResponsesHistory
from abridge.apis.responses.reader import ResponsesReader
from abridge.apis.responses.request import read_request, wants_state, write_request
from abridge.apis.responses.translating_reader import ResponsesTranslatingReader
from abridge.apis.responses.translating_writer import ResponsesTranslatingWriter
from abridge.apis.responses.writer import ResponsesWriter

RESPONSES = Api(
    name="responses",
    path="/responses",
    default_exposure=(True, True),
    has_summary_field=True,
    stores_responses=True,
    effort_field="reasoning.effort",
    verbosity_field="text.verbosity",
    reader=ResponsesReader,
    writer=ResponsesWriter,
    history=ResponsesHistory,
    read_request=read_request,
    wants_state=wants_state,
    translating_writer=ResponsesTranslatingWriter,
    write_error=error_body,
    upstream=UpstreamApi(
        name="responses",
        path="/responses",
        translating_reader=ResponsesTranslatingReader,
        history=TranslatedResponsesHistory,
        write_request=write_request,
        read_error=read_error,
    ),
    fallbacks=("chat",),
)
