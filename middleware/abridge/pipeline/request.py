"""A request to an API, parsed, and changed as little as possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import Literal, cast

from starlette.types import Scope

from abridge.apis.api import Api, RequestEcho, UpstreamApi, UpstreamOptions
from abridge.apis.defaults import RequestDefaults
from abridge.apis.json import dumps, loads_exact, parse_object, string
from abridge.apis.summary_request import (
    STYLE_NAMES,
    check_style_allowed,
    remove_summary_request,
    requested_style,
)
from abridge.config.settings import Route
from abridge.core.conversation import Json
from abridge.core.styles import SummaryStyle
from abridge.errors import RequestError
from abridge.http.asgi import BYPASSING_EXTENSIONS, Inflater, can_inflate, drop_headers, get_header
from abridge.pipeline.body import BufferedBody
from abridge.pipeline.translation import scope_for_upstream, translate
from abridge.providers.profile import Profile

SUMMARY_HEADER = b"x-abridge-summary"

USAGE_HEADER = b"x-abridge-usage"

CALL_HEADER = b"x-abridge-call"


def decode_body(scope: Scope, received: bytes, limit: int) -> bytes:
    """Undo the body's content encoding. Raises RequestError if it is unsupported or invalid."""
    encoding = get_header(scope["headers"], b"content-encoding")
    if not encoding or encoding == b"identity":
        return received
    if not can_inflate(encoding):
        raise RequestError(
            "The request body has an encoding that is not supported.",
            status=415,
            param="content-encoding",
        )
    try:
        return Inflater(limit).feed(received)
    except ValueError as error:
        raise RequestError(f"The request body cannot be decoded: {error}.") from None


def parse_model(body: bytes | None) -> str | None:
    """Return the model named in a JSON body, None if there is none."""
    data = parse_object(body or b"")
    return string(data.get("model")) or None if data is not None else None


@dataclass(slots=True)
class ApiRequest:
    """A request whose body was parsed.

    `upstream`, `echo` and `client_scope` are set once the request is translated to another API.
    """

    api: Api
    scope: Scope
    buffered: BufferedBody
    decoded: bytes  # the body without its content encoding
    data: Json  # the parsed body
    read_at: float  # when the body had been read, in monotonic seconds
    changed: bool = False  # if false, the body is sent on as it came
    upstream: UpstreamApi | None = None
    echo: RequestEcho | None = None  # what the answer repeats
    client_scope: Scope = field(default_factory=dict)  # the client's scope
    _encoded: bytes | None = None

    @classmethod
    def read(
        cls, api: Api, scope: Scope, buffered: BufferedBody, decoded: bytes
    ) -> ApiRequest | None:
        """Parse a request; None where the body is no JSON object, which upstream will report."""
        read_at, data = monotonic(), parse_object(decoded, loads_exact)
        return None if data is None else cls(api, scope, buffered, decoded, data, read_at)

    @property
    def model(self) -> str:
        return string(self.data.get("model"))

    @property
    def background(self) -> bool:
        return self.data.get("background") is True

    @property
    def wants_opaque_state(self) -> bool | None:
        """Tell whether opaque state is requested; None if the API cannot express that. A
        summarizer's own call never does."""
        if get_header(self.scope["headers"], CALL_HEADER) == b"summary":
            return False
        return self.api.wants_state(self.echo.body if self.echo is not None else self.data)

    def summary_style(self, route: Route) -> SummaryStyle | None:
        """Return the requested summary style: the body's, else the header's, else the settings'
        default.

        Raises RequestError for an unknown style, or one that the settings do not allow.
        """
        if get_header(self.scope["headers"], CALL_HEADER) == b"summary":
            return None
        requested, param = requested_style(self.data), "reasoning.summary"
        if requested is None:
            requested, param = self._header_style(), SUMMARY_HEADER.decode()
        if requested is None:
            requested = route.summary.default
        elif requested != "off":
            check_style_allowed(requested, route.summary.allow, param)
        return None if requested == "off" else cast(SummaryStyle, requested)

    def usage_mode(self, route: Route) -> Literal["merged", "separate"]:
        """Tell whether the summarizer's tokens are added to the totals."""
        requested = self._header_value(USAGE_HEADER, ("merged", "separate"))
        return cast(Literal["merged", "separate"], requested) if requested else route.usage.count

    def reread(self, scope: Scope) -> ApiRequest:
        """Return the request as it was read, in the given scope, without later changes.

        Its time starts now: the time before was spent on asking upstream's other API.
        """
        data = parse_object(self.decoded, loads_exact) or {}
        return ApiRequest(self.api, scope, self.buffered, self.decoded, data, monotonic())

    def translate(
        self, upstream: UpstreamApi, options: UpstreamOptions, *, lenient: bool
    ) -> tuple[str, ...]:
        """Translate the request in place to another API; return the dropped fields."""
        translation = translate(self.data, self.api, upstream, options, lenient=lenient)
        self.data, self.echo, self.changed = translation.body, translation.echo, True
        self.client_scope, self.upstream = self.scope, upstream
        self.scope = scope_for_upstream(self.scope, self.api, upstream, options.profile)
        return translation.dropped

    def remove_summary_request(self, *, summary_is_raw: bool) -> None:
        """Remove the request for a summary where upstream does not know the field, or would answer
        it with raw reasoning under that name."""
        if not self.api.has_summary_field or summary_is_raw:
            self.changed = remove_summary_request(self.data) or self.changed

    def apply_defaults(self, defaults: RequestDefaults, profile: Profile) -> None:
        """Add the settings' defaults for fields that the client left out."""
        self.changed = bool(defaults.fill(self.data, self.api, profile)) or self.changed

    def upstream_body(self) -> bytes:
        """Return the body for upstream, encoded once; nothing may be changed afterwards."""
        if self._encoded is None:
            self._encoded = dumps(self.data) if self.changed else self.decoded
        return self._encoded

    def release_body(self) -> bytes:
        """Return the body for upstream and release the parsed one, which may be large."""
        body = self.upstream_body()
        self.data, self._encoded = {}, None
        return body

    def app_scope(self, *, engaged: bool) -> Scope:
        """Return the scope for the application.

        It has the length of a changed body; if `engaged`, nothing in it lets the response go out
        unread or compressed.
        """
        headers, scope = self.scope["headers"], dict(self.scope)
        if self.changed or engaged:
            length = (b"content-length", str(len(self.upstream_body())).encode())
            headers = [*drop_headers(headers, (b"content-length", b"content-encoding")), length]
        if engaged:
            headers = drop_headers(headers, (b"accept-encoding",))
            extensions = self.scope.get("extensions") or {}
            scope["extensions"] = {
                key: extensions[key] for key in extensions if key not in BYPASSING_EXTENSIONS
            }
        return {**scope, "headers": headers}

    def _header_style(self) -> str | None:
        return self._header_value(SUMMARY_HEADER, ("off", *STYLE_NAMES))

    def _header_value(self, name: bytes, allowed: tuple[str, ...]) -> str | None:
        value = get_header(self.scope["headers"], name).decode("latin-1").strip()
        if not value:
            return None
        if value not in allowed:
            listed = ", ".join(map(repr, allowed))
            raise RequestError(
                f"Invalid value: {value!r:.80}. Supported values are: {listed}.",
                param=name.decode(),
                code="invalid_value",
            )
        return value
