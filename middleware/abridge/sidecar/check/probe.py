"""Probe an upstream's API with one tiny request for answer, streaming, reasoning and usage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from time import monotonic

import httpx

from abridge.apis import sse
from abridge.apis.api import UpstreamApi, UpstreamOptions
from abridge.apis.chat.api import CHAT
from abridge.apis.chat.reasoning import find_reasoning_fields
from abridge.apis.display import Display
from abridge.apis.effort import RequestDefaults
from abridge.apis.json import objects, parse_object
from abridge.apis.protocols import Reader
from abridge.apis.registry import APIS
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
from abridge.pipeline.request_translation import translate_body
from abridge.providers.profile import ApiName, Profile
from abridge.sidecar.check.reach import CheckTarget, Finding, describe_error, read_chunks
from abridge.sidecar.check.refusal import ListeningTransport
from abridge.stages.tags import TagSplitter

QUESTION = "Which is larger, 9.11 or 9.9? Answer in one word."

MAX_TOKENS = 512
"""Enough for reasoning to begin, and for most models to finish."""

MAX_TEXT_CHARS = 16 << 10
"""Characters of the answer in which thinking is looked for."""

REQUEST: Json = {
    "messages": [{"role": "user", "content": QUESTION}],
    "max_completion_tokens": MAX_TOKENS,
    "stream": True,
    "stream_options": {"include_usage": True},
    "store": False,
}
"""What is asked, by Chat Completions' names."""

OWN_ITEMS = "reasoning in separate items"

TEXT_FIELDS = frozenset({"role", "content", "refusal"})
"""Fields of a Chat Completions message that have text and are no reasoning."""

UNSEEN = "no reasoning seen: the model did not think, or its server does not show it unasked"

UNKNOWN_FIELDS = "no reasoning seen, but fields that Abridge does not know"

EMPTY = "its answer was empty, so nothing is known of its reasoning: probe again"


@dataclass(slots=True)
class ProbeResult:
    """The observations made on one response."""

    started: float
    first_text_after: float | None = None  # seconds to the first text
    has_raw: bool = False
    has_native: bool = False
    text: str = ""  # of the answer, up to `MAX_TEXT_CHARS`
    is_inline: bool = False  # its messages have reasoning in them
    is_broken: bool = False
    is_missing: bool = False  # upstream does not have the API
    has_usage: bool = False
    reasoning_fields: set[str] = field(default_factory=set)
    unknown_fields: set[str] = field(default_factory=set)  # which have text

    @property
    def is_empty(self) -> bool:
        return self.first_text_after is None and not self.unknown_fields

    def note_fields(self, data: bytes) -> None:
        """Note which fields of a Chat Completions frame or body have reasoning, or unknown text."""
        choices = objects((parse_object(data) or {}).get("choices"))
        messages = [choice.get("delta") or choice.get("message") for choice in choices]
        for message in objects(messages):
            self.reasoning_fields.update(find_reasoning_fields(message))
            texts = {name for name, value in message.items() if value and isinstance(value, str)}
            self.unknown_fields |= set(filter(str.isidentifier, texts - TEXT_FIELDS))

    def observe(self, event: Event) -> None:
        has_text = isinstance(event, ReasoningDelta | NativeSummary | ContentDelta) and bool(
            event.text
        )
        if has_text and self.first_text_after is None:
            self.first_text_after = monotonic() - self.started
        if isinstance(event, ContentDelta):
            self.text += event.text[: MAX_TEXT_CHARS - len(self.text)]
        self.has_raw |= isinstance(event, ReasoningDelta) and has_text
        self.has_native |= isinstance(event, NativeSummary) and has_text
        self.is_broken |= isinstance(event, ErrorReported) or (
            isinstance(event, ResponseEnded) and not event.ok
        )
        self.has_usage |= (
            isinstance(event, UsageReported | ResponseEnded) and event.usage is not None
        )


@dataclass(slots=True, frozen=True)
class ProbeReport:
    """What is to be said of one API, and how well its clients see the model's reasoning."""

    api: ApiName
    finding: Finding
    result: ProbeResult

    @property
    def shows_reasoning(self) -> bool:
        """Return whether reasoning is apart from the answer."""
        return self.finding.grade == "ok" and (self.result.has_raw or self.result.has_native)


