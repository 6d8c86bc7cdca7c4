"""Write Chat Completions: events as chunks, or into a whole completion.

An event goes out in one of three ways: in its frame; in its frame, patched where the client is to
see something elsewhere or not at all; or, without a frame, in chunks that are composed of it.
Where upstream speaks this API, only what Abridge adds has no frame, and a whole body is upstream's,
patched. Where it speaks another, nothing has one, and a whole body is the sum of the chunks.

The summary goes where clients look for reasoning: alone, in the field that upstream uses for its
reasoning; with raw reasoning, in `reasoning_content`, with the raw in `reasoning`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from abridge.apis import sse
from abridge.apis.attribution_fields import attribute_call
from abridge.apis.chat.chunks import (
    ARGUMENTS_FIELDS,
    CHUNK_OBJECT,
    DONE_FRAME,
    MAX_CHOICES,
    ChatMessageAccumulator,
    encode_chunk,
    write_annotation,
)
from abridge.apis.chat.errors import encode_error
from abridge.apis.chat.history import (
    ChatSealing,
    list_visible_entries,
    make_entry,
    make_envelope,
    next_index,
)
from abridge.apis.chat.reasoning import (
    DEFAULT_FIELD,
    IMAGES,
    RAW_FIELD,
    REASONING_ITEM,
    FoundReasoning,
    extract_native_summary,
    find_reasoning,
    get_index,
    replace_reasoning,
    trusts_summaries,
    without_reasoning,
)
from abridge.apis.chat.tools import attribute_message
from abridge.apis.delta_patterns import note_move
from abridge.apis.display import Display, ListField
from abridge.apis.errors import ANSWER_TOO_LONG, failure_of
from abridge.apis.frames import HOLE, DeltaFrame, parse_frame
from abridge.apis.hosted_calls import HOSTED_CALLS
from abridge.apis.json import as_object, dumps, entries, loads_exact, objects, parse_object, string
from abridge.apis.media import write_data_url
from abridge.apis.openai import CallIds, MintId, complete_logprobs, failure_body, mint_id
from abridge.apis.protocols import RequestEcho
from abridge.apis.tools import unwrap_free_text
from abridge.apis.usage import CHAT_USAGE
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    NO_SUMMARY,
    PART_SEPARATOR,
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    ImageDelta,
    ItemSummary,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ResponseEnded,
    ResponseStarted,
    SummaryTextDelta,
    TierReported,
    ToolCallDelta,
    TurnRecorded,
    UsageReported,
    split_run,
    split_text,
    text_size,
)
from abridge.core.model_request import Tool
from abridge.core.usage import Tokens
from abridge.providers.profile import Profile

MAX_FRAMES = 64
"""Frames of deltas that are kept of one response."""

TextPlace: TypeAlias = str | int
"""Where a delta adds text: the field, or the number of the call."""

AddedText: TypeAlias = tuple[TextPlace, str]

NOTHING: AddedText = ("", "")

_Change: TypeAlias = Callable[["ChatWriter", Any, bytes], bytes]

_AddText: TypeAlias = Callable[["ChoiceWriter", Any], AddedText | None]

_Write: TypeAlias = Callable[["ChoiceWriter", Any], list[Json]]


class ChatWriter:
    """Write one response. See the protocol `Writer`.

    With `echo` upstream speaks another API: choices are announced, usage is written, nothing
    follows an error, and at most `limit` characters are held of each choice.
    """

    final_response = None

    def __init__(
        self,
        profile: Profile,
        display: Display,
        echo: RequestEcho | None = None,
        limit: int = 0,
        mint_id: MintId = mint_id,
    ) -> None:
        self._profile = profile
        self._display = display
        self._echo = echo
        self._is_plain = display.is_plain
        self._limit = limit
        self._mint_id = mint_id
        self._drops_reasoning = echo is None and not display.show_raw
        self._choices: dict[int | None, ChoiceWriter] = {}
        self._header: Json = {}  # the fields that every composed chunk repeats
        self._tier: Json = {}  # that among them which names the service tier
        self._frames: dict[tuple[int, TextPlace], DeltaFrame] = {}
        self._frames_header: Json = {}
        self._sums: dict[int, _ChoiceSum] | None = None  # of a whole answer
        self._recorded_turns: dict[int, RecordedTurn] = {}
        self._usage: Tokens | None = None
        self._error: ErrorDetail | None = None
        options = {} if echo is None else as_object(echo.body.get("stream_options"))
        self._includes_usage = options.get("include_usage") is True

    def write(self, event: Event) -> bytes:
        if self._drops_reasoning and type(event) is ReasoningDelta:
            return b""
        if event.frame is not None and self._echo is None:
            change = self._CHANGES.get(type(event))
            return event.frame if change is None else change(self, event, event.frame)
        if self._error is not None and self._echo is not None:
            return b""  # nothing follows an error
        if isinstance(event, ErrorReported):
            return self._write_error(event.error)
        if isinstance(event, ResponseEnded):
            return self._write_end(event)
        choice = self._choices.get(event.lane)
        added = choice.add_text(event) if choice is not None else None
        if choice is not None and added is not None:
            place, text = added
            return self._write_texts(choice, place, split_text(event, text)) if text else b""
        if event.run is not None:
            return b"".join(map(self.write, split_run(event, event.run)))
        composed = self._compose(event)
        data = self._encode(composed) if composed else b""
        choice = self._choices.get(event.lane)
        is_over = self._echo is not None and choice is not None and choice.remaining < 0
        return data + self._write_error(ANSWER_TOO_LONG) if is_over else data

    def keep_alive(self, beside: Json | None = None) -> bytes:
        if not (beside and self._header):
            return b""
        chunk = {**self._header, "choices": [], **beside}
        return encode_chunk(chunk, obfuscate=self._display.obfuscate)

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream. Upstream's own body, which the last
        event carries, holds all but the turn that was recorded."""
        if isinstance(event, ErrorReported):
            self._error = event.error
        if self._echo is not None:
            self._add_to_sums(event)
        elif isinstance(event, TurnRecorded):
            self._recorded_turns[event.lane or 0] = event.turn

    def write_whole(self, end: ResponseEnded) -> bytes:
        completion = self._patch_whole(end) if self._echo is None else self._fold_whole(end)
        if completion is None:
            return end.frame or b""
        error = failure_of(end, self._error)
        if error is None:
            return dumps(completion)
        return dumps(failure_body(error, completion))

    # Events with frames

    def _patch_reasoning(self, event: ReasoningDelta, frame: bytes) -> bytes:
        """Move raw reasoning to the field where the client looks for it."""
        if self._is_plain:
            return frame
        fields = self._get_choice(event.lane or 0).reasoning
        if fields.keeps_raw:
            return frame
        if (moved := _move_alike(event, frame, fields.raw_field)) is not None:
            return moved
        if event.run is not None:
            return b"".join(map(self.write, split_run(event, event.run)))
        delta, chunk = fields.build_raw(event.item, event.text), parse_frame(frame)
        for choice in objects(chunk.get("choices")):
            choice["delta"] = replace_reasoning(choice.get("delta") or {}, delta)
        written = encode_chunk(chunk, obfuscate=self._display.obfuscate)
        note_move(event, frame, event.text, fields.raw_field, written)
        return written

    def _patch_usage(self, event: UsageReported, frame: bytes) -> bytes:
        if event.share is None and event.error is None:
            return frame
        chunk = parse_frame(frame)
        if event.error is not None:
            del chunk["usage"]
            return sse.encode_frame(dumps(chunk)) if chunk.get("choices") else b""
        CHAT_USAGE.add_share(chunk, event.share, merged=self._display.merge_usage)
        return sse.encode_frame(dumps(chunk))

    def _pass_native(self, _: NativeSummary, frame: bytes) -> bytes:
        return frame if self._display.show_summary else b""

    def _pass_error(self, event: ErrorReported, frame: bytes) -> bytes:
        self._error = event.error
        return frame

    def _pass_end(self, event: ResponseEnded, frame: bytes) -> bytes:
        return frame if event.error is None else self._write_end(event)

    _CHANGES: ClassVar[dict[type[Event], _Change]] = {
        ReasoningDelta: _patch_reasoning,
        NativeSummary: _pass_native,
        UsageReported: _patch_usage,
        ErrorReported: _pass_error,
        ResponseEnded: _pass_end,
    }
    """Returns the bytes in which an event with a frame goes out; any other passes in it."""

    # Events without frames

    def _compose(self, event: Event) -> list[Json]:
        """Compose the choices of chunks, one each."""
        if isinstance(event, TierReported):
            self._tier = {"service_tier": event.tier}
            self._header = self._header and {**self._header, **self._tier}
            return []
        announced = self._start(event)
        if isinstance(event, UsageReported):
            self._usage = event.usage
        if (lane := event.lane) is None:
            return announced
        if self._echo is None:
            return self._get_choice(lane).write(event)
        announced += self._announce(lane)
        choice = self._choices.get(lane)
        return announced if choice is None else announced + choice.write(event)

    def _start(self, event: Event) -> list[Json]:
        """Make the header of the first event, whatever that is where another API is translated."""
        started = event if isinstance(event, ResponseStarted) else None
        if self._header or (started is None and self._echo is None):
            return []
        said, echo = started or ResponseStarted(None, None, "", "", 0), self._echo
        given, created, model = said.id, said.created, said.model
        if echo is not None:
            given, created = self._mint_id("chatcmpl-"), created or int(echo.now())
            model = model or string(echo.body.get("model"))
        header = {"id": given, "object": CHUNK_OBJECT}
        self._header = {**header, "created": created, "model": model, **self._tier}
        return [] if echo is None else self._announce(0)

    def _announce(self, lane: int) -> list[Json]:
        """Announce choices in order of their index: strict clients fail otherwise."""
        announced: list[Json] = []
        for number in range(len(self._choices), min(lane + 1, MAX_CHOICES)):
            self._get_choice(number)
            delta = {"role": "assistant", "content": ""}
            announced.append({"index": number, "delta": delta, "finish_reason": None})
        return announced

    def _get_choice(self, lane: int) -> ChoiceWriter:
        if lane not in self._choices:
            self._choices[lane] = ChoiceWriter(
                lane,
                self._display,
                self._echo,
                self._mint_id,
                limit=self._limit,
                is_whole=self._sums is not None,
            )
        return self._choices[lane]

    def _write_error(self, error: ErrorDetail) -> bytes:
        self._error = error
        return encode_error(error)

    def _write_end(self, event: ResponseEnded) -> bytes:
        """Write the end: an error unless one is written already, or the usage and `[DONE]`."""
        opening = self._encode(self._compose(event))
        error = failure_of(event) if self._error is None else event.error
        if error is not None:
            return opening + encode_error(error)
        if not event.ok:
            return opening
        if self._includes_usage:
            chunk = {**self._header, "choices": [], **self._write_usage(event)}
            opening += sse.encode_frame(dumps(chunk))
        return opening + DONE_FRAME

    def _write_usage(self, end: ResponseEnded) -> Json:
        fields: Json = {}
        tokens, merged = end.usage or self._usage, self._display.merge_usage
        CHAT_USAGE.write_with_share(fields, tokens, end.share, merged=merged)
        return fields

    def _encode(self, choices: list[Json]) -> bytes:
        """Encode chunks, one for each of these choices."""
        return b"".join(
            encode_chunk(self._wrap(choice), obfuscate=self._display.obfuscate)
            for choice in choices
        )

    def _write_texts(self, choice: ChoiceWriter, place: TextPlace, texts: list[str]) -> bytes:
        """Write chunks that each add a text to a choice."""
        frame = self._frames.get((choice.lane, place))
        if frame is None or self._frames_header is not self._header:
            frame = self._make_frame(choice, place)
        write = frame.write_obfuscated if self._display.obfuscate else frame.write
        return b"".join(map(write, texts))

    def _make_frame(self, choice: ChoiceWriter, place: TextPlace) -> DeltaFrame:
        if self._frames_header is not self._header or len(self._frames) == MAX_FRAMES:
            self._frames, self._frames_header = {}, self._header
        delta = choice.build_delta(place, HOLE)
        chunk = self._wrap({"index": choice.lane, "delta": delta, "finish_reason": None})
        (value,) = delta.values()
        overhead = -len('""') if value is HOLE else len(dumps(value)) - len(dumps(HOLE))
        frame = self._frames[choice.lane, place] = DeltaFrame(chunk, overhead=overhead)
        return frame

    def _wrap(self, choice: Json) -> Json:
        last: Json = {"usage": None} if self._includes_usage else {}
        return {**self._header, "choices": [choice], **last}

    # A whole completion

    def _patch_whole(self, end: ResponseEnded) -> Json | None:
        """Patch upstream's body; return None if it goes out as it is."""
        completion = parse_object(end.frame or b"", loads_exact) if end.ok else None
        if completion is None:
            return None
        for choice in objects(completion.get("choices")):
            lane = get_index(choice)
            summary = end.summaries.get((lane, REASONING_ITEM), NO_SUMMARY)
            rewrite_choice(choice, summary, self._profile, self._display)
            self._attribute_calls(choice, summary)
            if lane in self._recorded_turns:
                self._add_envelope(choice["message"], self._recorded_turns[lane])
        CHAT_USAGE.add_share(completion, end.share, merged=self._display.merge_usage)
        return completion

    def _attribute_calls(self, choice: Json, summary: ItemSummary) -> None:
        limit, message = self._display.attribution_limit, choice.get("message")
        if limit is not None and isinstance(message, dict):
            fields = ReasoningFields(self._display).names
            choice["message"] = attribute_message(
                message, self._display, fields, summary.parts, limit
            )

    def _add_envelope(self, message: Json, turn: RecordedTurn) -> None:
        name, seal = self._display.envelope_field, self._display.seal
        if seal is not None and (blob := seal(make_envelope(turn))):
            given = entries(message.get(name))
            message[name] = [*given, make_entry(blob, name, next_index(given))]

    def _add_to_sums(self, event: Event) -> None:
        sums = self._sums = self._sums or {}
        for choice in self._compose(event):
            sums.setdefault(choice["index"], _ChoiceSum()).add(choice)

    def _fold_whole(self, end: ResponseEnded) -> Json:
        self._add_to_sums(end)
        choices = [added.as_dict(index) for index, added in (self._sums or {}).items()]
        completion = {**self._header, "object": "chat.completion", "choices": choices}
        return {**completion, **self._write_usage(end)}


