"""The tables of settings but for upstreams and reviews: each key with its default and meaning.

The text after a key is its documentation: `help`, completion, JSON Schema and docs/settings.md show
it. After a change write the page anew: `python -m tests.docs.settings > docs/settings.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    create_model,
    model_validator,
)

from abridge.apis.display import Exposure, FieldChoice
from abridge.config.setting_types import (
    BYTES_PER_SECOND,
    CHARACTERS,
    TOKENS,
    BaseUrl,
    Characters,
    HostGlob,
    LedgerAddress,
    ModelGlob,
    OriginGlob,
    PathGlob,
    PositiveSeconds,
    ProfileName,
    Seconds,
    Several,
    Size,
    StoreAddress,
    SummaryLanguage,
    Table,
    TenantRule,
    Tokens,
)
from abridge.core.language import AUTO
from abridge.core.styles import STYLES, DefaultStyle, SummaryStyle
from abridge.http.hosts import is_loopback_name

KiB, MiB = 1 << 10, 1 << 20

KEEP_ALIVE_SECONDS = 120.0
"""Seconds after which an idle connection is closed: more than clients keep one in their pools, so
that none sends a request on a connection that is being closed. undici (Node) keeps it for 4, httpx
5, aiohttp 15, nginx and AWS load balancers 60, Go and hyper 90."""

UPLOAD_GRACE = 30.0
"""Seconds for which no rate is asked of a request body."""


class ServerSettings(Table):
    """The listeners, processes and shutdown of `abridge serve`."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """The address to listen on: `0.0.0.0` or `::` for all networks."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8400
    """The port to listen on; 0 for any free one, which the first line at startup names."""
    admin_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """A separate port for metrics and health. Metrics then move to it; health is on both ports. Not
    set: there is no such port."""
    workers: PositiveInt = 1
    """The number of processes that serve, for more traffic than one core can handle. With several,
    limits apply to each, there is no page, and `history.store` becomes `none` unless it is an
    address that they share."""
    page: bool = False
    """Whether to serve the page at `/abridge`. It shows recent exchanges, without their content, to
    anyone who can reach the port."""
    allowed_hosts: Several[HostGlob] | None = None
    """Globs of the host names, without port, by which clients may address the server, besides
    `localhost` and IP addresses. Not set: no others on loopback and for the page, all names
    elsewhere."""
    allowed_origins: Several[OriginGlob] = ()
    """Globs of the origins (`https://app.example.com`) of other web sites that may send requests
    from a browser."""
    keys_file: str | None = None
    """The file with the keys that clients need; `abridge keys` writes it. Not set: clients need
    none."""
    keep_alive: PositiveSeconds = KEEP_ALIVE_SECONDS
    """How long an idle connection of a client is kept open at least. Set it longer than clients and
    proxies keep connections for reuse."""
    websockets: bool | None = None
    """Whether to serve the Responses API over WebSocket as well. Not set: only in `abridge serve`.
    If you mount Abridge and set it, the authentication and the check of `Origin` around it must see
    WebSockets, too."""
    drain_delay: Seconds = 0.0
    """How long to accept requests after SIGTERM while reporting that the server is not ready."""
    drain: Seconds = 60.0
    """How long running requests may then take to finish before they are cancelled."""

    @property
    def served_hosts(self) -> Sequence[str]:
        """Globs of the names by which clients may address the server."""
        if self.allowed_hosts is not None:
            return self.allowed_hosts
        return () if is_loopback_name(self.host) else ("*",)


