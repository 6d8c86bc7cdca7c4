"""Probe an upstream's API with one tiny request for answer, streaming, reasoning and usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

import httpx

from abridge.apis import sse
from abridge.apis.api import Reader, UpstreamApi
from abridge.apis.chat.reasoning import find_reasoning_fields
from abridge.apis.display import Display
from abridge.apis.json import objects, parse_object
from abridge.check.reach import CheckTarget, Finding, describe_error, read_chunks
from abridge.core.conversation import Json
from abridge.core.events import (
    ContentDelta,
    ErrorReported,
    Event,
    NativeSummary,
    ReasoningDelta,
    ResponseEnded,
    UsageReported,
)
from abridge.providers.profile import Profile

QUESTION = "Which is larger, 9.11 or 9.9? Answer in one word."

MAX_TOKENS = 512
"""Enough for reasoning to begin, and for most models to finish."""

REQUEST_BODIES: Mapping[str, Callable[[Profile], Json]] = {
    "chat": lambda profile: {
        "messages": [{"role": "user", "content": QUESTION}],
        profile.max_tokens_field: MAX_TOKENS,
        "stream_options": {"include_usage": True},
    },
    "responses": lambda _: {
        "input": QUESTION,
        "max_output_tokens": MAX_TOKENS,
        "store": False,
    },
    "messages": lambda _: {
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": MAX_TOKENS,
    },
}

API_NAMES: Mapping[str, str] = {
    "chat": "Chat Completions",
    "responses": "Responses",
    "messages": "Messages",
}


@dataclass(slots=True)
class _ProbeResult:
    """The observations made on one response."""

    started: float
    first_text_after: float | None = None  # seconds to the first text
    has_raw: bool = False
    has_native: bool = False
    is_inline: bool = False  # messages on Responses begin with reasoning in tags
    is_broken: bool = False
    has_usage: bool = False
    reasoning_fields: set[str] = field(default_factory=set)

    def observe(self, event: Event) -> None:
        has_text = isinstance(event, ReasoningDelta | NativeSummary | ContentDelta) and bool(
            event.text
        )
        if has_text and self.first_text_after is None:
            self.first_text_after = monotonic() - self.started
        self.has_raw |= isinstance(event, ReasoningDelta) and has_text
        self.has_native |= isinstance(event, NativeSummary) and has_text
        self.is_broken |= isinstance(event, ErrorReported) or (
            isinstance(event, ResponseEnded) and not event.ok
        )
        self.has_usage |= (
            isinstance(event, UsageReported | ResponseEnded) and event.usage is not None
        )


async def probe(
    target: CheckTarget, api: UpstreamApi, model: str, profile: Profile, subject: str
) -> Finding:
    """Send one streaming request. A 404 or 405 is a note, not a fault: there is no such API."""
    subject = f"{subject}, {API_NAMES[api.name]}"
    body = {"model": model, "stream": True, **REQUEST_BODIES[api.name](profile)}
    profile.drop_rejected(body, model)
    result, reader = (
        _ProbeResult(monotonic()),
        api.translating_reader(profile, Display(), MAX_TOKENS * 64),
    )
    try:
        async with target.send_request(api.path, body, api.headers) as response:
            content_type = response.headers.get("content-type", "")
            streams = content_type.startswith("text/event-stream")
            if response.status_code == 200:
                await (_read_stream if streams else _read_whole)(response, reader, result)
        result.is_inline = reader.observed().inline_on_responses
    except httpx.TransportError as error:
        return Finding(subject, describe_error(error), "fault")
    if response.status_code in (404, 405):
        return Finding(subject, f"is not available ({response.status_code})", "note")
    if response.status_code != 200:
        return Finding(subject, f"answers with status {response.status_code}", "fault")
    if result.is_broken:
        return Finding(subject, "sends what cannot be read, or broke off", "fault")
    return Finding(subject, _describe(result, streams=streams), "ok" if streams else "note")


async def _read_stream(response: httpx.Response, reader: Reader, result: _ProbeResult) -> None:
    decoder = sse.FrameDecoder(1 << 20)
    async for chunk in read_chunks(response):
        for frame in decoder.feed(chunk):
            result.reasoning_fields |= _reasoning_fields(sse.frame_data(frame) or b"")
            for event in reader.read(frame):
                result.observe(event)
    for event in reader.end():
        result.observe(event)


async def _read_whole(response: httpx.Response, reader: Reader, result: _ProbeResult) -> None:
    body = b"".join([chunk async for chunk in read_chunks(response)])
    result.reasoning_fields |= _reasoning_fields(body)
    for event in reader.read_whole(body):
        result.observe(event)


def _reasoning_fields(data: bytes) -> set[str]:
    """Return the names of the Chat Completions fields that carry reasoning."""
    choices = objects((parse_object(data) or {}).get("choices"))
    messages = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    return {
        name
        for message in messages
        if isinstance(message, dict)
        for name in find_reasoning_fields(message)
    }


def _describe(result: _ProbeResult, *, streams: bool) -> str:
    parts = ["streams" if streams else "answers, but does not stream"]
    fields = " and ".join(sorted(result.reasoning_fields))
    if result.is_inline:
        parts.append("reasoning in tags inside its messages")
    elif result.has_raw:
        parts.append(f"reasoning in {fields or 'items of its own or in tags'}")
    if result.has_native:
        parts.append("summaries of its own")
    if not (result.has_raw or result.has_native or result.is_inline):
        parts.append("no reasoning seen")
    if result.first_text_after is not None:
        parts.append(f"first word after {result.first_text_after:.2f} s")
    if not result.has_usage:
        parts.append("no usage reported")
    return "; ".join(parts)
