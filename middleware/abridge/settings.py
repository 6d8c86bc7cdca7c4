"""Every knob, with its default and its unit.

Sizes are in bytes (`"32MiB"` is understood), or in characters where the name says so; times are in
seconds. What cannot live together is refused here, at the start, and not met at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from abridge.turn.part import Style
from abridge.values import BaseUrl, ProfileName, Size, StoreAddress, TenantRule, explain
from abridge.wire.display import Expose, SummaryField
from abridge.wire.preset import Effort, Preset, Verbosity
from abridge.wire.profiles import PROFILES

KiB, MiB = 1 << 10, 1 << 20

ROUTE = "abridge.route"
"""The scope's key under which the middleware leaves the `Route` it has chosen, for the proxy."""

T = TypeVar("T", bound="Table")


class Table(BaseModel):
    """A table of settings: closed, and fixed once made."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """To Python, true is a 1."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and bool not in (annotation, *get_args(annotation)):
            raise ValueError("takes neither true nor false")
        return value


class Server(Table):
    """Where `abridge serve` listens, in how many processes, and how it leaves: after SIGTERM it is
    not ready but accepts for `drain_delay`, then finishes what runs within `drain`. `page` is the
    one at `/abridge`, which shows it at work."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8400
    admin_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    workers: PositiveInt = 1
    page: bool = False
    drain_delay: NonNegativeFloat = 0.0
    drain: NonNegativeFloat = 60.0


class Summary(Table):
    """When a summary is made, of what, and how long the answer may wait for it."""

    default: Literal["off", "auto", "concise", "detailed"] = "off"
    allow: tuple[Style, ...] = ("auto", "concise", "detailed")
    live: bool = True
    part_chars: PositiveInt = 1500
    max_parts: PositiveInt = 12
    tail_chars: NonNegativeInt = 400
    min_chars: PositiveInt = 1
    max_overhead: PositiveFloat | None = None
    grace: NonNegativeFloat = 5.0
    first_token: NonNegativeFloat = 2.0
    on_failure: Literal["omit", "extract", "fail"] = "omit"


class Prompts(Table):
    """What the summarizer is told, instead of what Abridge tells it; a key left out keeps its own.
    Each may hold `{titles}`: the titles of the parts before."""

    concise: str | None = None
    titled: str | None = None
    detailed: str | None = None


class SummarizerSettings(Table):
    """Who writes the summary: `extractive` in process, a `model` of its own, the request's own
    model (`upstream`), or an `object` handed to the middleware."""

    kind: Literal["extractive", "model", "upstream", "object"] = "extractive"
    base_url: BaseUrl | None = None
    model: str | None = None
    api: Literal["chat", "responses"] = "chat"
    profile: ProfileName = "auto"
    api_key_env: str | None = None
    temperature: NonNegativeFloat | None = 0.3
    max_tokens: PositiveInt = 400
    timeout: PositiveFloat = 15.0
    max_input_chars: PositiveInt = 12000
    max_in_flight: PositiveInt = 64
    extra_body: dict[str, Any] = {}
    prompts: Prompts = Prompts()
    breaker_failures: PositiveInt = 5
    breaker_seconds: PositiveFloat = 30.0

    @model_validator(mode="after")
    def _complete(self) -> SummarizerSettings:
        if self.kind == "model" and not (self.base_url and self.model):
            missing = "model" if self.base_url else "base_url"
            raise ValueError(f"kind = 'model' needs {missing}")
        return self


class Reasoning(Table):
    """What the client sees once a summary is in play."""

    expose: Expose = "auto"


class Chat(Table):
    """Where on Chat Completions."""

    summary_field: SummaryField = "auto"
    raw_field: SummaryField = "auto"
    details: bool = False
    envelope: Literal["reasoning_details", "thinking_blocks", "none"] = "reasoning_details"


class History(Table):
    """What of earlier reasoning upstream gets, what of it is remembered, for how long and for whom;
    by which keys it is sealed, and for how long a client may return it so."""

    restore: Literal["never", "altered", "always"] = "altered"
    keep: Literal["client", "none", "tool_rounds", "all"] = "client"
    store: StoreAddress = "memory"
    ttl: PositiveFloat = 3600.0
    bytes: Size = ByteSize(64 * MiB)
    seal_keys_env: str | None = None
    seal_ttl: PositiveFloat = 30 * 86400.0
    tenant: TenantRule = "credential"
    anonymous: bool | Literal["loopback"] = "loopback"

    @property
    def shared(self) -> bool:
        """Whether the store is one that other processes have, too."""
        return "://" in self.store


class Usage(Table):
    """Whether the summarizer's tokens are in the totals."""

    count: Literal["merged", "separate"] = "merged"