class SummarySettings(Table):
    """When to make a summary, how to cut it into parts, and how long the answer may wait for it."""

    default: DefaultStyle = "off"
    """The style for requests that name none; `off`: they get no summary."""
    allow: Several[SummaryStyle] = tuple(STYLES)
    """The styles that requests may name; any other gets a 400."""
    language: SummaryLanguage = AUTO
    """The language of summaries for requests that name none. `auto`: that of the last user message
    if it is clear, else that of the reasoning; `reasoning`: always that of the reasoning; or a
    language tag such as `de` or `pt-BR`. A summarizer that copies sentences keeps the language of
    the reasoning."""
    translate: bool = False
    """Whether a summarizer that is a model translates summaries that the provider made, if they are
    in another language than the reader's. Upstream gets its original back. Off by default, because
    it costs calls, and another model rewrites what the provider vouches for."""
    live: bool = True
    """Whether to make parts while the model is still reasoning; false: one summary at the end."""
    part_chars: Characters = 1500
    """How much reasoning makes a part. A Chinese, Japanese or Korean character counts as 2.5. The
    first part is cut at 60 % of this, so that there is something to read soon."""
    max_parts: PositiveInt = 40
    """The number of parts after which each further part covers twice as much reasoning as the one
    before."""
    tail_chars: Annotated[NonNegativeInt, CHARACTERS] | None = None
    """The least reasoning at the end that gets its own part; less is left out. Not set: 80 for the
    built-in summarizer, else 400."""
    min_chars: Characters = 1
    """The least reasoning that gets a summary."""
    max_overhead: PositiveFloat | None = None
    """What a response's summary may cost, as a share of the model's own tokens. Above it no more
    parts are made; finished ones stay. Not set: no limit."""
    grace: Seconds = 5.0
    """How long the answer may wait for its summary."""
    early_head: Seconds = 0.0
    """How long to wait for upstream's status and headers before a client whose stream is rewritten
    gets Abridge's own, and then keep-alives. Upstream's headers are then lost, a later error
    arrives in the stream, and so does an answer that upstream sends whole. 0: always wait for
    upstream."""
    status: bool = False
    """Whether a stream also sends each title as soon as it is written, for a client's status line.
    It is in `x_abridge.status` of a chunk without choices, of a `ping`, or of
    `response.in_progress`."""
    first_token: Seconds = 2.0
    """How much of the grace a part without any text may use, unless parts are reviewed."""
    on_failure: Literal["omit", "extract", "fail"] = "omit"
    """What happens to a part whose summary fails: `omit` leaves it out and says so in the response,
    `extract` lets the built-in summarizer make it, `fail` ends the response with the error after
    the answer."""


if TYPE_CHECKING:
    _Prompts = Table
else:
    _Prompts = create_model(
        "_Prompts",
        __base__=Table,
        **{
            style: (str | None, Field(None, description=f"Instructions for the style `{style}`."))
            for style in STYLES
        },
    )


class PromptSettings(_Prompts):
    """Instructions for the summarizer that replace a style's built-in ones.

    They may contain `{titles}`: the titles of the earlier parts. The rule on the language, and the
    one that reasoning is data, always stay. A style without a key keeps its built-in instructions.
    """

    if TYPE_CHECKING:

        def __init__(self, **prompts: str | None) -> None: ...


class SummarizerSettings(Table):
    """The summarizer and how it is called."""

    kind: Literal["extractive", "model", "upstream", "object"] = "extractive"
    """What writes summaries. `extractive` copies sentences of the reasoning, in process and without
    a model; `model` calls a separate model; `upstream` calls the requested model; `object` is your
    own summarizer, passed to the middleware."""
    base_url: BaseUrl | None = None
    """The address of the model server, without `/chat/completions` and the like."""
    model: str | None = None
    """The name of the model. It receives the raw reasoning."""
    api: Literal["chat", "responses", "messages"] = "chat"
    """The API used to call the model."""
    profile: ProfileName = "auto"
    """The provider, one of `abridge profiles`. It determines how to turn the model's thinking
    off."""
    api_key_env: str | None = None
    """The environment variable that holds the API key. Not set: no key is sent."""
    temperature: NonNegativeFloat | None = 0.3
    """The sampling temperature. None, which can be set only in code: it is not sent."""
    max_tokens: Tokens | None = None
    """The most output that a part may use, thinking included. Not set: twice the length that its
    style allows, such as 300 for `auto`; the table of styles lists the lengths."""
    timeout: PositiveSeconds = 15.0
    """How long a call for one part may take."""
    max_input_chars: Characters = 12000
    """The most reasoning sent in one call; of longer reasoning, the beginning and end are sent."""
    max_in_flight: PositiveInt = 64
    """The most calls at once; above it, summaries are left out."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Fields added to the body of each call."""
    prompts: PromptSettings = PromptSettings()
    """Your own instructions, by style: see `summarizer.prompts`."""
    breaker_failures: PositiveInt = 5
    """The number of failures in a row after which the summarizer is not called for a while."""
    breaker_seconds: PositiveSeconds = 30.0
    """How long it is then not called."""

    @model_validator(mode="after")
    def _check_complete(self) -> SummarizerSettings:
        if self.kind == "model" and not (self.base_url and self.model):
            missing, flag = ("model", "model") if self.base_url else ("base_url", "url")
            raise ValueError(f"kind = 'model' needs {missing} (--summarizer-{flag})")
        return self


