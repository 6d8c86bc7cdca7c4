"""The events of a response, independent of any API.

A Reader turns wire events into these, the Sequencer puts them into one order together with the
summary's own events, and a Writer turns them into wire events again.

::

    Event
    ├── ResponseStarted    the response's id and model are known
    ├── ReasoningStarted   a reasoning item, or the next stretch of one, begins
    ├── ReasoningDelta     a piece of reasoning as the model wrote it
    ├── NativeSummary      a piece of a summary that upstream made itself
    ├── ReasoningEnded     the item, or this stretch of it, ends
    ├── ContentDelta       a piece of the answer: of its text
    │   ├── RefusalDelta       of a refusal
    │   ├── ToolCallDelta      of a tool call
    │   ├── CitationDelta      a source of what it says
    │   └── ImageDelta         an image
    ├── TurnRecorded       the lane's whole turn, if there was reasoning in it
    ├── Finished           the finish reason of the lane
    ├── ProviderState      opaque state that stands for reasoning, or signs it
    ├── PartStarted        a part that is neither reasoning nor a call begins
    ├── PartEnded          a part that is no reasoning ends
    ├── Beside             what else a frame says whose text a stage took
    ├── Passthrough        anything else, of a lane or of the whole response
    ├── UsageReported      upstream's usage, where it comes before the end
    ├── TierReported       the service tier that upstream names
    ├── ErrorReported      an error within the stream; the end still follows
    ├── ResponseEnded      the end
    │                      and, made by the Sequencer:
    ├── ReasoningTextEnded all reasoning of the item, or this stretch of it, is told
    ├── SummaryPartAdded   a summary part begins
    ├── SummaryTextDelta   a piece of its text
    └── SummaryPartDone    it ends

The words used here:

* A *lane* is a set of events that wait together: the choice's index on Chat Completions, `LANE` on
  other APIs, None for an event that concerns the whole response.
* An *item* is a reasoning item, numbered by its output index on Responses. On Chat Completions each
  choice has one item, which is opened again for every stretch of reasoning.
* A *stretch* is one run of reasoning.
* A *part* is what an answer consists of: a text, a call, a stretch of reasoning, or what this
  project has no name for. Its events refer to one `Part`, by which stages know them.
* A *frame* is the bytes in which an event goes to a client of upstream's API: those it was read
  from, repaired where upstream was sloppy, or made where upstream left the event out. It is None
  where the event is translated, and where nothing of it may go out as it came; empty where no
  client is told.

An event either carries its original frame or is translated:

* A Reader for a client of the same API emits events with frames. It need not parse what a frame
  says beyond its kind: a `ContentDelta` may stand for a piece of a refusal or of a tool call, and
  there is no `Finished` and no `ProviderState`. If the answer is to be sealed as a whole,
  `TurnRecorded` has its turn.
* A translating reader, for a client of another API, emits events without frames, and each says
  everything that another API can express.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abridge.core.answer import Attribution, Part
    from abridge.core.conversation import ItemKey, Json, RecordedTurn
    from abridge.core.usage import SummaryShare, Tokens

NativeStage = Literal["added", "delta", "done"]

LANE = 0
"""The lane of an answer that has just one."""

PART_SEPARATOR = "\n\n"
"""Stands between the parts of a summary, and wherever else one text follows another."""


@dataclass(slots=True, frozen=True)
class ErrorDetail:
    """Why something failed, in words that a client may read."""

    code: str
    message: str

    def as_dict(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message}


class AnswerFault(ErrorDetail):
    """What Abridge itself finds wrong with an answer. The words are its own, so they may be
    logged."""

    __slots__ = ()


STRAY_ARGUMENTS = AnswerFault(
    "upstream_error", "Upstream sent arguments of a call that had ended, or had not begun."
)


@dataclass(slots=True, frozen=True)
class ItemSummary:
    """The finished summary of one reasoning item."""

    parts: tuple[str, ...] = ()  # texts of the parts that Abridge made
    error: ErrorDetail | None = None  # the first thing that went wrong
    native: bool = False  # some or all of the summary was made by upstream
    unfinished: int = 0  # number of parts that were cut short or never began
    extracted: int = 0  # number of parts that an extract stands in for


NO_SUMMARY = ItemSummary()


@dataclass(slots=True, eq=False)
class Alike:
    """What the frames of one pattern have in common: all but a text, and what numbers or pads them.
    Of those that pass as upstream sent them, also how their text moves to another field."""

    text_start: int | None  # where the text begins in each that passes, if that is the same
    varying: tuple[bytes, ...]  # fields that differ, too
    field: str = ""  # the other field, once a writer has moved a text
    write: Callable[[bytes, str, int], bytes | None] | None = None
    """Returns what goes out for a frame, its text and `text_start`; None if it must be parsed."""


@dataclass(slots=True)
class Event:
    lane: int | None  # None if the event concerns the whole response
    frame: bytes | None  # None if the event is translated, or composed by the writer
    part: Part | None = field(default=None, kw_only=True, compare=False, repr=False)
    """The part of the answer that it is about; None if that is all of it, or the reader names no
    parts."""
    extra: Attribution | None = field(default=None, kw_only=True, compare=False, repr=False)
    """Of an event that begins a call, what led to it, if the client is to know."""
    said: list[Json] | None = field(default=None, kw_only=True, compare=False, repr=False)
    """On Chat Completions, the choices that go into its frame, until a reader has made that."""
    run: DeltaRun | None = field(default=None, kw_only=True, compare=False, repr=False)
    """Of a delta that tells several of upstream's at once, what each of them says."""
    alike: Alike | None = field(default=None, kw_only=True, compare=False, repr=False)
    """Of a delta whose frame has a pattern, what tells others of that pattern."""
    is_written: bool = field(default=False, kw_only=True, compare=False, repr=False)
    """Of a delta that is told late: what the client gets of it has been written."""


