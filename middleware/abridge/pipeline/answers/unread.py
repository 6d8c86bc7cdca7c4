"""Answers that are not read: passed on as they came, or replaced by an error."""

from __future__ import annotations

from functools import partial

from starlette.types import Message

from abridge.apis.errors import UNREADABLE
from abridge.apis.json import dumps, parse_object
from abridge.core.events import ErrorDetail
from abridge.http.asgi import decoder_for
from abridge.pipeline.answers.answer import Answer, AnswerContext
from abridge.pipeline.answers.error_writer import ErrorWriter
from abridge.pipeline.client import Client
from abridge.work import Work

ERROR_FIELDS = ("type", "error", "request_id")
"""Fields of an error body on any API."""


class PassedAnswer(Answer):
    """Pass the response on as it came. If it breaks off, so does the client's."""

    passed_ok = True

    def __init__(self, start: Message, client: Client) -> None:
        self._client = client
        self.passed_ok = start["status"] < 400
        client.start(start)

    def feed(self, data: bytes) -> None:
        self._client.write(data)

    async def end(self, error: ErrorDetail | None = None) -> None:
        self.passed_ok = self.passed_ok and error is None
        self._client.close(complete=error is None)


class TranslatedError(Answer):
    """Translate upstream's error response to the error shape of the client's API; where reasoning
    is hidden, leave out what may hold some of it."""

    passed_ok = False

    def __init__(self, start: Message, context: AnswerContext) -> None:
        self._start = start
        self._context = context
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        size = len(self._buffer)
        plan = self._context.plan
        if size <= plan.event_limit and plan.room.holds(size + len(data)):
            self._buffer += data

    async def end(self, error: ErrorDetail | None = None) -> None:  # noqa: ARG002 -- sends what it has
        looks_through_request = self._context.plan.display.hides_raw
        work = Work(heavy=True) if looks_through_request else Work.on(self._buffer)
        start, body = await work.run(self._told)
        self._context.client.start(start)
        self._context.client.write(body)
        self._context.client.close()

    def _told(self) -> tuple[Message, bytes]:
        plan, start = self._context.plan, self._start
        errors, decode = plan.errors, decoder_for(start["headers"], plan.event_limit)
        tell = errors.retell if plan.display.hides_raw else partial(_translate, errors)
        try:
            return tell(start, decode(bytes(self._buffer)))
        except (ValueError, RecursionError):
            body = errors.write(UNREADABLE.message, start["status"], code=UNREADABLE.code)[1]
            return tell(start, body)


class RefusedAnswer(Answer):
    """Send an error of Abridge's in place of the answer.

    Used where there is no answer, or one that cannot be read while raw reasoning must be hidden.
    """

    def __init__(
        self,
        client: Client,
        errors: ErrorWriter,
        error: ErrorDetail = UNREADABLE,
        status: int = 502,
    ) -> None:
        start, body = errors.write(error.message, status, code=error.code)
        client.start(start)
        client.write(body)
        client.close()


def _translate(errors: ErrorWriter, start: Message, body: bytes) -> tuple[Message, bytes]:
    translated = _only_error(errors.translate(start, body))
    return errors.pass_on(start, translated), translated


def _only_error(body: bytes) -> bytes:
    """Strip an error body to its error.

    What stands beside it, or within it in the error of another Abridge, may be an answer that is
    not for the client.
    """
    parsed = parse_object(body) or {}
    if "error" not in parsed:
        return body
    fields = {name: parsed[name] for name in ERROR_FIELDS if name in parsed}
    if isinstance(fields["error"], dict):
        fields["error"] = {
            key: fields["error"][key] for key in fields["error"] if key != "response"
        }
    return body if fields == parsed else dumps(fields)
