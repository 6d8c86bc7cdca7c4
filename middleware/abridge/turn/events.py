"""The vocabulary of a turn being said.

A Reader turns wire events into these, the Weaver puts them into the one legal order together with
the summary's own, a Writer spells them out again::

    Event
    ├── Began        the response has an id and a model
    ├── Opened       a reasoning item, or the next stretch of one, begins
    ├── Raw          reasoning as the model wrote it
    ├── Native       a piece of a summary that upstream made
    ├── Closed       the item, or this stretch of it, ends
    ├── Said         a piece of the answer: its text
    │   ├── Refused      of its refusal
    │   └── Called       of a tool call
    ├── Reasoned     the lane's turn is whole, and there was reasoning in it
    ├── Stopped      why the answer ends
    ├── Sealed       opaque state that stands for reasoning, or signs it
    ├── Other        anything else of a lane, or of none
    ├── Billed       upstream's usage, where it comes apart from the end
    ├── Failed       an error in the stream; not yet its end
    ├── Ended        the end
    │                of the Weaver's own making:
    ├── PartOpened   a summary part begins
    ├── PartSaid     a piece of its text
    └── PartClosed   it ends

A *lane* is what waits together: 0 on Responses, the choice on Chat Completions, None for what
concerns all. An *item* is a reasoning item: the output index on Responses; on Chat Completions each
choice has one, opened anew for every stretch of reasoning. A *frame* is the wire event an event was
read from, whole, as it came; None for what upstream did not send as a frame of its own.

Events come in two manners. Read for a client of the same API they are *framed*: what their frames
say need not be known, so that a `Said` may stand for a refusal or a call and nothing tells of
`Stopped` or `Sealed`; but where an answer is to be sealed as a whole, `Reasoned` says what it is.
Read for a client of another API they are *told*: no event has a frame, and each says all that
another API can be told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abridge.turn.conversation import Heard, ItemKey
    from abridge.turn.usage import Share, Tokens

NativeKind = Literal["open", "say", "close", "whole"]


@dataclass(slots=True, frozen=True)
class Trouble:
    """Why something did not come about, as a client may read it."""

    code: str
    message: str

    def as_dict(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message}


@dataclass(slots=True, frozen=True)
class Summary:
    """What was said of one reasoning item.

    `parts` holds our own only; with `native` true the item also has, or only has, upstream's.
    `unfinished` counts parts that were cut short or never spoke, `extracted` those an extract
    stands in for; `trouble` is the first thing that went wrong.
    """

    parts: tuple[str, ...] = ()
    trouble: Trouble | None = None
    native: bool = False
    unfinished: int = 0
    extracted: int = 0


NO_SUMMARY = Summary()


@dataclass(slots=True)
class Event:
    lane: int | None
    frame: bytes | None


@dataclass(slots=True)
class Began(Event):
    """`created` is in seconds since the epoch, as upstream said it."""

    id: str
    model: str
    created: int


@dataclass(slots=True)
class Opened(Event):
    """`field` is where upstream puts this reasoning, where its API leaves a choice."""

    item: int
    field: str = ""


@dataclass(slots=True)
class Raw(Event):
    """`text` is what is new; a frame that only repeats or closes what was said has none."""

    item: int
    text: str


@dataclass(slots=True)
class Native(Event):
    """`part` is upstream's own count, and on emission the item's."""

    item: int
    part: int
    kind: NativeKind
    text: str = ""


@dataclass(slots=True)
class Closed(Event):
    item: int
    summary: Summary = NO_SUMMARY


@dataclass(slots=True)
class Said(Event):
    """`text` is the answer's; a refusal's or a tool call's fragment has none. `logprobs` are its
    tokens' log probabilities, as both of OpenAI's APIs spell them: `{"token", "logprob", "bytes",
    "top_logprobs"}`. `message` counts the lane's messages, where its API has several."""

    text: str = ""
    logprobs: Sequence[Mapping[str, Any]] = ()
    message: int = 0


@dataclass(slots=True)
class Refused(Said):
    """A piece of a refusal: `refusal` is its text."""

    refusal: str = ""


@dataclass(slots=True)
class Called(Said):
    """A piece of a tool call. `call` counts the lane's calls from 0; `id` is the one that its
    output will refer to, and comes with the first piece, as `name` does; `arguments` is what is
    new of them, JSON as the model wrote it. With `custom` true they are free text."""

    call: int = 0
    id: str = ""
    name: str = ""
    arguments: str = ""
    custom: bool = False


@dataclass(slots=True)
class Reasoned(Event):
    """`heard` is all that the lane says. Comes right before the event that ends the lane, which may
    say the last of the answer, too."""

    heard: Heard


StopReason = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(slots=True)
class Stopped(Event):
    """The lane says no more. A stop with calls in the answer is `tool_calls` (OLS-07)."""

    reason: StopReason


@dataclass(slots=True)
class Sealed(Event):
    """Opaque state of an open item, whole. With `signs` true it signs the reasoning that was said
    of the item since the last one (Anthropic's `signature`); else it stands for reasoning that
    nobody shows (`encrypted_content`, `redacted_thinking`)."""

    item: int
    data: str
    signs: bool = False


@dataclass(slots=True)
class Other(Event):
    pass


@dataclass(slots=True)
class Billed(Event):
    """`trouble` is set when the setting is that a failed summary ends the response."""

    usage: Tokens
    share: Share | None = None
    trouble: Trouble | None = None


@dataclass(slots=True)
class Failed(Event):
    trouble: Trouble


@dataclass(slots=True)
class Ended(Event):
    """`ok` is false when upstream failed or was cut short, and `trouble` then says why; with `ok`
    it is as with `Billed`."""

    ok: bool
    usage: Tokens | None = None
    summaries: Mapping[ItemKey, Summary] = field(default_factory=dict)
    share: Share | None = None
    trouble: Trouble | None = None


@dataclass(slots=True)
class PartOpened(Event):
    """`index` counts the item's parts, native ones included, from 0."""

    item: int
    index: int


@dataclass(slots=True)
class PartSaid(Event):
    item: int
    index: int
    text: str


@dataclass(slots=True)
class PartClosed(Event):
    """`text` is all that was said; `complete` is false when it was cut short."""

    item: int
    index: int
    text: str
    complete: bool
