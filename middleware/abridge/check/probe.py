"""Probe an upstream's API with one tiny request for answer, streaming, reasoning and usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

import httpx

from abridge.check.finding import Finding
from abridge.check.place import Place, cause, pieces
from abridge.turn.events import Billed, Ended, Event, Failed, Native, Raw, Said
from abridge.wire import sse
from abridge.wire.api import Reader, UpstreamApi
from abridge.wire.chat.dialects import spellings
from abridge.wire.codec import Json, objects, read_object
from abridge.wire.display import Display
from abridge.wire.profiles import Profile

QUESTION = "Which is larger, 9.11 or 9.9? Answer in one word."
MOST_TOKENS = 512
"""Enough for reasoning to begin, and for most models to finish."""

BODIES: Mapping[str, Callable[[Profile], Json]] = {
    "chat": lambda profile: {
        "messages": [{"role": "user", "content": QUESTION}],
        profile.max_tokens: MOST_TOKENS,
        "stream_options": {"include_usage": True},
    },
    "responses": lambda _: {
        "input": QUESTION,
        "max_output_tokens": MOST_TOKENS,
        "store": False,
    },
    "messages": lambda _: {
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": MOST_TOKENS,
    },
}
NAMES: Mapping[str, str] = {
    "chat": "Chat Completions",
    "responses": "Responses",
    "messages": "Messages",
}


@dataclass(slots=True)
class _Seen:
    """The observations made on one response."""

    began: float
    first: float | None = None  # seconds to the first text
    raw: bool = False
    native: bool = False
    broken: bool = False
    usage: bool = False
    spellings: set[str] = field(default_factory=set)

    def see(self, event: Event) -> None:
        spoken = isinstance(event, Raw | Native | Said) and bool(event.text)
        if spoken and self.first is None:
            self.first = monotonic() - self.began
        self.raw |= isinstance(event, Raw) and spoken
        self.native |= isinstance(event, Native) and spoken
        self.broken |= isinstance(event, Failed) or (isinstance(event, Ended) and not event.ok)
        self.usage |= isinstance(event, Billed | Ended) and event.usage is not None


async def probe(
    place: Place, api: UpstreamApi, model: str, profile: Profile, about: str
) -> Finding:
    """Send one streaming request. A 404 or 405 is a note, not a fault: there is no such API."""
    about = f"{about}, {NAMES[api.name]}"
    body = {"model": model, "stream": True, **BODIES[api.name](profile)}
    seen, reader = _Seen(monotonic()), api.teller(profile, Display(), MOST_TOKENS * 64)
    try:
        async with place.asked(api.path, body, api.headers) as response:
            kind = response.headers.get("content-type", "")
            streams = kind.startswith("text/event-stream")
            if response.status_code == 200:
                await (_read_stream if streams else _read_whole)(response, reader, seen)
    except httpx.TransportError as error:
        return Finding(about, cause(error), "fault")
    if response.status_code in (404, 405):
        return Finding(about, f"is not there ({response.status_code})", "note")
    if response.status_code != 200:
        return Finding(about, f"answers with status {response.status_code}", "fault")
    if seen.broken:
        return Finding(about, "answers what cannot be read, or broke off", "fault")
    return Finding(about, _told(seen, streams=streams), "ok" if streams else "note")


async def _read_stream(response: httpx.Response, reader: Reader, seen: _Seen) -> None:
    decoder = sse.Decoder(1 << 20)
    async for piece in pieces(response):
        for frame in decoder.feed(piece):
            seen.spellings |= _spelled(sse.data(frame) or b"")
            for event in reader.read(frame):
                seen.see(event)
    for event in reader.end():
        seen.see(event)


async def _read_whole(response: httpx.Response, reader: Reader, seen: _Seen) -> None:
    body = b"".join([piece async for piece in pieces(response)])
    seen.spellings |= _spelled(body)
    for event in reader.whole(body):
        seen.see(event)


def _spelled(data: bytes) -> set[str]:
    """Return the names of the Chat Completions fields that carry reasoning."""
    choices = objects((read_object(data) or {}).get("choices"))
    said = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    return {name for one in said if isinstance(one, dict) for name in spellings(one)}


def _told(seen: _Seen, *, streams: bool) -> str:
    parts = ["streams" if streams else "answers, but does not stream"]
    where = " and ".join(sorted(seen.spellings))
    if seen.raw:
        parts.append(f"reasoning in {where or 'its own place or in tags'}")
    if seen.native:
        parts.append("summaries of its own")
    if not (seen.raw or seen.native):
        parts.append("no reasoning seen")
    if seen.first is not None:
        parts.append(f"first word after {seen.first:.2f} s")
    if not seen.usage:
        parts.append("no usage told")
    return "; ".join(parts)
