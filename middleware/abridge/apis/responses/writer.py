"""Write the Responses API: events as a stream, or into a whole response.

An event goes out in one of three ways. With its frame, and only its number spliced in, as nearly
all do whose upstream speaks this API; patched, where more is in the frame than is shown; or
composed, where there is none: summaries always, and everything of an upstream that speaks another
API.

The writer owns `sequence_number`, dense from 0. Ids and `output_index` are the reader's where it
has frames, else they are made here: one item is open at a time, and every event belongs to it or
closes it.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from io import StringIO
from itertools import count, starmap
from typing import Any, ClassVar, Literal, TypeAlias

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.frames import HOLE, DeltaFrame, parse_frame
from abridge.apis.json import as_object, dumps, entries, loads_exact, objects, parse_object, string
from abridge.apis.obfuscation import obfuscate_event
from abridge.apis.openai import CallIds, MintId, complete_logprobs, failure_body, mint_id
from abridge.apis.protocols import RequestEcho
from abridge.apis.responses.errors import as_failed
from abridge.apis.responses.history import places_in_output
from abridge.apis.responses.items import (
    ANNOTATION_ADDED,
    ARGUMENTS,
    INPUT,
    ITEM_ADDED,
    ITEM_DONE,
    REASONING,
    REFUSAL,
    SUMMARY,
    TEXT,
    ContentKind,
    Stage,
    id_prefix,
)
from abridge.apis.responses.messages import IMAGE_CALL
from abridge.apis.responses.reasoning import (
    as_sent,
    as_shown,
    is_reasoning,
    raw_parts,
    raw_text,
    summary_parts,
    without_raw_content,
    without_reasoning,
)
from abridge.apis.responses.tools import (
    BUILT_IN_TOOLS,
    ItemAttributor,
    attribute_response,
    write_call,
)
from abridge.apis.shapes import is_withheld
from abridge.apis.translated_answer import NO_TIER, NOTHING, AddedText, TranslatedAnswer, WireEvents
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.events import (
    LANE,
    NO_SUMMARY,
    Alike,
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    Event,
    ImageDelta,
    NativeSummary,
    PartEnded,
    PartStarted,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ReasoningTextEnded,
    RefusalDelta,
    ResponseEnded,
    ResponseStarted,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
    ToolCallDelta,
    split_run,
    split_text,
)
from abridge.core.model_request import SIGNATURE_PREFIX, ReasoningPart, Tool
from abridge.stages.sealing import Sealing

WRITER_FIELDS = frozenset({"type", "sequence_number"})
"""Fields of an event that the writer sets."""

_NUMBER_KEY = b'"sequence_number"'

_RESPONSE_KEY, _RAW_PART_TYPE = b'"response"', b'"reasoning_text"'

_NUMBER_PATTERN = re.compile(rb"(%b\s*+:\s*+)(\d++)(?=\s*+[,}])" % _NUMBER_KEY)

_PART_INDEX_KEY = b'"summary_index"'

_PART_INDEX_PATTERN = re.compile(_PART_INDEX_KEY + rb"(\s*:\s*)\d+")

_CALL_NEEDLE = b'"call_id"'

_CALL_SUFFIX = b'_call"'

MAX_BLOB_CHARS = 1 << 22
"""Characters of blobs that are stored until a response's end. Items after that get no blob."""

INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}

PARAM_DEFAULTS: Json = {
    **dict.fromkeys(("instructions", "max_output_tokens", "max_tool_calls")),
    "metadata": {},
    "parallel_tool_calls": True,
    **dict.fromkeys(("previous_response_id", "prompt_cache_key", "safety_identifier")),
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "truncation": "disabled",
}
"""Values of the parameters that the request does not set. Which of them a response must have:
openresponses, `ResponseResource`."""

_Change: TypeAlias = Callable[["ResponsesWriter", Any, bytes], bytes]


