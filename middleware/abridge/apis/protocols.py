"""What the readers and writers of all APIs do, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import ErrorDetail, Event, ResponseEnded
from abridge.core.model_request import Tool
from abridge.providers.learned import Observation
from abridge.stages.thinking import Accepts, accept_any

Keep: TypeAlias = Callable[[str], object]
"""Keeps a text as said or shown. As with `Accepts`, it must not refer to the reader."""


class Continuation(NamedTuple):
    """What a frame said that holds nothing but the next text of a part. A later frame like it
    becomes the same event with its own text, which each of `keeps` is given."""

    key: str  # under which the text stands in the frame
    text: str
    keeps: tuple[Keep, ...]
    accepts: Accepts | None = None  # where texts are looked at

    def looked_at(self, accepts: Accepts | None) -> Continuation | None:
        """Return the same for a part whose texts a stage accepts so; None if it accepts none."""
        return self if accepts is accept_any else accepts and self._replace(accepts=accepts)


class EventReader(Protocol):
    """Turn one response into events."""

    @property
    def dropped(self) -> int: ...  # unknown fields that were dropped with hidden reasoning

    @property
    def faults(self) -> int: ...  # events that came out of order, and ends without a reason

    @property
    def continuation(self) -> Continuation | None: ...

    """How the next frame is read if it is like the last; None if that was no mere delta."""

    def read(self, frame: bytes) -> list[Event]:
        """Read one frame of a stream."""

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        """End the stream; with `error` because it broke."""

    def read_whole(self, body: bytes) -> list[Event]:
        """Read a response that is not a stream."""


class Reader(EventReader, Protocol):
    """A reader of events that are always in a legal order."""

    @property
    def mismatches(self) -> int: ...  # final texts that are not the sum of their deltas

    def recorded_turns(self) -> list[RecordedTurn]:
        """Return the turns of the answer, with their reasoning, once all is read."""

    def observed(self) -> Observation:
        """Return what the response showed of its provider's behaviour, once all is read."""


class Writer(Protocol):
    """Turn the events of one response into bytes for the client."""

    def write(self, event: Event) -> bytes:
        """Write one event of a stream; return nothing if there is nothing to send."""

    def note(self, event: Event) -> None:
        """Take one event, except the end, of a response that is not a stream."""

    def write_whole(self, end: ResponseEnded) -> bytes:
        """Write a response that is not a stream."""

    def keep_alive(self, beside: Json | None = None) -> bytes:
        """Return a keep-alive that clients take for an event, or nothing if the API has none. With
        `beside`, it carries these fields of Abridge's own, on any API."""

    @property
    def final_response(self) -> Json | None:
        """The finished response as the client saw it, on an API that stores responses."""


@dataclass(slots=True, frozen=True)
class RequestEcho:
    """The parts of a client's request that its answer repeats."""

    body: Json = field(default_factory=dict)  # the request as the client wrote it
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The tools offered, by the names that upstream uses."""
    now: Callable[[], float] = float  # returns seconds since the epoch
    stored: bool = False  # the answer can be retrieved later
    foreign_reasoning: Sequence[str] = ()
    """Names of the reasoning that was left out of the request (see `ModelRequest`)."""
