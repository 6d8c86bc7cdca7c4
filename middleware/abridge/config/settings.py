"""Every setting, with its default and unit.

Sizes are in bytes (`"32MiB"` is accepted), or in characters where the name says so; times are in
seconds. Settings that contradict each other are rejected at startup, not at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    ByteSize,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from abridge.apis.display import Exposure, FieldChoice
from abridge.apis.effort_limits import EffortLimits
from abridge.apis.model_names import ModelRenames
from abridge.config.review import EXTRACT_UNREVIEWED, ReviewSettings
from abridge.config.setting_types import (
    BaseUrl,
    PathGlob,
    ProfileName,
    Size,
    StoreAddress,
    SummaryLanguage,
    Table,
    TenantRule,
    explain_error,
)
from abridge.config.upstreams import UpstreamSettings
from abridge.core.language import AUTO
from abridge.core.styles import STYLES, SummaryStyle
from abridge.http.hosts import is_loopback_name

KiB, MiB = 1 << 10, 1 << 20

ROUTE = "abridge.route"
"""The scope key under which the middleware passes the `Route` it chose to the proxy."""

KEEP_ALIVE_SECONDS = 120.0
"""Seconds after which an idle connection is closed: more than clients keep one in their pools, so
that none sends a request on a connection that is being closed. undici (Node) keeps it for 4, httpx
5, aiohttp 15, nginx and AWS load balancers 60, Go and hyper 90."""

FAILS_OVER = "abridge.fails_over"
"""The scope key by which the proxy is told that another upstream is asked where this one cannot
answer."""

UPLOAD_GRACE = 30.0
"""Seconds for which no rate is asked of a request body."""

GENERAL_KEYS = (("history", "seal_keys_env"), ("reasoning", "open_paths"))
"""Keys, each with its table, that hold for all upstreams alike."""

T = TypeVar("T", bound="Table")


class ServerSettings(Table):
    """The listeners, processes and shutdown of `abridge serve`."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8400  # 0: any free port
    admin_port: Annotated[int, Field(ge=0, le=65535)] | None = None  # metrics and health alone
    workers: PositiveInt = 1  # processes that serve
    page: bool = False  # serve the page at `/abridge`, which lists recent exchanges
    allowed_hosts: tuple[str, ...] | None = None
    """Globs of the names by which clients may address it, besides `localhost` and IP addresses.
    None: no others where it listens on loopback, nor for the page; else all."""
    allowed_origins: tuple[str, ...] = ()
    """Globs of the origins of other web sites that may send requests from a browser."""
    keep_alive: PositiveFloat = KEEP_ALIVE_SECONDS
    """For which a client's connection may be idle between two requests, at least."""
    websockets: bool | None = None
    """Whether to serve the Responses API over WebSocket as well. None: in `abridge serve` only,
    since what admits requests around a mounted one may see HTTP alone."""
    drain_delay: NonNegativeFloat = 0.0  # after SIGTERM, accept requests this long while not ready
    drain: NonNegativeFloat = 60.0  # then let running requests finish within this time

    @property
    def served_hosts(self) -> tuple[str, ...]:
        """Globs of the names by which clients may address the server."""
        if self.allowed_hosts is not None:
            return self.allowed_hosts
        return () if is_loopback_name(self.host) else ("*",)


class SummarySettings(Table):
    """When to make a summary, how to cut it into parts, and how long the answer may wait for it."""

    default: Literal["off", SummaryStyle] = "off"  # for requests that name none
    allow: tuple[SummaryStyle, ...] = tuple(STYLES)
    language: SummaryLanguage = AUTO
    """`auto`: of the last user message where that is clear, else the reasoning's; `reasoning`: the
    reasoning's; or a language tag."""
    live: bool = True  # make parts while reasoning streams; false: one summary at its end
    part_chars: PositiveInt = 1500  # of reasoning for a part; wide characters count 2.5
    max_parts: PositiveInt = 40  # beyond it, each part takes twice as much as the one before
    tail_chars: NonNegativeInt | None = None
    """Leave out the rest if it is shorter. None: 80 for the embedded summarizer, else 400."""
    min_chars: PositiveInt = 1  # make no summary of less reasoning
    max_overhead: PositiveFloat | None = None  # summary tokens as a share of the model's own tokens
    grace: NonNegativeFloat = 5.0  # how long the answer may wait
    first_token: NonNegativeFloat = 2.0  # how much of the grace a part without any text gets
    on_failure: Literal["omit", "extract", "fail"] = "omit"