class ResponsesWriter(TranslatedAnswer):
    """Write one response. See the protocol `Writer`.

    Without an `echo`, upstream speaks this API: the events that tell of the response and its items
    have frames. With one, all is composed, and since the last event of a stream repeats the whole
    response, a stream fails once it exceeds `limit` characters.
    """

    def __init__(
        self,
        display: Display,
        echo: RequestEcho | None = None,
        limit: int = sys.maxsize,
        mint_id: MintId = mint_id,
    ) -> None:
        self.final_response: Json | None = None
        self._output = WrittenOutput(display, {} if echo is None else echo.tools, mint_id)
        super().__init__(self._output, sys.maxsize if echo is None else limit)
        self._display = display
        self._shows_raw = display.show_raw
        self._obfuscates = display.obfuscate
        self._composes = echo is not None
        self._echo = echo or RequestEcho()
        self._mint_id = mint_id
        self._has_started = not self._composes
        self._numbers = count()
        self._is_numbered: bool | None = None  # upstream numbers its events; None until one came
        self._numbered: Alike | None = None  # of frames that need nothing but a number
        self._number_key = _NUMBER_KEY  # as it is spelled in those
        self._beginning: bytes | None = None  # the frame of the last event that began the response
        self._response: Json | None = None  # a composed one, as its last lifecycle event has it
        self._item_ids: dict[int, str] = {}  # of upstream's reasoning items, by output index
        self._blobs: dict[int, str] = {}
        self._blob_room = MAX_BLOB_CHARS

    def write(self, event: Event) -> bytes:
        frame = event.frame
        if frame is not None and not self._composes:
            if type(event) is ReasoningDelta and not self._shows_raw:
                return b""
            if event.alike is not None and event.alike is self._numbered:
                if event.run is None:
                    return self._splice_number(frame)
                return b"".join(map(self._splice_number, filter(None, event.run.frames)))
            if event.run is not None:
                return b"".join(map(self.write, split_run(event, event.run)))
            change = self._CHANGES.get(type(event))
            return change(self, event, frame) if change else self._renumber(frame, event.alike)
        added = self.add_text(event)
        if added is None:
            if event.run is not None:
                return b"".join(map(self.write, split_run(event, event.run)))
            return b"".join(starmap(self._encode, self.compose(event)))
        delta, text = added
        if delta is None:
            return b""
        write = delta.write_obfuscated if self._obfuscates else delta.write
        if event.run is None:
            return write(text, b"%d" % next(self._numbers))
        told = split_text(event, text)
        return b"".join([write(one, b"%d" % next(self._numbers)) for one in told])

    def keep_alive(self, beside: Json | None = None) -> bytes:
        """Repeat the response so far, which every client accepts and Codex counts as activity."""
        response = None if self._is_over else self._response
        if not self._composes:
            given = parse_frame(self._beginning).get("response")
            response = snapshot(given, self._display) if isinstance(given, dict) else None
        if response is None:
            return b""
        return self._encode("response.in_progress", {"response": response, **(beside or {})})

    def note(self, event: Event) -> None:
        """Take an event. Where upstream speaks this API, the end brings the whole body."""
        if self._composes:
            self._translate(event)

    def write_whole(self, end: ResponseEnded) -> bytes:
        if self._composes:
            self.note(end)
            response = self._response or {}
        else:
            body = parse_object(end.frame or b"", loads_exact) if end.ok else None
            if body is None:
                return end.frame or b""
            response = self._show_final(body, end)
        if end.error is None or not end.ok:
            return dumps(response)
        return dumps(failure_body(end.error, as_failed(response, end.error)))

    def _encode(self, event_type: str, fields: Json, number: int | None = None) -> bytes:
        number = next(self._numbers) if number is None else number
        event = {"type": event_type, "sequence_number": number, **fields}
        if self._obfuscates and "delta" in fields:
            event = obfuscate_event(event)
        return sse.encode_frame(dumps(event), event_type)

    # Frames

    def _write_native(self, event: NativeSummary, frame: bytes) -> bytes:
        if not self._display.show_summary:
            return b""
        return self._renumber(with_part_index(frame, event.index))

    def _write_other(self, _: Event, frame: bytes) -> bytes:
        """Pass on a frame, which may add a call."""
        if self._display.seal is not None and _CALL_NEEDLE in frame:
            self._output.note_call(parse_frame(frame).get("item"))
        return self._renumber(frame)

    def _write_start(self, _: ResponseStarted, frame: bytes) -> bytes:
        self._beginning = frame
        return self._renumber(frame)

    def _write_item_start(self, event: ReasoningStarted, frame: bytes) -> bytes:
        added = parse_frame(frame)
        item = added.get("item")
        if not isinstance(item, dict):
            return b""
        self._item_ids[event.item] = string(item.get("id"))
        self._output.open_reasoning(self._item_ids[event.item], event.item)
        shown = item
        if not self._shows_raw:
            shown = without_reasoning(item, self._display)
            shown.pop("encrypted_content", None)
        if item.get("summary") and not self._display.show_summary:
            shown = {**shown, "summary": []}
        return self._renumber(frame) if shown is item else self._rewrite({**added, "item": shown})

    def _write_item_end(self, event: ReasoningEnded, frame: bytes) -> bytes:
        done = parse_frame(frame)
        item = done.get("item")
        if not isinstance(item, dict):
            return b""
        shown = as_shown(item, event.summary, self._display, self._seal_item(event.item, item))
        self._output.attribute(shown)
        return self._renumber(frame) if shown == item else self._rewrite({**done, "item": shown})

    def _write_part_end(self, event: PartEnded, frame: bytes) -> bytes:
        """Write the end of an item of the answer, of a call with its attribution."""
        if self._display.attribution_limit is not None and _CALL_SUFFIX in frame:
            done = parse_frame(frame)
            attributed = {**done, "item": self._output.attribute(done.get("item"))}
            if attributed != done:
                self._output.note_call(done.get("item"))
                return self._rewrite(attributed)
        return self._write_other(event, frame)

    def _write_end(self, event: ResponseEnded, frame: bytes) -> bytes:
        ended = parse_frame(frame)
        response = ended.get("response")
        if not isinstance(response, dict):
            return self._renumber(frame)
        shown = self._show_final(response, event)
        if event.ok and event.error is not None:
            failed = as_failed(shown, event.error)
            return self._rewrite({"type": "response.failed", "response": failed})
        if shown == response:
            return self._renumber(frame)
        return self._rewrite({**ended, "response": shown})

    _CHANGES: ClassVar[dict[type[Event], _Change]] = {
        ReasoningStarted: _write_item_start,
        NativeSummary: _write_native,
        ReasoningEnded: _write_item_end,
        **dict.fromkeys((Passthrough, PartStarted), _write_other),
        PartEnded: _write_part_end,
        ResponseStarted: _write_start,
        ResponseEnded: _write_end,
    }
    """Returns the bytes in which an event with a frame goes out; any other is only renumbered."""

    def _renumber(self, frame: bytes, alike: Alike | None = None) -> bytes:
        """Give a frame the next number, spliced in where it can only be the event's own. What is
        found of one frame holds for all that are alike.

        `rfind` takes less than half of the time of `in`.
        """
        is_plain = frame.rfind(_RESPONSE_KEY) < 0
        is_plain = is_plain and (self._shows_raw or frame.rfind(_RAW_PART_TYPE) < 0)
        if self._is_numbered and is_plain and frame.count(_NUMBER_KEY) == 1:
            found = _NUMBER_PATTERN.search(frame)
            if found is not None and _is_own(found):
                self._numbered, self._number_key = alike, found[1]
                start, end = found.span(2)
                return b"%b%d%b" % (frame[:start], next(self._numbers), frame[end:])
        data = sse.frame_data(frame)
        if data is None or not data.startswith(b"{"):
            return frame
        event = parse_object(data, loads_exact)
        return frame if event is None else self._write_parsed(event, frame)

    def _splice_number(self, frame: bytes) -> bytes:
        """Give a frame the next number that needs nothing else."""
        before, key, after = frame.rpartition(self._number_key)
        return b"%b%b%d" % (before, key, next(self._numbers)) + after.lstrip(b"0123456789")

    def _write_parsed(self, event: Json, frame: bytes) -> bytes:
        """Write a frame that had to be parsed. Upstream numbers all of its events or none."""
        given, number = event.get("sequence_number"), next(self._numbers)
        if self._is_numbered is None:
            self._is_numbered = isinstance(given, int)
        shown = self._hide_raw(event)
        return frame if given == number and shown == event else self._rewrite(shown, number)

    def _hide_raw(self, event: Json) -> Json:
        """Return the event with no more reasoning in its response or item than is shown."""
        visible, response = event, event.get("response")
        if isinstance(response, dict):
            visible = {**visible, "response": snapshot(response, self._display)}
        if "item" in event:
            visible = {**visible, "item": without_raw_content(event["item"], self._display)}
        return visible

    def _rewrite(self, event: Json, number: int | None = None) -> bytes:
        fields = {key: value for key, value in event.items() if key not in WRITER_FIELDS}
        return self._encode(string(event.get("type")), fields, number)

    def _show_final(self, response: Json, end: ResponseEnded) -> Json:
        """Return upstream's final response: its items as they were shown, and all of the usage.

        Reasoning items are known by their ids, if they were streamed, others by their position.
        """
        output = response.get("output")
        places = list(places_in_output(entries(output)))
        by_id = {item_id: number for number, item_id in self._item_ids.items() if item_id}

        def show_item(place: int, item: Json) -> Json:
            position = -1 if self._item_ids.get(place) else place
            number = by_id.get(string(item.get("id")), position)
            summary = end.summaries.get((LANE, number), NO_SUMMARY)
            return as_shown(
                item, summary, self._display, self._seal_item(number, item, places[place])
            )

        shown = _show_response(response, self._display, show_item)
        if self._display.attribution_limit is not None:
            shown = attribute_response(shown, self._display.attribution_limit)
        RESPONSES_USAGE.add_share(shown, end.share, merged=self._display.merge_usage)
        self.final_response = shown
        return shown

    def _seal_item(self, output_index: int, item: Json, place: bytes | None = None) -> str:
        """Return the blob of upstream's item with this output index, or an empty string. It is
        sealed once, at its `place` in the response, or else after the last call that was noted.

        An item with only opaque state is not sealed where the client can return that as it is.
        """
        if self._display.seal is None or output_index < 0:
            return ""
        if output_index not in self._blobs and self._blob_room > 0 and self._needs_seal(item):
            item_id = string(item.get("id"))
            blob = self._output.sealing.seal([as_sent(item)], item_id, place)
            self._blob_room -= len(blob)
            self._blobs[output_index] = blob
        return self._blobs.get(output_index, "")

    def _needs_seal(self, item: Json) -> bool:
        state = item.get("encrypted_content")
        return bool(raw_text(item).strip()) or is_withheld(state, self._display)

    # A composed response

    def _start(self, event: ResponseStarted) -> WireEvents:
        self._response = self._new_response(event)
        fields = {"response": self._response}
        return [("response.created", fields), ("response.in_progress", fields)]

    def _new_response(self, started: ResponseStarted) -> Json:
        body, display = self._echo.body, self._display
        return {
            **new_response(body, started.created or int(self._echo.now()), self._mint_id("resp_")),
            "service_tier": self._tier,
            "store": self._echo.stored,
            "model": started.model or string(body.get("model")),
            "reasoning": {
                "effort": as_object(body.get("reasoning")).get("effort"),
                "summary": display.style if display.show_summary else None,
            },
        }

    def _finish(self, *, is_cut: bool) -> WireEvents:
        self._output.status = "incomplete" if is_cut else "completed"
        return super()._finish(is_cut=is_cut)

    def _end(self, event: ResponseEnded) -> WireEvents:
        if not self._composes:
            return []
        rest = self._finish(is_cut=not event.ok)
        self._is_over = True
        response = self._response = self.final_response = self._build_final(event)
        return [*rest, (f"response.{response['status']}", {"response": response})]

    def _build_final(self, event: ResponseEnded) -> Json:
        usage, merged = event.usage or self._usage, self._display.merge_usage
        said = {"service_tier": self._tier, "output": self._output.items}
        response = {**(self._response or {}), **said}
        RESPONSES_USAGE.write_with_share(response, usage, event.share, merged=merged)
        response |= self._other_fields("annotations", lambda cited: write_annotation(cited, 0, 0))
        if (error := self._failure(event)) is not None:
            return as_failed(response, error)
        if reason := INCOMPLETE_REASONS.get(self._finished.reason):
            details = {"reason": reason}
            return {**response, "status": "incomplete", "incomplete_details": details}
        completed = max(response["created_at"], int(self._echo.now()))
        return {**response, "status": "completed", "completed_at": completed}


