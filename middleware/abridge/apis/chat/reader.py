"""Read Chat Completions, the chunks of a stream or a whole completion, into events.

Some servers leave out required fields. Gemini omits the index of tool calls, small servers the
index of choices, the role and the type of calls. xAI, Z.ai and Cerebras leave `finish_reason` out
until the end, and OpenRouter repeats it beside the usage. Strict clients ignore anything without
`"object": "chat.completion.chunk"`, and fail where another of these fields is missing. So a chunk
is completed first. Where raw reasoning is hidden, it is rebuilt from what is known (`shapes.py`).

Each choice of a chunk is read into events that hold what of the choice goes into their frames. For
a client of this API these are made of it, or are upstream's wherever a chunk says just this. For a
client of another API there are no frames: instead events say in detail what would stand in them,
and those that would only carry a frame are left out.

Nearly every chunk only continues what a choice is saying. Those that are like an earlier one but
for their text are recognised by its pattern (`delta_patterns.py`).

Each choice is a lane with one reasoning item, which is reopened for every stretch of reasoning.
Usage, and what comes in the same chunk, waits until every lane has finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import starmap
from operator import is_, is_not
from typing import Any

from abridge.apis import sse
from abridge.apis.chat.chunks import (
    CHUNK_OBJECT,
    DONE_FRAME,
    MAX_CHOICES,
    CallFragment,
    ChatMessageAccumulator,
    ChunkText,
    encode_chunk,
    find_text,
    get_header,
    has_cut_call,
    has_other_fields,
    read_annotations,
    read_listed,
)
from abridge.apis.chat.errors import read_finish_error
from abridge.apis.chat.history import record_turn
from abridge.apis.chat.reasoning import (
    ANSWER_FIELDS,
    IMAGES,
    LIST_FIELDS,
    REASONING_FIELDS,
    REASONING_ITEM,
    FoundReasoning,
    ReasoningEntry,
    extract_native_summary,
    extract_reasoning,
    extract_state,
    find_reasoning,
    get_delta,
    get_index,
    is_reasoning_field,
    observe,
    read_answer_text,
    read_image,
    read_logprobs,
    read_state,
    trusts_summaries,
    without_thinking_chunks,
)
from abridge.apis.chat.shapes import ChatRebuilder
from abridge.apis.chat.texts import ChoiceTexts
from abridge.apis.chat.tools import CallNumbers, ToolCallFragments
from abridge.apis.display import Display
from abridge.apis.endings import UNFINISHED, infer_reason, reason_of_parts
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE, read_detail
from abridge.apis.frames import SentEvent
from abridge.apis.json import (
    as_object,
    begins_object,
    dumps,
    first_string,
    loads_exact,
    objects,
    parse_body,
    parse_object,
    replace_invalid,
    string,
)
from abridge.apis.media import split_data_url, unrepresentable
from abridge.apis.opaque_state import find_states
from abridge.apis.openai import error_in, mint_id
from abridge.apis.params import read_extra
from abridge.apis.protocols import Continuation
from abridge.apis.shapes import DropCount, is_withheld
from abridge.apis.usage import CHAT_USAGE, as_count, report_tier
from abridge.core.by_number import ByNumber
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    FinishReason,
    ImageDelta,
    NativeSummary,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ResponseEnded,
    ResponseStarted,
    ToolCallDelta,
    TurnRecorded,
    UsageReported,
    text_size,
)
from abridge.core.usage import Tokens
from abridge.providers.learned import Observation
from abridge.providers.profile import Profile
from abridge.stages.tags import MAX_LEADING_BLANKS

FIRST_CHOICE = 0
"""The choice that the sources are of which are listed beside all choices."""

REQUIRED_HEADER = frozenset({"id", "created", "model"})

FIELDS_BESIDE = frozenset({"citations", "search_results", "service_tier"})
"""Fields beside the choices that are translated: lists of sources, and the tier."""

FINISH_REASONS: Mapping[str, FinishReason] = {
    "length": "length",
    "content_filter": "content_filter",
}
"""Finish reasons; any other means `stop`, or `tool_calls` if there were calls."""

STOP_SEQUENCE_FIELDS = ("stop_reason", "matched_stop")
"""Fields beside the finish reason that name the stop sequence, as vLLM and SGLang have them; a
number there is a token's id (vllm/entrypoints/openai/chat_completion/protocol.py; sglang
entrypoints/openai/protocol.py)."""


class ChatReader:
    """Read one response. See the protocol `Reader`.

    With `translates` its client speaks another API, so that no event carries a frame.
    """

    mismatches = 0

    def __init__(
        self, profile: Profile, display: Display, limit: int, *, translates: bool = False
    ) -> None:
        self._profile = profile
        self._display = display
        self._carries_frames = not translates
        self._makes_envelopes = display.seal is not None and not translates
        self._listed: list[CitationDelta] = []  # sources that no choice names
        new_choice = partial(TranslatedChoice, listed=self._listed) if translates else ChoiceReader
        self._choices: ByNumber[int, ChoiceReader] = ByNumber(
            partial(new_choice, profile=profile, display=display, limit=limit)
        )
        self._finished: set[int] = set()  # choices, of which there may be many
        self._announced_count = 0
        self._messages: dict[int, Json] = {}
        self._header: Json = {}  # what is required of it, of the last chunk that was completed
        self._rebuilder = ChatRebuilder(DropCount.of(display)) if display.hides_raw else None
        self.continuation: Continuation | None = None
        self._last_chunk: Json = {}  # the last that had choices
        self._early_usage: Json | None = None  # a chunk with usage that came too early
        self._usage: Tokens | None = None  # the last that was reported
        self._unfinished_usage: Any = None
        """That of a choice that had not finished. It is repeated at the end if none follows: SDKs
        keep what the last chunk has."""
        self._tier: Any = None  # what the last chunk says of it
        self._started = False
        self._failed = False
        self._ended = False
        self._unread_count = 0
        self.faults = 0

    @property
    def dropped(self) -> int:
        if self._rebuilder is None:
            return 0
        texts = sum(choice.texts.dropped for choice in self._choices.values())
        return self._unread_count + self._rebuilder.drops.count + texts

    def read(self, frame: bytes) -> list[Event]:
        self.continuation = None
        data, carried = sse.frame_data(frame), frame if self._carries_frames else None
        if data is None:
            return [] if self._rebuilder is not None else [Passthrough(None, carried)]
        if self._ended:  # drop whatever upstream sends after the end
            self.faults += 1
            return []
        if data.startswith(sse.DONE):
            return self._read_end(carried if self._rebuilder is None else carried and DONE_FRAME)
        chunk = parse_object(data, loads_exact)
        return self._read_unparsed(data, frame) if chunk is None else self._read_chunk(chunk, frame)

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        if self._failed or (self._choices and self._is_last([]) and error is None):
            return self._read_end(None)
        self._failed = True
        events = [*self._flush_choices(is_cut=True), *self._release_usage()]
        reported = ErrorReported(None, None, error or CONNECTION_LOST)
        return [*events, reported, *self._read_end(None)]

    def read_whole(self, body: bytes) -> list[Event]:
        sent, body = parse_body(body)
        completion = sent and _number_choices(sent)
        originals = objects((completion or {}).get("choices"))
        if completion is not None and self._rebuilder is not None:
            arranged = self._rebuilder.arrange_completion(completion)
            originals = objects(arranged.get("choices"))
            completion = self._rebuilder.rebuild_completion(arranged)
        if completion is None or not isinstance(completion.get("choices"), list):
            unread = body if self._carries_frames and self._rebuilder is None else None
            return [ResponseEnded(None, unread, ok=False, error=error_in(completion))]
        events, given = self._start(completion), objects(completion["choices"])
        choices = list(map(self._take_thinking, given))
        if any(map(is_not, choices, given)):
            completion = {**completion, "choices": choices}
        for choice, original in zip(choices, originals, strict=True):
            events += self._read_whole_choice(choice, original)
        usage = CHAT_USAGE.read(completion.get("usage"))
        errors = (event.error for event in events if isinstance(event, ErrorReported))
        error = next(errors, None) or self._find_failure(choices)
        carried = body if completion is sent else dumps(completion)
        end_frame = carried if self._carries_frames else None
        return [*events, ResponseEnded(None, end_frame, ok=error is None, usage=usage, error=error)]

    def recorded_turns(self) -> list[RecordedTurn]:
        return list(starmap(self._record_message, self._complete_messages().items()))

    def observed(self) -> Observation:
        return observe(self._complete_messages().get(0, {}), self._profile)

    # Frames

    def _read_unparsed(self, data: bytes, frame: bytes) -> list[Event]:
        """Read a frame that is no chunk. Without its chunk the answer would be another one: so it
        would where a frame that says nothing stands for a fragment of a call.

        Any other passes, unless raw reasoning is hidden, which it may hold.
        """
        if (valid := replace_invalid(frame)) != frame:
            return self.read(valid)
        if begins_object(data) or (sse.says_nothing(frame, data) and self._is_within_call):
            return self.end(UNREADABLE)
        if self._rebuilder is not None:
            self._unread_count += 1
            return []
        return [Passthrough(None, frame if self._carries_frames else None)]

    @property
    def _is_within_call(self) -> bool:
        return any(one.message.has_open_call and not one.finished for one in self._choices.values())

    def _read_chunk(self, chunk: Json, frame: bytes) -> list[Event]:
        """Read a chunk. What upstream said of a choice is recorded, whatever of it goes on."""
        rebuilder, originals = self._rebuilder, None
        if rebuilder is not None:
            chunk = rebuilder.arrange(chunk)
        sent, chunk = chunk, self._complete(chunk)
        if rebuilder is not None:
            originals, rebuilt = objects(chunk.get("choices")), rebuilder.rebuild_chunk(chunk)
            if rebuilt is None:
                return []
            chunk = rebuilt
        elif chunk is sent:
            chunk = SentEvent(chunk, frame if self._carries_frames else None)
        events = self._read_parsed(chunk, originals)
        if (failure := self._find_failure(objects(chunk.get("choices")))) is not None:
            return [*events, *self.end(failure)]
        says_one = len(events) == 1 or (len(events) == 2 and events[0].frame is None)
        if says_one and (found := find_text(chunk)) is not None:
            self.continuation = self._choices[found.lane].continuation_of(chunk, found)
        return events

    def _find_failure(self, choices: list[Json]) -> ErrorDetail | None:
        begun = filter(None, map(self._choices.get, map(get_index, choices)))  # errors begin none
        return next(filter(None, (choice.failure for choice in begun)), None)

    def _complete(self, chunk: Json) -> Json:
        """Return a chunk with all that it must have; the same object if it lacks nothing."""
        if chunk.get("error"):
            return chunk
        given = objects(chunk.get("choices"))
        choices = [self._choices[get_index(choice)].complete(choice) for choice in given]
        lacks_header = self._carries_frames and _is_header_missing(chunk, given)
        if not (lacks_header or any(map(is_not, choices, given))):
            return chunk
        chunk = {**chunk, "choices": choices}
        if self._carries_frames and _has_content(chunk, choices):
            said = {key: chunk[key] for key in REQUIRED_HEADER if key in chunk}
            made = self._header or {"id": mint_id("chatcmpl-"), "created": 0, "model": ""}
            self._header = {**made, **said}
            chunk = {**self._header, **chunk, "object": CHUNK_OBJECT}
        return chunk

    def _read_parsed(self, chunk: Json, originals: list[Json] | None) -> list[Event]:
        """Read a chunk that does not merely continue. `originals` are its choices as they came, if
        it is rebuilt."""
        if chunk.get("choices"):
            self._last_chunk = chunk
        is_known = self._started and (self._carries_frames or FIELDS_BESIDE.isdisjoint(chunk))
        events = [] if is_known else self._start(chunk)
        if chunk.get("usage") or chunk.get("error"):
            events += self._release_usage()  # that came earlier
        if chunk.get("error"):
            return [*events, *self._flush_choices(is_cut=True), *self._read_error(chunk)]
        only_usage = not chunk.get("choices") and CHAT_USAGE.read(chunk.get("usage")) is not None
        if only_usage and not self._is_last([]):
            self._early_usage = chunk
            return events
        events += self._read_choices(chunk, originals)
        is_released = self._early_usage is not None and self._is_last([])
        return [*events, *self._release_usage()] if is_released else events

    def _start(self, body: Json) -> list[Event]:
        """Start the response at the first chunk with choices.

        Azure first sends filter results without choices, in a chunk whose id and model are empty.
        """
        events: list[Event] = []
        if not (self._carries_frames or FIELDS_BESIDE.isdisjoint(body)):
            self._listed[:] = read_listed(body, FIRST_CHOICE) or self._listed
            said, self._tier = self._tier, body.get("service_tier")
            events += report_tier(self._tier) if self._tier != said else ()
        if self._started or not body.get("choices"):
            return events
        self._started = True
        id_, model = string(body.get("id")), string(body.get("model"))
        started = ResponseStarted(None, None, id_, model, as_count(body.get("created")) or 0)
        return [*events, started]

    def _read_error(self, chunk: Json) -> list[Event]:
        """Read an error. It is reported once; another only passes."""
        reported, self._failed = self._failed, True
        frame = chunk.frame if isinstance(chunk, SentEvent) else None
        if self._carries_frames and self._rebuilder is not None:
            frame = sse.encode_frame(dumps({**get_header(chunk), "error": chunk["error"]}))
        if reported:
            return [Passthrough(None, frame)]
        return [ErrorReported(None, frame, read_detail(chunk))]

    # Choices

    def _read_choices(self, chunk: Json, originals: list[Json] | None = None) -> list[Event]:
        choices = objects(chunk.get("choices"))
        has_usage = bool(chunk.get("usage") or self._unfinished_usage)
        is_last = has_usage and self._is_last(choices)
        chunk = self._repeat_usage(chunk, is_last=is_last)
        usage = CHAT_USAGE.read(chunk.get("usage"))
        self._usage = usage or self._usage
        final = usage if is_last else None
        events = self._read_in_order(
            choices, originals or choices, separate_finish=final is not None
        )
        if not self._carries_frames:
            return events if final is None else [*events, UsageReported(None, None, final)]
        if final is not None:
            events = _attach_usage(events, final)
        elif not choices:
            events = [Passthrough(None, None, said=[])]
        elif has_other_fields(chunk) and not any(event.said for event in events):
            events.append(self._choices[max(map(get_index, choices))].say({}))
        if usage is not None and not choices and self._display.hides_usage:
            events[0].said = None
        return self._make_frames(events, chunk)

    def _read_in_order(
        self, choices: list[Json], originals: list[Json], *, separate_finish: bool
    ) -> list[Event]:
        """Read the choices of a chunk, in order of their index."""
        events: list[Event] = []
        pairs = list(zip(choices, originals, strict=True))
        if len(pairs) > 1:
            pairs.sort(key=lambda pair: get_index(pair[0]))
        for choice, original in pairs:
            reader = self._choices[get_index(choice)]
            if self._announced_count < reader.lane:
                events += self._announce_before(reader.lane)
            reader.message.add(get_delta(original))
            for part in reader.texts.split(choice):
                events += self._read_choice(reader, part, separate_finish=separate_finish)
        return events

    def _announce_before(self, lane: int) -> list[Event]:
        """Announce choices in order of their index: strict clients fail otherwise."""
        events: list[Event] = []
        while self._announced_count < min(lane, MAX_CHOICES):
            reader = self._choices[self._announced_count]
            self._announced_count += 1
            if not reader.announced:
                events.append(reader.announce())
        return events if self._carries_frames else []

    def _read_choice(
        self, reader: ChoiceReader, choice: Json, *, separate_finish: bool = False
    ) -> list[Event]:
        """Read a choice. Report the first error with which one finishes; if envelopes are made,
        record its turn before the event that ends it."""
        finishes = bool(choice.get("finish_reason"))
        error = read_finish_error(choice) if finishes and not self._failed else None
        ends = self._makes_envelopes and finishes and not reader.finished
        has_frame = error is not None and self._carries_frames
        events = reader.read(choice, separate_finish=separate_finish or has_frame)
        if reader.finished:
            self._finished.add(reader.lane)
        if error is not None:
            self._failed = True
            said = events.pop().said if has_frame else None
            events.append(ErrorReported(None, None, error, said=said))
        return [*events[:-1], *self._record_turn(reader), *events[-1:]] if ends else events

    def _take_thinking(self, choice: Json) -> Json:
        """Return a choice of a completion without thinking in the texts of its message."""
        said, texts = choice.get("message"), self._choices[get_index(choice)].texts
        if not isinstance(said, dict):
            return choice
        message = texts.split_message(said, choice.get("finish_reason"))
        if message is said:
            return choice
        hides_logprobs = self._rebuilder is not None and choice.get("logprobs")
        return {**choice, "message": message, **({"logprobs": None} if hides_logprobs else {})}

    def _read_whole_choice(self, choice: Json, original: Json) -> list[Event]:
        reader, message = self._choices[get_index(choice)], choice.get("message")
        if isinstance(message, dict):
            self._messages[reader.lane] = as_object(original.get("message"))
        events: list[Event] = []
        if not choice.get("finish_reason"):
            self.faults += 1
            is_cut = has_cut_call(self._messages.get(reader.lane, {}))
            events += [ErrorReported(None, None, UNFINISHED)] if is_cut else []
        finish = choice.get("finish_reason") or "stop"
        given = reader.complete({**choice, "delta": None, "finish_reason": finish})
        return [*events, *self._read_choice(reader, given)]

    def _make_frames(self, events: list[Event], chunk: Json) -> list[Event]:
        """Give the events their frames: the one that came if a chunk says just this, else new ones.
        The chunk's other fields go with the last."""
        framed = [event for event in events if event.said is not None]
        if isinstance(chunk, SentEvent) and len(framed) == 1 and _says_all(framed[0], chunk):
            framed[0].frame = chunk.frame
        elif framed:
            shared = {**get_header(chunk), **({"usage": None} if "usage" in chunk else {})}
            for event in framed:
                fields = chunk if event is framed[-1] else shared
                made = {**fields, "choices": event.said}
                event.frame = encode_chunk(made, obfuscate=self._display.obfuscate)
        for event in framed:
            event.said = None
        return events

    # Turns

    def _record_turn(self, reader: ChoiceReader) -> list[Event]:
        message = self._messages.get(reader.lane)
        if message is None and reader.message.is_complete:
            message = reader.message.as_dict()
        if message is None:
            return []
        turn = self._record_message(reader.lane, message)
        states = find_states(turn.original)
        if not (turn.raw.strip() or any(is_withheld(state, self._display) for state in states)):
            return []  # opaque state that is shown needs no envelope
        return [TurnRecorded(reader.lane, None, turn)]

    def _record_message(self, lane: int, message: Json) -> RecordedTurn:
        return record_turn(message, lane, self._profile, self._display)

    def _complete_messages(self) -> dict[int, Json]:
        for lane, choice in self._choices.items():
            if choice.message.is_complete and lane not in self._messages:
                self._messages[lane] = choice.message.as_dict()
        return self._messages

    # Usage

    def _is_last(self, choices: list[Json]) -> bool:
        """Return whether all choices have finished once these of them are read."""
        finishing = {get_index(choice) for choice in choices if choice.get("finish_reason")}
        return len(self._choices) == len(self._finished) + len(finishing - self._finished)

    def _repeat_usage(self, chunk: Json, *, is_last: bool) -> Json:
        """Return the chunk that finishes the last choice with the usage that came beside an earlier
        one, if it has none; any other as it is."""
        if self._display.hides_usage:
            return chunk
        if is_last and not chunk.get("usage"):
            chunk = {**chunk, "usage": self._unfinished_usage}
        self._unfinished_usage = None if is_last else chunk.get("usage") or self._unfinished_usage
        return chunk

    def _release_usage(self) -> list[Event]:
        """Read the chunk with usage that came too early, if there is one.

        It passes as it is where another follows it, which has the figures so far.
        """
        if self._early_usage is None:
            return []
        chunk, self._early_usage = self._early_usage, None
        return self._read_choices(chunk)

    # The end

    def _read_end(self, frame: bytes | None) -> list[Event]:
        self._ended = True
        events = self._flush_choices(is_cut=self._failed)
        if not self._failed:
            events += self._finish_choices()
        events += self._release_usage()
        for choice in self._choices.values():
            events += choice.close_reasoning()
        return [*events, ResponseEnded(None, frame, ok=not self._failed, usage=self._usage)]

    def _finish_choices(self) -> list[Event]:
        """Finish the choices for which upstream sent no finish reason before `[DONE]`."""
        unfinished = [reader for reader in self._choices.values() if not reader.finished]
        reasons = [reader.infer_reason() for reader in unfinished]
        if None in reasons:
            self._failed = True
            return [ErrorReported(None, None, UNFINISHED)]
        if not reasons:
            return []
        self.faults += 1
        finishes: list[Json] = [
            {"index": reader.lane, "delta": {}, "finish_reason": reason}
            for reader, reason in zip(unfinished, reasons, strict=True)
        ]
        return self._read_choices({**get_header(self._last_chunk), "choices": finishes})

    def _flush_choices(self, *, is_cut: bool) -> list[Event]:
        """Release text held back as the possible beginning of a tag, as no more can come."""
        readers = self._choices.values()
        events = [event for reader in readers for event in reader.flush(is_cut=is_cut)]
        return self._make_frames(events, get_header(self._last_chunk))