def _move_alike(event: ReasoningDelta, frame: bytes, field: str) -> bytes | None:
    """Return what goes out for reasoning that moves to a field as others of its pattern did; None
    if it has to be parsed."""
    alike, run = event.alike, event.run
    if alike is None or alike.write is None or alike.field != field:
        return None
    write, start = alike.write, alike.text_start or 0
    if run is None:
        return write(frame, event.text, start)
    moved = [
        write(one or b"", said, start) for said, one in zip(run.texts, run.frames, strict=True)
    ]
    return None if None in moved else b"".join(filter(None, moved))


# One choice


class ChoiceWriter:
    """Write events that carry no frame as deltas of one choice.

    Summaries are written here for every client; raw reasoning that moves to another field, too; the
    answer and opaque state only where upstream speaks another API, as `echo` tells. Then at most
    `limit` characters of arguments and sources may be held.
    """

    def __init__(
        self,
        lane: int,
        display: Display,
        echo: RequestEcho | None,
        mint_id: MintId,
        *,
        limit: int,
        is_whole: bool,
    ) -> None:
        self.lane = lane
        self._display = display
        self._tools: Mapping[str, Tool] = {} if echo is None else echo.tools
        self._call_ids = CallIds("call_", mint_id)
        self._sealing = ChatSealing(display.seal, limit) if echo and display.seal else None
        self.remaining = limit  # characters of arguments and sources that may still be held
        self.reasoning = ReasoningFields(display)
        self._blocks = ThinkingBlocks(with_text=is_whole)
        self._calls: dict[int, _WrittenCall] = {}
        self._last_message: int | None = None
        self._separator_count = 0  # between messages of the answer
        self._annotations: list[Json] = []
        self._images: list[Json] = []
        self._error_written = False

    def write(self, event: Event) -> list[Json]:
        added = self.add_text(event)
        if added is not None:
            place, text = added
            return [self._wrap(self.build_delta(place, text))] if text else []
        if self._sealing is not None:
            self._sealing.add(event)
        write = self._WRITERS.get(type(event))
        return [] if write is None else write(self, event)

    # Deltas that only add to one text, as nearly all do

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event of which only text is written, if anything; return where, and what.

        Return None for any other, which is not taken.
        """
        add = self._ADDERS.get(type(event))
        return None if add is None else add(self, event)

    def build_delta(self, place: TextPlace, text: Any) -> Json:
        """Return a delta that adds a text in its place."""
        if isinstance(place, str):
            return {place: text}
        return {"tool_calls": [{"index": place, **self._calls[place].fragment(text)}]}

    def _add_content(self, event: ContentDelta) -> AddedText | None:
        if event.logprobs or not event.text:
            return None
        text = self._separate(event)
        if self._sealing is not None:
            self._sealing.add_content(text)
        return "content", text

    def _add_arguments(self, event: ToolCallDelta) -> AddedText | None:
        call = self._calls.get(event.call_index)
        if call is None or call.custom_tool is not None:
            return None
        if self._sealing is not None:
            self._sealing.add_answer(self.build_delta(event.call_index, event.arguments))
        return event.call_index, event.arguments

    def _add_summary(self, event: SummaryTextDelta) -> AddedText | None:
        if self._display.add_details:
            return None
        return self.reasoning.add_summary(event.item, event.index, event.text)

    def _add_raw(self, event: ReasoningDelta) -> AddedText | None:
        is_shown = self._display.show_raw and event.text
        if is_shown and self._display.add_details:
            return None
        if self._sealing is not None:
            self._sealing.add(event)
        if not is_shown:
            return NOTHING
        self._blocks.add_raw(event.text)
        return self.reasoning.add_raw(event.item, event.text)

    _ADDERS: ClassVar[dict[type[Event], _AddText]] = {
        ContentDelta: _add_content,
        ToolCallDelta: _add_arguments,
        SummaryTextDelta: _add_summary,
        ReasoningDelta: _add_raw,
    }

    # Upstream's reasoning and its summary, where they are shown, and opaque state

    def _write_summary(self, event: SummaryTextDelta) -> list[Json]:
        return [self._wrap(self.reasoning.build_summary(event.item, event.index, event.text))]

    def _write_raw(self, event: ReasoningDelta) -> list[Json]:
        self._blocks.add_raw(event.text)
        return [self._wrap(self.reasoning.build_raw(event.item, event.text))]

    def _write_native(self, event: NativeSummary) -> list[Json]:
        if not (self._display.show_summary and event.text):
            return []
        delta = self.reasoning.build_summary(event.item, event.index, event.text)
        return [self._wrap({**delta, **self._blocks.add_summary(event.index, event.text)})]

    def _write_state(self, event: ProviderState) -> list[Json]:
        return [] if event.withheld else [self._wrap(self._blocks.add_state(event))]

    def _start_stretch(self, event: ReasoningStarted) -> list[Json]:
        self.reasoning.choose(event.field)
        return []

    def _wrap(self, delta: Json) -> Json:
        return {"index": self.lane, "delta": delta, "finish_reason": None}

    def _end_stretch(self, event: ReasoningEnded) -> list[Json]:
        """End a stretch; report, once, why there is no summary, before the answer is released."""
        self._blocks.close()
        error = event.summary.error
        if error is None or self._error_written:
            return []
        self._error_written = True
        return [self._wrap({"summary_error": error.as_dict()})]

    def _finish(self, event: Finished) -> list[Json]:
        choices = [*self._write_held_calls(), *self._write_lists(event)]
        if self._sealing is not None:
            choices += self._write_blob(self._sealing.seal_all())
        return [*choices, {"index": self.lane, "delta": {}, "finish_reason": event.reason}]

    # The answer

    def _wrap_answer(self, delta: Json) -> Json:
        if self._sealing is not None:
            self._sealing.add_answer(delta)
        return self._wrap(delta)

    def _write_content(self, event: ContentDelta) -> list[Json]:
        return [_add_logprobs(self._wrap_answer({"content": self._separate(event)}), event)]

    def _separate(self, event: ContentDelta) -> str:
        """Return a piece of the answer; a blank line separates several messages of upstream's."""
        is_new = self._last_message not in (None, event.message_index)
        self._last_message = event.message_index
        if not is_new:
            return event.text
        self._separator_count += 1
        return PART_SEPARATOR + event.text

    def _write_refusal(self, event: RefusalDelta) -> list[Json]:
        return [_add_logprobs(self._wrap_answer({"refusal": event.refusal}), event)]

    def _hold_citation(self, event: CitationDelta) -> list[Json]:
        """Hold a source until the answer is whole: OpenAI's client adds lists of several deltas up
        only by an `index` in their entries, which annotations do not have."""
        self.remaining -= text_size(event)
        moved = len(PART_SEPARATOR) * self._separator_count
        self._annotations.append(write_annotation(event, moved))
        return []

    def _hold_image(self, event: ImageDelta) -> list[Json]:
        """Hold an image, in OpenRouter's form, for the same reason."""
        self.remaining -= text_size(event)
        url = write_data_url(event.media_type, event.data)
        self._images.append({"type": "image_url", "image_url": {"url": url}})
        return []

    def _write_lists(self, event: Finished) -> list[Json]:
        """Write the sources, the images, and what upstream ran itself."""
        fields = {
            "annotations": self._annotations,
            IMAGES: self._images,
            HOSTED_CALLS: list(event.hosted_calls),
        }
        written = {name: entries for name, entries in fields.items() if entries}
        return [self._wrap(written)] if written else []

    def _write_call(self, event: ToolCallDelta) -> list[Json]:
        call = self._calls.get(event.call_index)
        if call is None:
            return [self._wrap_answer({"tool_calls": [self._start_call(event)]})]
        self._hold_arguments(call, event.arguments)
        return []

    def _start_call(self, event: ToolCallDelta) -> Json:
        tool = self._tools.get(event.name)
        custom = event.custom or (tool is not None and tool.kind == "custom")
        call = self._calls[event.call_index] = _WrittenCall("custom" if custom else "function")
        text = event.arguments
        if custom and not event.custom:
            call.custom_tool, text = tool, ""
            self._hold_arguments(call, event.arguments)
        name = tool.client_name if tool is not None and tool.client_name else event.name
        begun: Json = {
            "index": event.call_index,
            "id": self._call_ids.take(event.id),
            "type": call.kind,
            call.kind: {"name": name, ARGUMENTS_FIELDS[call.kind]: text},
        }
        return attribute_call(begun, event.extra, begun["id"])

    def _hold_arguments(self, call: _WrittenCall, arguments: str) -> None:
        self.remaining -= len(arguments)
        call.held_arguments.append(arguments)

    def _write_held_calls(self) -> list[Json]:
        """Write the input of the custom tools' calls, whose arguments are whole now."""
        choices = []
        for number, call in self._calls.items():
            if call.custom_tool is not None:
                text = unwrap_free_text(call.custom_tool, "".join(call.held_arguments))
                choices.append(self._wrap_answer(self.build_delta(number, text)))
        return choices

    # The envelope

    def _write_recorded(self, event: TurnRecorded) -> list[Json]:
        turn, seal = event.turn, self._display.seal
        next_free = next_index(list_visible_entries(turn, self._display))
        return [] if seal is None else self._write_blob(seal(make_envelope(turn)), next_free)

    def _write_blob(self, blob: str, next_free: int = 0) -> list[Json]:
        """Write the blob with which the reasoning comes back unchanged, if there is one.

        `next_free` is the index free after upstream's entries in its list.
        """
        name = self._display.envelope_field
        written = self.reasoning.count_entries(name)
        index = max(next_free, self._blocks.next_index if name == "thinking_blocks" else written)
        return [self._wrap({name: [make_entry(blob, name, index)]})] if blob else []

    _WRITERS: ClassVar[dict[type[Event], _Write]] = {
        ContentDelta: _write_content,
        RefusalDelta: _write_refusal,
        ToolCallDelta: _write_call,
        CitationDelta: _hold_citation,
        ImageDelta: _hold_image,
        SummaryTextDelta: _write_summary,
        ReasoningStarted: _start_stretch,
        ReasoningDelta: _write_raw,
        NativeSummary: _write_native,
        ProviderState: _write_state,
        ReasoningEnded: _end_stretch,
        TurnRecorded: _write_recorded,
        Finished: _finish,
    }


