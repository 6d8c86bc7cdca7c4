"""The events of a WebSocket that are not those of a stream: what clients send, and errors.

The protocol is OpenAI's WebSocket mode of the Responses API, as its guide
(developers.openai.com/api/docs/guides/websocket-mode), its SDK (`responses.connect`) and Codex
(`codex-api/src/endpoint/responses_websocket.rs`) have it. A client asks for a response with the
fields of a request and `"type": "response.create"`. Requests of one `stream_id` are answered one
after the other, those of different ones at once, and each event says to which it belongs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from abridge.apis.api import ApiError
from abridge.apis.json import dumps, loads_exact, parse_object, string
from abridge.apis.openai import error_body, read_error
from abridge.apis.responses.writer import new_response
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.usage import Tokens
from abridge.errors import RequestError
from abridge.stored_responses.references import PREVIOUS_RESPONSE_ID
from abridge.websocket.steering import STEER, Steer
from abridge.work import Work

CREATE = "response.create"

NOTICES = ("response.processed",)
"""Events that want no answer. Codex says so that it has dealt with a response."""

TERMINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed", "error")
"""Events after which nothing more comes of a response."""

NOT_FOUND_CODE = "previous_response_not_found"
"""Error code at which clients send their whole conversation, whatever upstream called it."""

TOLD_HEADERS = (b"retry-after", b"x-request-id", b"x-should-retry")
"""Response headers that an error event repeats, besides those of rate limits."""

LIMIT_HEADERS = (b"x-ratelimit-", b"x-codex-")
"""How the names of headers that tell of rate limits begin."""

MAX_TOLD_HEADERS = 32
"""Headers that an error event repeats at most."""

_STREAM_ID = re.compile(r"[A-Za-z0-9_.-]{1,256}")

_WEBSOCKET_FIELDS = ("type", "stream_id", "generate", "stream", "stream_options", "background")
"""Fields that an HTTP request does not have, or that are decided here."""


@dataclass(slots=True, frozen=True)
class Create:
    """A request for a response."""

    fields: Json  # of the request, as HTTP has it
    stream_id: str | None
    generate: bool  # false: only remember the input
    work: Work  # that on its message


def read_message(data: bytes) -> Create | Steer | None:
    """Read a message of the client; None for one that wants no answer. Raises RequestError."""
    body = parse_object(data, loads_exact)
    if body is None:
        raise RequestError("The message is not a JSON object.", code="invalid_json")
    if body.get("type") in NOTICES:
        return None
    if body.get("type") == STEER:
        return Steer.read(body)
    stream_id = body.get("stream_id")
    if stream_id is not None and not (
        isinstance(stream_id, str) and _STREAM_ID.fullmatch(stream_id)
    ):
        raise RequestError(
            "The 'stream_id' field must be a non-empty string with at most 256 characters and may "
            "only contain letters, numbers, underscores, hyphens, and periods.",
            param="stream_id",
            code="invalid_stream_id",
        )
    _check_kind(body, stream_id)
    fields = {name: value for name, value in body.items() if name not in _WEBSOCKET_FIELDS}
    fields |= {"stream": True}
    if isinstance(options := body.get("stream_options"), dict):
        fields["stream_options"] = options
    return Create(fields, stream_id, body.get("generate") is not False, Work.on(data))


def _check_kind(body: Json, stream_id: str | None) -> None:
    if body.get("type") != CREATE:
        message = f"Unknown type of event. Only '{CREATE}' and '{STEER}' are supported here."
        raise StreamError(stream_id, message, param="type", code="invalid_value")
    if body.get("background"):
        message = "Background responses are not available over WebSocket."
        raise StreamError(stream_id, message, param="background", code="unsupported_value")


class StreamError(RequestError):
    """A RequestError of a message whose `stream_id` is known."""

    def __init__(self, stream_id: str | None, message: str, *, param: str, code: str) -> None:
        super().__init__(message, param=param, code=code)
        self.stream_id = stream_id


def error_event(error: RequestError) -> bytes:
    """Write the event of a refused request."""
    return _write_error(
        error.status, error_body(str(error), kind=error.kind, param=error.param, code=error.code)
    )


def http_error_event(status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
    """Write the event of an error that has been answered as HTTP has it."""
    parsed = parse_object(body, loads_exact) or {}
    error = read_error(parsed) or ApiError(f"The request failed with status {status}.")
    is_continued = error.param == PREVIOUS_RESPONSE_ID
    whole = error_body(
        error.message,
        kind=error.kind,
        param=error.param,
        code=NOT_FOUND_CODE if is_continued else error.code,
    )
    return _write_error(status, whole, _told_headers(headers))


def _write_error(status: int, body: Json, headers: Json | None = None) -> bytes:
    """Write an error event. Codex reads headers beside the error, OpenAI's SDK within it."""
    event = {"type": "error", "status": status, **body}
    if headers:
        event |= {"error": {**body["error"], "headers": headers}, "headers": headers}
    return dumps(event)


def _told_headers(headers: Iterable[tuple[bytes, bytes]]) -> Json:
    told = [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, value in ((name.lower(), value) for name, value in headers)
        if name in TOLD_HEADERS or name.startswith(LIMIT_HEADERS)
    ]
    return dict(told[:MAX_TOLD_HEADERS])


def with_error(event: Json) -> bytes:
    """Write an error event of a stream as a WebSocket has it, which has the error in a field of its
    own; what the stream's own says stays."""
    error = error_body(
        string(event.get("message")),
        param=string(event.get("param")) or None,
        code=string(event.get("code")) or None,
    )
    return dumps({"status": 500, **error, **event})


def with_stream_id(event: bytes, stream_id: str | None) -> bytes:
    """Return an event, a JSON object, as one of this stream."""
    if stream_id is None:
        return event
    head = event.rstrip().removesuffix(b"}")
    separator = b"" if head.rstrip().endswith(b"{") else b","
    return b'%b%b"stream_id":"%b"}' % (head, separator, stream_id.encode())


def warm_up_events(create: Create, response_id: str, created: int) -> list[bytes]:
    """Write the answer to a request that wants no output: its response can be continued."""
    response = new_response(create.fields, created, response_id)
    usage = RESPONSES_USAGE.write(Tokens())
    done = {**response, "status": "completed", "completed_at": created, "usage": usage}
    steps = (("created", response), ("in_progress", response), ("completed", done))
    return [
        dumps({"type": f"response.{step}", "response": shown, "sequence_number": number})
        for number, (step, shown) in enumerate(steps)
    ]