def new_response(body: Json, created: int, response_id: str) -> Json:
    """Return the response to a request as it begins. It repeats the request as it is."""
    repeated = (*PARAM_DEFAULTS, "conversation")
    requested = {key: body[key] for key in repeated if body.get(key) is not None}
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        **dict.fromkeys(("completed_at", "error", "incomplete_details")),
        **PARAM_DEFAULTS,
        **requested,
        "background": False,
        "service_tier": NO_TIER,
        "store": False,
        "model": string(body.get("model")),
        "output": [],
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "text": {"format": {"type": "text"}, **as_object(body.get("text"))},
        "tools": [_fill_tool(tool) for tool in objects(body.get("tools"))],
        "usage": None,
    }


def _is_own(number: re.Match[bytes]) -> bool:
    """Return whether the only number in a frame is the event's own, not that of what is in it."""
    frame, (start, end) = number.string, number.span()
    is_outermost = frame.count(b"{", 0, start) == 1 or frame.count(b"}", end) == 1
    return is_outermost or "sequence_number" in parse_frame(frame)


def with_part_index(frame: bytes, index: int) -> bytes:
    """Return the frame of a native summary with this `summary_index`, which it mostly has."""
    if frame.count(_PART_INDEX_KEY) == 1 and b"%b:%d," % (_PART_INDEX_KEY, index) in frame:
        return frame
    return _PART_INDEX_PATTERN.sub(rb"%b\g<1>%d" % (_PART_INDEX_KEY, index), frame)