def _number_choices(completion: Json) -> Json:
    """Return a completion whose choices have an index each: what one says must not tell what
    another's text is."""
    choices = objects(completion.get("choices"))
    if len(set(map(get_index, choices))) == len(choices):
        return completion
    numbered = [{**choice, "index": number} for number, choice in enumerate(choices)]
    return {**completion, "choices": numbered}


def _is_header_missing(chunk: Json, choices: list[Json]) -> bool:
    is_chunk = chunk.get("object") == CHUNK_OBJECT
    if not isinstance(chunk.get("choices"), list):
        return is_chunk or bool(chunk.get("usage"))
    is_complete = is_chunk and chunk.keys() >= REQUIRED_HEADER
    return not is_complete and _has_content(chunk, choices)


def _has_content(chunk: Json, choices: list[Json]) -> bool:
    """Return whether it holds an answer or usage; Azure's filter results hold neither."""
    return bool(chunk.get("usage")) or any(
        isinstance(choice.get("delta"), dict) for choice in choices
    )


def _says_all(event: Event, chunk: Json) -> bool:
    """Return whether an event says all that a chunk does."""
    said, choices = event.said or [], objects(chunk.get("choices"))
    return len(said) == len(choices) and all(map(is_, said, choices))


def _attach_usage(events: list[Event], usage: Tokens) -> list[Event]:
    """Report the usage in a last event, together with the choices that hold nothing else."""
    empty = [event for event in events if _is_empty(event)]
    choices = [choice for event in empty for choice in event.said or ()]
    others = [event for event in events if not _is_empty(event)]
    return [*others, UsageReported(None, None, usage, said=choices)]


