"""A request to an API, read as far as Abridge needs to know it, and changed as little."""

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
"""Extensions by which a response goes past whoever reads it."""


def clear_body(scope: Scope, came: bytes, limit: int) -> bytes:
    """The body without its content encoding. Raises RequestError if that cannot be undone here."""
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
    """The model that a JSON body names, if it does."""
    data = read_object(body or b"")
    return string(data.get("model")) or None if data is not None else None


@dataclass(slots=True)
class Request:
    """`data` is what the body says; with `changed` false the body goes on as it came. `began` is
    when it had been read, in seconds of the monotonic clock.

    Where upstream speaks another API than the client, that is `upstream`, `asked` what its answer
    has to repeat, and `came` the scope in which the client asked.
    """

    api: Api
    scope: Scope
    taken: Taken
    clear: bytes
    data: Json
    began: float
    changed: bool = False
    upstream: UpstreamApi | None = None
    asked: Asked | None = None
    came: Scope = field(default_factory=dict)
    _written: bytes | None = None

    @classmethod
    def read(cls, api: Api, scope: Scope, taken: Taken, clear: bytes) -> Request | None:
        """The request, or None where the body is no JSON object: its upstream will say so."""
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
        """See `Api.sealed`. No summary's own call does."""
        if header(self.scope["headers"], CALL) == b"summary":
            return False
        return self.api.sealed(self.asked.body if self.asked is not None else self.data)

    def style(self, route: Route) -> Style | None:
        """The summary asked for: by the body, else the header, else the settings.

        Raises RequestError for what is no style, or not one that settings allow.
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
        """Whether the summarizer's tokens go into the totals."""
        asked = self._header(USAGE, ("merged", "separate"))
        return cast(Literal["merged", "separate"], asked) if asked else route.usage.count

    def again(self, scope: Scope) -> Request:
        """The request as it was read, in the scope it had then, whatever was made of it since; for
        who was asked meanwhile, it begins now."""
        data = read_object(self.clear, loads_exactly) or {}
        return Request(self.api, scope, self.taken, self.clear, data, monotonic())

    def cross(self, upstream: UpstreamApi, asking: Asking, *, lenient: bool) -> tuple[str, ...]:
        """Become a request to another API; return the fields that are lost on the way."""
        crossing = cross(self.data, self.api, upstream, asking, lenient=lenient)
        self.data, self.asked, self.changed = crossing.body, crossing.asked, True
        self.came, self.upstream = self.scope, upstream
        self.scope = scope_at(self.scope, self.api, upstream, asking.profile)
        return crossing.dropped

    def grant(self, *, summary_is_raw: bool) -> None:
        """Take out the wish for a summary where upstream does not know it, or would take it for a
        wish to show its raw reasoning under that name."""
        if not self.api.knows_summary or summary_is_raw:
            self.changed = grant(self.data) or self.changed

    def fill(self, preset: Preset, profile: Profile) -> None:
        """Say what settings say, where the client does not."""
        self.changed = bool(preset.fill(self.data, self.api.name, profile)) or self.changed

    def body(self) -> bytes:
        """What upstream is sent; written once, after which nothing is changed."""
        if self._written is None:
            self._written = dumps(self.data) if self.changed else self.clear
        return self._written

    def let_go(self) -> bytes:
        """What upstream is sent; what was read, which may be much, is not kept beside it."""
        body = self.body()
        self.data, self._written = {}, None
        return body

    def inner_scope(self, *, engaged: bool) -> Scope:
        """The scope for the application: with the length of a changed body, and without what would
        let a response that is to be read go out unread."""
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