def snapshot(response: Json, display: Display) -> Json:
    """Return the response so far, with no more of its reasoning than is shown."""
    return _show_response(response, display, lambda _, item: as_shown(item, NO_SUMMARY, display))


def _show_response(
    response: Json, display: Display, show_item: Callable[[int, Json], Json]
) -> Json:
    """Return the response with its reasoning items as `show_item` returns them.

    `reasoning.summary` is the style in effect (openai-openapi, `Response.reasoning`).
    """
    shown: Json = {}
    reasoning, output = response.get("reasoning"), response.get("output")
    style = display.style if display.show_summary else None
    is_different = isinstance(reasoning, dict) and reasoning.get("summary") != style
    if isinstance(reasoning, dict) and is_different and not display.is_plain:
        shown["reasoning"] = {**reasoning, "summary": style}
    if isinstance(output, list):
        shown["output"] = [
            show_item(index, item) if is_reasoning(item) else without_raw_content(item, display)
            for index, item in enumerate(output)
        ]
    return {**response, **shown}


def _fill_tool(tool: Json) -> Json:
    """Return a function with all its fields. It is strict unless the request says otherwise."""
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": True, **tool}


# Items

ItemStatus: TypeAlias = Literal["completed", "incomplete"]

_Written = list[tuple[str, Json]]
"""Events of a stream, as `WireEvents`."""


