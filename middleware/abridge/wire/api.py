"""What the rest of Abridge knows of an API: how to read it and how to write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from abridge.turn.conversation import Heard, Turn
from abridge.turn.events import Ended, Event, Trouble
from abridge.turn.question import Question, Tool, Written
from abridge.wire.codec import Json
from abridge.wire.display import Display
from abridge.wire.envelope import Open
from abridge.wire.learned import Seen
from abridge.wire.profile import ApiName, Profile


class Reader(Protocol):
    """Turns one response into turn events, always legal ones.

    `dropped` counts the unknown fields that went with hidden reasoning, `faults` what upstream said
    out of order.
    """

    @property
    def dropped(self) -> int: ...

    @property
    def faults(self) -> int: ...

    def read(self, frame: bytes) -> list[Event]:
        """One frame of a stream."""

    def end(self, trouble: Trouble | None = None) -> list[Event]:
        """The stream is over; with `trouble`, because it broke."""

    def whole(self, body: bytes) -> list[Event]:
        """A response that is no stream."""

    def heard(self) -> list[Heard]:
        """The turns with reasoning in them, once all is read."""

    def seen(self) -> Seen:
        """What the response showed of its provider's ways, once all is read."""


class Writer(Protocol):
    """Turns the events of one response into bytes for the client."""

    def write(self, event: Event) -> bytes:
        """One event of a stream; empty where nothing is to be sent."""

    def note(self, event: Event) -> None:
        """One event, the end excepted, of a response that is no stream."""

    def whole(self, end: Ended) -> bytes:
        """A response that is no stream."""

    def beat(self) -> bytes:
        """A sign of life that a client takes for an event; empty where the API has none."""

    @property
    def shown(self) -> Json | None:
        """The response as the client was shown it, once it is over, on an API that stores them."""


Spelt: TypeAlias = Literal["as it was", "moved", "dropped"]
"""What became of reasoning that upstream may read elsewhere than where its client has it."""


class Conversation(Protocol):
    """A request's turns, and the ways to change what of them reaches upstream."""

    turns: list[Turn]

    @property
    def insists(self) -> bool:
        """Whether the API itself refuses calls, while they are answered, without what was thought
        before them."""

    def strip(self, turn: Turn, ours: Callable[[str], bool]) -> tuple[int, bool]:
        """Take out of a turn what Abridge put into it.

        `ours` knows a summary of Abridge's by its text. Returns how much was taken, and whether
        reasoning is left that is the model's own.
        """

    def unmark(self, turn: Turn) -> int:
        """Take out of a turn's calls what was said to have led to them; return how much that was.
        It tells nothing of whether the turn's reasoning is amiss."""

    def unseal(self, turn: Turn, opened: Open) -> bool:
        """Put in place of the blobs in a turn what `opened` finds in them; return whether that was
        anything. No blob of ours is left, whoever's turn it stands in."""

    def put_back(self, turn: Turn, original: list[Json]) -> None:
        """Give a turn the reasoning that upstream said with it, and no other."""

    def drop(self, turn: Turn) -> bool:
        """Take all reasoning out of a turn, inline and opaque as well; whether there was any."""

    def spell(self, turn: Turn, profile: Profile) -> Spelt:
        """Say a turn's reasoning where the profile reads it, if anywhere."""

    def body(self) -> Json:
        """The request's body, as it now is."""


@dataclass(slots=True, frozen=True)
class Asked:
    """What a client asked, as far as its answer repeats it. `body` is the request as the client
    wrote it; `tools` are those offered to upstream, by the names used there. `now` tells the time,
    in seconds since the epoch. `stored`: the answer can be asked for again."""

    body: Json = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    now: Callable[[], float] = float
    stored: bool = False


@dataclass(slots=True, frozen=True)
class Asking:
    """How a question is put to an upstream: its profile, and what settings say of it.
    `max_tokens` is for an API that demands a bound where the client gave none."""

    profile: Profile
    max_tokens: int = 16384


@dataclass(slots=True, frozen=True)
class UpstreamApi:
    """An API that an upstream may speak, whatever its clients speak.

    `path` is how its endpoint ends. A `teller` is a Reader whose events are told, not framed.
    `write` puts a question in the API's words; `problem` says an error body of its own in the shape
    that both of OpenAI's APIs give errors. `headers` go with every request, and a key goes in
    `key_header`, unless the upstream's profile names another.
    """

    name: ApiName
    path: str
    teller: Callable[[Profile, Display, int], Reader]
    conversation: Callable[[Json], Conversation]
    write: Callable[[Question, Asking], Written]
    problem: Callable[[bytes], bytes] = bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    key_header: str = "authorization"


@dataclass(slots=True, frozen=True)
class Api:
    """An API that clients speak.

    `path` is how its endpoint ends; `auto` is what `expose = "auto"` shows on it (raw, summary);
    `knows_summary`: `reasoning.summary` is a field of its own, and no extension; `stores`: its
    answers are kept, and may be referred to. A reader is made
    for a profile and a display, and keeps at most so many characters of what it read. `question`
    reads a request for an upstream that speaks another API, a `composer` writes its answer,
    and keeps as many; `sealed` tells whether a request asks for opaque state, and None where the
    API has no words for that; `attributing` is a Writer around another, which says of each call
    what led to it, and keeps so many characters of that; `upstream` is this API as upstreams speak
    it.
    """

    name: ApiName
    path: str
    auto: tuple[bool, bool]
    knows_summary: bool
    stores: bool
    reader: Callable[[Profile, Display, int], Reader]
    writer: Callable[[Profile, Display], Writer]
    conversation: Callable[[Json], Conversation]
    question: Callable[[Json], Question]
    sealed: Callable[[Json], bool | None]
    composer: Callable[[Profile, Display, Asked, int], Writer]
    attributing: Callable[[Writer, Display, int], Writer]
    upstream: UpstreamApi