class PromptSettings(Table):
    """Instructions for the summarizer that replace the built-in ones of a style; None keeps those.

    Each may contain `{titles}`: the titles of the earlier parts.
    """

    auto: str | None = None
    concise: str | None = None
    detailed: str | None = None
    title: str | None = None


class SummarizerSettings(Table):
    """The summarizer, and how it is called."""

    kind: Literal["extractive", "model", "upstream", "object"] = "extractive"
    """`extractive` runs in process, `model` is a model of its own, `upstream` the request's own
    model, `object` one passed to the middleware."""
    base_url: BaseUrl | None = None
    model: str | None = None
    api: Literal["chat", "responses", "messages"] = "chat"
    profile: ProfileName = "auto"  # says how to switch the model's thinking off
    api_key_env: str | None = None  # the environment variable that holds the API key
    temperature: NonNegativeFloat | None = 0.3
    max_tokens: PositiveInt = 600  # a detailed part in Chinese or Japanese takes some 450
    timeout: PositiveFloat = 15.0
    max_input_chars: PositiveInt = 12000  # longer reasoning keeps its head and tail
    max_in_flight: PositiveInt = 64  # calls at once; beyond it, summaries are shed
    extra_body: dict[str, Any] = Field(
        default_factory=dict
    )  # fields added to each call's request body
    prompts: PromptSettings = PromptSettings()
    breaker_failures: PositiveInt = 5  # failures in a row that open the circuit breaker
    breaker_seconds: PositiveFloat = 30.0  # how long it stays open

    @model_validator(mode="after")
    def _check_complete(self) -> SummarizerSettings:
        if self.kind == "model" and not (self.base_url and self.model):
            missing = "model" if self.base_url else "base_url"
            raise ValueError(f"kind = 'model' needs {missing}")
        return self


class ReasoningSettings(Table):
    """The exposure of reasoning in answers for which a summary is made."""

    expose: Exposure = "auto"
    kind: Literal["auto", "raw", "summary"] = "auto"
    """What upstream calls reasoning: raw, or a summary already. `auto`: what the profile says of
    the model."""
    open_paths: tuple[PathGlob, ...] = ()
    """Globs of further paths that pass unread where reasoning is hidden."""
    hold_text: bool = True
    """Where reasoning is hidden, hold text back until it cannot be thinking that only a closing tag
    would tell; false: the upstream's text is never that."""


class ChatSettings(Table):
    """The fields of Chat Completions that carry summaries and reasoning."""

    summary_field: FieldChoice = "auto"
    raw_field: FieldChoice = "auto"
    details: bool = False  # fill `reasoning_details`, too
    envelope: Literal["reasoning_details", "thinking_blocks", "none"] = "reasoning_details"
    """The field that carries sealed reasoning."""


class HistorySettings(Table):
    """The memory of earlier reasoning: what is stored, sealed and sent upstream again."""

    restore: Literal["never", "altered", "always"] = "altered"
    """Put back into later requests: nothing, what Abridge hid or replaced, or also what the client
    dropped."""
    keep: Literal["client", "none", "tool_rounds", "all"] = "client"
    """Earlier reasoning that is sent upstream: what the client returned and what is put back, none,
    all since the last user message, or all."""
    store: StoreAddress = "memory"
    ttl: PositiveFloat = 3600.0  # how long the store remembers
    bytes: Size = ByteSize(64 * MiB)  # how much the store `memory` holds
    seal_keys_env: str | None = None  # the environment variable that holds the sealing keys
    seal_ttl: PositiveFloat = 30 * 86400.0  # the age up to which sealed reasoning is accepted
    tenant: TenantRule = "credential"  # the request headers that tell tenants apart
    anonymous: bool | Literal["loopback"] = "loopback"
    """Treat all requests without a credential as one tenant: always, never, or over loopback."""

    @property
    def is_shared(self) -> bool:
        """True if other processes can reach the store, too."""
        return "://" in self.store


class UsageSettings(Table):
    """The report of the summarizer's tokens."""

    count: Literal["merged", "separate"] = "merged"  # merged: added to the totals


class AttributionSettings(Table):
    """Fields on tool calls that name the reasoning which led to them, as far as it is shown."""

    enabled: bool = False


