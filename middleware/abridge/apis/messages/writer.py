"""Write Anthropic Messages: events as a stream, or into a whole message.

Blocks are numbered densely from 0, and one is open at a time. An event that carries its frame goes
out in it, under the number that its block has for the client; one without is composed. Both are one
way: the text of a block may come in frames, and its end be composed. Of an answer from another API,
the message around its content is composed, too. The content of a whole message is the sum of the
stream that would have been written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from io import StringIO
from typing import Any, ClassVar, Literal, TypeAlias

from abridge.apis.attribution_fields import attribute_call
from abridge.apis.display import Display
from abridge.apis.errors import failure_of
from abridge.apis.frames import HOLE, DeltaFrame, change_frame, encode_event, parse_frame
from abridge.apis.json import as_object, dumps, loads_exact, parse_object, string
from abridge.apis.messages.blocks import DELTA_FIELDS, Block, beside_text
from abridge.apis.messages.errors import error_body
from abridge.apis.messages.history import MARK
from abridge.apis.messages.reader import complete_start
from abridge.apis.messages.reasoning import PROGRESS_FIELD, ThinkingProgress
from abridge.apis.messages.tools import (
    client_call_id,
    escape_halves,
    upstream_call_id,
    wrap_invalid,
)
from abridge.apis.messages.usage import TIERS, merge_usage, write_usage
from abridge.apis.openai import CallIds, MintId, mint_id
from abridge.apis.protocols import RequestEcho
from abridge.apis.tools import unwrap_free_text, wrap_free_text
from abridge.apis.translated_answer import NOTHING, AddedText, TranslatedAnswer
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.envelope import UNSEALED, UNSEALED_RAW, SealEnvelope
from abridge.core.events import (
    PART_SEPARATOR,
    Beside,
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    FinishReason,
    NativeSummary,
    PartEnded,
    PartStarted,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ResponseEnded,
    ResponseStarted,
    SummaryTextDelta,
    ToolCallDelta,
    UsageReported,
    split_run,
)
from abridge.core.model_request import ReasoningPart, Tool
from abridge.stages.sealing import Sealing

THINKING: Json = {"type": "thinking", "thinking": "", "signature": ""}

PROGRESS_NEEDLE = f'"{PROGRESS_FIELD}"'.encode()

MAX_SEALED_CHARS = 1 << 22
"""Characters of a thinking block that are kept to be sealed. A longer one gets no envelope."""

WireEvent: TypeAlias = Any
"""An event of a stream: its type and other fields or, as bytes, the frame it came in."""


def encode(events: Iterable[WireEvent]) -> bytes:
    return b"".join(
        [event if isinstance(event, bytes) else encode_event(*event) for event in events]
    )


class BlockEvents:
    """Make the events of blocks, one after the other: those that are `said` wait to be taken."""

    def __init__(self) -> None:
        self.said: list[WireEvent] = []
        self.is_open = False
        self._index = -1
        self._frames: dict[str, DeltaFrame] = {}  # of the block, by the type of delta

    def take(self) -> list[WireEvent]:
        said, self.said = self.said, []
        return said

    def start(self, block: Json) -> None:
        """Start a block, which stops the one before it."""
        self._next()
        self.said.append(("content_block_start", {"index": self._index, "content_block": block}))

    def start_in(self, frame: bytes, event: Event) -> None:
        """Start a block in its frame."""
        self._next()
        self.said.append(self.move(frame, event))

    def _next(self) -> None:
        if self.is_open:
            self.stop()
        self.is_open = True
        self._index += 1
        self._frames = {}

    def add(self, delta_type: str, text: str) -> None:
        """Add to the open block; nothing for an empty text."""
        if text:
            self._say_delta({"type": delta_type, DELTA_FIELDS[delta_type]: text})

    def add_progress(self, tokens: int) -> None:
        """Say how many more tokens the open block, which shows no text, has taken."""
        self._say_delta({"type": "thinking_delta", "thinking": "", PROGRESS_FIELD: tokens})

    def add_arguments(self, arguments: str) -> None:
        """Add to the open call; nothing for no arguments."""
        if arguments:
            self.add("input_json_delta", escape_halves(arguments))

    def add_text(self, delta_type: str, text: str) -> AddedText:
        """Add to the open block, as `add` does."""
        if not text:
            return NOTHING
        frame = self._frames.get(delta_type)
        if frame is None:
            delta = {"type": delta_type, DELTA_FIELDS[delta_type]: HOLE}
            event = {"type": "content_block_delta", "index": self._index, "delta": delta}
            frame = self._frames[delta_type] = DeltaFrame(event, "content_block_delta")
        return frame, text

    def cite(self, citation: Json) -> None:
        """Add a citation to the open block."""
        self._say_delta({"type": "citations_delta", "citation": citation})

    def _say_delta(self, delta: Json) -> None:
        self.said.append(("content_block_delta", {"index": self._index, "delta": delta}))

    def pass_on(self, frame: bytes, event: Event) -> None:
        """Say what a frame says of the open block."""
        self.said.append(self.move(frame, event))

    def move(self, frame: bytes, event: Event) -> bytes:
        """Return a frame under the index that the open block has for the client. One that is of no
        block has none."""
        part = event.part
        if event.lane is None or (isinstance(part, Block) and part.index == self._index):
            return frame
        frames = [frame] if event.run is None else filter(None, event.run.frames)
        return b"".join(with_index(one, self._index) for one in frames)

    def stop(self, error: ErrorDetail | None = None, frame: bytes | None = None) -> None:
        """Stop the open block, if there is one; say why it has no summary, or not all of it."""
        if not self.is_open:
            return
        self.is_open = False
        marks = {} if error is None else {"summary_error": error.as_dict()}
        if frame is None:
            self.said.append(("content_block_stop", {"index": self._index, **marks}))
        elif marks:
            self.said.append(change_frame(frame, lambda stop: {**stop, **marks}) or frame)
        else:
            self.said.append(frame)


_INDEX = re.compile(rb'("index"\s*:\s*)(\d+)')


def with_index(frame: bytes, index: int) -> bytes:
    """Return the frame of an event with this index."""
    found = _INDEX.search(frame) if frame.count(b'"index"') == 1 else None
    if found is None:
        return change_frame(frame, lambda event: {**event, "index": index}) or frame
    if int(found[2]) == index:
        return frame
    return b"%b%d%b" % (frame[: found.start(2)], index, frame[found.end(2) :])


class MessageContent:
    """Write the content of one message. `tools` are those offered to upstream, by name. What is
    `given` comes in order, from an upstream that speaks Messages, too."""

    def __init__(
        self,
        display: Display,
        tools: Mapping[str, Tool],
        limit: int,
        mint_id: MintId,
        *,
        given: bool = False,
    ) -> None:
        self._is_given = given
        self.has_refusal = False
        self.has_calls = False
        self.sealing = MessagesSealing(display.seal, MAX_SEALED_CHARS if given else limit)
        self._display = display
        self._tools = tools
        self._call_ids = CallIds("toolu_", mint_id)
        self._blocks = BlockEvents()
        self._thinking: ThinkingContent | None = None
        self._call: CallContent | None = None
        self._text: tuple[type[ContentDelta], int] | None = None  # which text is open
        self._cited_files: dict[str, int] = {}  # their numbers

    # Texts that go on

    def pass_delta(self, event: Event, frame: bytes) -> bytes | None:
        """Return what the client gets of deltas in their frames; None for any other event, and for
        a run that is to be told one by one."""
        kind = type(event)
        if kind is ContentDelta or (isinstance(event, ToolCallDelta) and event.arguments):
            return self._blocks.move(frame, event)
        if isinstance(event, ReasoningDelta) and self._thinking is not None:
            return self._thinking.pass_raw(event, frame)
        return None

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event that only adds to the text of the open block, if it can be told here."""
        if isinstance(event, ReasoningDelta | SummaryTextDelta):
            if self._thinking is not None:
                return self._thinking.add_text(event)
            return NOTHING if self._display.drops_reasoning else None  # shown, it may have to wait
        if isinstance(event, ToolCallDelta):
            call = self._call
            if call is None or call.number != event.call_index or not call.streams:
                return None
            return self._blocks.add_text("input_json_delta", escape_halves(event.arguments))
        if type(event) is ContentDelta and self._text == (ContentDelta, event.message_index):
            return self._blocks.add_text("text_delta", event.text)
        return None

    # Events in their order

    def write(self, event: Event) -> list[WireEvent]:
        match event:
            case ToolCallDelta():
                self._write_call(event)
            case RefusalDelta():
                self.has_refusal = True
                self._write_text(event, event.refusal)
            case ContentDelta():
                self._write_text(event, event.text)
            case ReasoningStarted():
                self._start_reasoning(event)
            case ReasoningEnded():
                self._end_reasoning(event)
            case PartStarted() if self._is_given:
                self._start_part(event)
            case PartEnded() if self._is_given:
                self._stop_block(event.frame and self._blocks.move(event.frame, event))
            case Passthrough() | Beside() if event.frame is not None:
                self._pass_beside(event, event.frame)
            case _ if self._thinking is not None:
                self._thinking.write(event)
        return self._blocks.take()

    def _pass_beside(self, event: Event, frame: bytes) -> None:
        """Pass on what a frame says beside a text."""
        rest = beside_text(parse_frame(frame), frame) if isinstance(event, Beside) else frame
        if rest is not None:
            self._blocks.pass_on(rest, event)

    # Reasoning

    def _start_reasoning(self, event: ReasoningStarted) -> None:
        """Start a stretch of reasoning."""
        self._stop_block()
        self._thinking = ThinkingContent(
            self._display, self._blocks, self.sealing, is_given=self._is_given
        )
        if event.frame is None:
            self._blocks.start(THINKING)
        else:
            self._blocks.start_in(event.frame, event)

    def _end_reasoning(self, event: ReasoningEnded) -> None:
        thinking, self._thinking = self._thinking, None
        if thinking is not None:
            frame = event.frame and self._blocks.move(event.frame, event)
            thinking.end(event.summary.error, frame)

    # The answer

    def _start_part(self, event: PartStarted) -> None:
        """Start a block of upstream's, or a text that goes on with one that was stopped."""
        self._stop_block()
        is_text = event.part is not None and event.part.kind == "text"
        self._text = (ContentDelta, 0) if is_text else None
        if event.frame is not None:
            self._blocks.start_in(self._show_start(event.frame, event), event)
        elif is_text:
            self._blocks.start({"type": "text", "text": ""})

    def _show_start(self, frame: bytes, event: Event) -> bytes:
        """Return the frame that starts a block: of a call with its attribution, of redacted
        thinking whose state is withheld with that sealed."""
        part = event.part if isinstance(event.part, Block) else None
        is_redacted = part is not None and part.kind == "redacted" and self._display.hides_raw
        if event.extra is None and not is_redacted:
            return frame
        start = parse_frame(frame)
        block = as_object(start.get("content_block"))
        shown = attribute_call(block, event.extra, string(block.get("id")))
        if part is not None and is_redacted and "data" not in block:
            kept = [part.content_block] if "data" in part.content_block else None
            shown = {**block, "data": self.sealing.sign(kept)}
        if shown == block:
            return frame
        return encode_event("content_block_start", {**start, "content_block": shown})

    def _write_text(self, event: ContentDelta, text: str) -> None:
        """Write a piece of text. Each of upstream's messages, and a refusal, has its own block.

        Anthropic refuses a block without text when it comes back, so none is begun for nothing.
        """
        if event.frame is not None:
            self._blocks.pass_on(event.frame, event)
            return
        key = type(event), event.message_index
        if self._text != key and text:
            self._stop_block()
            self._text = key
            self._blocks.start({"type": "text", "text": ""})
        self._blocks.add("text_delta", text)

    @property
    def has_open_text(self) -> bool:
        return self._text is not None and self._blocks.is_open

    def cite(self, citation: CitationDelta) -> list[WireEvent]:
        self._blocks.cite(self.write_citation(citation))
        return self._blocks.take()

    def write_citation(self, citation: CitationDelta) -> Json:
        """Write a source. Files are numbered in the order in which they are cited first, as no
        request of the client's has them."""
        said = {"cited_text": citation.quote, "title": citation.title or None, **MARK}
        if citation.url:
            return {"type": "web_search_result_location", "url": citation.url, **said}
        file_id, cited = citation.file_id, self._cited_files
        number = cited.setdefault(file_id, len(cited))
        whole = {"search_result_index": number, "start_block_index": 0, "end_block_index": 1}
        return {"type": "search_result_location", "source": file_id, **whole, **said}

    def _write_call(self, event: ToolCallDelta) -> None:
        if event.frame is not None:
            self._pass_call(event, event.frame)
            return
        if self._is_given:
            self._blocks.add("input_json_delta", event.arguments)
            return
        if self._call is None or self._call.number != event.call_index:
            self._stop_block()
            self.has_calls = True
            call_id = self._call_ids.take(client_call_id(event.id))
            self._call = CallContent(event, call_id, self._tools.get(event.name))
            self.sealing.note_call(self._call.id)
            begun = self._call.build_start()
            self._blocks.start(attribute_call(begun, event.extra, call_id))
        if event.arguments:
            self._blocks.add_arguments(self._call.write(event.arguments))

    def _pass_call(self, event: ToolCallDelta, frame: bytes) -> None:
        if event.arguments:
            self._blocks.pass_on(frame, event)
            return
        if event.id:
            self.sealing.note_call(event.id)
        self._stop_block()
        self._blocks.start_in(self._show_start(frame, event), event)

    def _stop_block(self, frame: bytes | None = None) -> None:
        call, self._call, self._text = self._call, None, None
        if call is not None:
            self._blocks.add_arguments(call.end())
        self._blocks.stop(frame=frame)

    def finish(self) -> list[WireEvent]:
        """Finish the open block."""
        self._end_thinking()
        self._stop_block()
        return self._blocks.take()

    def break_off(self) -> list[WireEvent]:
        """Stop the open block, unless it is a call, which a client might run once it is stopped."""
        if self._call is None:
            self._end_thinking()
            self._blocks.stop()
        return self._blocks.take()

    def _end_thinking(self) -> None:
        thinking, self._thinking = self._thinking, None
        if thinking is not None:
            thinking.end(None)


