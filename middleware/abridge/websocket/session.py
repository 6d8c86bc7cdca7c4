"""One WebSocket of the Responses API: its requests, each answered by the application as over HTTP.

Theory of operation. One task reads what the client sends, and does so all the time, so that it
notices when the client leaves. Each stream that has a request to answer has a task of its own,
which answers one after the other; its `send` waits for the client, and so does upstream. The main
task waits for the end: the client leaves, the server closes, the connection is too old, or the
server cancels it. Then no request is begun any more, and those under way come to their end: at
once if the client has left, in their own time otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import time
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.apis.json import string
from abridge.apis.openai import mint_id
from abridge.client_shares import ClientShares, client_of
from abridge.config.tables import LimitSettings
from abridge.core.conversation import Json
from abridge.errors import EventTooLarge, RequestError, UpstreamBroken
from abridge.http.asgi import CLOSING
from abridge.pipeline.body import MemoryBudget
from abridge.pipeline.inner_call import EVENT_FACTOR
from abridge.pipeline.request import admit_values, too_large
from abridge.stored_responses.references import PREVIOUS_RESPONSE_ID
from abridge.websocket.call import Call, http_scope
from abridge.websocket.conversations import (
    Conversation,
    Conversations,
    with_input,
    with_output,
    write_body,
)
from abridge.websocket.events import (
    Create,
    StreamError,
    error_event,
    read_message,
    warm_up_events,
    with_stream_id,
)
from abridge.websocket.steering import UNSTEERABLE_FIELDS, Steer, SteeringRefused
from abridge.work import CLIENT, LIGHT_BYTES, Work

MAX_SECONDS = 3600.0
"""Seconds for which a connection is served, as at OpenAI."""

MAX_STREAMS = 32
"""Streams with a name that a connection may have, as at OpenAI."""

MAX_RUNNING = 16
"""Requests of a connection that are answered at once, as at OpenAI."""

MAX_WAITING = 16
"""Requests of a connection that may wait for their turn."""

GOING_AWAY, RESTARTING = 1001, 1012
"""Codes with which a WebSocket is closed: RFC 6455, section 7.4.1, and IANA's registry."""

_log = logging.getLogger(__name__)


class Begun(NamedTuple):
    """A request that the application is asked to answer."""

    create: Create
    body: bytes
    conversation: Conversation  # with the request's input


@dataclass(slots=True)
class Stream:
    """The requests of one `stream_id` that wait, with what holds their memory, and the task that
    answers them."""

    waiting: deque[tuple[Create, ExitStack]] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None