def _is_empty(event: Event) -> bool:
    """Return whether the event says neither an answer nor a role."""
    deltas = [choice.get("delta") or {} for choice in event.said or ()]
    return isinstance(event, Passthrough) and not any(delta.get("role") for delta in deltas)


# One choice


class ChoiceReader:
    """Read the deltas of one choice into events that say what of it goes into their frames.

    A delta that holds one kind of thing keeps its shape. One that holds several becomes several
    events: the role first, then reasoning, then the answer; unknown fields go with the last.
    """

    reads_logprobs = False  # events have them
    calls: ToolCallFragments | None = None  # where events tell their pieces apart
    failure: ErrorDetail | None = None  # why the choice cannot be read

    def __init__(self, lane: int, profile: Profile, display: Display, limit: int) -> None:
        self.lane = lane
        self.message = ChatMessageAccumulator(limit)
        self.announced = False
        self._had_begun = False  # before the last chunk
        self.finished = False
        self.reasoning_open = False  # a stretch of reasoning is open
        self._told: set[str] = set()  # the fields of which deltas have said something
        self.counts_calls = False
        """Calls lacked an index of their own: chunks that are alike may be completed otherwise."""
        self._call_numbers = CallNumbers()
        self._hides_raw, self._shows_raw = display.hides_raw, display.show_raw
        self._shows_summary = display.show_summary
        self._trusts_summaries = trusts_summaries(profile, display)
        self.texts = ChoiceTexts(lane, profile, display, limit)

    def infer_reason(self) -> FinishReason | None:
        """Return why the choice stops, where upstream does not say so; None if it fails."""
        message = self.message
        return infer_reason(has_open_part=message.has_cut_call, has_calls=message.has_calls)

    def announce(self) -> Event:
        """Make the choice's first chunk, with the role, where upstream sent none."""
        self.announced = True
        return self.say({"role": "assistant", "content": ""})

    def open_reasoning(self, field: str) -> ReasoningStarted:
        """Begin a stretch of reasoning."""
        self.reasoning_open = True
        return ReasoningStarted(self.lane, None, REASONING_ITEM, field)

    def close_reasoning(self) -> list[Event]:
        """End the stretch of reasoning, if one is open."""
        was_open, self.reasoning_open = self.reasoning_open, False
        return [ReasoningEnded(self.lane, None, REASONING_ITEM)] if was_open else []

    # What a choice lacks

    def complete(self, choice: Json) -> Json:
        """Return a choice with all that it must have; the same object if it lacks nothing."""
        delta, finish = choice.get("delta"), choice.get("finish_reason") or None
        if finish and self.finished and read_finish_error(choice) is None:
            finish = None  # it is said once
        has_finish = "finish_reason" in choice and choice["finish_reason"] == finish
        if isinstance(delta, dict):
            self._told |= {key for key in delta.keys() & _KNOWN_FIELDS if delta[key]}
            completed = self._complete_delta(delta)
            if completed is delta and has_finish and isinstance(choice.get("index"), int):
                return choice
            return {**choice, "index": self.lane, "delta": completed, "finish_reason": finish}
        if isinstance(message := choice.get("message"), dict):  # it stands for a delta
            rest = {key: message[key] for key in message if key not in self._told}
            if calls := objects(rest.get("tool_calls")):  # each is whole, whatever its id
                rest["tool_calls"] = [{**call, "index": place} for place, call in enumerate(calls)]
            others = {key: choice[key] for key in choice if key != "message"}
            completed = {**others, "delta": self._complete_delta(rest)}
            return {"index": self.lane, **completed, "finish_reason": finish}
        if not choice.get("finish_reason"):
            return choice  # it says nothing
        return {"index": self.lane, **choice, "delta": {}, "finish_reason": finish}

    def _complete_delta(self, delta: Json) -> Json:
        if not (delta.get("role") or self.announced):
            delta = {**delta, "role": "assistant"}
        if not delta.get("tool_calls"):
            return delta
        calls = objects(delta["tool_calls"])
        completed = list(map(self._complete_call, calls))
        return {**delta, "tool_calls": completed} if any(map(is_not, completed, calls)) else delta

    def _complete_call(self, call: Json) -> Json:
        """Add the type to the fragment that begins a call, and to any the index of its call."""
        index, (kind, identity, name, _) = call.get("index"), CallFragment.read(call)
        if (identity or name) and not call.get("type"):
            call = {**call, "type": kind}
        number = self._call_numbers.find(index, identity, name)
        if isinstance(index, int) and number == index:
            return call
        self.counts_calls = True
        return {**call, "index": number}

    # The events of a choice

    def flush(self, *, is_cut: bool) -> list[Event]:
        """Release what was held back, when the stream ends without a finish reason."""
        choices = self.texts.flush(is_cut=is_cut)
        return [event for choice in choices for event in self.read(choice, separate_finish=False)]

    def read(self, choice: Json, *, separate_finish: bool) -> list[Event]:
        """Read a chunk's choice. With `separate_finish` the finish comes as a separate event.

        An event that says `choice` itself needs no new frame.
        """
        delta, self._had_begun = get_delta(choice), self.announced
        found = find_reasoning(delta, trusts_summaries=self._trusts_summaries)
        events = self._read_delta(choice, delta, found, separate_finish=separate_finish)
        self.finished = self.finished or bool(choice.get("finish_reason"))
        self.announced = True
        return events

    def continuation_of(self, chunk: Json, found: ChunkText) -> Continuation | None:
        """Return how a chunk with this text is continued by others like it, if it said no more."""
        choice, calls, is_reasoning = chunk["choices"][0], self.calls, found.is_reasoning
        is_answer = found.field in ("content", "tool_calls")
        if self.finished or not self._had_begun or not (is_reasoning or is_answer):
            return None
        if is_reasoning is not self.reasoning_open:
            return None
        if choice.get("logprobs") and (self._hides_raw or self.reads_logprobs):
            return None
        is_left_out = is_reasoning and not self._shows_raw
        if is_left_out and (has_other_fields(chunk) or loses_fields(choice)):
            return None
        if found.field != "tool_calls":
            keep = self.message.keep_text(found.field)
        elif self.counts_calls or (calls and not calls.has_arguments(found.call_index)):
            return None
        else:
            keep = self.message.keep_arguments(found.call_index, found.key)
        going_on = Continuation(found.key, found.text, (keep,))
        return going_on.looked_at(self.texts.accepts(found))

    def _make_reasoning(self, found: FoundReasoning, said: list[Json] | None) -> list[Event]:
        """Open a stretch at its first word that is not blank; after the finish open none."""
        opens = not (self.reasoning_open or self.finished) and bool(found.text.strip())
        events: list[Event] = [self.open_reasoning(found.field)] if opens else []
        if not found.native:
            return [*events, ReasoningDelta(self.lane, None, REASONING_ITEM, found.text, said=said)]
        if not self.reasoning_open:  # blank, or after the finish: part of no stretch
            return [Passthrough(self.lane, None, said=said)]
        native = NativeSummary(self.lane, None, REASONING_ITEM, 0, "delta", found.text, said=said)
        return [*events, native]

    def say(self, delta: Json) -> Event:
        """Make an event that only says a delta; an empty one carries other fields."""
        return Passthrough(self.lane, None, said=self._wrap_delta(delta))

    def _wrap_delta(self, delta: Json) -> list[Json]:
        return [{"index": self.lane, "delta": delta, "finish_reason": None}]

    # A delta

    def _read_delta(
        self, choice: Json, delta: Json, found: FoundReasoning | None, *, separate_finish: bool
    ) -> list[Event]:
        """Read a choice with this delta, in which this reasoning was found. An event that says all
        of it says the choice itself."""
        finishes, is_repeated = choice.get("finish_reason"), self.announced and delta.get("role")
        leaves_out = is_repeated or not (found is None or self._is_shown(found))
        splits = found is not None or (finishes and separate_finish)
        events = [self.announce()] if splits and not self.announced else []
        if found is not None:
            events += self._read_reasoning(found, delta)
        answer = self._split_answer(delta)
        events += answer
        if finishes:
            events += self.close_reasoning()
            events += [self.say({})] if separate_finish or not answer else []
        said = [event for event in events if event.said]
        if len(said) > 1 or leaves_out:
            return self._attach_fields(events, choice, *other_fields(choice, delta))
        if not said:
            events.append(self.say({}))
        (said or events)[-1].said = [choice]
        return events

    def _is_shown(self, found: FoundReasoning) -> bool:
        return self._shows_summary if found.native else self._shows_raw

    def _read_reasoning(self, found: FoundReasoning, delta: Json) -> list[Event]:
        """Read the reasoning of a delta that holds more."""
        if not self._is_shown(found):
            opaque = extract_state(delta)
            rest = [self.say(opaque)] if opaque else []
            return [*self._make_reasoning(found, None), *rest]
        visible = extract_reasoning(delta) if self._shows_raw else extract_native_summary(delta)
        return self._make_reasoning(found, self._wrap_delta(visible))

    def _split_answer(self, delta: Json) -> list[Event]:
        """Make the event of the delta's part of the answer, if it holds any."""
        if not _has_answer(delta):
            return []
        shown = {**delta, "content": without_thinking_chunks(delta.get("content"))}
        answer = {key: shown[key] for key in ANSWER_FIELDS if shown.get(key)}
        text, said = read_answer_text(answer.get("content")), self._wrap_delta(answer)
        return [*self.close_reasoning(), ContentDelta(self.lane, None, text, said=said)]

    def _attach_fields(
        self, events: list[Event], choice: Json, of_delta: Json, of_choice: Json
    ) -> list[Event]:
        """Add the finish reason and the unknown fields to the last event that says something."""
        if (of_delta or of_choice) and not any(event.said for event in events):
            events.append(self.say({}))
        last = next((event.said[0] for event in reversed(events) if event.said), None)
        if last is not None:
            last["delta"] = {**last["delta"], **of_delta}
            last["finish_reason"] = choice.get("finish_reason")
            last.update(of_choice)
        return events