class LimitSettings(Table):
    """Ceilings of memory, time and concurrency, for each process.

    Beyond a ceiling there is backpressure, degraded service or a clear error, but never growth.
    """

    body: Size = ByteSize(32 * MiB)  # one request body
    bodies: Size = ByteSize(512 * MiB)  # all buffered request bodies together; beyond it, 503
    items: PositiveInt = 20_000  # messages or input items of one request; beyond it, 400
    values: PositiveInt = 200_000
    """JSON values in one request body; beyond it, 400. They take more memory and time than text
    does, up to a hundred times as much."""
    held: Size = ByteSize(256 * KiB)
    """Of an answer that waits for its summary, after which upstream is not read until it waits no
    more: at the end of `summary.grace`, if not before. That is more than a fast model streams
    within the default grace."""
    reasoning: Size = ByteSize(4 * MiB)  # raw reasoning kept of one answer
    event: Size = ByteSize(16 * MiB)  # one event from upstream
    connect: PositiveFloat = 5.0  # to connect to upstream
    headers: PositiveFloat = 600.0  # of silence before upstream's response headers
    idle: PositiveFloat = 300.0  # of silence between two chunks of upstream's response body
    client: PositiveFloat = 60.0
    """In which a client of the sidecar neither sends nor reads, or does not complete a head."""
    in_flight: PositiveInt = 1000  # forwarded requests at once; beyond it, 503
    connections: PositiveInt = 4096  # of clients of the sidecar at once; beyond it, 503
    client_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Of `connections` and `bodies`, what one client address may hold; at least one of them. Of
    `in_flight` it may hold all but a tenth, or all where this is 1."""
    upload: PositiveFloat = 300.0  # in which a request body must have arrived
    upload_rate: Size = ByteSize(10 * KiB)  # a second; a request body comes no slower on average

    def upload_seconds(self, received: int) -> float:
        """Return the seconds after which so many bytes of a request body are too few."""
        return min(self.upload, UPLOAD_GRACE + received / self.upload_rate)

    @model_validator(mode="after")
    def _check_sizes(self) -> LimitSettings:
        if self.bodies < self.body:
            raise ValueError("bodies must not be smaller than body: it has to hold at least one")
        return self


class LogSettings(Table):
    """The log of `abridge serve`."""

    format: Literal["text", "json"] = "text"
    requests: bool = False  # log a line for each request


class TracingSettings(Table):
    """OpenTelemetry spans.

    Mounted, they go to the application's own tracer provider. `abridge serve` exports them as the
    variables of OpenTelemetry's SDK say (`OTEL_EXPORTER_OTLP_ENDPOINT` and others).
    """

    enabled: bool = False


@dataclass(slots=True, frozen=True)
class Route:
    """An upstream and the settings in force for it."""

    upstream: UpstreamSettings
    summary: SummarySettings
    reasoning: ReasoningSettings
    usage: UsageSettings
    history: HistorySettings
    client_credential: bool  # the client's credential is forwarded to it
    renames: ModelRenames  # from clients' names of models to upstream's
    effort_limits: EffortLimits


class Settings(Table):
    """All settings: made in code, or by `load_settings` from a file and the environment."""

    server: ServerSettings = ServerSettings()
    upstreams: tuple[UpstreamSettings, ...] = ()
    summary: SummarySettings = SummarySettings()
    summarizer: SummarizerSettings = SummarizerSettings()
    review: ReviewSettings = ReviewSettings()
    reasoning: ReasoningSettings = ReasoningSettings()
    chat: ChatSettings = ChatSettings()
    history: HistorySettings = HistorySettings()
    usage: UsageSettings = UsageSettings()
    attribution: AttributionSettings = AttributionSettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    tracing: TracingSettings = TracingSettings()

    _routes: tuple[Route, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _resolve_routes(self) -> Settings:
        names = [upstream.name for upstream in self.upstreams]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"upstreams: two are named {name!r}; each needs a name of its own")
        upstreams = self.upstreams or (UpstreamSettings(),)
        self._routes = tuple(self._make_route(*indexed) for indexed in enumerate(upstreams))
        for route in self._routes:
            self._check_route(route)
            self._check_fallback(route.upstream, names)
        self._check_workers()
        return self

    def find_route(self, model: str | None) -> Route | None:
        """Return the first upstream whose globs match the model's name, None if no upstream's do.

        The only upstream takes every model, and the first one requests that name none; where
        upstreams have no addresses, all are one application, and the first one's settings are for
        the models that none of them lists.
        """
        first = self._routes[0]
        if model is None or len(self._routes) == 1:
            return first
        for route in self._routes:
            if any(fnmatchcase(model, glob) for glob in route.upstream.models):
                return route
        return None if first.upstream.base_url else first

    def fallback_of(self, route: Route) -> Route | None:
        """Return the route of the upstream that is asked where a route's own cannot answer."""
        name = route.upstream.fallback
        return next((other for other in self._routes if other.upstream.name == name), None)

    @property
    def routes(self) -> tuple[Route, ...]:
        return self._routes

    def _make_route(self, index: int, upstream: UpstreamSettings) -> Route:
        key = f"upstreams[{index}]"
        _reject_general_keys(upstream, key)
        return Route(
            upstream,
            _override(self.summary, upstream.summary, f"{key}.summary"),
            _override(self.reasoning, upstream.reasoning, f"{key}.reasoning"),
            _override(self.usage, upstream.usage, f"{key}.usage"),
            _override(self.history, upstream.history, f"{key}.history"),
            upstream.takes_client_credential(is_only=len(self.upstreams) <= 1),
            ModelRenames.parse(upstream.rename),
            upstream.effort_limits,
        )

    def _check_fallback(self, upstream: UpstreamSettings, names: list[str]) -> None:
        key = f"upstreams: fallback of {upstream.name!r}"
        if upstream.fallback is None:
            return
        if upstream.fallback not in names or upstream.fallback == upstream.name:
            raise ValueError(f"{key}: must name another upstream, not {upstream.fallback!r}")
        if any(entry.base_url is None for entry in self.upstreams):
            raise ValueError(f"{key}: needs upstreams with a base_url")

    def _check_workers(self) -> None:
        if self.server.workers == 1:
            return
        if any(route.history.store == "memory" for route in self._routes):
            raise ValueError(
                "server.workers: several processes cannot share history.store = 'memory'; set "
                "that to an address such as redis://127.0.0.1:6379/0, or to none"
            )
        if self.server.page:
            raise ValueError(
                "server.workers: must be 1 with server.page, which shows a single process"
            )

    def _check_history(self, history: HistorySettings, expose: Exposure) -> None:
        sealed = history.seal_keys_env and self.chat.envelope != "none"
        keeps_reasoning = history.store != "none" or sealed or history.keep == "none"
        if expose in ("summary", "none") and not keeps_reasoning:
            raise ValueError(
                f"history.store: 'none' would lose the reasoning that reasoning.expose = "
                f"{expose!r} hides; set it to memory, or set history.seal_keys_env and a "
                "chat.envelope"
            )
        if history.is_shared and not history.seal_keys_env:
            raise ValueError(
                "history.store: an address needs history.seal_keys_env, since reasoning leaves "
                "the process only sealed"
            )

    def _check_route(self, route: Route) -> None:
        default, expose = route.summary.default, route.reasoning.expose
        if default != "off" and default not in route.summary.allow:
            raise ValueError(f"summary.default: {default!r} is not one of summary.allow")
        if expose == "summary" and self.summarizer.kind == "extractive":
            raise ValueError(
                "summarizer.kind: 'extractive' copies sentences of the raw reasoning, which "
                "reasoning.expose = 'summary' hides; must be model, upstream or object"
            )
        if expose == "summary" and route.summary.on_failure == "extract":
            raise ValueError(
                "summary.on_failure: 'extract' copies sentences of the raw reasoning, which "
                "reasoning.expose = 'summary' hides; must be omit or fail"
            )
        if self.review.kind != "none" and route.summary.on_failure == "extract":
            raise ValueError(EXTRACT_UNREVIEWED)
        self._check_history(route.history, expose)
        fields = self.chat.summary_field, self.chat.raw_field
        if fields[0] == fields[1] != "auto" and expose in ("auto", "both"):
            raise ValueError("chat.raw_field: must differ from chat.summary_field")


def _reject_general_keys(upstream: UpstreamSettings, key: str) -> None:
    for table, name in GENERAL_KEYS:
        if name in getattr(upstream, table):
            raise ValueError(f"{key}.{table}.{name}: can be set only in the general table")


def _override(general: T, overrides: dict[str, Any], key: str) -> T:
    """Return the general table with an upstream's own keys laid over it."""
    try:
        return type(general).model_validate({**general.model_dump(), **overrides})
    except ValidationError as error:
        raise ValueError(f"{key}.{explain_error(error)}") from None