class WrittenOutput:
    """Write the items of one response. `tools` are those offered to upstream, by name.

    Of upstream's items that have frames it knows the open reasoning item, whose summary it writes.
    """

    def __init__(self, display: Display, tools: Mapping[str, Tool], mint_id: MintId) -> None:
        self.items: list[Json] = []  # those that are done
        self.sealing = Sealing(display.seal, write_pieces, MAX_BLOB_CHARS)
        self._display = display
        self._tools = tools
        self._mint_id = mint_id
        self._call_ids = CallIds("call_", mint_id)
        self._open_item: WrittenItem | None = None
        self._text_end = 0  # characters of the answer's text in messages that are done
        self.status: ItemStatus = "completed"  # of the items that end now
        limit = display.attribution_limit
        self._attributor = None if limit is None else ItemAttributor(limit)

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event that only adds to the text of the open item, if there is one."""
        item = self._open_item
        return None if item is None else item.add_text(event)

    def attribute(self, item: Any) -> Any:
        """Take an item that is done; return it, with its attribution if it is a call."""
        return item if self._attributor is None else self._attributor.attribute(item)

    def note_call(self, item: Any) -> None:
        """Take a call of the response, to which the reasoning after it is bound."""
        if isinstance(item, dict) and "call_id" in item:
            self.sealing.note_call(string(item["call_id"]))

    def open_reasoning(self, item_id: str, index: int) -> None:
        """Open an item of upstream's, which has frames of its own but for its summary."""
        self._open_item = WrittenReasoning(
            item_id, index, self._display, self.sealing, has_frames=True
        )

    def write(self, event: Event) -> _Written:
        match event:
            case ContentDelta():
                return self._write_answer(event)
            case ReasoningStarted():
                return self.finish() + self._add_item(self._new_reasoning())
            case ReasoningEnded():
                return self._end_reasoning(event)
            case _ if isinstance(self._open_item, WrittenReasoning):
                return self._open_item.write(event)
        return []

    def _end_reasoning(self, event: ReasoningEnded) -> _Written:
        """End a stretch. Opaque state beyond what one item can hold goes in items of its own."""
        item = self._open_item
        if not isinstance(item, WrittenReasoning):
            return self.finish()
        item.error = event.summary.error
        ended = self.finish()
        for state in item.extra_states:
            ended += self._add_item(self._new_reasoning(state)) + self.finish()
        return ended

    def _new_reasoning(self, state: str | None = None) -> WrittenReasoning:
        id_, index = self._mint_id("rs_"), len(self.items)
        return WrittenReasoning(id_, index, self._display, self.sealing, state=state)

    # The answer

    def _write_answer(self, event: ContentDelta) -> _Written:
        """Write a piece into the open item it belongs to, or into a new one."""
        item, begun = self._open_item, _Written()
        if isinstance(event, ImageDelta):
            begun = self.finish()
            image = WrittenImage(self._mint_id("ig_"), len(self.items), event)
            return begun + self._add_item(image) + self.finish()
        if isinstance(event, ToolCallDelta):
            if not isinstance(item, WrittenCall) or item.number != event.call_index:
                begun = self.finish()
                tool = self._tools.get(event.name)
                item = WrittenCall(event, tool, len(self.items), self._mint_id, self._call_ids)
                begun += self._add_item(item)
            return begun + item.write(event.arguments) if event.arguments else begun
        if not isinstance(item, WrittenMessage) or item.number != event.message_index:
            begun = self.finish()
            number, index = event.message_index, len(self.items)
            item = WrittenMessage(self._mint_id("msg_"), index, number, self._text_end)
            begun += self._add_item(item)
        return begun + item.write(event)

    @property
    def has_open_text(self) -> bool:
        return self._open_text is not None

    def cite(self, citation: CitationDelta) -> _Written:
        part = self._open_text
        return [] if part is None else part.cite(citation)

    @property
    def _open_text(self) -> WrittenContent | None:
        item = self._open_item
        return item.open_text if isinstance(item, WrittenMessage) else None

    # Beginning and end of an item

    def _add_item(self, item: WrittenItem) -> _Written:
        self._open_item = item
        return [] if item.is_added_late else [item.tell(ITEM_ADDED, item.build_added())]

    def finish(self) -> _Written:
        """Finish the open item, if there is one."""
        item, self._open_item = self._open_item, None
        if item is None:
            return []
        late = [item.tell(ITEM_ADDED, item.build_added())] if item.is_added_late else []
        ended, done = item.end(), self.attribute(item.build_done(self.status))
        self.items.append(done)
        if isinstance(item, WrittenMessage):
            self._text_end = item.text_end
        self.note_call(done)
        return [*late, *ended, item.tell(ITEM_DONE, done)]