class CallContent:
    """Write one call of a client's tool.

    Arguments stream as they come. They are held until they are whole where an object has to be made
    of them: those of a custom tool, and those that begin as none.
    """

    def __init__(self, event: ToolCallDelta, call_id: str, tool: Tool | None) -> None:
        self.number = event.call_index  # among the calls of the answer
        self.id = call_id
        self._tool = tool
        self._name = tool.client_name if tool is not None and tool.client_name else event.name
        self._is_custom = event.custom
        self._held = StringIO()
        self.streams: bool | None = False if event.custom else None
        """The arguments begin as an object; None until they begin."""

    def build_start(self) -> Json:
        return {"type": "tool_use", "id": self.id, "name": self._name, "input": {}}

    def write(self, arguments: str) -> str:
        """Take a piece of the arguments; return the JSON that is to be written."""
        if self.streams is None and (begun := arguments.lstrip()):
            self.streams = begun.startswith("{")
        if self.streams:
            return arguments
        self._held.write(arguments)
        return ""

    def end(self) -> str:
        """Return the rest of the JSON."""
        held = self._held.getvalue()
        if self._is_custom and held:
            tool = self._tool
            return wrap_free_text(held if tool is None else unwrap_free_text(tool, held))
        if self.streams or not held.strip():
            return ""
        return json.dumps(wrap_invalid(held), ensure_ascii=False)