def _has_answer(delta: Json) -> bool:
    """Return whether a delta holds anything of the answer."""
    if isinstance(delta.get("content"), list):
        delta = {**delta, "content": without_thinking_chunks(delta["content"])}
    return any(map(delta.get, ANSWER_FIELDS))


_HANDLED_FIELDS = frozenset({"role", *ANSWER_FIELDS})

_KNOWN_FIELDS = _HANDLED_FIELDS.union(REASONING_FIELDS)

_CHUNK_CHOICE_FIELDS = frozenset({"index", "delta", "finish_reason"})


def other_fields(choice: Json, delta: Json) -> tuple[Json, Json]:
    """Return the fields of a delta and of its choice that hold neither reasoning nor answer."""
    others = read_extra(delta, _HANDLED_FIELDS)
    of_delta = {key: others[key] for key in others if not is_reasoning_field(key, others[key])}
    return of_delta, read_extra(choice, _CHUNK_CHOICE_FIELDS)


def loses_fields(choice: Json) -> bool:
    """Return whether a choice with one text holds anything that is lost where that is not shown."""
    delta = choice["delta"]
    if delta.keys() <= _KNOWN_FIELDS:  # the usual case
        return bool(read_extra(choice, _CHUNK_CHOICE_FIELDS))
    return any(other_fields(choice, delta))


