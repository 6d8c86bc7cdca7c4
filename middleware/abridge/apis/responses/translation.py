"""Translate Responses for clients of other APIs: into events that say everything themselves.

A message becomes the pieces of its text, a call its head and the pieces of its arguments. Items of
other types are left out: upstream handles them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from abridge.apis.delta_patterns import Proceed
from abridge.apis.endings import reason_of_parts
from abridge.apis.errors import CALL_CHANGED, TEXT_CHANGED
from abridge.apis.hosted_calls import describe_call
from abridge.apis.json import loads_exact, objects, parse_object, string
from abridge.apis.responses.citations import ANNOTATION_ADDED, MessageCitations
from abridge.apis.responses.contents import (
    EVENT_STAGES,
    REFUSAL,
    TEXT,
    ContentEvent,
    content_kind_of,
    event_text,
)
from abridge.apis.responses.errors import NO_ANSWERS, read_failure
from abridge.apis.responses.items import OutputItem, OutputItems
from abridge.apis.responses.reasoning import LANE
from abridge.core.conversation import Json
from abridge.core.events import (
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    FinishReason,
    RefusalDelta,
    ResponseEnded,
    ToolCallDelta,
)

FINISH_REASONS: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",  # of gateways
    "content_filter": "content_filter",
}
"""Why a response is incomplete. One that does not say so is taken for cut by its length."""

CALL_TYPES = ("function_call", "custom_tool_call")
"""Types of calls that the client answers."""

HOSTED_TYPES = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "code_interpreter_call_output",
        "image_generation_call",
        "computer_call",
        "mcp_call",
        "mcp_list_tools",
        "compaction",
    }
)
"""Types of items that upstream handles itself, without an answer from the client."""

PART_TEXT_FIELDS = ("delta", "text", "refusal")
"""Fields that may hold the text of a message."""


class TranslatedEvents:
    """Translate what upstream sends. See the protocol `Framing`."""

    carries_frames: ClassVar[bool] = False

    def __init__(self) -> None:
        self._answer: TranslatedAnswer | None = None

    @staticmethod
    def make_frame(_event_type: str, _fields: Json) -> None:
        """Return None: translated events carry no frame."""

    def make_answer_reader(self, output: OutputItems) -> TranslatedAnswer:
        self._answer = TranslatedAnswer(output)
        return self._answer

    def make_end(
        self, end: ResponseEnded, response: Json, error: ErrorDetail | None
    ) -> list[Event]:
        failure = None if self._answer is None else self._answer.failure
        if failure or not end.ok or response.get("status") in NO_ANSWERS:
            end.ok, end.error = False, failure or error or read_failure(response)
            return [end]
        rest = [] if self._answer is None else self._answer.release_withheld()
        hosted = [] if self._answer is None else self._answer.only_hosted_calls
        reason = self._finish_reason(response)
        return [*rest, Finished(LANE, None, reason, hosted_calls=hosted), end]

    def _finish_reason(self, response: Json) -> FinishReason:
        details = response.get("incomplete_details")
        reason = string(details.get("reason")) if isinstance(details, dict) else ""
        if response.get("status") == "incomplete" and not reason:
            return "length"
        has_calls = self._answer is not None and self._answer.has_calls
        return FINISH_REASONS.get(reason) or reason_of_parts(has_calls=has_calls)


@dataclass(slots=True)
class _Progress:
    """Progress in translating an item."""

    number: int | None = None  # among the messages or the calls; None before a call's name is known
    has_arguments: bool = False  # arguments of the call were emitted
    withheld: str = ""  # `{}`, which may only hold the place of other arguments
    written: str = ""  # all the arguments, where they were emitted at the end of the call
    turn: int = 0  # of a message: which of them it was to begin its text, from 1


class TranslatedAnswer:
    """Translate the items of the answer. See the protocol `AnswerReader`.

    Items need not be kept in order: each event says which message or call it belongs to.

    Other APIs have no final text beside the deltas. So what one has beyond them is emitted while it
    can be, which is until the text of another message begins or, of a call, until that is done. If
    it says anything else, the client has been told another answer, and this one fails.
    """

    def __init__(self, output: OutputItems) -> None:
        self._output = output
        self._progress: dict[int, _Progress | None] = {}
        self._message_count = 0
        self._call_count = 0
        self._last_message: OutputItem | None = None
        self._citations = MessageCitations()
        self._hosted_calls: list[dict[str, str]] = []
        self._speaker: OutputItem | None = None  # the message whose text was emitted last
        self._turns = 0  # messages that have begun their text
        self._confirmed = 0  # the turn of the last message of the final response so far
        self.failure: ErrorDetail | None = None

    @property
    def has_calls(self) -> bool:
        """Return whether there are calls for the client to answer."""
        return self._call_count > 0

    @property
    def only_hosted_calls(self) -> list[dict[str, str]]:
        """Return the calls that upstream ran itself, if there is nothing else."""
        return [] if self._message_count or self._call_count else self._hosted_calls

    def begin(self, item: OutputItem, _frame: bytes | None) -> list[Event]:
        if item.type == "message":
            self._last_message = item
        progress = self._find_progress(item)
        return [] if progress is None else self._call_start(item, progress, item.added)

    def find_target(self, item: OutputItem | None, event: Json) -> OutputItem | None:
        """Find the item that takes an event: text of an unknown item is of the open message."""
        if item is None and (kind := content_kind_of(event, "message")) is not None:
            return self._find_message(event, event_text(event, kind) or "")
        return item

    def find_continuation(self, event: Json) -> Proceed | None:
        item = self._output.find(event)
        progress = None if item is None else self._progress.get(item.output_index)
        is_next = item is not None and item.is_open and item.is_continued_by(event)
        if item is None or progress is None or progress.number is None or not is_next:
            return None
        if event["type"] == TEXT.delta_type and not event.get("logprobs"):
            self._take_turn(item, progress)
            return partial(_proceed_text, item, progress.number)
        if item.type in CALL_TYPES and progress.has_arguments:
            return partial(_proceed_call, item, progress.number)
        return None

    def read(
        self, item: OutputItem | None, event: Json, _frame: bytes | None
    ) -> list[Event] | None:
        progress = None if item is None else self._find_progress(item)
        is_content = event.get("type") in EVENT_STAGES
        if item is None or progress is None:
            return []
        number = progress.number
        cites = number is not None and event.get("type") == ANNOTATION_ADDED
        if cites and self._output.reserve(self._output.frame_size):
            self._citations.note(number or 0, event)
        if not is_content:
            return []
        if not item.is_open:
            return None
        kind = content_kind_of(event, item.type)
        if number is None:  # its arguments come with its name
            _ = kind and item.contents.read(event, kind, None)
            return []
        content_events = None if kind is None else item.contents.read(event, kind, None)
        sources = objects([event.get("part"), event])
        deltas = self._content_deltas(item, progress, content_events or (), sources)
        is_end = EVENT_STAGES[event["type"]] != "delta"
        return [*deltas, *self._check(item, progress)] if is_end else deltas

    def finish(self, item: OutputItem, event: Json, _frame: bytes | None) -> list[Event]:
        progress = self._find_progress(item)
        rest = [] if progress is None else self._rest(item, progress, event["item"])
        done, _ = item.reconcile_done(event, None)
        self._output.store_done(item, done)
        item.is_open = False
        if item.type == "message" and progress is not None and progress.number is not None:
            rest += self._citations.read(progress.number, done)
        if item.type in CALL_TYPES:
            item.contents.takes_rest = "no part"
        return rest

    def settle(self, item: OutputItem) -> list[Event]:
        late, item.late_texts = item.late_texts, []
        progress = self._find_progress(item)
        if progress is None or progress.number is None:
            return []
        return [*self._content_deltas(item, progress, late, []), *self._check(item, progress)]

    def confirm(self, item: OutputItem) -> list[Event]:
        """Fail also where the final response alone has a text, before one that was told."""
        settling, progress = self.settle(item), self._find_progress(item)
        turn = 0 if progress is None else progress.turn
        if turn and turn < self._confirmed:
            self._output.misplaced += 1
            return [*settling, *self._fail(TEXT_CHANGED)]
        self._confirmed = turn or self._confirmed
        return settling

    def close(self, _status: str = "completed") -> list[Event]:
        """Do nothing: no item is kept open."""
        return []

    def release_withheld(self) -> list[Event]:
        """Emit the arguments that were withheld of calls which upstream does not end."""
        events = list[Event]()
        for number, progress in self._progress.items():
            item = self._output.get(number)
            if item is not None and progress is not None and progress.withheld:
                events += self._final_arguments(item, progress, item.snapshot("completed"))
        return events

    def _find_message(self, event: Json, text: str) -> OutputItem | None:
        """Find the message of text that names no known item: the open one, else a new one."""
        item, index = self._last_message, event.get("output_index")
        if text and (item is None or not item.is_open):
            item = self._output.add({"type": "message", "id": event.get("item_id")}, index)
            self._last_message = item
        if item is not None:
            self._output.register_id(item, event.get("item_id"))
        return item

    def _find_progress(self, item: OutputItem) -> _Progress | None:
        """Return the progress in translating an item; None if the client has no place for it."""
        if item.output_index not in self._progress:
            self._progress[item.output_index] = self._start_progress(item)
        return self._progress[item.output_index]

    def _start_progress(self, item: OutputItem) -> _Progress | None:
        if item.type == "message" or item.type in CALL_TYPES:
            item.contents.takes_rest = "last part"
        if item.type == "message":
            self._message_count += 1
            return _Progress(self._message_count - 1)
        if item.type in CALL_TYPES:
            return _Progress()
        self._output.faults += item.type not in HOSTED_TYPES
        if item.type in HOSTED_TYPES:
            self._hosted_calls.append(describe_call(item.type, string(item.added.get("name"))))
        return None

    def _rest(self, item: OutputItem, progress: _Progress, done: Json) -> list[Event]:
        """Return what a finished item says beyond what was streamed."""
        head = self._call_start(item, progress, done, is_last=True)
        if progress.number is None:
            return []
        sources = objects(done.get("content"))
        rest = self._content_deltas(item, progress, item.contents.finish(done), sources)
        rest += self._check(item, progress)
        return [*head, *rest, *self._final_arguments(item, progress, done)]

    def _content_deltas(
        self,
        item: OutputItem,
        progress: _Progress,
        content_events: Iterable[ContentEvent],
        sources: list[Json],
    ) -> list[Event]:
        """Emit new text of an item; log probabilities only where they are for just that text."""
        events: list[Event] = []
        number = progress.number or 0
        for event in (event for event in content_events if event.text):
            matching = (
                part
                for part in sources
                if event.text in (part.get(key) for key in PART_TEXT_FIELDS)
            )
            logprobs = objects(next(matching, {}).get("logprobs"))
            if item.type == "message":
                self._take_turn(item, progress)
            if event.kind is TEXT:
                events.append(ContentDelta(LANE, None, event.text, logprobs, number))
            elif event.kind is REFUSAL:
                events.append(RefusalDelta(LANE, None, "", logprobs, number, refusal=event.text))
            elif not self._withholds(item, progress, event.text):
                events.append(self._call_delta(item, progress, event.text))
        return events

    # Final texts

    def _take_turn(self, item: OutputItem, progress: _Progress) -> None:
        """Note that the text of a message goes on: what that before it lacks has no place now."""
        last = self._speaker
        if last is item:
            return
        if last is not None:
            last.contents.takes_rest = "no part"
        self._speaker = item
        if not progress.turn:
            self._turns = progress.turn = self._turns + 1

    def _check(self, item: OutputItem, progress: _Progress) -> list[Event]:
        """Fail an answer if an item ends with another text than was streamed, or as another call:
        a client might run one that upstream has not made."""
        told, final = item.contents.contradicted, item.contents
        if told is None:
            return []
        if item.type not in CALL_TYPES:
            return self._fail(TEXT_CHANGED)
        told = progress.written or told
        is_same = not final.text or _read_json(told) == _read_json(final.text)
        return [] if is_same or not progress.has_arguments else self._fail(CALL_CHANGED)

    def _fail(self, error: ErrorDetail) -> list[Event]:
        if self.failure is not None:
            return []
        self.failure = error
        return [ErrorReported(None, None, error)]

    # Calls

    def _call_start(
        self, item: OutputItem, progress: _Progress, added: Json, *, is_last: bool = False
    ) -> list[Event]:
        """Announce a call once its name is known, or with what `is_last` said of it.

        Its arguments come from its deltas, or else from its end.
        """
        name = string(added.get("name"))
        if item.type not in CALL_TYPES or progress.number is not None or not (name or is_last):
            return []
        progress.number = self._call_count
        self._call_count += 1
        head = self._call_delta(item, progress, item.contents.text)
        head.id, head.name = string(added.get("call_id")), name
        return [head]

    def _withholds(self, item: OutputItem, progress: _Progress, text: str) -> bool:
        """Withhold arguments `{}` until the call ends: upstream's last word may be another."""
        arguments = progress.withheld + text
        if item.type != "function_call" or progress.has_arguments or arguments.strip() != "{}":
            return False
        progress.withheld = arguments
        return True

    def _final_arguments(self, item: OutputItem, progress: _Progress, done: Json) -> list[Event]:
        """Emit the arguments of a call that has had none: `{}` where a server leaves them out."""
        if item.type != "function_call" or progress.has_arguments:
            return []
        if done.get("status") == "incomplete" and not progress.withheld:
            return []
        final = string(item.reconcile(done).get("arguments")) or progress.withheld or "{}"
        progress.written = final
        return [self._call_delta(item, progress, final)]

    def _call_delta(self, item: OutputItem, progress: _Progress, text: str) -> ToolCallDelta:
        progress.has_arguments = progress.has_arguments or bool(text)
        custom = item.type == "custom_tool_call"
        return ToolCallDelta(
            LANE, None, call_index=progress.number or 0, arguments=text, custom=custom
        )


def _read_json(text: str) -> Any:
    """Return the object that a text spells, or else the text."""
    parsed = parse_object(text.encode(errors="surrogatepass"), loads_exact)
    return text if parsed is None else parsed


def _proceed_text(item: OutputItem, number: int, text: str, _frame: bytes | None) -> ContentDelta:
    item.contents.append_text(text)
    return ContentDelta(LANE, None, text, [], number)


def _proceed_call(item: OutputItem, number: int, text: str, _frame: bytes | None) -> ToolCallDelta:
    item.contents.append_text(text)
    custom = item.type == "custom_tool_call"
    return ToolCallDelta(LANE, None, call_index=number, arguments=text, custom=custom)