def _add_logprobs(choice: Json, event: ContentDelta) -> Json:
    """Return the choice of a delta with the event's log probabilities, if it has any."""
    logprobs = complete_logprobs(event.logprobs) if event.logprobs else None
    if not logprobs:
        return choice
    name = next(iter(choice["delta"]))
    fields = {"logprobs": {"content": None, "refusal": None, name: logprobs}}
    return {"index": choice["index"], "delta": choice["delta"], **fields, "finish_reason": None}


@dataclass(slots=True)
class _WrittenCall:
    kind: str
    custom_tool: Tool | None = None  # a custom tool, which upstream was offered as a function
    held_arguments: list[str] = field(default_factory=list)  # held until they are whole

    def fragment(self, text: str) -> Json:
        return {self.kind: {ARGUMENTS_FIELDS[self.kind]: text}}


class ReasoningFields:
    """Build the fields of one choice's deltas that hold reasoning or a summary.

    A blank line separates the parts of a summary, and the reasoning of several items that goes into
    one field.
    """

    def __init__(self, display: Display, upstream: str = "") -> None:
        self._display = display
        self._last_item: int | None = None
        self._last_part: tuple[int, int] | None = None
        self._last_index = -1
        self.choose(upstream)

    def choose(self, upstream: str) -> None:
        """Choose the fields by the display, and by that in which upstream puts its reasoning."""
        display = self._display
        stands_alone = display.native or (display.is_plain and upstream)
        with_summary = display.show_summary and not stands_alone
        raw_field = RAW_FIELD if with_summary else upstream or DEFAULT_FIELD
        summary_field = DEFAULT_FIELD if display.show_raw else upstream or DEFAULT_FIELD
        self.raw_field = raw_field if display.raw_field == "auto" else display.raw_field
        chosen = display.summary_field
        self.summary_field = summary_field if chosen == "auto" else chosen
        self.keeps_raw = self.raw_field == upstream and not display.add_details
        """Raw reasoning is shown as upstream writes it."""

    @property
    def names(self) -> tuple[str, str]:
        """The fields of raw reasoning and of a summary beside it."""
        return self.raw_field, self.summary_field

    def count_entries(self, name: ListField) -> int:
        """Return how many entries of a list Abridge has written, after reasoning."""
        counted = self._display.add_details and name == "reasoning_details"
        return self._display.show_raw + self._last_index + 1 if counted else 0

    def add_raw(self, item: int, text: str) -> tuple[str, str]:
        """Return the field and the text for a piece of an item's reasoning."""
        is_new = self._last_item not in (None, item)
        self._last_item = item
        return self.raw_field, PART_SEPARATOR + text if is_new else text

    def add_summary(self, item: int, index: int, text: str) -> tuple[str, str]:
        """Return the field and the text for a piece of a summary part of an item."""
        if self._last_part != (item, index):
            text = text if self._last_part is None else PART_SEPARATOR + text
            self._last_part = item, index
            self._last_index += 1
        return self.summary_field, text

    def build_raw(self, item: int, text: str) -> Json:
        """Build the delta for a piece of an item's reasoning."""
        name, written = self.add_raw(item, text)
        delta: Json = {name: written}
        if self._display.add_details:
            key = "summary" if self._display.native else "text"
            delta["reasoning_details"] = [{"type": f"reasoning.{key}", key: written, "index": 0}]
        return delta

    def build_summary(self, item: int, index: int, text: str) -> Json:
        """Build the delta for a piece of a summary part of an item."""
        name, written = self.add_summary(item, index, text)
        delta: Json = {name: written}
        if self._display.add_details:
            number = self._last_index + self._display.show_raw
            detail = {"type": "reasoning.summary", "summary": text, "index": number}
            delta["reasoning_details"] = [detail]
        return delta


