"""One engaged request: run the application, sequence its response, write it to the client.

The application runs in the request's own task, so that context variables, cancel scopes and
exceptions behave as they would without Abridge. Child tasks run beside it: one that sends to the
client, one for each summary part being written, and one that waits for the client to disconnect,
unless the server tells that by a call. When the client leaves, the application is notified and
everything else stops; when the request is cancelled, all tasks are cancelled together.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.apis.json import begins_object
from abridge.apis.sse import begins_stream
from abridge.core.events import AnswerFault, ErrorDetail, Event, ResponseEnded
from abridge.core.sequencer import Sequencer
from abridge.errors import AttemptFailed, UpstreamBroken
from abridge.http.asgi import (
    EVENT_STREAM,
    can_decode,
    decoder_for,
    is_json_by_type,
    media_type,
    without_trailers,
)
from abridge.observability.record import BACKGROUND, CANCELLED, SHUTTING_DOWN, cancellation_cause
from abridge.observability.recorder import ExchangeRecorder
from abridge.pipeline.answers.answer import Answer, AnswerContext
from abridge.pipeline.answers.error_writer import error_of
from abridge.pipeline.answers.stream import StreamAnswer, UnfoldedAnswer
from abridge.pipeline.answers.unread import PassedAnswer, RefusedAnswer, TranslatedError
from abridge.pipeline.answers.whole import WholeAnswer
from abridge.pipeline.client import Client, Clock
from abridge.pipeline.early_head import EARLY_HEAD, EarlyHead
from abridge.pipeline.exchange_plan import ExchangePlan
from abridge.pipeline.summary_runner import SummaryRunner
from abridge.work import LIGHT_BYTES, Work

ANSWER_UNFINISHED = ErrorDetail(
    "upstream_error", "The application stopped before its answer was complete."
)

SERVER_STOPPING = ErrorDetail("upstream_error", "The server is shutting down.")

REQUEST_CANCELLED = ErrorDetail(CANCELLED, "The request was cancelled.")

CANCELLED_SEND_SECONDS = 1.0
"""Seconds in which a cancelled request may still send its client the end of the answer."""

_log = logging.getLogger(__name__)


class Exchange:
    """Run one request according to its plan."""

    def __init__(
        self, plan: ExchangePlan, recorder: ExchangeRecorder, receive: Receive, send: Send
    ) -> None:
        self._given_plan = plan
        self._recorder = recorder
        self._clock = Clock()
        self._client = Client(receive, send, self._clock)
        self._start: Message | None = None  # of an answer that is not chosen yet
        self._unread = b""  # what has come of its body
        self._answer: Answer | None = None
        self._answer_bytes = 0
        self._body_complete = False
        self._is_alone = False  # nobody waits for signs of life
        self._early_head: EarlyHead | None = None

    async def run(self, app: ASGIApp, scope: Scope, body: bytes) -> None:
        """Answer the request. Re-raises the application's exception once the client has its
        answer."""
        self._client.receive.body = body
        self._is_alone = bool(scope.get(BACKGROUND))
        self._early_head = scope.get(EARLY_HEAD)
        failure: Exception | None = None
        try:
            async with _RequestTasks() as tasks:
                self._set_up(tasks)
                self._client.listen(tasks)
                sending = tasks.create_task(self._client.run())
                try:
                    failure = await self._call_app(app, scope)
                    await self._finish(None if failure is None else error_of(failure))
                    await asyncio.wait([sending])
                except asyncio.CancelledError as error:
                    await self._abort(cancellation_cause(error))
                    await asyncio.wait([sending], timeout=CANCELLED_SEND_SECONDS)
                    raise
                self._summary_runner.stop()
                self._client.detach()
        finally:
            self._client.detach()
            self._summary_runner.stop()
            self._close(failure)
        if failure is not None and not self._is_handled(failure):
            raise failure

    @property
    def _plan(self) -> ExchangePlan:
        """The plan in force."""
        return self._context.plan

    @property
    def _sequencer(self) -> Sequencer:
        return self._summary_runner.sequencer

    @property
    def missed_deadline(self) -> bool:
        """True if the answer waited in vain for its summary."""
        return self._sequencer.missed_deadline

    @property
    def summarized(self) -> bool:
        return self._summary_runner.summary_seconds > 0

    def _set_up(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        plan = self._given_plan
        self._summary_runner = SummaryRunner(
            Sequencer(plan.summary_plan),
            guard=plan.guard,
            summarizer=plan.summarizer,
            tasks=tasks,
            clock=self._clock,
            emit=self._emit,
            recorder=self._recorder,
        )
        self._context = AnswerContext(plan, self._client, self._summary_runner)
        self._client.on_sent = self._summary_runner.set_timer
        self._client.on_leave = self._summary_runner.stop

    # The application's side

    async def _call_app(self, app: ASGIApp, scope: Scope) -> Exception | None:
        """Run the application; return what it raised, since the client is answered first."""
        try:
            await app(scope, self._client.receive, self._send)
        except Exception as error:  # noqa: BLE001 -- any may be the application's
            return error
        return None

    async def _send(self, message: Message) -> None:
        if self._client.departed:
            raise OSError("the client has left")
        if message["type"] == "http.response.start":
            self._start = without_trailers(message)
            self._feed(b"")
        elif message["type"] == "http.response.body":
            if self._summary_runner.reading is not None:
                await self._summary_runner.wait_for_reading()
            is_last = not message.get("more_body", False)
            self._feed(message.get("body", b""), is_last=is_last)
            if is_last and self._answer is not None:
                await self._end_body(self._answer)
            if self._summary_runner.is_full and not self._body_complete:
                await self._summary_runner.wait_for_room()
            if self._client.is_behind:
                await self._client.drain()

    def write_at_once(self, body: bytes) -> bool:
        """Take a piece of the body without awaiting, unless that is due; see `http/asgi.py`."""
        client, unchosen = self._client, self._answer is None
        if unchosen or client.departed or client.is_behind or self._summary_runner.is_full:
            return False
        self._feed(body)
        return True

    # The answer

    def _feed(self, body: bytes, *, is_last: bool = False) -> None:
        self._answer_bytes += len(body)
        answer = self._answer
        if answer is None and self._start is not None:
            body = self._unread = self._unread + body
            answer = self._answer = self._begin_answer(self._start, is_last=is_last)
        if answer is None:
            return
        try:
            answer.feed(body)
        except Exception:
            self._break_off()
            raise

    def _begin_answer(self, start: Message, *, is_last: bool) -> Answer | None:
        """Begin the answer once it is known whether it is a stream or JSON: by its type, or its
        first bytes where that says otherwise."""
        is_typed = media_type(start["headers"]) == EVENT_STREAM
        is_stream = is_typed or begins_stream(self._unread)
        if is_stream is None and not is_last:
            return None
        is_read = is_stream or is_json_by_type(start["headers"]) or begins_object(self._unread)
        self._unread, self._start = b"", None
        promised = self._early_head is not None and self._early_head.promises_stream
        read = StreamAnswer if is_stream else UnfoldedAnswer if promised else WholeAnswer
        answer = _choose_answer(start, self._context, read if is_read else None)
        self._recorder.record.stream = isinstance(answer, StreamAnswer)
        if not self._is_alone:
            self._client.keep_alive = answer.keep_alive
        return answer

    async def _end_body(self, answer: Answer) -> None:
        try:
            await answer.end()
        except Exception:
            self._break_off()
            raise
        self._body_complete = True
        self._client.receive.end()

    def _break_off(self) -> None:
        """End the answer after an error of our own: the client is not left waiting."""
        self._body_complete = True
        self._client.close(complete=False)

    def _emit(self, events: list[Event]) -> None:
        plan = self._context.plan
        self._recorder.note(events)
        plan.summary_tracker.note(events)
        if self._summary_runner.sequencer.done:
            for event in events:
                if isinstance(event, ResponseEnded):
                    self._start_completing(event)
        if plan.attribution is not None:
            plan.attribution.take(events)
        if self._answer is not None:
            self._answer.emit(events)

    def _start_completing(self, ended: ResponseEnded) -> None:
        """Complete the answer in a task; none can be started once an error has ended the others."""
        completing = self._complete(ended)
        try:
            self._client.send_after(self._tasks.create_task(completing))
        except RuntimeError:
            completing.close()

    async def _complete(self, ended: ResponseEnded) -> None:
        if self._answer is not None:
            await self._answer.complete(ended)
        work = Work(heavy=self._answer_bytes > LIGHT_BYTES)
        await self._plan.remember(self._plan.reader, ended, work)

    async def _finish(self, error: ErrorDetail | None) -> None:
        """End the answer: the application has returned."""
        if self._answer is None:
            self._feed(b"", is_last=True)
        if self._answer is None:
            self._client.close(complete=False)
        elif not (self._body_complete or self._client.departed):
            self._body_complete = True
            await self._answer.end(error or ANSWER_UNFINISHED)

    async def _abort(self, cause: str) -> None:
        """End the answer of a cancelled request without waiting for its summary.

        One that is whole is sent. Of one that has not started nothing is: a stopping server sends
        an error, else whoever cancelled the request may answer it.
        """
        stopping = cause == SHUTTING_DOWN
        if not self._client.departed:
            self._recorder.record.note_error(cause)
        if stopping and self._answer is None:
            self._answer = RefusedAnswer(self._client, self._plan.errors, SERVER_STOPPING, 503)
        elif stopping or self._body_complete or self._client.started:
            await self._finish(SERVER_STOPPING if stopping else REQUEST_CANCELLED)
            self._summary_runner.stop_waiting()
        else:
            self._client.discard()
            self._answer = self._start = None
            self._recorder.record.status = None  # as far as is known here

    def _is_handled(self, failure: Exception) -> bool:
        """Return whether a failure needs no report: the client got an error, or has left."""
        if self._client.departed:
            return isinstance(failure, OSError | UpstreamBroken | AttemptFailed)
        answered = self._answer is not None and self._answer.passed_ok is None
        return answered and isinstance(failure, UpstreamBroken)

    def _outcome(self) -> str:
        if self._client.departed:
            return "left"
        passed = self._answer.passed_ok if self._answer is not None else None
        if passed is not None:
            return "passed" if passed else "error"
        return self._recorder.outcome

    def _close(self, failure: Exception | None) -> None:
        """Complete the record and log a failure."""
        if isinstance(failure, AttemptFailed) and not self._client.departed:
            self._recorder.abandon()
            return
        outcome, record = self._outcome(), self._recorder.record
        self._recorder.outcome = outcome
        record.status = self._client.status or record.status
        self._recorder.close(self._sequencer, self._plan.reader)
        if outcome == "left":
            self._plan.summary_tracker.client_left()
        if outcome == "failed":
            record.note_error(SERVER_STOPPING.code)
            _log.warning("upstream %s: %s", record.upstream, self._describe(failure))

    def _describe(self, failure: Exception | None) -> str:
        """Return why the answer failed, for the log, which gets no words of upstream's."""
        if isinstance(failure, UpstreamBroken):
            return str(failure)
        error = self._recorder.error
        if isinstance(error, AnswerFault):
            return error.message
        raised = type(failure).__name__
        return "no whole answer came" if failure is None else f"the application raised {raised}"