class WrittenContent:
    """Write one content of an item: a text or a refusal, which comes after so many characters of
    the answer, reasoning, a part of its summary, or what a call is for."""

    def __init__(self, kind: ContentKind, address: Json, before: int = 0) -> None:
        self.kind = kind
        self._address = address
        self._before = before
        self._buffer = StringIO()
        self._annotations: list[Json] = []
        self._logprobs: list[Json] = []
        self.is_open = False
        self.part: Json = {}  # as it ended

    @property
    def text(self) -> str:
        return self._buffer.getvalue()

    @property
    def text_end(self) -> int:
        """Return how many characters of the answer's text there are by its end."""
        return self._before + (self._buffer.tell() if self.kind is TEXT else 0)

    def begin(self) -> _Written:
        """Begin the content, unless it is open."""
        was_open, self.is_open = self.is_open, True
        return [] if was_open else [self._tell_part("added", self._build_part())]

    def _tell_part(self, stage: Stage, part: Json, **status: str) -> tuple[str, Json]:
        event_type = f"response.{self.kind.part_events}.{stage}"
        return event_type, {**self._address, "part": part, **status}

    def add_text(self, text: str) -> AddedText:
        """Add a text without log probabilities."""
        self._buffer.write(text)
        return self._frame, text

    @cached_property
    def _frame(self) -> DeltaFrame:
        head = {"type": self.kind.delta_type, "sequence_number": HOLE, **self._address}
        event = {**head, "delta": HOLE, **self.kind.extra_fields("delta", {})}
        return DeltaFrame(event, self.kind.delta_type)

    def write(self, text: str, logprobs: Sequence[Json] = ()) -> _Written:
        self._buffer.write(text)
        beside: Json = {}
        if self.kind is TEXT:
            self._logprobs += logprobs
            beside["logprobs"] = logprobs
        return [(self.kind.delta_type, {**self._address, "delta": text, **beside})]

    def cite(self, citation: CitationDelta) -> _Written:
        annotation = write_annotation(citation, self._before, self._buffer.tell())
        place = {"annotation_index": len(self._annotations)}
        self._annotations.append(annotation)
        return [(ANNOTATION_ADDED, {**self._address, **place, "annotation": annotation})]

    def end(self, **status: str) -> _Written:
        """End the content, if it is open."""
        if not self.is_open:
            return []
        self.is_open, part, kind = False, self._build_part(), self.kind
        self.part, text = part, {kind.text_field: part[kind.text_field]}
        beside = {"logprobs": part["logprobs"]} if kind is TEXT else {}
        done = (kind.done_type, {**self._address, **text, **beside})
        return [done, self._tell_part("done", part, **status)]

    def _build_part(self) -> Json:
        part = self.kind.build_part(self._buffer.getvalue())
        if self.kind is TEXT:
            part |= {"annotations": [*self._annotations], "logprobs": [*self._logprobs]}
        return part


class WrittenItem(ABC):
    """An item being written: it is added, streams its content, ends, and is done."""

    is_added_late = False  # the item can be added only when it ends

    def __init__(self, item_id: str, index: int) -> None:
        self.id = item_id
        self.index = index
        self.address: Json = {"item_id": item_id, "output_index": index}

    def tell(self, event_type: str, item: Json) -> tuple[str, Json]:
        """Return the event that begins or ends the item."""
        return event_type, {"output_index": self.index, "item": item}

    def add_text(self, _event: Event) -> AddedText | None:
        """Take an event that only adds to a text of this item; return None for any other."""
        return None

    @abstractmethod
    def build_added(self) -> Json:
        """Return the item at its beginning."""

    @abstractmethod
    def end(self) -> _Written:
        """Close what is open in the item."""

    @abstractmethod
    def build_done(self, status: ItemStatus) -> Json:
        """Return the item at its end."""


