"""The record of one request: filled in as the request proceeds, passed to every sink at its end.

Times are in seconds since the request arrived, on a monotonic clock. None means that something did
not happen or is not known. A record holds no prompts, reasoning, answers or credentials.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from random import getrandbits
from typing import Protocol

from starlette.types import Scope

from abridge.core.hidden import HiddenCount
from abridge.core.usage import NO_TOKENS, Tokens, add_tokens
from abridge.errors import RequestError
from abridge.http.asgi import decoded_path
from abridge.memory.policy import HistoryChanges

RECORD = "abridge.record"
"""Scope key of a request's record, which the middleware sets."""

TRACE = "abridge.trace"
"""Scope key of a request's spans; None while tracing is off."""

WEBSOCKET = "abridge.websocket"
"""Scope key that says that a request came over a WebSocket."""

BACKGROUND = "abridge.background"
"""Scope key of the id of the background response that a request runs; None for any other."""

SHUTTING_DOWN = "shutting_down"
"""Cause of a request that a stopping server cancelled; the message by which it cancels it."""

CANCELLED = "cancelled"
"""Cause of a request that was cancelled otherwise, for example by a timeout around the app."""

REQUEST_ID_HEADER = b"x-request-id"

MAX_TEXT_CHARS = 256
"""Maximum characters of text that a client or an upstream chose."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")

_ERROR_CODE = re.compile(r"[a-z0-9_.-]{1,64}")


@dataclass(slots=True)
class SummarizerCall:
    """One summarizer call."""

    part: int  # id of the part
    began: float
    ended: float | None = None
    outcome: str = ""


@dataclass(slots=True)
class ShownPart:
    """A part of the summary, with the times at which its first and last event went out."""

    began: float
    ended: float | None = None


@dataclass(slots=True)
class CompactionRecord:
    """A compaction of a request's conversation."""

    summarizer: str  # who wrote it: `upstream` or `model`
    outcome: str = "failed"  # as in the metrics
    calls: list[Record] = field(default_factory=list)  # of the requests for a summary

    @property
    def tokens(self) -> Tokens:
        """The tokens that were reported."""
        return reduce(add_tokens, (call.upstream_tokens for call in self.calls), NO_TOKENS)


class AdmittedRequest(Protocol):
    """A request that counts against limits."""

    def end(self, tokens: int, money: int) -> None:
        """Note what it has used in the end."""


@dataclass(slots=True)
class Record:
    """One request. The fields from `first_summary` on are set only if it was `engaged`."""

    id: str
    at: float  # arrival, in seconds since the epoch
    began: float  # arrival, by `clock`
    clock: Callable[[], float] = time.monotonic
    method: str = ""
    path: str = ""
    websocket: bool = False
    trace_id: str | None = None  # id of the trace it belongs to
    exemplar: dict[str, str] | None = None  # links a metric to the trace, if that is sampled
    key: str | None = None  # the name of the key of Abridge's own with which it came
    team: str | None = None  # that key's team
    admission: AdmittedRequest | None = None  # by the limits of both
    request_bytes: int = 0  # of the body, without its content encoding
    api: str | None = None
    upstream: str | None = None  # a name in the settings
    model: str | None = None
    stream: bool = False
    style: str = "off"
    summarizer: str | None = None
    status: int | None = None
    outcome: str = "failed"  # as in the metrics; the worst until a better one is known
    cause: str | None = None  # code of the first error
    profile: str | None = None  # of the upstream, once its answer is to be read
    hidden: HiddenCount | None = None  # what was left out for that, once an answer is read
    seconds: float = 0.0  # total
    engaged: bool = False
    overhead: float = 0.0  # seconds that Abridge itself took before upstream was called
    history_changes: list[HistoryChanges] = field(default_factory=list)
    dropped_request_fields: int = 0  # fields dropped from the request
    compaction: CompactionRecord | None = None
    first_summary: float | None = None
    thinking: tuple[float, float] | None = None  # first and last reasoning delta
    answer: tuple[float, float] | None = None  # first and last content delta sent
    chunks: int = 0  # content deltas sent
    answer_characters: int = 0  # in them
    held_seconds: float = 0.0  # seconds that the answer waited for its summary
    characters: int = 0  # of reasoning
    upstream_tokens: Tokens = NO_TOKENS
    summarizer_tokens: Tokens = NO_TOKENS
    response_id: str | None = None  # as upstream sent it
    response_model: str | None = None  # as upstream sent it
    is_whole: bool = False  # upstream's answer came to its end, so that its usage is final
    summaries: dict[str, int] = field(default_factory=dict)  # reasoning items by outcome
    summary_error: str | None = None  # code of the first summary that failed
    calls: list[SummarizerCall] = field(default_factory=list)
    parts: list[ShownPart] = field(default_factory=list)
    dropped_response_fields: int = 0  # unknown fields that the Reader dropped
    rebuilt_as: str = "responses"  # what no API's reader rebuilt: a stored response, or `images`
    reader_faults: int = 0  # events out of order, and ends without a reason
    final_text_mismatches: int = 0  # final texts that are not the sum of their deltas

    @classmethod
    def start(cls, scope: Scope) -> Record:
        """Start the record of a request, with the id that its client sent if that is valid."""
        return cls(
            _client_request_id(scope) or new_request_id(),
            time.time(),
            time.monotonic(),
            time.monotonic,
            scope["method"],
            bounded_text(decoded_path(scope)),
            WEBSOCKET in scope,
        )

    @classmethod
    def get(cls, scope: Scope) -> Record:
        """Return the record of a request that has passed the middleware."""
        record: Record = scope[RECORD]
        return record

    def elapsed(self) -> float:
        return self.clock() - self.began

    def note_target(self, api: str, upstream: str, model: str | None) -> None:
        """Note the API, upstream and model, once they are known."""
        self.api, self.upstream = api, upstream
        self.model = bounded_text(model) if model is not None else None

    def note_profile(self, profile: str) -> HiddenCount:
        """Note the profile under which an answer is read. Return what counts what is left out of
        it where raw reasoning is hidden."""
        self.profile = profile
        self.hidden = Counter() if self.hidden is None else self.hidden
        return self.hidden

    def note_refusal(self, refusal: RequestError) -> None:
        self.outcome, self.status = "refused", refusal.status
        self.note_error(refusal.code)

    def note_error(self, code: str | None) -> None:
        """Note an error; the first is the cause. A malformed code from upstream is ignored."""
        if self.cause is None and code is not None and _ERROR_CODE.fullmatch(code):
            self.cause = code


def new_request_id() -> str:
    return getrandbits(128).to_bytes(16).hex()


def cancellation_cause(error: asyncio.CancelledError) -> str:
    """Return why a request was cancelled."""
    return SHUTTING_DOWN if SHUTTING_DOWN in error.args else CANCELLED


def _client_request_id(scope: Scope) -> str | None:
    """Return the client's own id for its request, if valid."""
    for name, value in scope["headers"]:
        if name == REQUEST_ID_HEADER:
            request_id: str = value.decode("latin-1")
            return request_id if _REQUEST_ID.fullmatch(request_id) else None
    return None


def bounded_text(text: str) -> str:
    """Make text that a client or an upstream chose safe for every sink.

    JSON may hold lone surrogates, which cannot be encoded, and names of any length.
    """
    text = text[:MAX_TEXT_CHARS]
    return text if text.isascii() else text.encode(errors="replace").decode()


Sink = Callable[[Record], None]
"""Receives a complete record. It must return quickly; an exception from it is logged."""