@dataclass(slots=True, frozen=True)
class Probe:
    """Asks the APIs of one upstream."""

    target: CheckTarget
    model: str
    profile: Profile
    defaults: RequestDefaults  # the upstream's
    subject: str

    async def ask(self, api: UpstreamApi) -> ProbeReport:
        """Send one streaming request. A 404 or 405 is a note, not a fault: there is no such API."""
        options = UpstreamOptions(self.profile)
        asked = {**REQUEST, "model": self.model}
        translation = translate_body(asked, CHAT, api, options, lenient=True)
        body = translation.body
        body.pop("include", None)  # reasoning's state, which models without any refuse
        for client_api in [row for row in APIS if row.upstream is api]:
            self.defaults.fill(body, client_api, self.profile)
        self.profile.drop_rejected(body, self.model)
        result = ProbeResult(monotonic())
        finding = await self._send(api, translation.endpoint, body, result)
        return ProbeReport(api.name, finding, result)

    async def _send(self, api: UpstreamApi, path: str, body: Json, result: ProbeResult) -> Finding:
        subject = f"{self.subject}, {api.title}"
        reader = api.translating_reader(self.profile, Display(), MAX_TOKENS * 64)
        listening = ListeningTransport(self.target.transport)
        target = replace(self.target, transport=listening)
        try:
            async with target.send_request(path, body, api.headers) as response:
                content_type = response.headers.get("content-type", "")
                streams = content_type.startswith("text/event-stream")
                if response.status_code == 200:
                    await (_read_stream if streams else _read_whole)(response, reader, result)
        except httpx.TransportError as error:
            return Finding(subject, describe_error(error), "fault")
        split = api.name == "chat" and result.has_raw and not result.reasoning_fields
        observed = split or reader.observed().inline_on_responses
        result.is_inline = observed or _has_thinking(result.text, self.profile)
        if response.status_code in (404, 405):
            result.is_missing = True
            missing = f"is not available ({response.status_code}){listening.said}"
            return Finding(subject, missing, "note")
        if response.status_code != 200:
            refused = f"answers with status {response.status_code}{listening.said}"
            return Finding(subject, refused, "fault")
        if result.is_broken:
            return Finding(subject, "sent an unreadable answer, or broke off", "fault")
        return Finding(subject, _describe(result, streams=streams), "ok" if streams else "note")


def compare_apis(reports: Iterable[ProbeReport], subject: str) -> Finding | None:
    """Return a note if clients of Responses would be served better over Chat Completions, where the
    server keeps apart what it does not on Responses."""
    by_api = {report.api: report for report in reports}
    chat, responses = by_api.get("chat"), by_api.get("responses")
    if chat is None or responses is None or not chat.shows_reasoning or responses.shows_reasoning:
        return None
    seen = responses.result
    if seen.is_missing or (seen.is_empty and responses.finding.grade == "ok"):
        return None
    reason = "is inside its messages" if seen.is_inline else "does not show"
    text = f'api = "chat" would serve clients better: on Responses the reasoning {reason}'
    return Finding(subject, text, "note")


def describe_discovery(
    reports: Iterable[ProbeReport], subject: str, *, finds_out: bool
) -> Finding | None:
    """Return what becomes of clients whose API upstream lacks, if it has one to fall back to:
    where `finds_out`, they are served over that."""
    by_api = {report.api: report for report in reports}
    served = {name for name, report in by_api.items() if report.finding.grade == "ok"}
    missing = [
        row.upstream.title
        for row in APIS
        if row.name in by_api and by_api[row.name].result.is_missing and served & {*row.fallbacks}
    ]
    if not missing:
        return None
    clients = f"clients of {' and '.join(missing)}"
    if finds_out:
        return Finding(subject, f"{clients} are served through an API that it has")
    return Finding(subject, f'api = "auto" would also serve {clients}', "note")


def _has_thinking(text: str, profile: Profile) -> bool:
    """Return whether a text begins with thinking, closed or cut off, or has the end of some that
    the model's template opened."""
    pieces = TagSplitter(profile.tags).feed(text)
    return any(piece.kind == "raw" for piece in pieces) or any(
        tag.closing in text for tag in profile.tags
    )


async def _read_stream(response: httpx.Response, reader: Reader, result: ProbeResult) -> None:
    decoder = sse.FrameDecoder(1 << 20)
    async for chunk in read_chunks(response):
        for frame in decoder.feed(chunk):
            result.note_fields(sse.frame_data(frame) or b"")
            for event in reader.read(frame):
                result.observe(event)
    for event in reader.end():
        result.observe(event)


async def _read_whole(response: httpx.Response, reader: Reader, result: ProbeResult) -> None:
    body = b"".join([chunk async for chunk in read_chunks(response)])
    result.note_fields(body)
    for event in reader.read_whole(body):
        result.observe(event)


def _describe(result: ProbeResult, *, streams: bool) -> str:
    """Say what an answer was like."""
    parts = ["streams" if streams else "answers, but does not stream"]
    fields = " and ".join(sorted(result.reasoning_fields))
    if result.is_inline:
        parts.append("reasoning in tags inside its messages")
    elif result.has_raw:
        parts.append(f"reasoning in a separate field, {fields}" if fields else OWN_ITEMS)
    if result.has_native:
        parts.append("summaries of its own")
    if result.is_empty:
        parts.append(EMPTY)
    elif not (result.has_raw or result.has_native or result.is_inline):
        unknown = ", ".join(sorted(result.unknown_fields))
        parts.append(f"{UNKNOWN_FIELDS}: {unknown}" if unknown else UNSEEN)
    if result.first_text_after is not None:
        parts.append(f"first word after {result.first_text_after:.2f} s")
    if not result.has_usage:
        parts.append("no usage reported")
    return "; ".join(parts)