class ThinkingContent:
    """Write one stretch of reasoning.

    It is one block, of the summary or of the raw text. Where both are shown the summary is a block
    after the raw one, and its text waits until that is whole. What a signature of upstream's signs
    is a block of its own. Any other block is signed with an envelope, from which the reasoning is
    restored; without one, opaque state follows in blocks of redacted thinking.

    A block `is_given` by an upstream that speaks Messages, too. Shown raw, it passes as upstream
    sent it; unchanged, it keeps upstream's signature.
    """

    def __init__(
        self,
        display: Display,
        blocks: BlockEvents,
        sealing: MessagesSealing,
        *,
        is_given: bool,
    ) -> None:
        self._display = display
        self._blocks = blocks
        self._sealing = sealing
        self._sealing.begin()
        self._is_given = is_given
        passes = is_given and display.show_raw and not display.withholds_state
        self._collects = sealing.is_on and not passes
        self._kind: Literal["raw", "summary"] | None = None  # of the text in the last block
        self._last_part: int | None = None
        self._held_summary = StringIO()
        self._states: list[str] = []
        self._is_signed = is_given and display.show_raw  # upstream signs its blocks itself
        self._has_text = False  # there was reasoning, shown or not
        self._given: ProviderState | None = None  # upstream's last signature
        self._progress = ThinkingProgress() if display.tells_progress else None

    def write(self, event: Event) -> None:
        if self._collects and not self._is_given:
            self._sealing.add(event)
        match event:
            case ReasoningDelta():
                self._write_raw(event)
            case NativeSummary() if self._display.show_summary and event.text:
                self._write_summary(event.index, event.text)
            case SummaryTextDelta():  # comes before the raw text where that was queued
                waits = self._display.show_raw and self._kind is None
                self._write_summary(event.index, event.text, waits=waits)
            case ProviderState():
                self._add_state(event)

    def pass_raw(self, event: ReasoningDelta, frame: bytes) -> bytes | None:
        """Return what the client gets of a piece of reasoning in its frame."""
        if self._progress is not None and event.run is not None:
            return None
        self._note_raw(event)
        if self._display.show_raw:
            return self._blocks.move(frame, event)
        if self._progress is None:
            return b""
        if not event.text and PROGRESS_NEEDLE in frame:  # upstream tells of its progress itself
            return self._blocks.move(frame, event)
        self._tell_progress(event)
        return encode(self._blocks.take())

    def add_text(self, event: ReasoningDelta | SummaryTextDelta) -> AddedText | None:
        """Take a piece of reasoning, unless a block has to be started for it, or of the summary, if
        it goes on the part that is being written."""
        if isinstance(event, SummaryTextDelta):
            if self._kind != "summary" or self._last_part != event.index:
                return None
            return self._blocks.add_text("thinking_delta", event.text)
        is_shown = self._display.show_raw and event.text
        if is_shown and not (self._kind == "raw" and self._blocks.is_open):
            return None
        if self._progress is not None:  # is told by itself
            return None
        if self._is_given:
            self._note_raw(event)
        elif self._collects:
            self._sealing.add(event)
        return self._blocks.add_text("thinking_delta", event.text) if is_shown else NOTHING

    def end(self, error: ErrorDetail | None, frame: bytes | None = None) -> None:
        """End the stretch, in the frame that stops its block if there is one."""
        self._write_waiting_summary()
        self._sign()
        summary = self._held_summary.getvalue()
        needs_block = bool(summary) or (error is not None and not self._blocks.is_open)
        self._blocks.stop(None if needs_block else error, frame)
        for state in self._states:
            self._blocks.start({"type": "redacted_thinking", "data": state})
        if needs_block:
            self._blocks.start(THINKING)
            self._blocks.add("thinking_delta", summary)
            self._blocks.add("signature_delta", self._sealing.sign([]))
        self._blocks.stop(error if needs_block else None)

    def _note_raw(self, event: ReasoningDelta) -> None:
        self._has_text = self._has_text or bool(event.text)
        if self._collects:
            self._sealing.add(event)
        if self._display.show_raw:
            self._kind = "raw"

    def _write_raw(self, event: ReasoningDelta) -> None:
        if self._is_given:
            self._note_raw(event)
        self._tell_progress(event)
        if not (self._display.show_raw and event.text):
            return
        if event.frame is not None:
            self._blocks.pass_on(event.frame, event)
            return
        if self._kind == "summary" or not self._blocks.is_open:
            self._blocks.start(THINKING)
        self._kind = "raw"
        self._blocks.add("thinking_delta", event.text)

    def _tell_progress(self, event: ReasoningDelta) -> None:
        tokens = 0 if self._progress is None else self._progress.add(event.text)
        if tokens and self._blocks.is_open:
            self._blocks.add_progress(tokens)

    def _write_summary(self, part: int, text: str, *, waits: bool = False) -> None:
        """Write a piece of the summary; keep it where it `waits` for the raw text."""
        text = PART_SEPARATOR * (self._last_part not in (None, part)) + text
        self._last_part = part
        if self._kind == "raw" or waits:
            self._held_summary.write(text)
        else:
            self._kind = "summary"
            self._blocks.add("thinking_delta", text)

    def _add_state(self, event: ProviderState) -> None:
        if self._is_given:
            self._take_signature(event)
        elif event.withheld:
            return  # nothing but the envelope has it
        elif not event.signs:
            self._states.append(event.data)
        elif self._display.show_raw and self._kind != "summary" and self._blocks.is_open:
            self._kind, self._is_signed = "raw", True
            self._blocks.add("signature_delta", event.data)
            self._blocks.stop()

    def _take_signature(self, event: ProviderState) -> None:
        """Take the signature of a given block. It fits only the text that it signs."""
        self._given = event
        if event.withheld:
            self._is_signed = False
        elif self._display.show_raw:
            self._pass_signature(event)

    def _pass_signature(self, event: ProviderState) -> None:
        if event.frame is not None:
            self._blocks.pass_on(event.frame, event)
        else:
            self._blocks.add("signature_delta", event.data)

    def _write_waiting_summary(self) -> None:
        """Write the summary that waited for raw text which did not come."""
        summary = self._held_summary.getvalue()
        if self._kind is None and summary and not self._is_signed:
            self._kind, self._held_summary = "summary", StringIO()
            self._blocks.add("thinking_delta", summary)

    def _sign(self) -> None:
        """Sign the open block; unless that is done, opaque state goes into the envelope, too."""
        given = self._given
        is_withheld = given is not None and given.withheld
        is_unchanged = self._is_given and not (self._has_text or self._kind or is_withheld)
        if is_unchanged and given is not None and not self._display.show_raw:
            self._pass_signature(given)
        elif not (is_unchanged or self._is_signed):
            signature = self._seal()
            self._states = self._states if signature in {"", UNSEALED, UNSEALED_RAW} else []
            self._blocks.add("signature_delta", signature if self._blocks.is_open else "")

    def _seal(self) -> str:
        """Return the envelope of the stretch; "" if there is nothing in it."""
        if self._given is not None:
            self._sealing.add(self._given)
        blocks = self._sealing.collected() if self._collects else None
        if not (blocks or self._is_given) and self._kind is None:
            return ""
        signature = self._sealing.sign(blocks)
        return UNSEALED_RAW if (signature, self._kind) == (UNSEALED, "raw") else signature


