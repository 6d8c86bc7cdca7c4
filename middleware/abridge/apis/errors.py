"""The errors of an answer on any API, and the translation of an upstream's error body."""

from __future__ import annotations

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.json import dumps, parse_object
from abridge.core.events import ErrorDetail

CONNECTION_LOST = ErrorDetail(
    "upstream_error", "The connection to upstream ended before the answer did."
)

ANSWER_TOO_LONG = ErrorDetail("upstream_error", "The answer is longer than limits.event allows.")

UNREADABLE = ErrorDetail("upstream_error", "What upstream answered could not be read.")

CALL_CHANGED = ErrorDetail(
    "upstream_error", "Upstream ended a call with other arguments than it had streamed."
)

SECOND_ANSWER = ErrorDetail("upstream_error", "Upstream began another answer within this one.")

TURN_PAUSED = ErrorDetail(
    "upstream_error", "Upstream paused its turn, which clients of this API have no way to resume."
)

TEXT_CHANGED = ErrorDetail(
    "upstream_error", "Upstream ended a text with other words than it had streamed."
)

CALL_REOPENED = ErrorDetail("upstream_error", "Upstream went on with a call that was complete.")

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


def _without_list(body: bytes) -> bytes:
    """Return the only entry of a list: Google wraps the errors of some streams in one."""
    stripped = body.strip()
    return stripped[1:-1] if stripped[:1] == b"[" and stripped[-1:] == b"]" else body
