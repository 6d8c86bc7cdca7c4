"""One engaged request: the application runs, its response is read, woven and written on.

The application runs in the request's own task, so that context variables, cancel scopes and
exceptions behave as they would without Abridge. Beside it run, as children: a task that listens for
the client's leaving, one that sends to it, and one for each part of a summary being written. When
the client leaves, the application is told and everything else stops; when the server cancels the
request, all of it goes down together.
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
"""Remembers what there is of an answer, whatever became of it; what it returns is done before the
client hears the end, and after that was written."""

GOODBYE = 1.0
"""Seconds in which a cancelled request may still tell its client so."""


@dataclass(slots=True, frozen=True)
class Terms:
    """What was decided for a request. `opaque`: nothing that was not read may get through, since
    raw reasoning is hidden, or the client speaks another API; `problem` says an error body in the
    client's shape. `showing` follows what the client sees; `keep` is told of the end, with the
    summaries that were shown."""

    reader: Reader
    writer: Writer
    plan: Plan
    opaque: bool
    problem: Callable[[bytes], bytes] | None
    guard: Guard
    summarizer: Summarizer
    showing: Showing
    keep: Keep
    event_limit: int


class Exchange:
    """Runs one request under its terms."""

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
        """Answer the request. Raises what the application raised, once the client has been told."""
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
        """Whether the answer waited in vain for its summary."""
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

    # What the application gets

    async def _ask(self, app: ASGIApp, scope: Scope) -> Exception | None:
        """Have it answer; what it raised, since the client is told first."""
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

    # What becomes of the answer

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
        """Some of the answer's body. A fault of ours must not leave the client waiting."""
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
        """The application will say no more."""
        if self._answer is None:
            self._client.close(complete=False)
        elif not (self._complete or self._client.departed.is_set()):
            self._complete = True
            self._answer.end(trouble or UNFINISHED)

    def _stop(self) -> None:
        """The server cancels the request: the client is told while there is time."""
        if not self._client.departed.is_set():
            self._account.record.fail(SHUTTING_DOWN)
        if self._answer is None:
            self._answer = Refused(self._client, STOPPED, 503)
        else:
            self._finish(STOPPED)

    def _is_told(self, failure: Exception) -> bool:
        """Whether nobody needs to hear of a failure any more: the client was told, or has left."""
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
        """All is over: count it, and say what went wrong."""
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
        """The headers that tell of the summary where no stream can."""
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