class TranslatedChoice(ChoiceReader):
    """Read a choice into events without frames, for a client of another API. They say in detail
    what it holds: its text with log probabilities, its refusal, each fragment of a call as a piece
    of its call, opaque state after the reasoning it belongs to, its images and sources, and the
    finish reason. `listed` are sources that no choice names."""

    reads_logprobs = True
    calls: ToolCallFragments

    def __init__(
        self,
        lane: int,
        profile: Profile,
        display: Display,
        limit: int,
        *,
        listed: list[CitationDelta],
    ) -> None:
        super().__init__(lane, profile, display, limit)
        self.calls = ToolCallFragments(lane)
        self._carries_images = display.carries_images
        self._listed = listed if lane == FIRST_CHOICE else []
        self._finish_reported = False
        self._held_blank = ""
        self._citations: list[CitationDelta] = []  # held until the text ends
        self._has_cited = False
        self._has_reasoned = False

    def _read_delta(
        self, choice: Json, delta: Json, found: FoundReasoning | None, **_: bool
    ) -> list[Event]:
        events = self._translate_reasoning(delta, found)
        if _has_answer(delta) or delta.get(IMAGES):
            events += self.close_reasoning()
            events += self._translate_answer(choice, delta, is_whole=found is None)
        if choice.get("finish_reason"):
            events += self.close_reasoning()
            events += self._read_finish(choice)
        if delta.get("annotations"):
            named = read_annotations(delta, self.lane)
            self._citations += (one for one in named if self.message.reserve(text_size(one)))
        return self._cite(events) if self._citations or self._listed else events

    def open_reasoning(self, field: str) -> ReasoningStarted:
        self._has_reasoned = True
        return super().open_reasoning(field)

    def _translate_reasoning(self, delta: Json, found: FoundReasoning | None) -> list[Event]:
        """Read the reasoning of a delta, and opaque state, which may come alone. Blank reasoning
        opens no stretch, and is held back for the one that comes next."""
        if found is None and delta.keys().isdisjoint(LIST_FIELDS):
            return []  # the usual case of an answer
        state, opening = read_state(delta), list[Event]()
        if state and not (self.reasoning_open or self.finished):
            opening.append(self.open_reasoning(found.field if found is not None else ""))
        was_open = self.reasoning_open
        thoughts = self._make_reasoning(found, None) if found is not None and found.text else []
        if state and was_open:
            thoughts = insert_state(thoughts, state, self.lane)
        elif not self.reasoning_open:
            blank = "".join(one.text for one in thoughts if isinstance(one, ReasoningDelta))
            self._held_blank += blank[: MAX_LEADING_BLANKS - len(self._held_blank)]
            return []
        elif not was_open:
            _, first = thoughts
            if isinstance(first, ReasoningDelta):
                first.text, self._held_blank = self._held_blank + first.text, ""
        return opening + thoughts

    def _translate_answer(self, choice: Json, delta: Json, *, is_whole: bool) -> list[Event]:
        """Read what a choice says of the answer; with `is_whole` it says nothing else."""
        events, content = list[Event](), delta.get("content")
        if content and (text := read_answer_text(content)):
            logprobs = read_logprobs(choice, "content")
            if not (is_whole or "".join(string(one.get("token")) for one in logprobs) == text):
                logprobs = ()  # they cover reasoning, too
            events.append(ContentDelta(self.lane, None, text, logprobs))
        if delta.get("refusal") and (refusal := string(delta["refusal"])):
            logprobs = read_logprobs(choice, "refusal")
            events.append(RefusalDelta(self.lane, None, logprobs=logprobs, refusal=refusal))
        return [*events, *self._read_media(delta), *self.calls.read(delta)]

    def _read_media(self, delta: Json) -> Iterator[ImageDelta]:
        """Read the images of a delta. What the client's API has no form for fails the answer."""
        audio = as_object(delta.get("audio"))
        if audio.get("data") or audio.get("transcript"):
            self.failure = unrepresentable("audio")
        for part in [*objects(delta.get(IMAGES)), *objects(delta.get("content"))]:
            media_type, data = split_data_url(string(read_image(part).get("url")))
            if self._carries_images and media_type.startswith("image/"):
                yield ImageDelta(self.lane, None, media_type=media_type, data=data)
            elif data:
                self.failure = unrepresentable("image")

    def _read_finish(self, choice: Json) -> list[Event]:
        """End the choice at its first finish reason."""
        if self._finish_reported:
            return []
        self._finish_reported = True
        if read_finish_error(choice) is not None:
            return []  # the error is reported instead
        nameless = list(self.calls.report_nameless())
        if reason := FINISH_REASONS.get(string(choice["finish_reason"])):
            return [*nameless, Finished(self.lane, None, reason)]
        default = reason_of_parts(has_calls=self.calls.count > 0)
        finished = Finished(self.lane, None, default, first_string(choice, *STOP_SEQUENCE_FIELDS))
        return [*nameless, *self.calls.finish(), finished]

    def _cite(self, events: list[Event]) -> list[Event]:
        """Add the sources at the end of the text: before the first call, or the finish.

        Those that are listed beside the choices are more of the same where some are annotated.
        Reasoning may have stood in the text, and moved all passages.
        """
        kinds = list(map(type, events))
        ends = [kinds.index(kind) for kind in (ToolCallDelta, Finished) if kind in kinds]
        if not ends:
            return events
        place, citations, self._citations = min(ends), self._citations, []
        if isinstance(events[-1], Finished) and not (citations or self._has_cited):
            citations = self._listed
        self._has_cited = self._has_cited or bool(citations)
        if self._has_reasoned:
            citations = [replace(citation, passage=None) for citation in citations]
        return [*events[:place], *citations, *events[place:]]


def insert_state(events: list[Event], entries: list[ReasoningEntry], lane: int) -> list[Event]:
    """Insert opaque state into a choice's events, each after the reasoning it belongs to: that is
    split by entry, if it has the text of all of them."""
    thoughts = (
        (place, event)
        for place, event in enumerate(events)
        if isinstance(event, ReasoningDelta | NativeSummary)
    )
    place, thought = next(thoughts, (-1, None))
    text = "".join(entry.text for entry in entries)
    is_split = thought is not None and thought.text == text
    inserted: list[Event] = []
    for entry in entries:
        if thought is not None and is_split and entry.text:
            inserted.append(replace(thought, text=entry.text))
        if entry.data:
            inserted.append(ProviderState(lane, None, REASONING_ITEM, entry.data, entry.signs))
    return [*events[: place + (not is_split)], *inserted, *events[place + 1 :]]