@dataclass(slots=True)
class ResponseStarted(Event):
    id: str
    model: str
    created: int  # seconds since the epoch, as upstream reported it


@dataclass(slots=True)
class ReasoningStarted(Event):
    item: int
    field: str = ""  # the wire field that holds this reasoning, where the API has several


@dataclass(slots=True)
class ReasoningDelta(Event):
    item: int
    text: str  # new text only; empty if the frame repeats or closes earlier text


@dataclass(slots=True)
class NativeSummary(Event):
    item: int
    index: int  # as read, upstream's count of its parts; as emitted, the item's
    stage: NativeStage
    text: str = ""


@dataclass(slots=True)
class ReasoningEnded(Event):
    item: int
    summary: ItemSummary = NO_SUMMARY  # of the item so far, with its error only once


@dataclass(slots=True)
class ContentDelta(Event):
    text: str = ""  # text of the answer; empty for a refusal or a tool call
    logprobs: Sequence[Mapping[str, Any]] = ()
    """The text's log probabilities, in the form that both of OpenAI's APIs use: `{"token",
    "logprob", "bytes", "top_logprobs"}`.
    """
    message_index: int = 0  # index of the message in the lane, where its API has several
    says_more: bool = field(default=False, kw_only=True)  # its frame says more than its text


@dataclass(slots=True)
class RefusalDelta(ContentDelta):
    refusal: str = ""


@dataclass(slots=True)
class ToolCallDelta(ContentDelta):
    """A piece of a tool call."""

    call_index: int = 0  # index of the call in the lane
    id: str = ""  # the id that the call's output refers to; comes with the first piece
    name: str = ""  # comes with the first piece
    arguments: str = ""  # new text only: JSON as the model wrote it
    custom: bool = False  # `arguments` is free text


