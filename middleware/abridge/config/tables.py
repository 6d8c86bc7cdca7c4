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
    LedgerAddress,
    ModelGlob,
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

    host: str = "127.0.0.1"
    """The address to listen on: `0.0.0.0` or `::` for all networks."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8400
    """The port to listen on; 0 for any free one, which the first line at the start names."""
    admin_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """A port of its own for metrics and health. Metrics are then not on the other port; health is
    on both. Not set: there is no such port."""
    workers: PositiveInt = 1
    """The number of processes that serve, for more traffic than one core can handle. With several,
    limits hold for each, `history.store` is an address that they share or else `none`, and there is
    no page."""
    page: bool = False
    """Whether to serve the page at `/abridge`, which shows recent exchanges, without their content,
    to anyone who can reach the port."""
    allowed_hosts: Several[str] | None = None
    """Globs of the names by which clients may address the server, besides `localhost` and IP
    addresses. Not set: no others where it listens on loopback, nor for the page; else all."""
    allowed_origins: Several[str] = ()
    """Globs of the origins of other web sites that may send requests from a browser."""
    keys_file: str | None = None
    """The file of the keys that clients need, which `abridge keys` writes. Not set: they need none.
    """
    keep_alive: PositiveSeconds = KEEP_ALIVE_SECONDS
    """How long a client's connection may be idle between two requests, at least: longer than
    clients and proxies keep theirs for reuse."""
    websockets: bool | None = None
    """Whether to serve the Responses API over WebSocket as well. Not set: in `abridge serve` only.
    Mounted, true needs authentication and a check of `Origin` around it that see WebSockets, too.
    """
    drain_delay: Seconds = 0.0
    """How long to accept requests after SIGTERM while reporting that the server is not ready."""
    drain: Seconds = 60.0
    """How long running requests may then take to finish, before they are cancelled."""

    @property
    def served_hosts(self) -> Sequence[str]:
        """Globs of the names by which clients may address the server."""
        if self.allowed_hosts is not None:
            return self.allowed_hosts
        return () if is_loopback_name(self.host) else ("*",)


class SummarySettings(Table):
    """When to make a summary, how to cut it into parts, and how long the answer may wait for it."""

    default: DefaultStyle = "off"
    """The style of the summary for requests that name none; `off`: they get no summary."""
    allow: Several[SummaryStyle] = tuple(STYLES)
    """The styles that requests may name; another is a 400."""
    language: SummaryLanguage = AUTO
    """The language of summaries for requests that name none. `auto`: the last user message's where
    that is clear, else the reasoning's; `reasoning`: the reasoning's; or a language tag such as
    `de` or `pt-BR`. A summarizer that copies sentences keeps the reasoning's."""
    translate: bool = False
    """Whether a summary that the provider itself made is translated where it is in another language
    than its reader's, by a summarizer that is a model. Upstream gets its own again. Off, since it
    costs calls, and another model then rewrites what the provider vouches for."""
    live: bool = True
    """Whether to make parts while the model still reasons; false: one summary at its end."""
    part_chars: Characters = 1500
    """How much reasoning makes a part. Chinese, Japanese and Korean characters count 2.5. The first
    part that a model writes is cut at 60 % of it, so that there is soon something to read."""
    max_parts: PositiveInt = 40
    """The number of parts after which each takes twice as much reasoning as the one before."""
    tail_chars: Annotated[NonNegativeInt, CHARACTERS] | None = None
    """The least reasoning, at the end, that gets a part of its own; less is left out. Not set: 80
    for the embedded summarizer, else 400."""
    min_chars: Characters = 1
    """The least reasoning that gets a summary."""
    max_overhead: PositiveFloat | None = None
    """What a response's summary may cost, as a share of the model's own tokens: beyond it no more
    parts are made, and finished ones stay. Not set: there is no limit."""
    grace: Seconds = 5.0
    """How long the answer may wait for its summary."""
    early_head: Seconds = 0.0
    """How long a client whose stream is rewritten waits for upstream's head before it gets one, and
    keep-alives. It has none of upstream's headers, and an error that comes later is told in the
    stream. 0: it waits for upstream's."""
    status: bool = False
    """Whether a stream tells each title in a field of its own as soon as it is written, for a
    client's status line: `x_abridge.status` of a chunk without choices, of a `ping`, or of
    `response.in_progress`."""
    first_token: Seconds = 2.0
    """How much of the grace a part may use that has no text yet, unless parts are reviewed."""
    on_failure: Literal["omit", "extract", "fail"] = "omit"
    """What becomes of a part whose summary fails: `omit` leaves it out and says so in the response,
    `extract` has the embedded summarizer step in, `fail` ends the response with the error, after
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
    """Instructions for the summarizer that replace the built-in ones of a style.

    Each may contain `{titles}`: the titles of the earlier parts. They replace neither the rule on
    the language nor the one that reasoning is data. Those that are not set stay as they are.
    """

    if TYPE_CHECKING:

        def __init__(self, **prompts: str | None) -> None: ...


class SummarizerSettings(Table):
    """The summarizer, and how it is called."""

    kind: Literal["extractive", "model", "upstream", "object"] = "extractive"
    """`extractive` copies sentences of the reasoning, in process and without a model; `model` is a
    model of its own; `upstream` the model that the request names; `object` one of yours, passed to
    the middleware."""
    base_url: BaseUrl | None = None
    """The address of the model server, up to where `/chat/completions` and the like follow."""
    model: str | None = None
    """The name of the model. It receives the raw reasoning."""
    api: Literal["chat", "responses", "messages"] = "chat"
    """The API by which the model is called."""
    profile: ProfileName = "auto"
    """The provider, one of `abridge profiles`: says how to switch the model's thinking off."""
    api_key_env: str | None = None
    """The environment variable that holds the API key. Not set: none is sent."""
    temperature: NonNegativeFloat | None = 0.3
    """The sampling temperature. None, which only code can set: none is sent."""
    max_tokens: Tokens | None = None
    """The most that a part may take, thinking included. Not set: twice the length that its style
    allows, such as 300 for `auto`; the table of styles says how much that is."""
    timeout: PositiveSeconds = 15.0
    """How long the call for a part may take."""
    max_input_chars: Characters = 12000
    """The most reasoning that is sent in a call; longer reasoning keeps its head and tail."""
    max_in_flight: PositiveInt = 64
    """The number of calls at once; beyond it, summaries are left out."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Fields added to the body of each call."""
    prompts: PromptSettings = PromptSettings()
    """Instructions of your own, by style: see `summarizer.prompts`."""
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
    """Compactions: the summaries that clients ask for in the place of a long conversation."""

    kind: Literal["auto", "upstream", "model"] = "auto"
    """What makes them. `auto`: an upstream that speaks the client's API and has compactions of its
    own, as its profile says, else the model that the request names; `upstream`: that model,
    whatever its upstream has; `model`: the model of `summarizer.kind = "model"`, which then
    receives the whole conversation."""
    max_tokens: Tokens = 8192
    """The most that a summary may take on Responses, thinking included; on Messages the request
    says it."""
    keep_tokens: Annotated[NonNegativeInt, TOKENS] = 4000
    """How much of the end of a conversation stays word for word beside the summary, and up to which
    size the user's last message does. Calls without a result always stay."""


