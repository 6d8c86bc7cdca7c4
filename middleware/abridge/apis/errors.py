"""The errors of an answer on any API: translated, or told in Abridge's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from abridge.apis.api import Api, UpstreamApi, WriteError
from abridge.apis.credentials import Header
from abridge.apis.json import as_object, dumps, parse_object, string
from abridge.apis.shapes import DROPPED, DropCount, either, fields, rebuild, text
from abridge.core.conversation import Json
from abridge.core.events import AnswerFault, ErrorDetail, ResponseEnded

CONNECTION_LOST = AnswerFault(
    "upstream_error", "The connection to upstream ended before the answer did."
)

ANSWER_TOO_LONG = AnswerFault("upstream_error", "The answer is longer than limits.event allows.")

UNREADABLE = AnswerFault("upstream_error", "Upstream's answer could not be read.")

CALL_CHANGED = AnswerFault(
    "upstream_error", "Upstream ended a call with different arguments from those it had streamed."
)

CALL_CUT = AnswerFault(
    "upstream_error", "A call was open while more came than limits.reasoning has room for."
)

SECOND_ANSWER = AnswerFault("upstream_error", "Upstream began another answer inside this one.")

TURN_PAUSED = AnswerFault(
    "upstream_error", "Upstream paused its turn, and clients of this API cannot resume it."
)

TEXT_CHANGED = AnswerFault(
    "upstream_error", "Upstream ended a text with different words from those it had streamed."
)

TIMEOUT_CODE = "upstream_timeout"
"""`UpstreamBroken.code` where upstream fell silent."""


def translate_error(
    body: bytes,
    upstream: UpstreamApi,
    api: Api,
    status: int | None = None,
    *,
    request_id: str = "",
) -> bytes:
    """Return an error body in the shape of the client's API; anything else unchanged. It names the
    request as upstream's does, else by `request_id`."""
    if upstream.read_error is api.upstream.read_error:
        return body
    error = upstream.read_error(parse_object(_without_list(body)) or {})
    if error is None:
        return body
    written = api.write_error(
        error.message, kind=error.kind, param=error.param, code=error.code, status=status
    )
    request_id = error.request_id or request_id
    return dumps({**written, **({"request_id": request_id} if request_id else {})})


def read_detail(holder: Json) -> ErrorDetail:
    """Read the error that an answer, or an event of one, holds: an object with a message, or a
    text."""
    error = holder.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return ErrorDetail("upstream_error", string(message))


def failure_of(end: ResponseEnded, reported: ErrorDetail | None = None) -> ErrorDetail | None:
    """Return why an answer fails, if it does: by its end, else by what was `reported` before that,
    else since the connection was lost."""
    return end.error or (None if end.ok else reported or CONNECTION_LOST)


def with_error_type(event: Json) -> Json:
    """Return an event or a body with the type of an error, which some gateways leave out."""
    is_untyped = event.get("error") is not None and "type" not in event
    return {"type": "error", **event} if is_untyped else event


def _without_list(body: bytes) -> bytes:
    """Return the only entry of a list: Google wraps the errors of some streams in one."""
    stripped = body.strip()
    return stripped[1:-1] if stripped[:1] == b"[" and stripped[-1:] == b"]" else body


# Where reasoning is hidden, an error is told in Abridge's own words, since it may quote anything:
# the answer that failed, or the text that could not be parsed. Only what identifies it is kept. An
# error that refuses a request came before there was an answer: it keeps upstream's words, by which
# clients know that a conversation is too long, unless they may repeat what the request hides.

UPSTREAM_FAILED = "Upstream reported an error."
"""Stands for what upstream says of an error within an answer."""

MESSAGES_BY_STATUS: Mapping[int, str] = {
    401: "Upstream did not accept the credential.",
    402: "Upstream requires payment.",
    403: "Upstream does not permit this request.",
    404: "Upstream did not find what was requested.",
    405: "Upstream does not have this endpoint.",
    408: "Upstream did not receive the request in time.",
    413: "The request is too large for upstream.",
    429: "Upstream received too many requests, or a quota is used up.",
    503: "Upstream is unavailable or overloaded.",
    504: "Upstream did not answer in time.",
    529: "Upstream is unavailable or overloaded.",
}

REJECTED, FAILED = "Upstream rejected the request.", "Upstream failed to answer."
"""For any other status below 500, and for any other."""

