"""Answers that are one JSON body."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.types import Message

from abridge.apis.errors import TIMEOUT_CODE, UNREADABLE
from abridge.apis.json import parse_object
from abridge.apis.model_names import answered_model
from abridge.core.events import ErrorDetail, Event, ResponseEnded
from abridge.core.language import REASONING
from abridge.http.asgi import BODY_HEADERS, JSON, drop_headers, is_json_by_type, with_type
from abridge.observability.recorder import summary_source
from abridge.pipeline.answers.answer import Answer, AnswerContext
from abridge.pipeline.answers.unread import PassedAnswer, RefusedAnswer
from abridge.pipeline.request import LANGUAGE_HEADER, SUMMARY_HEADER
from abridge.work import Work, in_turns

REPLACED_HEADERS = (*BODY_HEADERS, SUMMARY_HEADER, LANGUAGE_HEADER)
"""Headers of an answer that is rewritten: another Abridge may have told of its own summary."""

_log = logging.getLogger(__name__)


class WholeAnswer(Answer):
    """Buffer a JSON body and rewrite it at its end."""

    def __init__(
        self, start: Message, context: AnswerContext, decode: Callable[[bytes], bytes]
    ) -> None:
        self._start = start
        self._plan = context.plan
        self._client, self._runner = context.client, context.runner
        self._context = context
        self._decode = decode
        self._buffer = bytearray()
        self._replacement: Answer | None = None
        self._work = Work()

    def feed(self, data: bytes) -> None:
        if self._replacement is not None:
            self._replacement.feed(data)
            return
        self._buffer += data
        size = len(self._buffer)
        if size > self._plan.event_limit or not self._plan.room.holds(size):
            self._pass_or_refuse()

    async def end(self, error: ErrorDetail | None = None) -> None:
        if self._replacement is not None:
            await self._replacement.end(error)
        elif error is not None:
            status = 504 if error.code == TIMEOUT_CODE else 502
            self._replacement = RefusedAnswer(self._client, self._plan.errors, error, status)
        else:
            await self._feed_sequencer()

    def emit(self, events: list[Event]) -> None:
        for event in events if self._replacement is None else ():
            if not isinstance(event, ResponseEnded):
                self._plan.writer.note(event)

    async def complete(self, ended: ResponseEnded) -> None:
        """Write the body, rewritten, in place of upstream's."""
        if self._replacement is not None:
            return
        body = await self._work.run(self._rewritten, ended)
        if body is None:
            self._pass_or_refuse(ended.error)
            self._client.close()
            return
        headers = drop_headers(self._start["headers"], REPLACED_HEADERS)
        headers = headers if is_json_by_type(headers) else with_type(headers, JSON)
        headers = [
            *headers,
            *self._plan.errors.id_headers(headers),
            (b"content-length", str(len(body)).encode()),
            *self._summary_headers(ended),
        ]
        status = self._start["status"] if ended.error is None else 502
        self._client.start({**self._start, "status": status, "headers": headers})
        self._client.write(body)
        self._client.close()

    @property
    def passed_ok(self) -> bool | None:
        return self._replacement.passed_ok if self._replacement is not None else None

    def _summary_headers(self, ended: ResponseEnded) -> list[tuple[bytes, bytes]]:
        """Return headers that describe the summary: its source, the language it was to be written
        in, and the time it took."""
        runner = self._runner
        made, held = runner.summary_seconds * 1000, runner.sequencer.held_seconds * 1000
        source = summary_source(ended.summaries.values(), self._plan.summarizer.name)
        language = _written_language(source, self._plan.summary_plan.language)
        return [
            (SUMMARY_HEADER, source.encode()),
            *([(LANGUAGE_HEADER, language.encode())] if language is not None else []),
            (b"server-timing", f"summary;dur={made:.1f}, held;dur={held:.1f}".encode()),
        ]

    async def _feed_sequencer(self) -> None:
        try:
            self._work.add(self._buffer)
            body = await self._work.run(self._decode, bytes(self._buffer))
            self._work.add(body)
            if self._plan.plan_for is not None:
                model = await self._work.run(lambda: answered_model(parse_object(body) or {}))
                self._plan = self._context.name_model(model)
            events = await self._work.run(self._plan.reader.read_whole, body)
            async for batch in in_turns(events):
                self._runner.feed(batch)
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            _log.warning("an answer could not be read: %s", type(error).__name__)
            self._pass_or_refuse()
            self._client.close()

    def _rewritten(self, event: ResponseEnded) -> bytes | None:
        """Return the rewritten body, None where it could not be read or written."""
        try:
            return self._plan.writer.write_whole(event) if event.ok else None
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            _log.warning("an answer could not be written: %s", type(error).__name__)
            return None

    def _pass_or_refuse(self, error: ErrorDetail | None = None) -> None:
        """Replace an answer that cannot be read: pass it on as it came, or send an error where
        nothing unread may get through."""
        if self._plan.hide_unread:
            is_shown = error is not None and error.message and not self._plan.display.hides_raw
            shown_error = error if error is not None and is_shown else UNREADABLE
            self._replacement = RefusedAnswer(self._client, self._plan.errors, shown_error)
            return
        passed = self._replacement = PassedAnswer(self._start, self._client)
        passed.passed_ok = passed.passed_ok and error is None
        passed.feed(bytes(self._buffer))


def _written_language(source: str, chosen: str | None) -> str | None:
    """Return the language of a summary from a source: a tag or `reasoning`, None if Abridge did not
    make it. What is copied has the reasoning's, whatever was chosen."""
    if source == "extractive":
        return REASONING
    return chosen or REASONING if source in ("model", "partial") else None