class CompactionSettings(Table):
    """Compactions: summaries that clients request to replace a long conversation."""

    kind: Literal["auto", "upstream", "model"] = "auto"
    """What makes them. `auto`: the upstream, if it speaks the client's API and its profile says
    that it compacts, else the requested model. `upstream`: always the requested model. `model`: the
    model of `summarizer.kind = "model"`, which then receives the whole conversation."""
    max_tokens: Tokens = 8192
    """The most output that a compaction may use on Responses, thinking included; on Messages the
    request sets it."""
    keep_tokens: Annotated[NonNegativeInt, TOKENS] = 4000
    """How much of the end of a conversation stays word for word after the summary. So does the
    user's last message unless it is larger than this, and calls without a result always do."""


class ReasoningSettings(Table):
    """The exposure of reasoning in answers for which a summary is made."""

    expose: Exposure = "auto"
    """What the client sees of the reasoning. `auto` is what its API usually shows, and hides
    nothing; `both` is raw reasoning and summary in separate fields; `raw` and `summary` are one of
    them; `none` is neither. `summary` and `none` hide raw reasoning even if no summary is
    requested."""
    kind: Literal["auto", "raw", "summary"] = "auto"
    """What upstream's reasoning is: raw, or already a summary, which is shown unchanged. `auto`: as
    the profile says for the model."""
    open_paths: Several[PathGlob] = ()
    """If any upstream hides reasoning: globs of further paths that pass unread. Can be set only in
    the general table."""
    hold_text: bool = True
    """If reasoning is hidden: whether to hold text back until it cannot be thinking that only a
    closing tag would reveal. false: the upstream's text is never such thinking."""


class ChatSettings(Table):
    """The fields of Chat Completions that carry summaries and reasoning."""

    summary_field: FieldChoice = "auto"
    """The field of the summary. `auto`: the one that held the model's own reasoning, or
    `reasoning_content` if raw reasoning is shown too."""
    raw_field: FieldChoice = "auto"
    """The field of raw reasoning if it is shown together with the summary; `auto`: `reasoning`."""
    details: bool = False
    """Whether to fill `reasoning_details`, too."""
    envelope: Literal["reasoning_details", "thinking_blocks", "none"] = "reasoning_details"
    """The field that carries sealed reasoning; `none`: it is not sent."""