class MessagesSealing(Sealing):
    """Seal the reasoning of one message in the signatures of its blocks."""

    def __init__(self, seal: SealEnvelope | None, limit: int) -> None:
        super().__init__(seal, write_pieces, limit)

    def note_call(self, call_id: str) -> None:
        if self.is_on:
            super().note_call(upstream_call_id(call_id))

    def sign(self, blocks: list[Json] | None) -> str:
        """Return the signature of a block that stands for these of upstream's.

        With no blocks the client's block is dropped when it comes back, as one that holds a summary
        beside the reasoning is. Return `UNSEALED` for None, and where nothing can be sealed.
        """
        return self.seal(blocks) if self.is_on and blocks is not None else UNSEALED


def write_pieces(pieces: Iterable[ReasoningPart]) -> Iterator[Json]:
    """Write reasoning as the blocks that Anthropic would send: opaque state is a block of its own,
    and text that nothing signs has an empty signature."""
    for piece in pieces:
        if piece.text.strip() or piece.is_signature:
            signature = piece.state if piece.is_signature else ""
            yield {"type": "thinking", "thinking": piece.text, "signature": signature}
        if piece.state and not piece.is_signature:
            yield {"type": "redacted_thinking", "data": piece.state}


STOP_REASONS: Mapping[FinishReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
"""Anthropic's stop reasons (Anthropic API reference, `StopReason`)."""


class MessagesWriter:
    """Write one response of an upstream that speaks Messages, too. See the protocol `Writer`."""

    final_response = None

    def __init__(self, display: Display) -> None:
        self._display = display
        self._content = MessageContent(display, {}, MAX_SEALED_CHARS, mint_id, given=True)
        self._first_usage: Json = {}
        self._has_failed = False
        self._whole = MessageAccumulator()

    def write(self, event: Event) -> bytes:
        frame = event.frame
        if self._has_failed:
            return b""
        if frame is not None and event.part is not None:
            passed = self._content.pass_delta(event, frame)
            if passed is not None:
                return passed
        if event.run is not None:
            return b"".join(map(self.write, split_run(event, event.run)))
        if frame is None and (added := self._content.add_text(event)) is not None:
            return b"" if added[0] is None else added[0].write(added[1])
        change = self._CHANGES.get(type(event))
        if change is not None:
            return change(self, event)
        if event.part is None and frame is not None:
            return frame
        return encode(self._content.write(event))

    def keep_alive(self, beside: Json | None = None) -> bytes:
        return encode_event("ping", beside or {})

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream, but for a frame around its content."""
        if event.part is not None or event.frame is None:
            for said in self._content.write(event):
                self._whole.add(said)

    def write_whole(self, end: ResponseEnded) -> bytes:
        """Write upstream's message with the content that its stream would have had."""
        given = parse_object(end.frame or b"", loads_exact) if end.ok else None
        if given is None:
            return end.frame or b""
        message = {**given, "content": self._whole.message["content"]}
        RESPONSES_USAGE.add_share(message, end.share, merged=self._display.merge_usage)
        is_same = message == given and end.error is None
        return end.frame or b"" if is_same else _encode_whole(message, end)

    # The message around its content

    def _note_start(self, event: ResponseStarted) -> bytes:
        message = as_object(parse_frame(event.frame).get("message"))
        usage = as_object(message.get("usage"))
        self._first_usage = {name: usage[name] for name in usage if name == "input_tokens"}
        return event.frame or b""

    def _show_error(self, event: ErrorReported) -> bytes:
        self._has_failed = event.frame is not None
        return event.frame or b""

    def _show_usage(self, event: UsageReported) -> bytes:
        """Show the usage, which is cumulative. An answer that is to fail has no end to report."""
        if event.error is not None or event.frame is None:
            return b""
        if event.share is None:
            return event.frame
        told = parse_frame(event.frame)
        usage = as_object(told.get("usage"))
        told["usage"] = {**usage, **merge_usage(self._first_usage, usage)}
        RESPONSES_USAGE.add_share(told, event.share, merged=self._display.merge_usage)
        return encode_event("message_delta", told)

    def _show_end(self, event: ResponseEnded) -> bytes:
        error = failure_of(event)
        if error is None:
            return event.frame or b""
        self._has_failed = True
        return encode_event("error", error_body(error.message, code=error.code))

    _CHANGES: ClassVar[dict[type[Event], Callable[[MessagesWriter, Any], bytes]]] = {
        ResponseStarted: _note_start,
        UsageReported: _show_usage,
        ErrorReported: _show_error,
        ResponseEnded: _show_end,
    }


def _encode_whole(message: Json, end: ResponseEnded) -> bytes:
    if end.error is None or not end.ok:
        return dumps(message)
    error = error_body(end.error.message, code=end.error.code)
    return dumps({**error, "error": {**error["error"], "response": message}})


class TranslatedMessagesWriter(TranslatedAnswer):
    """Write one response of an upstream that speaks another API. See the protocol `Writer`.

    A stream fails once more than `limit` characters came of it.
    """

    final_response = None

    def __init__(
        self, display: Display, echo: RequestEcho, limit: int, mint_id: MintId = mint_id
    ) -> None:
        self._blocks = MessageContent(display, echo.tools, limit, mint_id)
        super().__init__(self._blocks, limit)
        self._merges_usage = display.merge_usage
        self._drops_reasoning = display.drops_reasoning
        self._echo = echo
        self._mint_id = mint_id
        self._whole = MessageAccumulator()

    def write(self, event: Event) -> bytes:
        if event.run is not None:
            return b"".join(map(self.write, split_run(event, event.run)))
        added = self.add_text(event)
        if added is None:
            return encode(self.compose(event))
        frame, text = added
        return b"" if frame is None else frame.write(text)

    def keep_alive(self, beside: Json | None = None) -> bytes:
        return encode_event("ping", beside or {})

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream."""
        for said in self._translate(event):
            self._whole.add(said)

    def write_whole(self, end: ResponseEnded) -> bytes:
        """Write the whole message, also of an answer that is to fail with it."""
        self.note(replace(end, error=None))
        return _encode_whole(self._whole.message, end)

    # Events

    def _start(self, event: ResponseStarted) -> list[WireEvent]:
        model = event.model or string(self._echo.body.get("model"))
        message_id = self._mint_id("msg_")
        message = complete_start({"id": message_id, "model": model, "usage": TIERS.get(self._tier)})
        if self._echo.foreign_reasoning:
            # anthropic-sdk-python, `BetaThinkingDroppedInputTransformation`
            message["input_transformations"] = [
                {"type": "thinking_dropped", "path": path, "reason": "model_binding_mismatch"}
                for path in self._echo.foreign_reasoning
            ]
        return [("message_start", {"message": message}), ("ping", {})]

    def _end(self, event: ResponseEnded) -> list[WireEvent]:
        """End the message. One that fails has no stop reason."""
        self._is_over = True
        said = self._finish(is_cut=False) if event.ok else self._blocks.break_off()
        if (error := self._failure(event)) is not None:
            return [*said, ("error", error_body(error.message, code=error.code))]
        return [*said, ("message_delta", self._build_delta(event)), ("message_stop", {})]

    def _build_delta(self, event: ResponseEnded) -> Json:
        tokens = event.usage or self._usage
        merged = self._merges_usage and tokens is not None and tokens.input is not None
        cited = self._other_fields("citations", self._blocks.write_citation)
        usage = {**write_usage(tokens), **TIERS.get(self._tier, {})}
        delta = {"delta": {**self._build_stop(), **cited}, "usage": usage}
        RESPONSES_USAGE.add_share(delta, event.share, merged=merged)
        return delta

    def _build_stop(self) -> Json:
        """Tell why the answer stopped. A refusal is told here and in its text, and a stop sequence
        if it is one of the request's."""
        finished, sequences = self._finished, self._echo.body.get("stop_sequences")
        reason, sequence = STOP_REASONS[finished.reason], None
        is_known = isinstance(sequences, list) and finished.stop_sequence in sequences
        if finished.reason == "stop" and self._blocks.has_refusal:
            reason = "refusal"
        elif finished.reason == "stop" and is_known:
            reason, sequence = "stop_sequence", finished.stop_sequence
        return {"stop_reason": reason, "stop_sequence": sequence}


class MessageAccumulator:
    """Add up the events of a stream to the whole message, as Anthropic's clients do; of its content
    alone, if there are no others."""

    def __init__(self) -> None:
        self.message: Json = {"content": []}
        self._texts: dict[str, StringIO] = {}  # of the open block, by the field of a delta

    def add(self, event: WireEvent) -> None:
        event_type, fields = _read_frame(event) if isinstance(event, bytes) else event
        match event_type:
            case "message_start":
                self.message = {**fields["message"], "content": []}
            case "content_block_start":
                self.message["content"].append(dict(fields["content_block"]))
            case "content_block_delta":
                self._add_delta(fields["delta"])
            case "content_block_stop":
                self._end_block(fields)
            case "message_delta":
                self.message |= {**fields["delta"], "usage": fields["usage"]}

    def _add_delta(self, delta: Json) -> None:
        if delta["type"] == "citations_delta":
            self.message["content"][-1].setdefault("citations", []).append(delta["citation"])
            return
        field = DELTA_FIELDS[delta["type"]]
        self._texts.setdefault(field, StringIO()).write(delta[field])

    def _end_block(self, fields: Json) -> None:
        texts: Json = {field: text.getvalue() for field, text in self._texts.items()}
        self._texts = {}
        arguments = texts.pop("partial_json", None)
        if arguments is not None:
            texts["input"] = _read_input(arguments)
        error = {name: value for name, value in fields.items() if name != "index"}
        self.message["content"][-1] |= {**texts, **error}


def _read_frame(frame: bytes) -> tuple[str, Json]:
    fields = parse_frame(frame)
    return string(fields.pop("type", "")), fields


def _read_input(arguments: str) -> Any:
    """Return a call's input: an object, unless upstream's is none."""
    try:
        return loads_exact(arguments.encode(errors="surrogatepass"))
    except (ValueError, RecursionError):
        return wrap_invalid(arguments)