@dataclass(slots=True)
class CitationDelta(ContentDelta):
    """A source that upstream names for its answer, or for a passage of it.

    Only translating readers report it. It comes as soon as its passage is known, which may be
    before that has been said, or once other things were.
    """

    url: str = ""  # its address; empty if it is not on the web
    file_id: str = ""  # what upstream calls it otherwise
    title: str = ""
    quote: str = ""  # its own words
    passage: tuple[int, int] | None = None
    """Where the passage begins and ends, in characters of the answer's text, which is that of all
    its messages; None if upstream does not say."""

    @property
    def source(self) -> str:
        return self.url or self.file_id

    def passage_after(self, before: int, length: int) -> tuple[int, int]:
        """Return the passage within a text that comes after so many characters of the answer and
        has this length: an empty one at its beginning, which claims nothing, if it is elsewhere or
        unknown."""
        start, end = self.passage or (0, 0)
        is_within = self.passage is not None and before <= start <= end <= before + length
        return (start - before, end - before) if is_within else (0, 0)


@dataclass(slots=True)
class ImageDelta(ContentDelta):
    """An image, whole. Only translating readers report it, to clients whose API has a form for it
    (`Display.carries_images`)."""

    media_type: str = ""
    data: str = ""  # base64


@dataclass(slots=True)
class TurnRecorded(Event):
    """The lane's whole turn.

    Comes right before the event that ends the lane, which may carry the last of the answer, too.
    """

    turn: RecordedTurn


FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(slots=True)
class Finished(Event):
    """The lane ends. A lane that stops with tool calls in it has the reason `tool_calls`."""

    reason: FinishReason
    stop_sequence: str = ""  # that at which the model stopped, where upstream names it
    hosted_calls: Sequence[Mapping[str, str]] = ()
    """The `type` and, where it has one, the `name` of each call that upstream ran itself, if the
    answer consists of nothing else."""


@dataclass(slots=True)
class ProviderState(Event):
    """Opaque state of the open item, whole."""

    item: int
    data: str
    signs: bool = False
    """True if it signs the item's reasoning since the last signature (Anthropic's `signature`);
    False if it stands for reasoning that nobody shows (`encrypted_content`, `redacted_thinking`).
    """
    withheld: bool = False
    """No client may see it, since it might be read, or signs what they do not see; upstream gets it
    back sealed, or out of the store."""


@dataclass(slots=True)
class PartStarted(Event):
    """A part begins. Reasoning begins with `ReasoningStarted` instead, a call with its name."""


@dataclass(slots=True)
class PartEnded(Event):
    """A part ends. Reasoning ends with `ReasoningEnded` instead."""


@dataclass(slots=True)
class Beside(Event):
    """What the frame says beside its text, which a stage has told otherwise. Comes after that."""


@dataclass(slots=True)
class Passthrough(Event):
    pass


@dataclass(slots=True)
class UsageReported(Event):
    usage: Tokens
    share: SummaryShare | None = None  # set by the Sequencer
    error: ErrorDetail | None = None  # set if a failed summary is to fail the response


@dataclass(slots=True)
class TierReported(Event):
    """Only translating readers report it: before `ResponseStarted`, if it is known by then."""

    tier: str  # as OpenAI names it


@dataclass(slots=True)
class ErrorReported(Event):
    error: ErrorDetail


@dataclass(slots=True)
class ResponseEnded(Event):
    ok: bool  # False if upstream failed or was cut short
    usage: Tokens | None = None
    summaries: Mapping[ItemKey, ItemSummary] = field(default_factory=dict)  # set by the Sequencer
    share: SummaryShare | None = None  # set by the Sequencer
    error: ErrorDetail | None = None  # the reason if not `ok`; else as in UsageReported


@dataclass(slots=True)
class ReasoningTextEnded(Event):
    """The reasoning has ended, though its summary may go on until `ReasoningEnded`.

    Only comes where upstream's end of the reasoning has no frame.
    """

    item: int


@dataclass(slots=True)
class SummaryPartAdded(Event):
    item: int
    index: int  # counts the item's parts from 0, native ones included


@dataclass(slots=True)
class SummaryTextDelta(Event):
    item: int
    index: int
    text: str


