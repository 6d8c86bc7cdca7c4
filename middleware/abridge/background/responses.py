"""Background responses of Abridge's own: begin them, and answer for them while they run.

A background response is its request, sent again without its client, and its answer is stored as
that one would have been shown it. So whatever a request goes through, it goes through as well:
routes, bridges, hiding, summaries, budgets. Where upstream keeps background responses itself, and
nothing need be done about its answers, it does so, and nothing of this is in the way.

A mounted middleware has no tasks but those of requests, so the runs are tasks of their own, which
`finish` waits for. Each holds a place of this process and of its tenant.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import time
from typing import TypeAlias
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from abridge.apis.json import as_object, dumps, loads_exact, parse_object
from abridge.apis.openai import is_minted, mint_id
from abridge.apis.params import invalid_value_error
from abridge.apis.responses.writer import new_response
from abridge.background.elsewhere import RunElsewhere
from abridge.background.follower import follow
from abridge.background.run import Run, RunContext
from abridge.client_shares import ClientShares
from abridge.config.exposure import hides_raw, shows_summary
from abridge.config.settings import Settings
from abridge.core.conversation import Json
from abridge.core.styles import SummaryStyle
from abridge.errors import RequestError
from abridge.http.asgi import scope_for_body, send_json
from abridge.lasting import Lasting
from abridge.observability.metrics import Metrics
from abridge.observability.record import BACKGROUND, Record
from abridge.pipeline.engage import Endpoints
from abridge.pipeline.inner_call import EVENT_FACTOR
from abridge.pipeline.prepare import PreparedRequest
from abridge.stored_responses.endpoints import ResponsePath, StoredResponses
from abridge.stored_responses.event_log import EventSource
from abridge.stored_responses.leases import CANCELLED, DELETED, SERVER_STOPPING, Stop
from abridge.stored_responses.references import read_conversation_id, why_unstored
from abridge.stored_responses.repository import (
    UNFINISHED,
    LocalRecord,
    ResponseRepository,
    lookup_error,
    store_unavailable,
)
from abridge.stored_responses.storage import StoreLocally

_log = logging.getLogger(__name__)

AnswerAlone: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
"""Answers a request without its client: it was admitted before."""


class RunningResponses:
    """The background responses that run, whatever the settings with which they began."""

    def __init__(self) -> None:
        self.places = ClientShares()
        self.runs: dict[str, Run] = {}
        self.tasks: set[asyncio.Task[None]] = set()


class BackgroundResponses:
    """The background responses of one application."""

    def __init__(
        self,
        answer_alone: AnswerAlone,
        settings: Settings,
        stored: StoredResponses,
        metrics: Metrics,
        lasting: Lasting,
    ) -> None:
        self._answer_alone = answer_alone
        self._settings = settings.background
        self._event_limit = EVENT_FACTOR * int(settings.limits.event)
        self._hiding = {route.upstream.name for route in settings.routes if hides_raw(route)}
        self._stored = stored
        self._metrics = metrics
        self._running = lasting.get("background", RunningResponses)
        self._places, self._runs = self._running.places, self._running.runs
        self._tasks: set[asyncio.Task[None]] = set()

    def take_effect(self) -> None:
        """Have the limits of the settings hold."""
        limits = self._settings
        self._places.resize(limits.responses, min(limits.responses, limits.per_tenant))

    # Begin

    async def begin(
        self,
        prepared: PreparedRequest,
        style: SummaryStyle | None,
        body: bytes,
        endpoints: Endpoints,
        *,
        streams: bool,
    ) -> None:
        """Begin the response to a request, whose own body is `body`, and answer the client, with a
        stream if it `streams`. Raises RequestError."""
        request, storage = prepared.request, prepared.storage
        if not self._settings.responses:
            raise _refused("Background responses are not available here.")
        if not isinstance(storage, StoreLocally):
            has_store = prepared.turn_memory.route_memory.store is not None
            reason = why_unstored(has_store=has_store)
            raise _refused(f"A background response must be stored{reason}.")
        context = RunContext(
            storage,
            self._settings,
            min(self._settings.seconds, request.route.history.ttl),
            self._event_limit,
            hides_raw(request.route),
        )
        shown_style = style if shows_summary(request.route) else None
        response = await request.work.run(_begun_response, body, shown_style)
        run = Run(response, body, context)
        await self._start(run, storage.repository.tenant, request.scope, body)
        record = Record.get(request.scope)
        record.api, record.outcome, record.status = None, "background", 200
        if streams:
            await follow(run.log, -1, endpoints.receive, endpoints.send)
        else:
            queued = {**response, "status": "queued"}
            await send_json(endpoints.send, await request.work.run(dumps, queued))

    async def _start(self, run: Run, tenant: str, scope: Scope, body: bytes) -> None:
        if not self._places.take(tenant, 1):
            raise _too_many()
        self._runs[run.id] = run
        try:
            await run.begin()
        except BaseException:
            self._release(run, tenant)
            raise
        alone = {**scope_for_body(scope, body), BACKGROUND: run.id}
        task = asyncio.create_task(self._run(run, tenant, alone))
        for tasks in (self._running.tasks, self._tasks):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    async def _run(self, run: Run, tenant: str, scope: Scope) -> None:
        try:
            with self._metrics.background_running.track_inprogress():
                status = await run.run(self._answer_alone, scope)
            self._metrics.background_responses.labels(status).inc()
        except Exception as error:  # noqa: BLE001 -- a store may raise anything
            _log.warning("a background response could not be stored: %s", type(error).__name__)
        finally:
            self._release(run, tenant)

    def _release(self, run: Run, tenant: str) -> None:
        del self._runs[run.id]
        self._places.give_back(tenant, 1)

    async def finish(self, seconds: float | None = None) -> None:
        """Wait for what runs, so many seconds at most."""
        if self._running.tasks:
            await asyncio.wait(self._running.tasks, timeout=seconds)

    async def finish_own(self) -> None:
        """Wait for what began under these settings."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def aclose(self) -> None:
        """End what runs, as failed."""
        for run in self._runs.values():
            run.stop(SERVER_STOPPING)
        await self.finish()

    # Answer

    async def answer(self, path: ResponsePath, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request about a background response, as far as that differs from one about any
        other stored here; return False for the rest. Raises RequestError."""
        if not is_minted(path.response_id):
            return False
        repository, record = await self._stored.find(path.response_id, scope)
        if repository is not None and record is None and repository.is_down:
            raise store_unavailable("The store cannot be reached.")
        if repository is None or not isinstance(record, LocalRecord):
            return False
        if record.response.get("background") is not True:
            return False
        if path.subresource == "input_items":
            return False
        if record.response["status"] in UNFINISHED:
            await self._bring_up_to_date(path, repository, record)
        starting_after = _starting_after(scope) if path.method == "GET" else None
        if starting_after is None:
            return False
        source = await self._source(path.response_id, record, repository)
        await follow(source, starting_after, receive, send)
        Record.get(scope).status = 200
        return True

    async def _bring_up_to_date(
        self, path: ResponsePath, repository: ResponseRepository, record: LocalRecord
    ) -> None:
        """End a response if its client asks for that, or its process has stopped."""
        stop = _requested_stop(path)
        run = self._runs.get(path.response_id)
        if run is None:
            elsewhere = RunElsewhere(repository, path.response_id)
            index = await elsewhere.index()
            if stop is not None and not (index is not None and index.ended):
                await elsewhere.stop(record, stop)
        elif stop is not None:
            run.stop(stop)
            await run.ended.wait()

    async def _source(
        self, response_id: str, record: LocalRecord, repository: ResponseRepository
    ) -> EventSource:
        """Return where the events of a response are read. Raises RequestError if they are gone, or
        show what is hidden by now."""
        run = self._runs.get(response_id)
        source: EventSource = RunElsewhere(repository, response_id) if run is None else run.log
        index = await source.index()
        if index is None or (record.upstream in self._hiding and not index.hides_raw):
            raise lookup_error(_not_resumable(), repository)
        return source


def _begun_response(request_body: bytes, style: SummaryStyle | None) -> Json:
    """Return the response as its client is told of it at once."""
    body = parse_object(request_body, loads_exact) or {}
    effort = as_object(body.get("reasoning")).get("effort")
    if conversation := read_conversation_id(body):
        body["conversation"] = {"id": conversation}
    return {
        **new_response(body, int(time()), mint_id("resp_")),
        "reasoning": {"effort": effort, "summary": style},
        "background": True,
        "store": True,
    }


def _requested_stop(path: ResponsePath) -> Stop | None:
    if path.method == "DELETE":
        return DELETED
    return CANCELLED if path.subresource == "cancel" else None


def _starting_after(scope: Scope) -> int | None:
    """Return the number after which a stream is to begin; None if none is asked for."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    if query.get("stream", ["false"])[-1].lower() in ("false", "0"):
        return None
    value = query.get("starting_after", ["-1"])[-1]
    try:
        return int(value[:19])
    except ValueError:
        raise invalid_value_error(value, "starting_after") from None


def _refused(reason: str) -> RequestError:
    return RequestError(reason, param="background", code="unsupported_value")


def _too_many() -> RequestError:
    return RequestError(
        "Too many background responses are running (background.responses, background.per_tenant).",
        status=429,
        code="too_many_background_responses",
    )


def _not_resumable() -> RequestError:
    return RequestError(
        "The events of this response are no longer stored: retrieve the response itself.",
        param="stream",
        code="stream_not_resumable",
    )