class _RequestTasks(asyncio.TaskGroup):
    """The tasks of a request. If one error ends them, it is raised by itself, in no group."""

    async def __aexit__(self, *raised: Any) -> None:  # noqa: PYI036 -- what TaskGroup takes
        error: BaseException | None = None
        try:
            await super().__aexit__(*raised)
        except BaseExceptionGroup as group:
            if len(group.exceptions) > 1:
                raise
            error = group.exceptions[0]
        if error is not None:
            raise error


def _choose_answer(
    start: Message, context: AnswerContext, read: type[StreamAnswer | WholeAnswer] | None
) -> Answer:
    """Return the answer for this `http.response.start`; `read` is what reads a success, None if it
    is neither a stream nor JSON.

    What is not read may carry reasoning all the same. For a client of another API a redirect would
    lead to an endpoint that it does not speak, and no content means nothing.
    """
    headers, status, plan = start["headers"], start["status"], context.plan
    is_success = 200 <= status < 300 and status != 204
    if is_success and read is not None and can_decode(headers):
        return read(start, context, decoder_for(headers, plan.event_limit))
    if not plan.hide_unread:
        return PassedAnswer(start, context.client)
    if status >= 400:
        return TranslatedError(start, context)
    return RefusedAnswer(context.client, plan.errors)
