"""Errors of upstream where reasoning is hidden, told in Abridge's own words.

An error may quote anything: the answer that failed, or the text that could not be parsed. Of an
error body only what identifies the error is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from abridge.apis.api import WriteError
from abridge.apis.credentials import Header
from abridge.apis.json import as_object, parse_object, string
from abridge.core.conversation import Json

SENTENCES: Mapping[int, str] = MappingProxyType(
    {
        401: "Upstream did not accept the credential.",
        402: "Upstream asks for payment.",
        403: "Upstream does not permit this request.",
        404: "Upstream does not have what was requested.",
        405: "Upstream does not have this endpoint.",
        408: "Upstream did not get the request in time.",
        413: "The request is too large for upstream.",
        429: "Upstream got too many requests, or a quota is used up.",
        503: "Upstream is unavailable or overloaded.",
        504: "Upstream did not answer in time.",
        529: "Upstream is unavailable or overloaded.",
    }
)

REJECTED, FAILED = "Upstream rejected the request.", "Upstream failed to answer."
"""For any other status below 500, and for any other."""

ERROR_TYPES = frozenset(
    {
        *("invalid_request_error", "authentication_error", "permission_error", "not_found_error"),
        *("rate_limit_error", "insufficient_quota", "requests", "tokens", "server_error"),
        *("api_error", "overloaded_error", "timeout_error"),
    }
)
"""Types of errors that OpenAI's APIs and those like them use."""

TYPES_BY_STATUS: Mapping[int, str] = MappingProxyType(
    {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
)

KEPT_HEADERS = re.compile(
    rb"retry-after(-ms)?|x-should-retry|(x-|anthropic-)?ratelimit-.*|(x-)?request-id|allow|date"
    rb"|access-control-.*|vary",
    re.IGNORECASE,
)
"""Headers of an error response that say when to retry, who asked, and who may read it."""

_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")

_PARAM = re.compile(r"[A-Za-z0-9_.\[\]-]{1,64}")


def retell_error(status: int, body: bytes, write_error: WriteError) -> Json:
    """Return the error body for one of upstream's."""
    error = as_object((parse_object(body) or {}).get("error"))
    is_client_error = status < 500
    kind = string(error.get("type"))
    if kind not in ERROR_TYPES:
        other = "invalid_request_error" if is_client_error else "server_error"
        kind = TYPES_BY_STATUS.get(status, other)
    return write_error(
        SENTENCES.get(status, REJECTED if is_client_error else FAILED),
        kind=kind,
        param=_identifier(error.get("param"), _PARAM),
        code=_identifier(error.get("code"), _CODE),
    )


def kept_headers(headers: Iterable[Header]) -> list[Header]:
    """Return the headers of an error response that are passed on."""
    return [header for header in headers if KEPT_HEADERS.fullmatch(header[0])]


def _identifier(value: object, pattern: re.Pattern[str]) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None
