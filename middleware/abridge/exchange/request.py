"""A request to an API, parsed, and changed as little as possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, cast

from starlette.types import Scope

from abridge.errors import RequestError
from abridge.exchange.body import Inflater, Taken, can_inflate, header, without
from abridge.exchange.crossing import cross, scope_at
from abridge.settings import Route
from abridge.turn.part import Style
from abridge.wire.api import Api, Asked, Asking, UpstreamApi
from abridge.wire.codec import Json, dumps, loads_exactly, read_object, string
from abridge.wire.preset import Preset
from abridge.wire.profile import Profile
from abridge.wire.wish import STYLES, check_allowed, grant, wish

SUMMARY = b"x-abridge-summary"
USAGE = b"x-abridge-usage"
CALL = b"x-abridge-call"

INDIVISIBLE = ("http.response.pathsend", "http.response.zerocopysend", "http.response.trailers")
"""ASGI extensions that send a response past the code that reads it."""


def clear_body(scope: Scope, came: bytes, limit: int) -> bytes:
    """Undo the body's content encoding. Raises RequestError if it is unsupported or invalid."""
    encoding = header(scope["headers"], b"content-encoding")
    if not encoding or encoding == b"identity":
        return came
    if not can_inflate(encoding):
        raise RequestError(
            "The request body has an encoding that is not supported.",
            status=415,
            param="content-encoding",
        )
    try:
        return Inflater(limit).feed(came)
    except ValueError as error:
        raise RequestError(f"The request body cannot be decoded: {error}.") from None


def model_of(body: bytes | None) -> str | None:
    """Return the model named in a JSON body, None if there is none."""
    data = read_object(body or b"")
    return string(data.get("model")) or None if data is not None else None


@dataclass(slots=True)
class Request:
    """A request whose body was parsed.

    `upstream`, `echo` and `client_scope` are set once the request is translated to another API.
    """

    api: Api
    scope: Scope
    taken: Taken
    clear: bytes  # the body without its content encoding
    data: Json  # the parsed body
    began: float  # when the body had been read, in monotonic seconds
    changed: bool = False  # if false, the body is sent on as it came
    upstream: UpstreamApi | None = None
    asked: Asked | None = None  # what the answer repeats
    came: Scope = field(default_factory=dict)  # the client's scope
    _written: bytes | None = None

    @classmethod
    def read(cls, api: Api, scope: Scope, taken: Taken, clear: bytes) -> Request | None:
        """Parse a request; None where the body is no JSON object, which upstream will report."""
        began, data = monotonic(), read_object(clear, loads_exactly)
        return None if data is None else cls(api, scope, taken, clear, data, began)

    @property
    def model(self) -> str:
        return string(self.data.get("model"))

    @property
    def background(self) -> bool:
        return self.data.get("background") is True

    @property
    def asks_sealed(self) -> bool | None:
        """Tell whether opaque state is requested; None if the API cannot express that. A
        summarizer's own call never does."""
        if header(self.scope["headers"], CALL) == b"summary":
            return False
        return self.api.sealed(self.asked.body if self.asked is not None else self.data)

    def style(self, route: Route) -> Style | None:
        """Return the requested summary style: the body's, else the header's, else the settings'
        default.

        Raises RequestError for an unknown style, or one that the settings do not allow.
        """
        if header(self.scope["headers"], CALL) == b"summary":
            return None
        asked, param = wish(self.data), "reasoning.summary"
        if asked is None:
            asked, param = self._header_style(), SUMMARY.decode()
        if asked is None:
            asked = route.summary.default
        elif asked != "off":
            check_allowed(asked, route.summary.allow, param)
        return None if asked == "off" else cast(Style, asked)

    def count(self, route: Route) -> Literal["merged", "separate"]:
        """Tell whether the summarizer's tokens are added to the totals."""
        asked = self._header(USAGE, ("merged", "separate"))
        return cast(Literal["merged", "separate"], asked) if asked else route.usage.count

    def again(self, scope: Scope) -> Request:
        """Return the request as it was read, in the given scope, without later changes.

        Its time starts now: the time before was spent on asking upstream's other API.
        """
        data = read_object(self.clear, loads_exactly) or {}
        return Request(self.api, scope, self.taken, self.clear, data, monotonic())

    def cross(self, upstream: UpstreamApi, asking: Asking, *, lenient: bool) -> tuple[str, ...]:
        """Translate the request in place to another API; return the dropped fields."""
        crossing = cross(self.data, self.api, upstream, asking, lenient=lenient)
        self.data, self.asked, self.changed = crossing.body, crossing.asked, True
        self.came, self.upstream = self.scope, upstream
        self.scope = scope_at(self.scope, self.api, upstream, asking.profile)
        return crossing.dropped

    def grant(self, *, summary_is_raw: bool) -> None:
        """Remove the request for a summary where upstream does not know the field, or would answer
        it with raw reasoning under that name."""
        if not self.api.knows_summary or summary_is_raw:
            self.changed = grant(self.data) or self.changed

    def fill(self, preset: Preset, profile: Profile) -> None:
        """Add the settings' defaults for fields that the client left out."""
        self.changed = bool(preset.fill(self.data, self.api.name, profile)) or self.changed

    def body(self) -> bytes:
        """Return the body for upstream, encoded once; nothing may be changed afterwards."""
        if self._written is None:
            self._written = dumps(self.data) if self.changed else self.clear
        return self._written

    def let_go(self) -> bytes:
        """Return the body for upstream and release the parsed one, which may be large."""
        body = self.body()
        self.data, self._written = {}, None
        return body

    def inner_scope(self, *, engaged: bool) -> Scope:
        """Return the scope for the application.

        It has the length of a changed body; if `engaged`, nothing in it lets the response go out
        unread or compressed.
        """
        headers, scope = self.scope["headers"], dict(self.scope)
        if self.changed or engaged:
            length = (b"content-length", str(len(self.body())).encode())
            headers = [*without(headers, (b"content-length", b"content-encoding")), length]
        if engaged:
            headers = without(headers, (b"accept-encoding",))
            known = self.scope.get("extensions") or {}
            scope["extensions"] = {key: known[key] for key in known if key not in INDIVISIBLE}
        return {**scope, "headers": headers}

    def _header_style(self) -> str | None:
        return self._header(SUMMARY, ("off", *STYLES))

    def _header(self, name: bytes, values: tuple[str, ...]) -> str | None:
        value = header(self.scope["headers"], name).decode("latin-1").strip()
        if not value:
            return None
        if value not in values:
            listed = ", ".join(map(repr, values))
            raise RequestError(
                f"Invalid value: {value!r:.80}. Supported values are: {listed}.",
                param=name.decode(),
                code="invalid_value",
            )
        return value