class ThinkingBlocks:
    """Write the thinking blocks of one choice, in which clients keep the state upstream wants back.

    They have LiteLLM's shape: `{"type": "thinking", "thinking", "signature"}` and `{"type":
    "redacted_thinking", "data"}`; pieces of one block have the same `index`.

    A block without a signature holds a summary that upstream made; next to shown raw reasoning none
    is written. While raw reasoning streams it is not known if it will be signed, so the block of a
    signature has no text; with `with_text` it has the text, too.
    """

    def __init__(self, *, with_text: bool) -> None:
        self._with_text = with_text
        self._index = 0
        self._raw_pieces: list[str] | None = None
        self._summary_part: int | None = None

    @property
    def next_index(self) -> int:
        """The index of the next block."""
        return self._index + (self._summary_part is not None)

    def add_raw(self, text: str) -> None:
        """Add a piece of raw reasoning that is shown."""
        self._raw_pieces = self._raw_pieces or []
        if self._with_text:
            self._raw_pieces.append(text)

    def add_summary(self, part: int, text: str) -> Json:
        """Write a piece of upstream's summary; empty if raw reasoning is shown."""
        if self._raw_pieces is not None:
            return {}
        separator = PART_SEPARATOR if self._summary_part not in (None, part) else ""
        self._summary_part = part
        return _wrap_block({"type": "thinking", "thinking": separator + text, "index": self._index})

    def add_state(self, event: ProviderState) -> Json:
        if not event.signs:
            self.close()
            block = {"type": "redacted_thinking", "data": event.data, "index": self._index}
        else:
            text = "".join(self._raw_pieces or ())
            signed = {"thinking": text, "signature": event.data, "index": self._index}
            block = {"type": "thinking", **signed}
        self._index += 1
        self._raw_pieces = self._summary_part = None
        return _wrap_block(block)

    def close(self) -> None:
        """End a stretch."""
        self._index += self._summary_part is not None
        self._raw_pieces = self._summary_part = None