@dataclass(slots=True)
class SummaryPartDone(Event):
    item: int
    index: int
    text: str  # the whole text of the part
    complete: bool  # False if the part was cut short


CONTINUING_EVENTS: frozenset[type[Event]] = frozenset(
    {
        *(ReasoningDelta, ContentDelta, RefusalDelta, ToolCallDelta, CitationDelta, ImageDelta),
        *(PartStarted, PartEnded, Beside, Passthrough),
    }
)
"""Types of the events that begin and end no reasoning."""

FRAME_OVERHEAD = 150
"""Bytes that a frame takes beside its texts; an event in memory takes about as much."""

TEXT_ATTRIBUTES: dict[type[Event], tuple[str, ...]] = {
    ContentDelta: ("text",),
    RefusalDelta: ("text", "refusal"),
    ToolCallDelta: ("text", "arguments"),
    CitationDelta: ("url", "file_id", "title", "quote"),
    ImageDelta: ("media_type", "data"),
    ReasoningDelta: ("text",),
    NativeSummary: ("text",),
    ProviderState: ("data",),
    SummaryTextDelta: ("text",),
    SummaryPartDone: ("text",),
}
"""The texts of events that have any."""


class DeltaRun(NamedTuple):
    """Deltas of one part that came together."""

    texts: list[str]
    frames: list[bytes | None]


JOINED: frozenset[type[Event]] = frozenset({ContentDelta, ToolCallDelta, ReasoningDelta})
"""Types of events that may tell a run of deltas."""


def next_delta(event: Event, text: str, frame: bytes | None) -> Event:
    """Return the delta that adds a text to the same part as another one does, in its own frame. It
    says the text only if the other said its own. Naming the part afterwards takes a fifth of the
    time."""
    made: Event
    if type(event) is ReasoningDelta:
        made = ReasoningDelta(event.lane, frame, event.item, text)
    elif type(event) is ContentDelta:
        told = text if event.text else ""
        made = ContentDelta(event.lane, frame, told, (), event.message_index)
    elif type(event) is ToolCallDelta:
        index = event.call_index
        made = ToolCallDelta(event.lane, frame, "", (), 0, index, "", "", text, event.custom)
    elif type(event) is RefusalDelta:
        made = RefusalDelta(event.lane, frame, "", (), event.message_index, text)
    elif type(event) is NativeSummary:
        made = NativeSummary(event.lane, frame, event.item, event.index, event.stage, text)
    else:
        made = Event(event.lane, frame)
    made.part, made.alike = event.part, event.alike
    return made


def split_run(event: Event, run: DeltaRun) -> list[Event]:
    """Return the deltas that an event tells at once."""
    return [next_delta(event, *told) for told in zip(run.texts, run.frames, strict=True)]


def split_text(event: Event, text: str) -> list[str]:
    """Return a text that is written of an event, which may follow on a separator, as the deltas had
    it that the event tells."""
    if event.run is None:
        return [text]
    others = event.run.texts[1:]
    return [text[: len(text) - sum(map(len, others))], *others]


def said_text(event: Event) -> str:
    """Return what a delta adds to its part: words, or arguments."""
    match event:
        case ToolCallDelta():
            return event.arguments
        case RefusalDelta():
            return event.refusal
        case ContentDelta() | ReasoningDelta():
            return event.text
    return ""


def text_size(event: Event) -> int:
    """Count the characters of an event's texts, plus a fixed size for each log probability."""
    size = 0
    for name in TEXT_ATTRIBUTES.get(type(event), ()):
        size += len(getattr(event, name))
    if isinstance(event, ContentDelta) and event.logprobs:
        size += FRAME_OVERHEAD * len(event.logprobs)
    return size


def held_size(event: Event) -> int:
    """Return the bytes that an event occupies while it waits: the size of its frame, or about that
    of one with the same texts."""
    if event.frame:
        return len(event.frame)
    size, count = text_size(event), 1 if event.run is None else len(event.run.texts)
    return size and size + count * FRAME_OVERHEAD
