"""Choose the kind of answer by the start of the response."""

from __future__ import annotations

from starlette.types import Message

from abridge.exchange.answers.answer import Answer, Parts
from abridge.exchange.answers.stream import Stream
from abridge.exchange.answers.unread import Refused, Restated, Untouched
from abridge.exchange.answers.whole import Whole
from abridge.exchange.body import Inflater, can_inflate, header

EVENT_STREAM = b"text/event-stream"


def begin(start: Message, parts: Parts) -> Answer:
    """Return the answer for this `http.response.start`."""
    headers = start.get("headers", [])
    kind = header(headers, b"content-type").split(b";")[0].strip().lower()
    encoding = header(headers, b"content-encoding")
    stream = kind == EVENT_STREAM
    whole = kind == b"application/json" or kind.endswith(b"+json")
    if not 200 <= start["status"] < 300 or start["status"] == 204:
        return _no_answer(start, parts)
    if not (stream or whole) or (encoding and not can_inflate(encoding)):
        return Refused(parts.client) if parts.opaque else Untouched(start, parts.client)
    inflate = Inflater(parts.limit).feed if encoding else bytes
    return Stream(start, parts, inflate) if stream else Whole(start, parts, inflate)


def _no_answer(start: Message, parts: Parts) -> Answer:
    """Choose the answer where upstream sent an error, a redirect or no content.

    For a client of another API a redirect would lead to an endpoint it does not speak, and no
    content means nothing.
    """
    if start["status"] >= 400 and parts.opaque:
        return Restated(start, parts)
    return Untouched(start, parts.client) if parts.problem is None else Refused(parts.client)
