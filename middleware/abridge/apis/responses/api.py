"""TODO."""

from __future__ import annotations

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.responses import request as responses_question
from abridge.apis.responses.history import ResponsesHistory, TranslatedResponsesHistory
from abridge.apis.responses.reader import ResponsesReader
from abridge.apis.responses.translating_reader import ResponsesTranslatingReader
from abridge.apis.responses.translating_writer import ResponsesTranslatingWriter
from abridge.apis.responses.writer import ResponsesWriter
from abridge.attribution.responses import ResponsesAttributingWriter

RESPONSES = Api(
    name="responses",
    path="/responses",
    default_exposure=(True, True),
    has_summary_field=True,
    stores_responses=True,
    reader=ResponsesReader,
    writer=ResponsesWriter,
    history=ResponsesHistory,
    read_request=responses_question.read_request,
    wants_state=responses_question.wants_state,
    translating_writer=ResponsesTranslatingWriter,
    attributing_writer=ResponsesAttributingWriter,
    upstream=UpstreamApi(
        name="responses",
        path="/responses",
        translating_reader=ResponsesTranslatingReader,
        history=TranslatedResponsesHistory,
        write_request=responses_question.write_request,
    ),
)