class WrittenMessage(WrittenItem):
    """Write one message, which comes after so many characters of the answer."""

    def __init__(self, item_id: str, index: int, number: int, before: int) -> None:
        super().__init__(item_id, index)
        self.number = number  # among upstream's messages
        self._before = before
        self._contents: list[WrittenContent] = []

    def build_added(self) -> Json:
        return self._build_item("in_progress", [])

    def add_text(self, event: Event) -> AddedText | None:
        if type(event) is not ContentDelta or event.logprobs or event.message_index != self.number:
            return None
        content = self.open_text
        return None if content is None else content.add_text(event.text)

    def write(self, event: ContentDelta) -> _Written:
        kind, text = TEXT, event.text
        if isinstance(event, RefusalDelta):
            kind, text = REFUSAL, event.refusal
        begun = _Written()
        if not self._contents or self._contents[-1].kind is not kind:
            address = {**self.address, "content_index": len(self._contents)}
            content = WrittenContent(kind, address, self.text_end)
            begun = self.end() + content.begin()
            self._contents.append(content)
        return begun + self._contents[-1].write(text, complete_logprobs(event.logprobs))

    @property
    def open_text(self) -> WrittenContent | None:
        """Return the content whose text goes on, if it is of the answer."""
        last = self._contents[-1] if self._contents else None
        return last if last is not None and last.kind is TEXT else None

    @property
    def text_end(self) -> int:
        """Return how many characters of the answer's text there are so far."""
        return self._contents[-1].text_end if self._contents else self._before

    def end(self) -> _Written:
        return self._contents[-1].end() if self._contents else []

    def build_done(self, status: ItemStatus) -> Json:
        return self._build_item(status, [content.part for content in self._contents])

    def _build_item(self, status: str, content: list[Json]) -> Json:
        head = {"id": self.id, "type": "message", "status": status, "role": "assistant"}
        return {**head, "content": content}


LATE_KINDS = ("tool_search", *BUILT_IN_TOOLS)
"""Kinds of tools whose calls have no events for their arguments."""


class WrittenCall(WrittenItem):
    """Write one call.

    Stream arguments as they come, unless the tool is offered to upstream as a function: then what
    they are for the client is known once they are whole.
    """

    def __init__(
        self,
        event: ToolCallDelta,
        tool: Tool | None,
        index: int,
        mint_id: MintId,
        call_ids: CallIds,
    ) -> None:
        if tool is None and event.custom:
            tool = Tool(event.name, "custom", client_name=event.name)
        kind = tool.kind if tool is not None else "function"
        item_type = "custom_tool_call" if kind == "custom" else f"{kind}_call"
        super().__init__(mint_id(id_prefix(item_type)), index)
        self.number = event.call_index  # among the calls of the answer
        self.is_added_late = kind in LATE_KINDS
        self._tool = tool
        self._takes_text = kind == "custom"
        self._streams = kind == "function" or (kind == "custom" and event.custom)
        self._content = WrittenContent(INPUT if self._takes_text else ARGUMENTS, self.address)
        self._call_id = call_ids.take(event.id)
        self._name = event.name

    def build_added(self) -> Json:
        return self._build_item(self._content.text if self.is_added_late else "", "in_progress")

    def add_text(self, event: Event) -> AddedText | None:
        if not (isinstance(event, ToolCallDelta) and event.arguments and self._streams):
            return None
        return self._content.add_text(event.arguments) if event.call_index == self.number else None

    def write(self, arguments: str) -> _Written:
        said = self._content.write(arguments)
        return said if self._streams else []

    def end(self) -> _Written:
        if self.is_added_late:
            return []
        item, kind = self.build_done("completed"), self._content.kind
        text = item[kind.text_field]
        named = kind.extra_fields("text_done", item)
        is_late = self._takes_text and text and not self._streams
        ended = [(kind.delta_type, {**self.address, "delta": text})] if is_late else []
        return [*ended, (kind.done_type, {**self.address, **named, kind.text_field: text})]

    def build_done(self, status: ItemStatus) -> Json:
        return self._build_item(self._content.text, status)

    def _build_item(self, arguments: str, status: str) -> Json:
        return write_call(self._tool, self._call_id, self._name, arguments, self.id, status=status)


class WrittenImage(WrittenItem):
    """Write an image, as that of a call of OpenAI's own tool."""

    def __init__(self, item_id: str, index: int, image: ImageDelta) -> None:
        super().__init__(item_id, index)
        self._image = image

    def build_added(self) -> Json:
        return {"id": self.id, "type": IMAGE_CALL, "status": "in_progress", "result": None}

    def end(self) -> _Written:
        return [(f"response.{IMAGE_CALL}.completed", self.address)]

    def build_done(self, _status: ItemStatus) -> Json:
        output_format = self._image.media_type.partition("/")[2]
        done = {"status": "completed", "result": self._image.data, "output_format": output_format}
        return {**self.build_added(), **done}