class ReasoningSettings(Table):
    """The exposure of reasoning in answers for which a summary is made."""

    expose: Exposure = "auto"
    """What the client sees of the reasoning. `auto` is how its API usually shows it, and promises
    nothing; `both` is raw reasoning and summary, each in a field of its own; `raw` and `summary`
    one of them; `none` neither. `summary` and `none` hide raw reasoning, also where no summary is
    requested."""
    kind: Literal["auto", "raw", "summary"] = "auto"
    """What upstream calls reasoning: raw, or a summary already, which is shown as it is. `auto`:
    what the profile says of the model."""
    open_paths: Several[PathGlob] = ()
    """Where reasoning is hidden on any upstream: globs of further paths that pass unread. Can be
    set only in the general table."""
    hold_text: bool = True
    """Where reasoning is hidden: whether to hold text back until it cannot be thinking that only a
    closing tag would tell; false: the upstream's text is never that."""


class ChatSettings(Table):
    """The fields of Chat Completions that carry summaries and reasoning."""

    summary_field: FieldChoice = "auto"
    """The field of the summary. `auto`: the one in which the model's own reasoning came, or
    `reasoning_content` beside raw reasoning."""
    raw_field: FieldChoice = "auto"
    """The field of raw reasoning where it is shown beside the summary; `auto`: `reasoning`."""
    details: bool = False
    """Whether to fill `reasoning_details`, too."""
    envelope: Literal["reasoning_details", "thinking_blocks", "none"] = "reasoning_details"
    """The field that carries sealed reasoning; `none`: it is not sent."""


