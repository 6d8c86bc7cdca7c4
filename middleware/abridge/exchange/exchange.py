"""One engaged request: run the application, sequence its response, write it to the client.

The application runs in the request's own task, so that context variables, cancel scopes and
exceptions behave as they would without Abridge. Child tasks run beside it: one that waits for the
client to disconnect, one that sends to it, and one for each summary part being written. When the
client leaves, the application is notified and everything else stops; when the server cancels the
request, all tasks are cancelled together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.errors import EndpointMissing, UpstreamBroken
from abridge.exchange.account import Account, outcome_of
from abridge.exchange.answers import Answer, Parts, Refused, Stream, begin
from abridge.exchange.client import Client, Clock
from abridge.exchange.loom import Loom
from abridge.history.showing import Showing
from abridge.summarize import Summarizer
from abridge.summarize.guard import Guard
from abridge.telemetry.record import SHUTTING_DOWN
from abridge.turn.events import Closed, Ended, Event, Trouble
from abridge.turn.plan import Plan
from abridge.turn.usage import EXTRACTIVE
from abridge.turn.weave import Weaver
from abridge.wire.api import Reader, Writer

APPLICATION = Trouble("upstream_error", "The application failed while it answered.")
UNFINISHED = Trouble("upstream_error", "The application stopped before its answer was complete.")
STOPPED = Trouble("upstream_error", "The server is shutting down.")
_log = logging.getLogger(__name__)

Keep: TypeAlias = Callable[[Reader, Ended], Coroutine[Any, Any, None]]
"""Remembers an answer, however it ended, with the summaries that were shown. The coroutine starts
after the last event was written, and finishes before the client is sent it."""

GOODBYE = 1.0
"""Seconds in which a cancelled request may still send its client an error."""


@dataclass(slots=True, frozen=True)
class Terms:
    """Decisions and collaborators for one request."""

    reader: Reader
    writer: Writer
    plan: Plan
    opaque: bool  # nothing unread may get through
    problem: Callable[[bytes], bytes] | None  # translates an error body, if the APIs differ
    guard: Guard
    summarizer: Summarizer
    showing: Showing  # follows what the client is shown
    keep: Keep  # called with the last event
    event_limit: int  # bytes of one event, or of a whole JSON body


class Exchange:
    """Run one request according to its plan."""

    def __init__(self, terms: Terms, account: Account, receive: Receive, send: Send) -> None:
        self._terms = terms
        self._account = account
        self._clock = Clock()
        self._client = Client(receive, send, self._clock)
        self._weaver = Weaver(terms.plan)
        self._reader = terms.reader
        self._answer: Answer | None = None
        self._complete = False
        self._request: list[Message] = []

    async def run(self, app: ASGIApp, scope: Scope, body: bytes) -> None:
        """Answer the request. Re-raises the application's exception once the client has its
        answer."""
        self._request.append({"type": "http.request", "body": body, "more_body": False})
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                self._set_up(tasks)
                listening = tasks.create_task(self._client.listen())
                sending = tasks.create_task(self._client.run())
                try:
                    failure = await self._ask(app, scope)
                    self._finish(_trouble(failure))
                    await asyncio.wait([sending])
                except asyncio.CancelledError:
                    self._stop()
                    await asyncio.wait([sending], timeout=GOODBYE)
                    raise
                self._loom.stop()
                listening.cancel()
        finally:
            self._loom.stop()
            self._close(failure)
        if failure is not None and not self._is_told(failure):
            raise failure

    @property
    def missed(self) -> bool:
        """True if the answer waited in vain for its summary."""
        return self._weaver.missed

    @property
    def summarized(self) -> bool:
        return self._loom.wrote_for > 0

    def _set_up(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        terms = self._terms
        self._loom = Loom(
            self._weaver,
            guard=terms.guard,
            summarizer=terms.summarizer,
            tasks=tasks,
            clock=self._clock,
            emit=self._emit,
            watch=self._account,
        )
        self._client.on_room = self._loom.set_timer
        self._client.on_leave = self._loom.stop

    # The application's side

    async def _ask(self, app: ASGIApp, scope: Scope) -> Exception | None:
        """Run the application; return what it raised, since the client is answered first."""
        try:
            await app(scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001 -- any may be the application's
            return error
        return None

    async def _receive(self) -> Message:
        return self._request.pop() if self._request else await self._client.receive()

    async def _send(self, message: Message) -> None:
        if self._client.departed.is_set():
            raise OSError("the client has left")
        if message["type"] == "http.response.start":
            self._begin(message)
        elif message["type"] == "http.response.body" and self._answer is not None:
            self._take(self._answer, message)
            self._account.note_held(self._weaver.held)
            await self._client.room()

    # The answer

    def _begin(self, start: Message) -> None:
        parts = Parts(
            client=self._client,
            loom=self._loom,
            reader=self._reader,
            writer=self._terms.writer,
            opaque=self._terms.opaque,
            problem=self._terms.problem,
            limit=self._terms.event_limit,
            describe=self._describe,
        )
        self._answer = begin(start, parts)
        self._account.record.stream = isinstance(self._answer, Stream)
        self._client.beat = self._answer.beat

    def _take(self, answer: Answer, message: Message) -> None:
        """Feed the answer. An error of our own must not leave the client waiting."""
        last = not message.get("more_body", False)
        self._complete = last
        try:
            answer.feed(message.get("body", b""))
            if last:
                answer.end()
        except Exception:
            self._complete = True
            self._client.close(complete=False)
            raise

    def _emit(self, event: Event) -> None:
        self._account.note(event)
        self._terms.showing.note(event)
        if isinstance(event, Closed):
            self._account.note_held(self._weaver.held)
        if isinstance(event, Ended):
            self._client.after(self._tasks.create_task(self._terms.keep(self._reader, event)))
        if self._answer is not None:
            self._answer.emit(event)

    def _finish(self, trouble: Trouble | None) -> None:
        """End the answer: the application has returned."""
        if self._answer is None:
            self._client.close(complete=False)
        elif not (self._complete or self._client.departed.is_set()):
            self._complete = True
            self._answer.end(trouble or UNFINISHED)

    def _stop(self) -> None:
        """Tell the client that the server is cancelling the request."""
        if not self._client.departed.is_set():
            self._account.record.fail(SHUTTING_DOWN)
        if self._answer is None:
            self._answer = Refused(self._client, STOPPED, 503)
        else:
            self._finish(STOPPED)

    def _is_told(self, failure: Exception) -> bool:
        """Tell whether a failure needs no report: the client got an error, or has left."""
        if self._client.departed.is_set():
            return isinstance(failure, OSError | UpstreamBroken)
        told = self._answer is not None and self._answer.passed is None
        return told and isinstance(failure, UpstreamBroken)

    def _outcome(self) -> str:
        if self._client.departed.is_set():
            return "left"
        passed = self._answer.passed if self._answer is not None else None
        if passed is not None:
            return "passed" if passed else "error"
        return self._account.outcome

    def _close(self, failure: Exception | None) -> None:
        """Complete the record and log a failure."""
        if isinstance(failure, EndpointMissing):
            self._account.abandon()
            return
        outcome, record = self._outcome(), self._account.record
        self._account.outcome = outcome
        record.status = self._client.status or record.status
        self._account.close(self._weaver, self._reader)
        if outcome == "left":
            self._terms.showing.leave()
        if outcome == "failed":
            record.fail(STOPPED.code)
            cause = str(failure) if isinstance(failure, UpstreamBroken) else "no whole answer came"
            _log.warning("upstream %s: %s", record.upstream, cause)

    def _describe(self, ended: Ended) -> dict[str, str]:
        """Return headers about the summary, for answers that are not streamed."""
        outcomes = {outcome_of(summary) for summary in ended.summaries.values()} - {"skipped"}
        held = self._weaver.held_for * 1000
        return {
            "x-abridge-summary": self._in_a_word(ended, outcomes),
            "server-timing": f"summary;dur={self._loom.wrote_for * 1000:.1f}, held;dur={held:.1f}",
        }

    def _in_a_word(self, ended: Ended, outcomes: set[str]) -> str:
        if not outcomes:
            return "none"
        if outcomes == {"native"}:
            return "native"
        parts = sum(len(summary.parts) for summary in ended.summaries.values())
        extracted = sum(summary.extracted for summary in ended.summaries.values())
        if parts and (extracted == parts or self._terms.summarizer.name == EXTRACTIVE):
            return "extractive"
        if outcomes <= {"ok", "native"}:
            return "model"
        return "partial" if parts else "failed"


def _trouble(failure: Exception | None) -> Trouble | None:
    if failure is None:
        return None
    if isinstance(failure, UpstreamBroken):
        return Trouble(failure.code, str(failure))
    return APPLICATION