class WrittenReasoning(WrittenItem):
    """Write one reasoning item, or of one that has frames the summary alone."""

    def __init__(
        self,
        item_id: str,
        index: int,
        display: Display,
        sealing: Sealing,
        *,
        state: str | None = None,
        has_frames: bool = False,
    ) -> None:
        super().__init__(item_id, index)
        self.error: ErrorDetail | None = None  # why the summary is missing or incomplete
        self.extra_states: list[str] = []  # opaque state beyond what one item can hold
        self._display = display
        self._sealing = sealing
        self._state = state
        self._has_frames = has_frames
        self._raw = WrittenContent(REASONING, {**self.address, "content_index": 0})
        self._summary: list[str] = []  # the parts that are done
        self._part: WrittenContent | None = None  # the part that is open
        self._native_part: int | None = None  # upstream's count of it, if it is upstream's
        sealing.begin()

    def build_added(self) -> Json:
        head = {"id": self.id, "type": "reasoning", "status": "in_progress"}
        return {**head, "summary": [], "content": []}

    def add_text(self, event: Event) -> AddedText | None:
        if isinstance(event, ReasoningDelta):
            is_shown = self._display.show_raw and event.text
            if is_shown and not self._raw.is_open:
                return None
            if self._sealing.is_on:
                self._sealing.add(event)
            return self._raw.add_text(event.text) if is_shown else NOTHING
        if not isinstance(event, SummaryTextDelta) or self._part is None:
            return None
        return self._part.add_text(event.text) if self._native_part is None else None

    def write(self, event: Event) -> _Written:
        """Write any event between the beginning and the end of the item."""
        if isinstance(event, ReasoningDelta | ProviderState):
            self._sealing.add(event)
        match event:
            case ReasoningDelta():
                return self._write_raw(event.text)
            case ReasoningTextEnded():
                return self._raw.end()
            case SummaryPartAdded():
                return self._begin_part(event.index)
            case SummaryTextDelta() if self._part is not None:
                return self._part.write(event.text)
            case SummaryPartDone():
                return self._end_part(**({} if event.complete else {"status": "incomplete"}))
            case NativeSummary() if self._display.show_summary:
                return self._write_native(event)
            case ProviderState():
                self._add_state(event)
        return []

    def _add_state(self, event: ProviderState) -> None:
        if event.withheld:
            return  # nothing but the envelope has it
        state = _write_state(event.data, signs=event.signs)
        if self._state is None:
            self._state = state
        else:
            self.extra_states.append(state)

    def _write_raw(self, text: str) -> _Written:
        if not (self._display.show_raw and text):
            return []
        return self._raw.begin() + self._raw.write(text)

    def _write_native(self, event: NativeSummary) -> _Written:
        """Write a piece of the native summary, which may lack the beginning or end of a part."""
        if event.stage == "done":
            return [] if self._native_part is None else self._end_part()
        written = _Written()
        if self._part is None or self._native_part != event.index:
            written = self._begin_part(event.index)
            self._native_part = event.index
        return written + (self._part.write(event.text) if self._part and event.text else [])

    def _begin_part(self, index: int) -> _Written:
        """Begin a part of the summary. A composed item counts its own, however many there were in
        earlier stretches of the same reasoning."""
        ended = self._end_part()
        number = index if self._has_frames else len(self._summary)
        self._part = WrittenContent(SUMMARY, {**self.address, "summary_index": number})
        return ended + self._part.begin()

    def _end_part(self, **status: str) -> _Written:
        part, self._part, self._native_part = self._part, None, None
        if part is None:
            return []
        self._summary.append(part.text)
        return part.end(**status)

    def end(self) -> _Written:
        """Close what is open. The raw text may have ended before the summary, as with upstreams
        that stream both (openai-openapi, `ResponseReasoningTextDoneEvent`)."""
        return self._end_part() + self._raw.end()

    def build_done(self, status: ItemStatus) -> Json:
        """Return the item at its end. Opaque state in the blob is not repeated beside it."""
        items = self._sealing.collected() or []
        if items and self._sealing.is_needed:
            items[0] = {"id": self.id, **items[0]}
            if blob := self._sealing.seal(items, self.id):
                self._state, self.extra_states = blob, []
        item: Json = {
            "id": self.id,
            "type": "reasoning",
            "status": status,
            "summary": summary_parts(self._summary),
            "content": raw_parts(filter(None, [self._raw.text])),
        }
        if self._state is not None:
            item["encrypted_content"] = self._state
        if self.error is not None:
            item["summary_error"] = self.error.as_dict()
        return item


def _write_state(state: str, *, signs: bool) -> str:
    """Write opaque state; mark a signature as one."""
    return SIGNATURE_PREFIX + state if signs else state


def write_pieces(pieces: Iterable[ReasoningPart]) -> Iterator[Json]:
    """Write each piece as an item, since each signature is for its own text."""
    for piece in pieces:
        content = raw_parts([piece.text] if piece.text else [])
        state = _write_state(piece.state, signs=piece.is_signature)
        item: Json = {"type": "reasoning", "summary": [], "content": content}
        yield {**item, "encrypted_content": state} if state else item


def write_annotation(citation: CitationDelta, before: int, length: int) -> Json:
    """Write a source of a text that comes after so many characters of the answer: a page with the
    passage, a file with the place where it is cited (openai-openapi, `Annotation`)."""
    start, end = citation.passage_after(before, length)
    if citation.url:
        named = {"url": citation.url, "title": citation.title}
        return {"type": "url_citation", "start_index": start, "end_index": end, **named}
    name = citation.title or citation.file_id
    return {"type": "file_citation", "file_id": citation.file_id, "filename": name, "index": end}
