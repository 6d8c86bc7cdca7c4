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

from abridge.settings import SummarizerSettings, Upstream
from abridge.summarize import Spent
from abridge.telemetry.log import fields
from abridge.telemetry.record import NOTHING, Record, told
from abridge.turn.usage import EXTRACTIVE, Tokens
from abridge.wire.profiles import PROFILES

Value: TypeAlias = str | bool | int | float
Attributes: TypeAlias = dict[str, Value]

CHAT = "chat"
"""The operation name on every API; the conventions have no other that fits."""

METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"}
)

NAMES: Mapping[str, str] = {
    "model": "gen_ai.request.model",
    "stream": "gen_ai.request.stream",
    "status": "http.response.status_code",
}
ELSEWHERE = frozenset({"trace_id", "method", "path", "seconds"})
"""Fields of the log line that a span has anyway."""


@dataclass(slots=True, frozen=True)
class Place:
    """An upstream or a summarizer that serves models."""

    provider: str
    address: Attributes

    @classmethod
    def of(cls, placed: Upstream | SummarizerSettings) -> Place:
        provider = _provider(placed)
        if placed.base_url is None:
            return cls(provider, {})
        url = urlsplit(placed.base_url)
        port = url.port or (443 if url.scheme == "https" else 80)
        return cls(provider, {"server.address": url.hostname or "", "server.port": port})

    def asked(self, model: str | None) -> Attributes:
        """Return the attributes of a call that are known before it is made."""
        said: Attributes = {"gen_ai.operation.name": CHAT, "gen_ai.provider.name": self.provider}
        if model:
            said["gen_ai.request.model"] = bounded(model)
        return said | self.address


def _provider(placed: Upstream | SummarizerSettings) -> str:
    profile = PROFILES[placed.profile]
    if profile.learns and placed.api == "messages":  # the provider whose first API it is
        profile = next(row for row in PROFILES.values() if row.apis[0] == placed.api)
    return profile.telemetry or profile.name


def named(model: str | None) -> str:
    """Return the name of an inference span."""
    return f"{CHAT} {bounded(model)}" if model else CHAT


def of_way(scope: Scope) -> Iterator[tuple[str, Value]]:
    """Yield method and path, but not the query, which may hold a key."""
    method = scope["method"]
    yield "http.request.method", method if method in METHODS else "_OTHER"
    yield "url.path", bounded(scope["path"])


def of_request(record: Record) -> Iterator[tuple[str, Value]]:
    """Yield all fields of the log line."""
    if record.api is not None:
        yield "gen_ai.operation.name", CHAT
    for key, value in fields(record):
        if isinstance(value, dict):
            for kind, count in value.items():
                yield f"abridge.{key}.{kind}", count
        elif key not in ELSEWHERE:
            yield NAMES.get(key, f"abridge.{key}"), bounded(value)


def of_answer(record: Record) -> Iterator[tuple[str, Value]]:
    """Yield what upstream reported about its response."""
    yield from of_tokens(record.used)
    if record.response_id:
        yield "gen_ai.response.id", bounded(record.response_id)
    if record.response_model:
        yield "gen_ai.response.model", bounded(record.response_model)


def of_summary(spent: Spent) -> Iterator[tuple[str, Value]]:
    """Yield the usage of a summarizer call, if a model was called."""
    if spent.model == EXTRACTIVE:
        return
    yield from of_tokens(spent.tokens or NOTHING)
    if spent.model:
        yield "gen_ai.operation.name", CHAT
        yield "gen_ai.response.model", bounded(spent.model)


def of_tokens(tokens: Tokens) -> Iterator[tuple[str, Value]]:
    for name, count in (
        ("input_tokens", tokens.input),
        ("output_tokens", tokens.output),
        ("reasoning.output_tokens", tokens.reasoning),
        ("cache_read.input_tokens", tokens.cached),
        ("cache_creation.input_tokens", tokens.written),
    ):
        if count is not None:
            yield f"gen_ai.usage.{name}", count


V = TypeVar("V", str, bool, int, float)


def bounded(value: V) -> V:
    return told(value) if isinstance(value, str) else value