class HistorySettings(Table):
    """The memory of earlier reasoning: what is stored, sealed and sent upstream again."""

    restore: Literal["never", "altered", "always"] = "altered"
    """What is put back into later requests: nothing, what Abridge hid or replaced, or also what the
    client dropped."""
    keep: Literal["client", "none", "tool_rounds", "all"] = "client"
    """Which earlier reasoning is sent upstream: `client` is what the client returned and what is
    put back, `tool_rounds` all since the last user message. What a profile demands is sent in any
    case."""
    store: StoreAddress = "memory"
    """Where reasoning and responses are stored: `memory`, `none`, or the address of a Redis or
    Valkey (`redis://`, `rediss://`, `valkey://`, `valkeys://`, `unix://`; `ssl_*` options in its
    query), of its sentinels (`redis-sentinel://host:26379,host:26379/service/0`) or of a cluster
    (`redis+cluster://host:6379,host:6379`), which needs `seal_keys_env` and `pip install
    'asgi-abridge[redis]'`."""
    ttl: PositiveSeconds = 3600.0
    """How long it is stored after the conversation last continued."""
    bytes: Size = 64 * MiB
    """How much the store `memory` holds, with all that an entry takes beside its bytes."""
    seal_keys_env: str | None = None
    """The environment variable that holds the sealing keys, `id:base64 of 32 bytes` separated by
    commas: the first one seals, and all of them open. Needs `pip install 'asgi-abridge[seal]'`. Can
    be set only in the general table."""
    seal_ttl: PositiveSeconds = 30 * 86400.0
    """The age up to which sealed reasoning is accepted."""
    tenant: TenantRule = "credential"
    """What tells tenants apart, who never get anything of each other's: the client's credential, or
    a header of the request, as `header:<name>`."""
    anonymous: bool | Literal["loopback"] = "loopback"
    """Whether requests without a credential are one tenant: always, never, or over loopback. If
    not, nothing is stored for them."""

    @property
    def is_shared(self) -> bool:
        """True if other processes can reach the store, too."""
        return "://" in self.store


class BackgroundSettings(Table):
    """Responses that run without their client (`background: true`), as far as Abridge runs them:
    for each process."""

    responses: NonNegativeInt = 100
    """The number of them at once; beyond it, 429. 0: such requests are refused."""
    per_tenant: PositiveInt = 20
    """The number of one tenant's at once; beyond it, 429."""
    seconds: PositiveSeconds = 3600.0
    """How long one may take, and never longer than `history.ttl`; then it has failed."""
    bytes: Size = 16 * MiB
    """The size of all events of one, which are stored; beyond it, it has failed."""
    lease: PositiveSeconds = 30.0
    """How long after a process has stopped the responses that it ran have failed."""


class UsageSettings(Table):
    """The report of the summarizer's tokens."""

    count: Literal["merged", "separate"] = "merged"
    """Whether the summarizer's tokens are added to the totals of a response's usage. They are in
    `usage.reasoning_summary` in any case. The request header `x-abridge-usage` decides otherwise
    for one response."""


class ModelPriceSettings(Table):
    """The price of a model's tokens, for a million of them."""

    glob: ModelGlob = "*"
    """The model, or a glob of such. The name that upstream answers with counts, then the one that
    the client says. The first that matches holds."""
    input: NonNegativeFloat = 0.0
    """A million tokens of input."""
    output: NonNegativeFloat = 0.0
    """A million tokens of output, reasoning among them."""
    cached_input: NonNegativeFloat | None = None
    """A million tokens of input that upstream read from its cache. Not set: as `input`."""


class PriceSettings(Table):
    """What tokens cost, for budgets of money. Prices of a model that is not listed are unknown."""

    currency: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,15}$")] | None = None
    """The unit of all prices and of the budgets in money, such as `USD` or `credits`."""
    models: tuple[ModelPriceSettings, ...] = ()
    """The prices by model, those of summarizers among them: `[[prices.models]]` for each."""

    @model_validator(mode="after")
    def _check_currency(self) -> PriceSettings:
        if self.models and self.currency is None:
            raise ValueError('currency: must be set, such as "USD": a price needs a unit')
        return self


