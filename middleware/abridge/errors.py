"""The exceptions.

::

    AbridgeError
    ├── SettingsError      the settings are wrong; the server does not start
    ├── RequestError       the client's request is at fault; has a status and a field
    ├── AttemptFailed      upstream gave no answer; the request is sent again
    │   ├── EndpointMissing      it does not have the requested API
    │   ├── UpstreamUnavailable  it could not be reached, or is too busy
    │   ├── StateRefused         it does not take the reasoning state in the request
    │   └── FieldRefused         it does not take a field that Abridge added
    ├── EventTooLarge      upstream sent an event larger than `limits.event`
    ├── NestedTooDeep      JSON is nested too deep to be written; also a RecursionError
    ├── UpstreamBroken     upstream fell silent or disconnected within its response
    └── SummarizerError    a call gave no summary; has a code for the client
        └── SummaryWithheld    a review withheld what it gave
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp

    from abridge.core.usage import Tokens


class AbridgeError(Exception):
    """Base class of all exceptions that Abridge raises."""


class SettingsError(AbridgeError):
    """The settings are wrong. The message has a line for each mistake, which names the key."""


class RequestError(AbridgeError):
    """The request cannot be served. `param` names the field at fault; `headers` are added to the
    response. Its `kind` is as its status says, unless it is given."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str | None = None,
        param: str | None = None,
        code: str | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind or _kind_of(status)
        self.param = param
        self.code = code
        self.headers = headers


def _kind_of(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


class AttemptFailed(AbridgeError):
    """Upstream gave no answer, nothing was sent to the client, and the request is sent again in
    another way. Never shown to a client."""


class EndpointMissing(AttemptFailed):
    """Upstream responded that it does not have the endpoint.

    `answer` is an application that responds so again; None if that was too long to be kept.
    """

    answer: ASGIApp | None = None


class UpstreamUnavailable(AttemptFailed):
    """Upstream could not be reached, or responded that it is too busy, and another may answer.

    `cause` is a status or what failed; `retry_after` is upstream's header, empty if it sent none.
    """

    def __init__(self, cause: str, retry_after: bytes = b"") -> None:
        super().__init__(cause)
        self.cause = cause
        self.retry_after = retry_after


class StateRefused(AttemptFailed):
    """Upstream refused the request because of opaque reasoning state in it."""


class FieldRefused(AttemptFailed):
    """Upstream refused the request because of a `field` that Abridge had added."""

    def __init__(self, field: str) -> None:
        super().__init__(field)
        self.field = field


class EventTooLarge(AbridgeError):
    """An event from upstream is larger than `limits.event` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"An event from upstream is larger than {limit} bytes.")


class MemoryShort(AbridgeError):
    """What waits of an answer to be whole is more than `limits.bodies` has room for."""

    def __init__(self) -> None:
        super().__init__("Too many bytes of other requests and answers are waiting.")


class NestedTooDeep(AbridgeError, RecursionError):
    """JSON is nested too deep to be written.

    It is a RecursionError, too, since whatever reads JSON level by level fails so.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(f"The JSON is nested deeper than {limit} levels.")


class UpstreamBroken(AbridgeError):
    """Upstream's response has begun and will not be completed.

    The message may be shown to a client. `code` is `upstream_timeout` or `upstream_broken`,
    `upstream` the upstream's name in the settings.
    """

    def __init__(
        self, message: str, *, code: str = "upstream_broken", upstream: str = "default"
    ) -> None:
        super().__init__(message)
        self.code = code
        self.upstream = upstream


class SummarizerError(AbridgeError):
    """A summarizer call gave no summary.

    `code` is `timeout`, `upstream_error`, `empty`, `withheld`, one of `summarizers.checks`, or your
    own, up to 32 lowercase letters and underscores. Clients may see the message. Notes
    (`add_note`) on an error of Abridge's own are for the log alone. `spent` and `model` are what
    the call still reported.
    """

    def __init__(
        self, code: str, message: str, *, spent: Tokens | None = None, model: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.spent = spent
        self.model = model


class SummaryWithheld(SummarizerError):
    """A review withheld a part, or could not check it.

    `stops`: no further part of the response may be shown.
    """

    def __init__(self, message: str, *, stops: bool = False) -> None:
        super().__init__("withheld", message)
        self.stops = stops