class HistorySettings(Table):
    """The memory of earlier reasoning: what is stored, sealed and sent back to upstream."""

    restore: Literal["never", "altered", "always"] = "altered"
    """What is put back into later requests: nothing (`never`), what Abridge hid or replaced
    (`altered`), or also what the client dropped (`always`)."""
    keep: Literal["client", "none", "tool_rounds", "all"] = "client"
    """Which earlier reasoning is sent upstream: `client` is what the client returned and what is
    put back; `tool_rounds` is everything since the last user message; `all` is everything, `none`
    nothing. What a profile demands is always sent."""
    store: StoreAddress = "memory"
    """Where reasoning and responses are stored: `memory`, `none`, or the address of a Redis or
    Valkey: `redis://`, `rediss://`, `valkey://`, `valkeys://` or `unix://`, with `ssl_*` options in
    its query. For sentinels it is `redis-sentinel://host:26379,host:26379/service/0`, for a cluster
    `redis+cluster://host:6379,host:6379`. An address needs `seal_keys_env` and
    `pip install '.[redis]'`."""
    ttl: PositiveSeconds = 3600.0
    """How long they are stored after the conversation last continued."""
    bytes: Size = 64 * MiB
    """How much the store `memory` holds, including the overhead of its entries."""
    seal_keys_env: str | None = None
    """The environment variable that holds the sealing keys, `id:base64 of 32 bytes` separated by
    commas: the first one seals, and all of them open. Needs `pip install '.[seal]'`. Can be set
    only in the general table."""
    seal_ttl: PositiveSeconds = 30 * 86400.0
    """The age up to which sealed reasoning is accepted."""
    tenant: TenantRule = "credential"
    """What identifies a tenant: the client's credential, or a request header, as `header:<name>`.
    Tenants never get anything of each other's."""
    anonymous: bool | Literal["loopback"] = "loopback"
    """Whether requests without a credential count as one tenant: always, never, or only over
    loopback. If not, nothing is stored for them."""

    @property
    def is_shared(self) -> bool:
        """True if other processes can reach the store, too."""
        return "://" in self.store


class BackgroundSettings(Table):
    """Limits of each process on the responses that Abridge runs without their client (`background:
    true`)."""

    responses: NonNegativeInt = 100
    """The most at once; above it, 429. 0: such requests are refused."""
    per_tenant: PositiveInt = 20
    """The most at once for one tenant; above it, 429."""
    seconds: PositiveSeconds = 3600.0
    """How long one may take, and never longer than `history.ttl`; after that it fails."""
    bytes: Size = 16 * MiB
    """The total size of one's stored events; above it, it fails."""
    lease: PositiveSeconds = 30.0
    """How long after a process has stopped its responses count as failed."""


class UsageSettings(Table):
    """The report of the summarizer's tokens."""

    count: Literal["merged", "separate"] = "merged"
    """Whether the summarizer's tokens are added to the totals of a response's usage. They are
    always in `usage.reasoning_summary`. The request header `x-abridge-usage` overrides this for one
    response."""


Price = Annotated[float, Field(ge=0, le=1e9)]


class ModelPriceSettings(Table):
    """What a million tokens of a model cost, each kind at most a billion."""

    glob: ModelGlob = "*"
    """The model's name, or a glob. The name in upstream's answer is looked up first, then the
    client's; the first entry that matches counts."""
    input: Price = 0.0
    """A million tokens of input."""
    output: Price = 0.0
    """A million tokens of output, including reasoning."""
    cached_input: Price | None = None
    """A million tokens of input that upstream read from its cache. Not set: as `input`."""
    cache_write: Price | None = None
    """A million tokens of input that upstream wrote to its cache. Not set: as `input`."""


class PriceSettings(Table):
    """What tokens cost, for budgets of money and the ledger. Models not listed have no price."""

    currency: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,15}$")] | None = None
    """The unit of all prices and of the budgets in money, such as `USD` or `credits`."""
    models: tuple[ModelPriceSettings, ...] = ()
    """The prices by model, including those of summarizers: `[[prices.models]]` for each."""

    @model_validator(mode="after")
    def _check_currency(self) -> PriceSettings:
        if self.models and self.currency is None:
            raise ValueError('currency: must be set, such as "USD": a price needs a unit')
        return self


class LedgerSettings(Table):
    """The ledger: an entry for each request to a model, for billing."""

    url: LedgerAddress | None = None
    """The address of the ledger: one that `history.store` takes, `store` for the one it has, or a
    PostgreSQL's (`postgresql://user@host:5432/database`), which needs
    `pip install '.[postgres]'`. Not set: there is no ledger."""
    url_env: str | None = None
    """The environment variable that holds the address, if it contains a password."""
    retention: PositiveSeconds = 400 * 86400.0
    """How long an entry is kept."""
    waiting: PositiveInt = 20_000
    """The number of entries that a process keeps while the ledger cannot be written, 400 bytes
    each. Beyond it, entries are lost and counted."""

    @model_validator(mode="after")
    def _check_one_address(self) -> LedgerSettings:
        if self.url is not None and self.url_env is not None:
            raise ValueError("url_env must be left out where url is set")
        return self


