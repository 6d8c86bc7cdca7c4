"""Span names and attributes.

The names are those of OpenTelemetry's semantic conventions for generative AI and for HTTP; where
these have none, the name in the log line, prefixed with `abridge.`.

`gen_ai.usage` is set once, on the span of the call that used the tokens. The request's own span
repeats the counts under Abridge's names, so that summing a model's cost does not count them twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar
from urllib.parse import urlsplit

from starlette.types import Scope

from abridge.config.tables import SummarizerSettings
from abridge.config.upstreams import UpstreamSettings
from abridge.core.usage import EXTRACTIVE, SummarizerUsage, Tokens
from abridge.observability.logs import record_fields
from abridge.observability.record import NO_TOKENS, Record, bounded_text
from abridge.providers.catalog import PROFILES

Value: TypeAlias = str | bool | int | float

Attributes: TypeAlias = dict[str, Value]

CHAT_OPERATION = "chat"
"""The operation name on every API; the conventions have no other that fits."""

KNOWN_METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"}
)

ATTRIBUTE_NAMES: Mapping[str, str] = {
    "model": "gen_ai.request.model",
    "stream": "gen_ai.request.stream",
    "status": "http.response.status_code",
}

OMITTED_FIELDS = frozenset({"trace_id", "method", "path", "seconds"})
"""Fields of the log line that a span has anyway."""


@dataclass(slots=True, frozen=True)
class ModelServer:
    """An upstream or a summarizer that serves models."""

    provider: str
    address: Attributes

    @classmethod
    def from_settings(cls, settings: UpstreamSettings | SummarizerSettings) -> ModelServer:
        provider = _provider_name(settings)
        if settings.base_url is None:
            return cls(provider, {})
        url = urlsplit(settings.base_url)
        port = url.port or (443 if url.scheme == "https" else 80)
        return cls(provider, {"server.address": url.hostname or "", "server.port": port})

    def call_attributes(self, model: str | None) -> Attributes:
        """Return the attributes of a call that are known before it is made."""
        attributes: Attributes = {
            "gen_ai.operation.name": CHAT_OPERATION,
            "gen_ai.provider.name": self.provider,
        }
        if model:
            attributes["gen_ai.request.model"] = bounded_value(model)
        return attributes | self.address


def _provider_name(settings: UpstreamSettings | SummarizerSettings) -> str:
    profile = PROFILES[settings.profile]
    if profile.learns and settings.api in ("messages", "gemini"):  # whose first API it is
        profile = next(row for row in PROFILES.values() if row.apis[0] == settings.api)
    return profile.telemetry_name or profile.name


def span_name(model: str | None) -> str:
    """Return the name of an inference span."""
    return f"{CHAT_OPERATION} {bounded_value(model)}" if model else CHAT_OPERATION


def http_attributes(scope: Scope) -> Iterator[tuple[str, Value]]:
    """Yield method and path, but not the query, which may hold a key."""
    method = scope["method"]
    yield "http.request.method", method if method in KNOWN_METHODS else "_OTHER"
    yield "url.path", bounded_value(scope["path"])


def record_attributes(record: Record) -> Iterator[tuple[str, Value]]:
    """Yield all fields of the log line."""
    if record.api is not None:
        yield "gen_ai.operation.name", CHAT_OPERATION
    for key, value in record_fields(record):
        if isinstance(value, dict):
            for kind, count in value.items():
                yield f"abridge.{key}.{kind}", count
        elif key not in OMITTED_FIELDS:
            yield ATTRIBUTE_NAMES.get(key, f"abridge.{key}"), bounded_value(value)


def response_attributes(record: Record) -> Iterator[tuple[str, Value]]:
    """Yield what upstream reported about its response."""
    yield from token_attributes(record.upstream_tokens)
    if record.response_id:
        yield "gen_ai.response.id", bounded_value(record.response_id)
    if record.response_model:
        yield "gen_ai.response.model", bounded_value(record.response_model)


def summary_attributes(spent: SummarizerUsage) -> Iterator[tuple[str, Value]]:
    """Yield the usage of a summarizer call, if a model was called."""
    if spent.model == EXTRACTIVE:
        return
    yield from token_attributes(spent.tokens or NO_TOKENS)
    if spent.model:
        yield "gen_ai.operation.name", CHAT_OPERATION
        yield "gen_ai.response.model", bounded_value(spent.model)


def token_attributes(tokens: Tokens) -> Iterator[tuple[str, Value]]:
    for name, count in (
        ("input_tokens", tokens.input),
        ("output_tokens", tokens.output),
        ("reasoning.output_tokens", tokens.reasoning),
        ("cache_read.input_tokens", tokens.cached),
        ("cache_creation.input_tokens", tokens.cache_written),
    ):
        if count is not None:
            yield f"gen_ai.usage.{name}", count


V = TypeVar("V", str, bool, int, float)


def bounded_value(value: V) -> V:
    return bounded_text(value) if isinstance(value, str) else value
