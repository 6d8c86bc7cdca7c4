"""The run of one background response: the request sent again, without its client.

What comes of it is written to the store every `SAVE_SECONDS`. The lease is renewed after a third of
its time: once it has expired, every process that shares the store knows that this one has stopped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic

from starlette.types import ASGIApp, Message, Scope

from abridge.apis.frames import encode_event
from abridge.apis.json import loads_exact, parse_object, string
from abridge.apis.openai import read_error
from abridge.apis.responses.errors import as_failed
from abridge.config.tables import BackgroundSettings
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail
from abridge.errors import EventTooLarge, RequestError, UpstreamBroken
from abridge.pipeline.inner_call import InnerCall
from abridge.stored_responses.event_log import EventLog, last_event
from abridge.stored_responses.leases import DELETED, SERVER_STOPPING, Lease, Stop
from abridge.stored_responses.repository import NOT_STORED, store_unavailable
from abridge.stored_responses.storage import StoreLocally
from abridge.waiting import Flag
from abridge.work import LIGHT_BYTES, Work

SAVE_SECONDS = 0.5
"""Seconds between two writes of the events to the store."""

LOOK_SECONDS = 2.0
"""Seconds between two looks whether another process has ended the response."""

LEAVE_SECONDS = 5.0
"""Seconds in which the application must end an answer that nobody wants any more."""

GIVEN = ("id", "created_at", "background", "store", "previous_response_id", "conversation")
"""Fields of the response that its client knows already, whatever they are in the answer."""

ENDS = ("response.completed", "response.incomplete", "response.failed")

BROKEN_OFF = "The response ended before it was complete."

TOO_LONG = "The response took longer than {} seconds (background.seconds)."

TOO_LARGE = "The events of the response are larger than {} bytes (background.bytes)."

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class RunContext:
    """What a run needs of its surroundings."""

    storage: StoreLocally
    settings: BackgroundSettings
    seconds: float  # for which it may run
    event_limit: int
    hides_raw: bool


class Run(InnerCall):
    """Runs one background response, which is `response` as its client was told of it."""

    def __init__(self, response: Json, body: bytes, context: RunContext) -> None:
        super().__init__(body, context.event_limit)
        self.id = string(response["id"])
        repository = context.storage.repository
        self.log = EventLog(repository, self.id, hides_raw=context.hides_raw)
        self.ended = Flag()
        self._lease = Lease(repository, self.id)
        self._storage = context.storage
        self._seconds = context.seconds
        self._settings = context.settings
        self._response = response
        self._given = {key: response[key] for key in GIVEN if key in response}
        self._items: list[Json] = []  # of the output that are done
        self._end: Json | None = None  # the response at its end
        self._stop: Stop | None = None  # why it ends before
        self._decided = Flag()  # set with either
        self._is_hurried = False  # the server does not wait for a store that is down

    async def begin(self) -> None:
        """Store the response as one that runs. Raises RequestError if that fails."""
        has_lease = await self._lease.renew(self._settings.lease)
        self._storage = await self._storage.save_input()
        await self._storage.save_response(self._response, Work())
        fields = {"sequence_number": 0, "response": {**self._response, "status": "queued"}}
        frame = await self._storage.work.run(encode_event, "response.created", fields)
        self.log.append(0, frame)
        if not (has_lease and await self.log.save()):
            raise store_unavailable(NOT_STORED)

    def stop(self, stop: Stop) -> None:
        """End the run, unless it has ended."""
        self._is_hurried |= stop == SERVER_STOPPING
        if self._end is None and self._stop is None:
            self._stop = stop
            self._decided.set()

    async def run(self, app: ASGIApp, scope: Scope) -> str:
        """Run to the end; return the status in which the response ended."""
        answering = asyncio.create_task(self._answer(app, scope))
        keeping = asyncio.create_task(self._keep())
        try:
            await self._wait_for(answering)
        except asyncio.CancelledError:
            self.stop(SERVER_STOPPING)
            raise
        finally:
            answering.cancel()
            keeping.cancel()
            await asyncio.wait((answering, keeping))
            try:
                await self._finish()
            finally:
                self.ended.set()
        return string(self._response["status"])

    async def _answer(self, app: ASGIApp, scope: Scope) -> None:
        try:
            await app(scope, self.receive, self.send)
        except (UpstreamBroken, EventTooLarge) as broken:
            _log.warning("a background response broke off: %s", broken)
        except OSError:  # what `send` raises once the run was stopped; else upstream's connection
            pass
        except Exception:  # noqa: BLE001 -- the application's own, as a server would
            _log.exception("a background response failed")

    async def _wait_for(self, answering: asyncio.Task[None]) -> None:
        """Wait until the application has answered, or is to answer no more."""
        decided, seconds = self._decided.wait(), self._seconds
        await asyncio.wait(
            (answering, decided), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not (answering.done() or decided.done()):
            self.stop(Stop("failed", TOO_LONG.format(seconds)))
        if self._stop is not None:
            self.leave()
        await asyncio.wait((answering,), timeout=LEAVE_SECONDS)

    async def _keep(self) -> None:
        """Keep what is stored up to date."""
        renewed_at = looked_at = monotonic()
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            await self.log.save()
            now = monotonic()
            if now - renewed_at >= self._settings.lease / 3:
                renewed_at = now
                await self._lease.renew(self._settings.lease)
            if now - looked_at >= LOOK_SECONDS:
                looked_at = now
                if (stop := await self._lease.find_stop()) is not None:
                    self.stop(stop)

    async def _finish(self) -> None:
        """Store the response at its end, then the end of its events: who has seen that can get the
        response. What another process has told clients of its end holds."""
        self._stop = await self._lease.find_stop() or self._stop
        self._response = self._response_at_end()
        try:
            if self._stop != DELETED:
                await self._insist(self._save_response)
        except RequestError:
            self._response = self._failed(NOT_STORED)  # as others find it
            raise
        finally:
            number = self.log.last + 1
            frame = await self._work.run(last_event, number, self._response)
            self.log.append(number, frame, is_end=True)
        if self._stop != DELETED:
            await self._storage.refresh_input()
            await self._insist(self.log.save)

    async def _save_response(self) -> bool:
        try:
            await self._storage.save_response(self._response, self._work)
        except RequestError:
            return False
        return True

    async def _insist(self, save: Callable[[], Awaitable[bool]]) -> None:
        """Save what there is at the end, again and again for as long as a lease, which is kept
        meanwhile: else others would end the response. Raises RequestError if it was not saved."""
        until = monotonic() + self._settings.lease
        while not await save():
            if self._is_hurried or monotonic() >= until:
                raise store_unavailable(NOT_STORED)
            await asyncio.sleep(SAVE_SECONDS)
            await self._lease.renew(self._settings.lease)

    @property
    def _work(self) -> Work:
        """The work on the response at its end."""
        return Work(heavy=self.log.size > LIGHT_BYTES)

    def _response_at_end(self) -> Json:
        if self._stop is not None:
            return self._stop.apply(self._so_far())
        return self._failed(BROKEN_OFF) if self._end is None else self._end

    def _so_far(self) -> Json:
        return {**self._response, "output": self._items}

    def _failed(self, message: str) -> Json:
        return as_failed(self._so_far(), ErrorDetail("upstream_error", message or BROKEN_OFF))

    # The answer

    async def take_event(self, frame: bytes, payload: bytes) -> None:
        work = Work.on(payload)
        event = await work.run(parse_object, payload, loads_exact) or {}
        number, kind = event.get("sequence_number"), string(event.get("type"))
        if self._end is not None or self._stop is not None or not isinstance(number, int):
            return
        if kind == "response.created":
            return  # the client was told so before
        if isinstance(event.get("response"), dict):
            event["response"] = self._response = {**event["response"], **self._given}
            frame = await work.run(encode_event, kind, event)
        if kind in ENDS:
            self._decide(self._response)
            return
        if kind == "error":
            self._decide(self._failed(string(event.get("message"))))
            return
        if kind == "response.output_item.done":
            self._items.append(event["item"])
        self.log.append(number, frame)
        if self.log.size > self._settings.bytes:
            self.stop(Stop("failed", TOO_LARGE.format(self._settings.bytes)))

    async def take_whole(self, start: Message, body: bytes) -> None:
        told = await Work.on(body).run(parse_object, body, loads_exact) or {}
        if start["status"] == 200 and f"response.{told.get('status')}" in ENDS:
            self._decide({**told, **self._given})
        elif (error := read_error(told)) is not None:
            self._decide(self._failed(error.message))

    def _decide(self, response: Json) -> None:
        if self._end is None and self._stop is None:
            self._end = response
            self._decided.set()