class AttributionSettings(Table):
    """Fields on tool calls that contain the reasoning that led to them, as far as the client may
    see it."""

    enabled: bool = False
    """Whether tool calls get these fields; if so, every response of the three APIs is read."""


class LimitSettings(Table):
    """Limits on memory, time and concurrency, for each process."""

    body: Size = 32 * MiB
    """The largest request body that Abridge reads. A longer one is forwarded unread, or gets a 413
    if the settings require that every body is read."""
    bodies: Size = 512 * MiB
    """The size of all buffered request bodies together, each until its application returns; above
    it, 503. Incomplete parts of answers (an event of a stream, a JSON body) count too, beyond their
    first 64 KiB. If there is no room for one, a stream ends with an error, and a body passes
    unchanged, or becomes an error if reasoning is hidden."""
    items: PositiveInt = 20_000
    """The most messages or input items in one request; above it, 400."""
    values: PositiveInt = 200_000
    """The most JSON values in one request body; above it, 400. Values take up to a hundred times as
    much memory and time as text of the same size."""
    held: Size = 256 * KiB
    """How much of an answer may wait for its summary. Above it, upstream is not read until the wait
    ends, with `summary.grace` at the latest. The default is more than a fast model streams within
    the default grace."""
    reasoning: Size = 4 * MiB
    """How much raw reasoning of one answer is kept."""
    event: Size = 16 * MiB
    """The size of one event from upstream; a larger one ends the response with an error."""
    connect: PositiveSeconds = 5.0
    """How long connecting to upstream may take."""
    headers: PositiveSeconds = 600.0
    """How long upstream may be silent before the headers of its response."""
    idle: PositiveSeconds = 300.0
    """How long upstream may be silent between two chunks of its response."""
    client: PositiveSeconds = 60.0
    """How long a client of the sidecar may neither send its request nor read its response, or take
    to send a request's headers. If you mount Abridge, your own server decides."""
    in_flight: PositiveInt = 1000
    """The most forwarded requests at once, WebSocket included; above it, 503."""
    connections: PositiveInt = 4096
    """The most client connections to the sidecar at once; above it, 503. The limit is lower if the
    process may not open two files for each; the log says so."""
    client_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The share of `connections` and `bodies` that one client address may hold, at least one of
    each (an IPv6 network of 64 bits is one client). Of `in_flight` it may hold all but a tenth, or
    all if this is 1. Behind a proxy all clients share its address: set 1 if the proxy limits its
    own clients."""
    upload: PositiveSeconds = 300.0
    """How long a request body may take to arrive; after that, 408."""
    upload_rate: Annotated[Size, BYTES_PER_SECOND] = 10 * KiB
    """How much of a request body must arrive on average, once 30 seconds have passed; below it,
    408. If you mount Abridge, this applies to buffered bodies."""

    def upload_seconds(self, received: int) -> float:
        """Return the seconds after which so many bytes of a request body are too few."""
        return min(self.upload, UPLOAD_GRACE + received / self.upload_rate)

    @model_validator(mode="after")
    def _check_sizes(self) -> LimitSettings:
        if self.bodies < self.body:
            raise ValueError("bodies must be at least as large as body, so that it holds one")
        return self


class LogSettings(Table):
    """The log of `abridge serve`."""

    format: Literal["text", "json"] = "text"
    """Whether each line of the log is text or JSON."""
    requests: bool = False
    """Whether to log a line for each request, with its id (the client's `x-request-id`), times,
    tokens and outcome."""


class TracingSettings(Table):
    """OpenTelemetry spans.

    `abridge serve` exports them as the variables of OpenTelemetry's SDK say
    (`OTEL_EXPORTER_OTLP_ENDPOINT` and others). If you mount Abridge, they go to the application's
    own tracer provider.
    """

    enabled: bool = False
    """Whether each request is a span. Needs `pip install '.[otel]'`."""