class Attribution(Table):
    """Whether each tool call says which reasoning led to it, of what its client is shown."""

    enabled: bool = False


class Limits(Table):
    """Ceilings. Past each: backpressure, doing without, or a clear error; never growth."""

    body: Size = ByteSize(32 * MiB)
    bodies: Size = ByteSize(512 * MiB)
    held: Size = ByteSize(256 * KiB)
    reasoning: Size = ByteSize(4 * MiB)
    event: Size = ByteSize(16 * MiB)
    connect: PositiveFloat = 5.0
    headers: PositiveFloat = 600.0
    idle: PositiveFloat = 300.0
    client: PositiveFloat = 60.0
    in_flight: PositiveInt = 1000

    @model_validator(mode="after")
    def _fit(self) -> Limits:
        if self.bodies < self.body:
            raise ValueError("bodies is smaller than body, of which it has to hold one at least")
        return self


class Log(Table):
    """How `abridge serve` logs, and whether each request gets a line."""

    format: Literal["text", "json"] = "text"
    requests: bool = False


class Tracing(Table):
    """Whether `abridge serve` exports spans; where to, the variables of OpenTelemetry's SDK say
    (`OTEL_EXPORTER_OTLP_ENDPOINT` and others)."""

    enabled: bool = False


class Upstream(Table):
    """One place requests go to. The tables here win over the general ones, key by key.

    `api` is the one it speaks: with `same` the client's, with `auto` the client's unless it turns
    out not to have it. What an API cannot carry is refused, or with `unsupported` dropped;
    `max_tokens` is for one that demands a bound. That, `effort` and `verbosity` hold where the
    client says nothing.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")] = "default"
    base_url: BaseUrl | None = None
    models: Annotated[tuple[str, ...], Field(min_length=1)] = ("*",)
    api: Literal["same", "auto", "chat", "responses", "messages"] = "same"
    profile: ProfileName = "auto"
    unsupported: Literal["refuse", "drop"] = "refuse"
    max_tokens: PositiveInt = 16384
    effort: Effort | None = None
    verbosity: Verbosity | None = None
    api_key_env: str | None = None
    summary: dict[str, Any] = {}
    reasoning: dict[str, Any] = {}
    usage: dict[str, Any] = {}
    history: dict[str, Any] = {}

    @property
    def preset(self) -> Preset:
        return Preset(self.effort, self.verbosity)

    @model_validator(mode="after")
    def _sayable(self) -> Upstream:
        said_in_chat = self.api in ("same", "auto", "chat")
        if said_in_chat and self.preset.unsayable(PROFILES[self.profile]):
            raise ValueError(
                f"effort: a chat of profile {self.profile!r} has no field to say it in"
            )
        return self


@dataclass(slots=True, frozen=True)
class Route:
    """An upstream and the settings that hold for it."""

    upstream: Upstream
    summary: Summary
    reasoning: Reasoning
    usage: Usage
    history: History


class Settings(Table):
    """All of it. Made in code, or by `abridge.configure.load` out of a file and the environment."""

    server: Server = Server()
    upstreams: tuple[Upstream, ...] = ()
    summary: Summary = Summary()
    summarizer: SummarizerSettings = SummarizerSettings()
    reasoning: Reasoning = Reasoning()
    chat: Chat = Chat()
    history: History = History()
    usage: Usage = Usage()
    attribution: Attribution = Attribution()
    limits: Limits = Limits()
    log: Log = Log()
    tracing: Tracing = Tracing()

    _routes: tuple[Route, ...] = PrivateAttr(default=())

    @model_validator(mode="after")
    def _resolve(self) -> Settings:
        names = [upstream.name for upstream in self.upstreams]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"upstreams: two are named {name!r}; takes a name of its own each")
        upstreams = self.upstreams or (Upstream(),)
        self._routes = tuple(self._route(*numbered) for numbered in enumerate(upstreams))
        for route in self._routes:
            self._check(route)
        self._check_workers()
        return self

    def route(self, model: str | None) -> Route:
        """The first upstream whose globs match the model's name, else the first."""
        if model is not None:
            for route in self._routes:
                if any(fnmatchcase(model, glob) for glob in route.upstream.models):
                    return route
        return self._routes[0]

    @property
    def routes(self) -> tuple[Route, ...]:
        return self._routes

    def _route(self, place: int, upstream: Upstream) -> Route:
        where = f"upstreams[{place}]"
        _no_keys(upstream, where)
        return Route(
            upstream,
            _override(self.summary, upstream.summary, f"{where}.summary"),
            _override(self.reasoning, upstream.reasoning, f"{where}.reasoning"),
            _override(self.usage, upstream.usage, f"{where}.usage"),
            _override(self.history, upstream.history, f"{where}.history"),
        )

    def _check_workers(self) -> None:
        if self.server.workers == 1:
            return
        if any(route.history.store == "memory" for route in self._routes):
            raise ValueError(
                "server.workers: several processes do not share history.store = 'memory'; takes "
                "an address such as redis://127.0.0.1:6379/0, or none"
            )
        if self.server.page:
            raise ValueError(
                "server.workers: server.page shows one process at work, and not several; takes 1 "
                "with it"
            )

    def _check_history(self, history: History, expose: Expose) -> None:
        sealed = history.seal_keys_env and self.chat.envelope != "none"
        keeps = history.store != "none" or sealed or history.keep == "none"
        if expose in ("summary", "none") and not keeps:
            raise ValueError(
                f"history.store: 'none' would lose the reasoning that reasoning.expose = "
                f"{expose!r} hides; takes memory, or history.seal_keys_env and a chat.envelope "
                "with it"
            )
        if history.shared and not history.seal_keys_env:
            raise ValueError(
                "history.store: what leaves the process is sealed; takes history.seal_keys_env "
                "with an address"
            )

    def _check(self, route: Route) -> None:
        default, expose = route.summary.default, route.reasoning.expose
        if default != "off" and default not in route.summary.allow:
            raise ValueError(f"summary.default: {default!r} is not one of summary.allow")
        if expose == "summary" and self.summarizer.kind == "extractive":
            raise ValueError(
                "summarizer.kind: 'extractive' copies sentences of the raw reasoning, which "
                "reasoning.expose = 'summary' hides; takes model, upstream or object"
            )
        if expose == "summary" and route.summary.on_failure == "extract":
            raise ValueError(
                "summary.on_failure: 'extract' copies sentences of the raw reasoning, which "
                "reasoning.expose = 'summary' hides; takes omit or fail"
            )
        self._check_history(route.history, expose)
        fields = self.chat.summary_field, self.chat.raw_field
        if fields[0] == fields[1] != "auto" and expose in ("auto", "both"):
            raise ValueError("chat.raw_field: is the same as chat.summary_field; takes another")


def _no_keys(upstream: Upstream, where: str) -> None:
    if "seal_keys_env" in upstream.history:
        raise ValueError(f"{where}.history.seal_keys_env: is the general table's alone")


def _override(general: T, own: dict[str, Any], where: str) -> T:
    """The general table with an upstream's own keys over it."""
    try:
        return type(general).model_validate({**general.model_dump(), **own})
    except ValidationError as error:
        raise ValueError(f"{where}.{explain(error)}") from None
