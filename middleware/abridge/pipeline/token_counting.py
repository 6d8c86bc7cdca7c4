"""Count the input tokens of a request: `POST /v1/messages/count_tokens`, `/responses/input_tokens`.

Upstream's own endpoint answers where upstream speaks the client's API, with the request as it would
be sent: what Abridge put into the history is taken out, and what it took out is put back. Else the
model server's tokenizer counts, where the profile knows its endpoint, with the request as it would
be translated. Where neither is there, the answer is an estimate, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Scope, Send

from abridge.apis.credentials import Header
from abridge.apis.json import dumps, parse_object
from abridge.apis.registry import UPSTREAM_APIS
from abridge.apis.token_counters import TOKEN_COUNTERS, TokenCounter, estimate_tokens
from abridge.config.exposure import hides_raw
from abridge.core.conversation import Json
from abridge.errors import EndpointMissing, EventTooLarge, UpstreamBroken
from abridge.http.asgi import (
    FRAMING_HEADERS,
    ReceiveUntil,
    json_start,
    scope_for_body,
)
from abridge.observability.record import Record
from abridge.pipeline.answers.error_writer import ErrorWriter
from abridge.pipeline.discovery import ApiDiscovery, endpoint_trial
from abridge.pipeline.inner_call import CapturedAnswer
from abridge.pipeline.prepare import RequestPreparation
from abridge.pipeline.request import ApiRequest
from abridge.providers.catalog import PROFILES

ESTIMATE_HEADER = (b"x-abridge-estimate", b"true")

MAX_ANSWER_BYTES = 1 << 20
"""Bytes that are read of an answer to a request for a count; with more, it is none."""


@dataclass(slots=True, frozen=True)
class TokenCounting:
    """Answers requests for the number of their tokens, by calls to `app`."""

    app: ASGIApp
    preparation: RequestPreparation
    discovery: ApiDiscovery

    async def answer(self, request: ApiRequest, send: Send) -> None:
        """Send the count of the first that can tell, else an estimate. Raises RequestError."""
        record = Record.get(request.scope)
        try:
            await _send(await self._count(request), send)
            record.outcome = "untouched"
        finally:
            record.api = None  # it is no request to a model

    async def _count(self, request: ApiRequest) -> list[Message]:
        """Return what the client is sent."""
        for counter, is_own in self._counters(request):
            messages = await self._ask(counter, request, is_own=is_own)
            if messages is not None:
                return messages
            request = await request.reread()
        Record.get(request.scope).status = 200
        tokens = await request.work.run(estimate_tokens, request.take_body())
        estimate = {**request.api.token_count, "input_tokens": tokens, "estimate": True}
        headers = [ESTIMATE_HEADER, *_error_writer(request).id_headers([])]
        return _counted(estimate, headers)

    def _counters(self, request: ApiRequest) -> Iterator[tuple[TokenCounter, bool]]:
        """Yield the endpoints to ask, each with whether it is that of the client's own API at an
        upstream that speaks it."""
        api, route = request.api, request.route
        speaks_it = self.discovery.candidates(route, api, request.model)[0] is api.upstream
        if speaks_it:
            yield TOKEN_COUNTERS[api.name], True
        for name in PROFILES[route.upstream.profile].token_counters:
            if not (speaks_it and name == api.name):
                yield TOKEN_COUNTERS[name], False

    async def _ask(
        self, counter: TokenCounter, request: ApiRequest, *, is_own: bool
    ) -> list[Message] | None:
        """Have an endpoint count. Return what the client is sent; None if that is for another one
        to say."""
        api = UPSTREAM_APIS[counter.api]
        prepared = await self.preparation.prepare(request, api, engaged=True)
        scope, buffered = prepared.scope, prepared.buffered
        if prepared.translated:
            body = await request.work.run(_written_body, counter, prepared.body)
            scope, buffered = _counter_scope(scope, counter, body), buffered.with_body(body)
        answer = CapturedAnswer(MAX_ANSWER_BYTES)
        trial = endpoint_trial(self.app, prepared.model)
        try:
            async with ReceiveUntil(answer.ended, buffered) as receive_or_end:
                await trial(scope, receive_or_end, answer.take)
        except (EndpointMissing, EventTooLarge, UpstreamBroken):
            return None
        return _messages_for(answer, counter, request, is_own=is_own)


def _messages_for(
    answer: CapturedAnswer, counter: TokenCounter, request: ApiRequest, *, is_own: bool
) -> list[Message] | None:
    """Return what the client is sent; None if an answer is no count, nor an error of its own
    API."""
    if answer.start is None or not answer.ended.is_set():
        return None
    status, body = answer.start["status"], bytes(answer.body)
    if is_own and not hides_raw(request.route):
        return [answer.start, _body_message(body)]
    if status < 300 and (count := counter.read(body)) is not None:
        headers = _error_writer(request).id_headers([])
        return _counted({**request.api.token_count, "input_tokens": count}, headers)
    if not is_own or status < 400:
        return None
    start, told = _error_writer(request).retell(answer.start, body)
    return [start, _body_message(told)]


def _error_writer(request: ApiRequest) -> ErrorWriter:
    return ErrorWriter(request.api, Record.get(request.scope).id)


def _written_body(counter: TokenCounter, body: bytes) -> bytes:
    return dumps(counter.write(parse_object(body) or {}))


def _counter_scope(scope: Scope, counter: TokenCounter, body: bytes) -> Scope:
    """Return the scope of a translated request, led to the endpoint that counts."""
    base = str(scope.get("root_path", "")) if counter.at_root else scope["path"]
    return scope_for_body({**scope, "path": base + counter.path}, body, FRAMING_HEADERS)


def _counted(count: Json, headers: Iterable[Header]) -> list[Message]:
    data = dumps(count)
    return [json_start(200, data, headers), _body_message(data)]


def _body_message(body: bytes) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": False}


async def _send(messages: Iterable[Message], send: Send) -> None:
    with suppress(OSError):  # how a server reports that the client has left
        for message in messages:
            await send(message)
