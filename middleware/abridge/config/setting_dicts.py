"""The tables of settings as dictionaries: what `Settings` takes beside the tables themselves.

Made of the tables by `python -m tests.docs.setting_dicts`; after a change there, make it anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from abridge.config.review import ReviewSettings
from abridge.config.tables import (
    AttributionSettings,
    BackgroundSettings,
    ChatSettings,
    CompactionSettings,
    HistorySettings,
    LedgerSettings,
    LimitSettings,
    LogSettings,
    ModelPriceSettings,
    PriceSettings,
    PromptSettings,
    ReasoningSettings,
    ServerSettings,
    SummarizerSettings,
    SummarySettings,
    TracingSettings,
    UsageSettings,
)
from abridge.config.upstreams import (
    FallbackSettings,
    UpstreamSettings,
)


class ServerSettingsDict(TypedDict, total=False):
    """See `ServerSettings`."""

    host: str
    port: int
    admin_port: int | None
    workers: int
    page: bool
    allowed_hosts: Sequence[str] | None
    allowed_origins: Sequence[str]
    keys_file: str | None
    keep_alive: float
    websockets: bool | None
    drain_delay: float
    drain: float


class FallbackSettingsDict(TypedDict, total=False):
    """See `FallbackSettings`."""

    upstream: str
    weight: float | None


class UpstreamSettingsDict(TypedDict, total=False):
    """See `UpstreamSettings`."""

    name: str
    base_url: str | None
    models: Sequence[str]
    rename: Mapping[str, str]
    fallback: str | Sequence[str | FallbackSettings | FallbackSettingsDict] | None
    breaker_failures: int
    breaker_seconds: float
    api: Literal["same", "auto", "chat", "responses", "messages", "gemini", "interactions"]
    profile: str
    unsupported: Literal["refuse", "drop"]
    max_tokens: int
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    verbosity: Literal["low", "medium", "high"] | None
    effort_max: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    budget_max: int | None
    api_key_env: str | None
    credential: Literal["client", "none"] | None
    forward_headers: Sequence[str]
    forward_paths: Sequence[str]
    summary: SummarySettingsDict
    reasoning: ReasoningSettingsDict
    usage: UsageSettingsDict
    history: HistorySettingsDict


class SummarySettingsDict(TypedDict, total=False):
    """See `SummarySettings`."""

    default: Literal["off", "auto", "concise", "detailed", "title"]
    allow: Sequence[Literal["auto", "concise", "detailed", "title"]]
    language: str
    translate: bool
    live: bool
    part_chars: int
    max_parts: int
    tail_chars: int | None
    min_chars: int
    max_overhead: float | None
    grace: float
    early_head: float
    status: bool
    first_token: float
    on_failure: Literal["omit", "extract", "fail"]


class PromptSettingsDict(TypedDict, total=False):
    """See `PromptSettings`."""

    auto: str | None
    concise: str | None
    detailed: str | None
    title: str | None


class SummarizerSettingsDict(TypedDict, total=False):
    """See `SummarizerSettings`."""

    kind: Literal["extractive", "model", "upstream", "object"]
    base_url: str | None
    model: str | None
    api: Literal["chat", "responses", "messages"]
    profile: str
    api_key_env: str | None
    temperature: float | None
    max_tokens: int | None
    timeout: float
    max_input_chars: int
    max_in_flight: int
    extra_body: Mapping[str, Any]
    prompts: PromptSettings | PromptSettingsDict
    breaker_failures: int
    breaker_seconds: float


class CompactionSettingsDict(TypedDict, total=False):
    """See `CompactionSettings`."""

    kind: Literal["auto", "upstream", "model"]
    max_tokens: int
    keep_tokens: int


class ReviewSettingsDict(TypedDict, total=False):
    """See `ReviewSettings`."""

    kind: Literal["none", "moderations"]
    base_url: str | None
    model: str | None
    api_key_env: str | None
    on_flag: Literal["withhold", "stop"]
    on_failure: Literal["show", "withhold"]
    timeout: float


class ReasoningSettingsDict(TypedDict, total=False):
    """See `ReasoningSettings`."""

    expose: Literal["auto", "both", "summary", "raw", "none"]
    kind: Literal["auto", "raw", "summary"]
    open_paths: Sequence[str]
    hold_text: bool


class ChatSettingsDict(TypedDict, total=False):
    """See `ChatSettings`."""

    summary_field: Literal["auto", "reasoning_content", "reasoning"]
    raw_field: Literal["auto", "reasoning_content", "reasoning"]
    details: bool
    envelope: Literal["reasoning_details", "thinking_blocks", "none"]


class HistorySettingsDict(TypedDict, total=False):
    """See `HistorySettings`."""

    restore: Literal["never", "altered", "always"]
    keep: Literal["client", "none", "tool_rounds", "all"]
    store: str
    ttl: float
    bytes: int | str
    seal_keys_env: str | None
    seal_ttl: float
    tenant: str
    anonymous: bool | Literal["loopback"]


class BackgroundSettingsDict(TypedDict, total=False):
    """See `BackgroundSettings`."""

    responses: int
    per_tenant: int
    seconds: float
    bytes: int | str
    lease: float


class UsageSettingsDict(TypedDict, total=False):
    """See `UsageSettings`."""

    count: Literal["merged", "separate"]


class ModelPriceSettingsDict(TypedDict, total=False):
    """See `ModelPriceSettings`."""

    glob: str
    input: float
    output: float
    cached_input: float | None
    cache_write: float | None


class PriceSettingsDict(TypedDict, total=False):
    """See `PriceSettings`."""

    currency: str | None
    models: Sequence[ModelPriceSettings | ModelPriceSettingsDict]


class LedgerSettingsDict(TypedDict, total=False):
    """See `LedgerSettings`."""

    url: str | None
    url_env: str | None
    retention: float
    waiting: int


class AttributionSettingsDict(TypedDict, total=False):
    """See `AttributionSettings`."""

    enabled: bool


class LimitSettingsDict(TypedDict, total=False):
    """See `LimitSettings`."""

    body: int | str
    bodies: int | str
    items: int
    values: int
    held: int | str
    reasoning: int | str
    event: int | str
    connect: float
    headers: float
    idle: float
    client: float
    in_flight: int
    connections: int
    client_share: float
    upload: float
    upload_rate: int | str


class LogSettingsDict(TypedDict, total=False):
    """See `LogSettings`."""

    format: Literal["text", "json"]
    requests: bool


class TracingSettingsDict(TypedDict, total=False):
    """See `TracingSettings`."""

    enabled: bool


class SettingsDict(TypedDict, total=False):
    """See `Settings`."""

    server: ServerSettings | ServerSettingsDict
    upstreams: Sequence[UpstreamSettings | UpstreamSettingsDict]
    summary: SummarySettings | SummarySettingsDict
    summarizer: SummarizerSettings | SummarizerSettingsDict
    compaction: CompactionSettings | CompactionSettingsDict
    review: ReviewSettings | ReviewSettingsDict
    reasoning: ReasoningSettings | ReasoningSettingsDict
    chat: ChatSettings | ChatSettingsDict
    history: HistorySettings | HistorySettingsDict
    background: BackgroundSettings | BackgroundSettingsDict
    usage: UsageSettings | UsageSettingsDict
    prices: PriceSettings | PriceSettingsDict
    ledger: LedgerSettings | LedgerSettingsDict
    attribution: AttributionSettings | AttributionSettingsDict
    limits: LimitSettings | LimitSettingsDict
    log: LogSettings | LogSettingsDict
    tracing: TracingSettings | TracingSettingsDict