class Session:
    """Serves one connection.

    `app` answers HTTP requests; `budget` holds what waits, `remembered` what the connections of one
    application remember, within a common limit.
    """

    def __init__(
        self,
        app: ASGIApp,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        limits: LimitSettings,
        budget: MemoryBudget,
        remembered: ClientShares,
    ) -> None:
        self._app = app
        self._limits = limits
        self._budget = budget
        self._scope = scope
        self._receive = receive
        self._send = send
        self._client = client_of(scope)
        self._conversations = Conversations(remembered, self._client, limits.body)
        self._streams: dict[str | None, Stream] = {}
        self._running = asyncio.Semaphore(MAX_RUNNING)
        self._sending = asyncio.Lock()
        self._calls: dict[Call, Begun] = {}
        self._steers: dict[Call, tuple[Steer, ExitStack]] = {}  # accepted, by what they steer
        self._waiting = 0
        self._ending = False  # no request is begun any more
        self._left = False

    async def run(self) -> None:
        """Serve until the connection is closed."""
        CLIENT.set(self._client)
        if (await self._receive())["type"] != "websocket.connect":
            return
        with suppress(OSError):
            await self._send_message({"type": "websocket.accept"})
        reading = asyncio.create_task(self._read())
        try:
            code = await self._serve_until_end(reading)
            await self._close(code)
        except asyncio.CancelledError as error:
            await self._cancel_calls(*error.args)
            await self._close(RESTARTING)
            raise
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            for _, held in self._steers.values():  # of calls that were cancelled
                held.close()
            self._conversations.close()

    async def _serve_until_end(self, reading: asyncio.Task[None]) -> int:
        """Serve until nothing more is to be answered; return the code to close with."""
        closing: asyncio.Event = self._scope.get(CLOSING) or asyncio.Event()
        told = asyncio.create_task(closing.wait())
        try:
            ended, _ = await asyncio.wait(
                (reading, told), timeout=MAX_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            told.cancel()
        self._ending = True
        if tasks := self._tasks():
            await asyncio.wait(tasks)
        if ended:
            return RESTARTING
        with suppress(OSError):
            await self._send_event(error_event(_too_old()))
        return GOING_AWAY

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [stream.task for stream in self._streams.values() if stream.task is not None]

    async def _cancel_calls(self, *cause: object) -> None:
        """Cancel what is under way, so that it tells the client why."""
        self._ending = True
        tasks = self._tasks()
        for task in tasks:
            task.cancel(*cause)
        if tasks:
            await asyncio.wait(tasks)

    async def _close(self, code: int) -> None:
        if not self._left:
            with suppress(OSError):
                await self._send_message({"type": "websocket.close", "code": code})

    # What the client sends

    async def _read(self) -> None:
        """Read until the client leaves."""
        with suppress(OSError):
            while (message := await self._receive())["type"] == "websocket.receive":
                await self._take(message)
        self._left = True
        for call in self._calls:
            call.leave()

    async def _take(self, message: Message) -> None:
        """Begin a request, or have it wait; tell the client if it is refused."""
        stream_id = None
        with ExitStack() as held:
            try:
                asked = await self._read_message(message, held)
                if isinstance(asked, Steer):
                    await self._steer(asked, held)
                elif asked is not None and not self._ending:
                    stream_id = asked.stream_id
                    self._enqueue(asked).append((asked, held.pop_all()))
            except RequestError as error:
                stream_id = error.stream_id if isinstance(error, StreamError) else stream_id
                await self._send_event(error_event(error), stream_id)

    async def _read_message(self, message: Message, held: ExitStack) -> Create | Steer | None:
        """Read a message; `held` has the memory that it takes. Raises RequestError."""
        text = message.get("text")
        if text is None:
            raise RequestError("A message must be text, not binary.", code="invalid_json")
        data = text.encode(errors="surrogatepass")
        reserve = held.enter_context(self._budget.reserving(self._client))
        reserve(len(data))
        work = Work.on(data)
        await admit_values(data, work, self._limits.values, reserve)
        return await work.run(read_message, data)

    async def _steer(self, steer: Steer, held: ExitStack) -> None:
        """Have more input for a response answered in its place; tell the client if it cannot be."""
        named = (call for call in self._calls if call.response_id == steer.response_id != "")
        call = next(named, None)
        stream_id = self._calls[call].create.stream_id if call is not None else None
        try:
            call = self._steerable(steer, call)
        except SteeringRefused as refusal:
            await self._send_event(steer.failed_event(refusal), stream_id)
            return
        call.is_steered = True
        self._steers[call] = steer, held.pop_all()
        await self._send_event(steer.accepted_event(call.sent), stream_id)
        call.stop()

    def _steerable(self, steer: Steer, call: Call | None) -> Call:
        """Return the call whose response is to be steered. Raises SteeringRefused."""
        steer.check()
        if call is None:
            if self._conversations.find(steer.response_id) is not None:
                raise SteeringRefused("response_already_completed", "The response is complete.")
            raise SteeringRefused(
                "response_not_found", "No such response is in progress on this connection."
            )
        if any(self._calls[call].create.fields.get(name) for name in UNSTEERABLE_FIELDS):
            raise SteeringRefused(
                "steering_not_supported",
                "A response in a conversation, or with context management, cannot be steered.",
            )
        if call.is_steered:
            raise SteeringRefused(
                "too_many_pending_steers", "The response does not accept more input."
            )
        if self._ending or not call.is_steerable:
            raise SteeringRefused(
                "response_not_active",
                "The answer has begun; a response can be steered only before that.",
            )
        return call

    def _enqueue(self, create: Create) -> deque[tuple[Create, ExitStack]]:
        """Return where a request waits for those before it. Raises RequestError if it cannot."""
        stream = self._streams.get(create.stream_id)
        if stream is None:
            if create.stream_id is not None and len(self._streams.keys() - {None}) >= MAX_STREAMS:
                raise _too_many_streams()
            stream = self._streams[create.stream_id] = Stream()
        if self._waiting >= MAX_WAITING:
            raise _too_many_waiting()
        self._waiting += 1
        if stream.task is None:
            stream.task = asyncio.create_task(self._answer_all(stream))
        return stream.waiting

    # Answers

    async def _answer_all(self, stream: Stream) -> None:
        """Answer the requests of a stream, one after the other."""
        try:
            while stream.waiting:
                async with self._running:
                    self._waiting -= 1
                    begun = await self._begin(*stream.waiting.popleft())
                    while begun is not None:
                        begun = await self._call(begun)
        except OSError:  # the client has left
            pass
        finally:
            stream.task = None
            for _, held in stream.waiting:
                held.close()

    async def _begin(self, create: Create, held: ExitStack) -> Begun | None:
        """Return what to ask the application for; None for a request that needs no answer of its,
        or comes too late. What `held` has is released."""
        with held:
            if self._ending or self._left:
                return None
            before = self._conversations.find(string(create.fields.get(PREVIOUS_RESPONSE_ID)))
            is_long = before is not None and before.size > LIGHT_BYTES
            work = Work(heavy=is_long or create.work.is_heavy)
            try:
                conversation = await work.run(with_input, create, before)
                if create.generate:
                    body = await work.run(
                        write_body, create, conversation, continued=before is not None
                    )
                    self._check_size(body)
                    return Begun(create, body, conversation)
                await self._warm_up(create, conversation, work)
            except RecursionError:
                refusal = RequestError("The message is nested too deeply.", code="invalid_json")
                await self._send_event(error_event(refusal), create.stream_id)
            except RequestError as error:
                await self._send_event(error_event(error), create.stream_id)
            return None

    def _check_size(self, body: bytes) -> None:
        if len(body) > self._limits.body:
            raise too_large("conversation", self._limits.body)

    async def _warm_up(self, create: Create, conversation: Conversation, work: Work) -> None:
        """Answer a request that wants no output: its conversation is remembered, no model asked."""
        response_id = mint_id("resp_")
        self._conversations.remember(create.stream_id, response_id, conversation)
        events = await work.run(warm_up_events, create, response_id, int(time()))
        for event in events:
            await self._send_event(event, create.stream_id)

    async def _call(self, begun: Begun) -> Begun | None:
        """Have the application answer a request. Return the one that takes its place, if it was
        steered."""
        if self._left:  # while the request was read
            return None
        stream_id = begun.create.stream_id
        call = Call(
            begun.body,
            EVENT_FACTOR * self._limits.event,
            partial(self._send_event, stream_id=stream_id),
            partial(self._remember, stream_id, begun.conversation),
        )
        self._calls[call] = begun
        error = None
        try:
            await call.run(self._app, http_scope(self._scope, len(begun.body)))
        except (UpstreamBroken, EventTooLarge) as broken:
            _log.warning("a response broke off: %s", broken)
            error = RequestError(str(broken), status=502, code="upstream_broken")
        except OSError:  # what `send` raises once the client has left; else upstream's connection
            pass
        except Exception:  # noqa: BLE001 -- the application's own, as a server would
            _log.exception("a request over WebSocket failed")
            error = RequestError("The server had an error.", status=500, code="internal_error")
        finally:
            del self._calls[call]
            call.close()
        if not self._left:
            await call.finish(error)
        return await self._successor(call, begun)

    async def _successor(self, call: Call, begun: Begun) -> Begun | None:
        """Return the request that follows a response that was steered; None if none does."""
        if call not in self._steers:
            return None
        steer, held = self._steers.pop(call)
        with held:
            if self._ending or self._left:
                return None
            try:
                return await self._steered(steer, call, begun)
            except SteeringRefused as refusal:
                failed = steer.failed_event(refusal, accepted=True)
                await self._send_event(failed, begun.create.stream_id)
                return None

    async def _steered(self, steer: Steer, call: Call, begun: Begun) -> Begun:
        """Return a request with more input. Raises SteeringRefused."""
        if not call.is_steered or call.is_complete:
            raise SteeringRefused("response_already_completed", "The answer came first.")
        work = Work(heavy=True)  # the input, too, may be large
        more = replace(begun.create, fields={**begun.create.fields, "input": steer.input})
        conversation = await work.run(with_input, more, begun.conversation)
        body = await work.run(write_body, more, conversation, continued=True)
        try:
            self._check_size(body)
        except RequestError as error:
            raise SteeringRefused("successor_creation_failed", str(error)) from None
        return Begun(more, body, conversation)

    async def _remember(
        self, stream_id: str | None, conversation: Conversation, response: Json, work: Work
    ) -> None:
        """Remember a response, unless it says that it is stored."""
        if response.get("store") is True:
            self._conversations.forget(stream_id)
            return
        ended = await work.run(with_output, conversation, response.get("output"))
        self._conversations.remember(stream_id, string(response.get("id")), ended)

    async def _send_event(self, event: bytes, stream_id: str | None = None) -> None:
        """Send an event, once the client has taken those before it."""
        text = with_stream_id(event, stream_id).decode(errors="replace")
        async with self._sending:
            await self._send_message({"type": "websocket.send", "text": text})

    async def _send_message(self, message: Message) -> None:
        """Send a message. Raises OSError if the connection is closed."""
        try:
            await self._send(message)
        except RuntimeError as error:  # as servers have it that closed the connection themselves
            raise OSError(str(error)) from None


def _too_old() -> RequestError:
    return RequestError(
        "Responses websocket connection limit reached (60 minutes). Create a new websocket "
        "connection to continue.",
        code="websocket_connection_limit_reached",
    )


def _too_many_streams() -> RequestError:
    return RequestError(
        "This WebSocket connection has reached its maximum number of distinct stream IDs "
        f"({MAX_STREAMS}). Reuse an existing stream_id or open a new WebSocket connection.",
        param="stream_id",
        code="websocket_stream_limit_reached",
    )


def _too_many_waiting() -> RequestError:
    return RequestError(
        f"{MAX_WAITING} requests are already waiting on this connection. Send more once one is "
        "answered.",
        status=429,
        code="too_many_waiting",
    )