def _wrap_block(block: Json) -> Json:
    return {"thinking_blocks": [block]}


# A whole completion


OTHER_FIELDS = ("summary_error", "annotations", IMAGES, HOSTED_CALLS)
"""Fields of a message that come whole, in one delta."""


@dataclass(slots=True)
class _ChoiceSum:
    """A choice of a completion, added up from the choices of its chunks."""

    message: ChatMessageAccumulator = field(
        default_factory=lambda: ChatMessageAccumulator(sys.maxsize)
    )
    other_fields: Json = field(default_factory=dict)
    logprobs: dict[str, list[Json]] = field(default_factory=dict)
    finish: str = "stop"

    def add(self, choice: Json) -> None:
        delta = choice["delta"]
        self.message.add(delta)
        self.other_fields.update({key: delta[key] for key in OTHER_FIELDS if key in delta})
        for name, told in (choice.get("logprobs") or {}).items():
            if told:
                self.logprobs.setdefault(name, []).extend(told)
        self.finish = choice["finish_reason"] or self.finish

    def as_dict(self, index: int) -> Json:
        message = {"role": "assistant", "content": None, "refusal": None}
        logprobs = {name: self.logprobs.get(name) for name in ("content", "refusal")}
        return {
            "index": index,
            "message": {**message, **self.message.as_dict(), **self.other_fields},
            "logprobs": logprobs if self.logprobs else None,
            "finish_reason": self.finish,
        }