class LedgerSettings(Table):
    """The ledger: an entry for each request to a model, for who pays for it."""

    url: LedgerAddress | None = None
    """Where it is written: `store`, which is the address in `history.store`, another such address,
    or that of a PostgreSQL (`postgresql://user@host:5432/database`), which needs `pip install
    'asgi-abridge[postgres]'`. Not set: there is no ledger."""
    url_env: str | None = None
    """The environment variable that holds the address instead, where there is a password in it."""
    retention: Annotated[PositiveSeconds, Field(le=36_525 * 86400.0)] = 400 * 86400.0
    """How long an entry is kept: a year, and time to close its books; a hundred years at most."""
    waiting: PositiveInt = 20_000
    """The number of entries of a process that wait while the ledger cannot be written; beyond it,
    they are lost and counted."""

    @model_validator(mode="after")
    def _check_one_address(self) -> LedgerSettings:
        if self.url is not None and self.url_env is not None:
            raise ValueError("url_env must be left out where url is set")
        return self


class AttributionSettings(Table):
    """Fields on tool calls that name the reasoning which led to them, as far as it is shown."""

    enabled: bool = False
    """Whether tool calls get these fields; every response of the three APIs is then read."""


class LimitSettings(Table):
    """Ceilings of memory, time and concurrency, for each process.

    Beyond a ceiling there is backpressure, degraded service or a clear error, but never growth.
    """

    body: Size = 32 * MiB
    """The size of one request body that Abridge reads. A longer one is forwarded unread, or is a
    413 where the settings require that all are read."""
    bodies: Size = 512 * MiB
    """The size of all buffered request bodies together, as far as they have come, each until its
    application returns; beyond it, 503. What of an answer waits to be whole shares it, an event of
    a stream or a JSON body, beyond the first 64 KiB: where there is no room for it, a stream ends
    with an error, and a body passes as it came, or is an error where reasoning is hidden."""
    items: PositiveInt = 20_000
    """The number of messages or input items of one request; beyond it, 400."""
    values: PositiveInt = 200_000
    """The number of JSON values in one request body; beyond it, 400. They take more memory and time
    than text does, up to a hundred times as much."""
    held: Size = 256 * KiB
    """How much of an answer may wait for its summary. After that, upstream is not read until the
    wait ends, with `summary.grace` at the latest. The default is more than a fast model streams
    within the default grace."""
    reasoning: Size = 4 * MiB
    """How much raw reasoning of one answer is kept."""
    event: Size = 16 * MiB
    """The size of one event from upstream; a larger one ends the response with an error."""
    connect: PositiveSeconds = 5.0
    """How long it may take to connect to upstream."""
    headers: PositiveSeconds = 600.0
    """How long upstream may be silent before the headers of its response."""
    idle: PositiveSeconds = 300.0
    """How long upstream may be silent between two chunks of its response."""
    client: PositiveSeconds = 60.0
    """How long a client of the sidecar may neither send its request nor read its response, or take
    for the head of a request. Mounted, your own server decides."""
    in_flight: PositiveInt = 1000
    """The number of forwarded requests at once, over WebSocket as well; beyond it, 503."""
    connections: PositiveInt = 4096
    """The number of clients' connections to the sidecar at once; beyond it, 503. There are fewer if
    the process may not open two files for each; the log says so."""
    client_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The share of `connections` and `bodies` that one client's address may hold, at least one of
    each (an IPv6 network of 64 bits is one client). Of `in_flight` it may hold all but a tenth, or
    all where this is 1. Behind a proxy all clients have its address: set 1 there if the proxy
    bounds them itself."""
    upload: PositiveSeconds = 300.0
    """How long a request body may take to arrive; beyond it, 408."""
    upload_rate: Annotated[Size, BYTES_PER_SECOND] = 10 * KiB
    """How much of a request body must arrive on average, once 30 seconds have passed; below it,
    408. Mounted, this holds for the bodies that are buffered."""

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
    """Whether each line of the log is text or JSON."""
    requests: bool = False
    """Whether to log a line for each request, with its id (the client's `x-request-id`), times,
    tokens and outcome."""


class TracingSettings(Table):
    """OpenTelemetry spans.

    Mounted, they go to the application's own tracer provider. `abridge serve` exports them as the
    variables of OpenTelemetry's SDK say (`OTEL_EXPORTER_OTLP_ENDPOINT` and others).
    """

    enabled: bool = False
    """Whether each request is a span. Needs `pip install 'asgi-abridge[otel]'`."""