ERROR_TYPES = frozenset(
    {
        *("invalid_request_error", "authentication_error", "permission_error", "not_found_error"),
        *("rate_limit_error", "insufficient_quota", "requests", "tokens", "server_error"),
        *("api_error", "overloaded_error", "timeout_error", "billing_error", "request_too_large"),
    }
)
"""Types of errors that OpenAI's APIs, Anthropic's and those like them use."""

TYPES_BY_STATUS: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}

GENERATED_FIELDS = frozenset(
    {
        *("choices", "output", "content", "candidates", "response"),
        "failed_generation",  # console.groq.com/docs/errors
    }
)
"""Fields of an error, or beside it, that hold what a model has written by then."""

KEPT_HEADERS = re.compile(
    rb"retry-after(-ms)?|x-should-retry|(x-|anthropic-)?ratelimit-.*|(x-)?request-id|allow|date"
    rb"|access-control-.*|vary",
    re.IGNORECASE,
)
"""Headers of an error response that say when to retry, who asked, and who may read it."""

_IDENTIFIER = re.compile(r"[A-Za-z0-9_.:\[\]-]{1,64}")


def message(value: Any, drops: DropCount) -> Any:
    """The shape of an error's message, which is no field that is dropped."""
    if value is None:
        return None
    drops.hidden["error"] += 1
    return UPSTREAM_FAILED


def identifier(value: Any, drops: DropCount) -> Any:
    """The shape of what identifies an error: its type, its code, the field at fault."""
    if value is None or isinstance(value, int):
        return value
    return _identifier(value) or drops.drop(value)


ERROR = either(
    message,
    fields(dict.fromkeys(("type", "param", "code"), identifier), message=message),
)
"""The shape of an error within an answer."""


def whole_error(error: Any, drops: DropCount) -> Json | None:
    """The shape of an error with all the fields that OpenAI's have."""
    if not error:
        return None
    drops.hidden["error"] += 1
    given = {"type": None, "param": None, "code": None, **as_object(error)}
    rebuilt = {name: identifier(given[name], drops) for name in ("type", "param", "code")}
    known = {name: None if value is DROPPED else value for name, value in rebuilt.items()}
    return {"message": UPSTREAM_FAILED, **known, "type": known["type"] or "server_error"}


def without_message(error: ErrorDetail) -> ErrorDetail:
    """Return an error that a reader has read, without upstream's words."""
    return replace(error, message=UPSTREAM_FAILED)


MayQuote: TypeAlias = Callable[[str], bool]
"""Returns whether a text of upstream's may repeat what its client must not read."""


def rewrite_error_body(
    status: int, body: bytes, write_error: WriteError, *, words: str = ""
) -> Json:
    """Return the error body for one of upstream's, which says this, if anything, in its words."""
    error = as_object((parse_object(body) or {}).get("error"))
    is_client_error = status < 500
    code, kind = error.get("code"), string(error.get("type"))
    if kind not in ERROR_TYPES:
        other = "invalid_request_error" if is_client_error else "server_error"
        kind = TYPES_BY_STATUS.get(status, other)
    return write_error(
        words or MESSAGES_BY_STATUS.get(status, REJECTED if is_client_error else FAILED),
        kind=kind,
        param=_identifier(error.get("param")),
        code=_identifier(str(code) if isinstance(code, int) else code),
        status=status,
    )


def words_of_refusal(status: int, body: bytes, may_quote: MayQuote) -> str:
    """Return what upstream, of any API, says of a request that it refuses; nothing if there may be
    reasoning in it."""
    refused = parse_object(body) or {}
    error = refused.get("error")
    has_answered = not GENERATED_FIELDS.isdisjoint({*refused, *as_object(error)})
    if status >= 500 or has_answered:
        return ""
    given = (as_object(error).get("message"), error, refused.get("message"), refused.get("detail"))
    said = next(filter(None, map(string, given)), "")
    return "" if not said or may_quote(said) else string(rebuild(said, text, DropCount()))


def kept_headers(headers: Iterable[Header]) -> list[Header]:
    """Return the headers of an error response that are passed on."""
    return [header for header in headers if KEPT_HEADERS.fullmatch(header[0])]


def _identifier(value: object) -> str | None:
    return value if isinstance(value, str) and _IDENTIFIER.fullmatch(value) else None