def rewrite_choice(choice: Json, summary: ItemSummary, profile: Profile, display: Display) -> None:
    """Put a summary into a choice of upstream's, and remove what its client is not to see.

    The rules are those of a stream.
    """
    message, trusts = choice.get("message"), trusts_summaries(profile, display)
    if not isinstance(message, dict) or display.is_plain:
        return
    found = find_reasoning(message, trusts_summaries=trusts)
    if found is None:
        return
    if not (found.native and display.show_summary):
        choice["message"] = _rewrite_message(message, found, summary, display)
    elif not display.show_raw:
        choice["message"] = {**without_reasoning(message), **extract_native_summary(message)}


def _rewrite_message(
    message: Json, found: FoundReasoning, summary: ItemSummary, display: Display
) -> Json:
    fields = ReasoningFields(display, found.field)
    if found.native or not display.show_raw:
        message = without_reasoning(message)
    elif fields.raw_field != found.field or display.show_summary:
        message = replace_reasoning(message, fields.build_raw(REASONING_ITEM, found.text))
    parts = [
        fields.build_summary(REASONING_ITEM, part, text) for part, text in enumerate(summary.parts)
    ]
    if parts:
        message[fields.summary_field] = "".join(part[fields.summary_field] for part in parts)
    if details := [entry for part in parts for entry in part.get("reasoning_details", ())]:
        message["reasoning_details"] = objects(message.get("reasoning_details")) + details
    if summary.error is not None:
        message["summary_error"] = summary.error.as_dict()
    return message
