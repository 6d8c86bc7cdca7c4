"""Attribute the tool calls of an Anthropic message to the thinking that led to them.

In a stream the reasoning is read from the events, redacted thinking from what is written, and a
call is attributed in the event that starts its block. In a whole message each thinking block is a
part; one that holds a summary of Abridge's has its parts. Every block whose type ends in `tool_use`
is a call, whoever runs its tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from sys import maxsize
from typing import Any

from abridge.apis import sse
from abridge.apis.api import Writer
from abridge.apis.attribution_fields import attribute_call
from abridge.apis.display import Display
from abridge.apis.json import as_object, dumps, loads_exact, parse_object, string
from abridge.apis.messages.writer import PART_SEPARATOR
from abridge.apis.openai import change_answer
from abridge.attribution.attributor import RAW, SUMMARY, Attributor
from abridge.core.conversation import Json
from abridge.core.events import (
    Event,
    NativeSummary,
    ReasoningDelta,
    ReasoningStarted,
    ResponseEnded,
    SummaryTextDelta,
)

TOOL_USE_SUFFIX = "tool_use"

BLOCK_START = "content_block_start"

_CALL_NEEDLE, _REDACTED_NEEDLE = b'tool_use"', b'"redacted_thinking"'

_START_NEEDLE = BLOCK_START.encode()


class BlockAttributor:
    """Attribute the calls of one whole message, taking its blocks in order.

    `summaries` has the parts of Abridge's summaries, by their whole text. With `beside_raw` each
    follows the reasoning that it sums up. With `native`, what other blocks hold is a summary as
    well.
    """

    def __init__(
        self,
        limit: int = maxsize,
        *,
        native: bool = False,
        summaries: Mapping[str, Sequence[str]] | None = None,
        beside_raw: bool = False,
    ) -> None:
        self._attributor: Attributor[str] = Attributor(limit, native=native)
        self._summaries = summaries or {}
        self._beside_raw = beside_raw
        self._stretch = 0
        self._raw_stretch = 0

    def attribute(self, block: Any) -> Any:
        """Take the next block; return a call with its attribution, anything else unchanged."""
        kind = string(block.get("type")) if isinstance(block, dict) else ""
        if kind == "thinking":
            self._add_thinking(string(block.get("thinking")))
        elif kind == "redacted_thinking":
            self._stretch += 1
            self._attributor.add_redacted(stretch=self._stretch)
        elif kind.endswith(TOOL_USE_SUFFIX):
            return attribute_block(block, self._attributor)
        return block

    def _add_thinking(self, text: str) -> None:
        """Add a block. A summary beside raw reasoning is of the same stretch."""
        parts = self._summaries.get(text)
        self._stretch += 1
        if parts is None:
            self._raw_stretch = self._stretch
            self._attributor.add_reasoning(RAW, text, stretch=self._stretch)
            return
        stretch = self._raw_stretch if self._beside_raw else self._stretch
        for index, part in enumerate(parts):
            self._attributor.add_reasoning(SUMMARY, part, part=index, stretch=stretch)


def attribute_content(content: list[Any]) -> list[Any]:
    """Return the content blocks with their calls attributed. Each thinking block is one part."""
    return list(map(BlockAttributor().attribute, content))


def attribute_block(block: Json, attributor: Attributor[str]) -> Json:
    """Return a call's block with its attribution."""
    attribution = attributor.attribute_call(string(block.get("id")))
    return attribute_call(block, attribution.parts, attribution.ref or "")


class MessagesAttributingWriter:
    """Wrap a Writer, and attribute its calls; keep at most `limit` characters of reasoning."""

    def __init__(self, writer: Writer, display: Display, limit: int) -> None:
        self._writer = writer
        self._display = display
        self._limit = 0 if display.drops_reasoning else limit
        self._attributor: Attributor[str] = Attributor(self._limit, native=display.native)
        self._redacted_count = 0  # blocks of redacted thinking
        self._stretch = 0
        self._shows_raw = False  # some of what is shown is raw reasoning

    @property
    def final_response(self) -> Json | None:
        return self._writer.final_response

    def write(self, event: Event) -> bytes:
        data = self._writer.write(event)
        if self._limit:
            self._note_reasoning(event)
        if _START_NEEDLE not in data or not (_CALL_NEEDLE in data or _REDACTED_NEEDLE in data):
            return data
        return b"".join(map(self._attribute_frame, sse.split_frames(data)))

    def keep_alive(self) -> bytes:
        return self._writer.keep_alive()

    def note(self, event: Event) -> None:
        self._writer.note(event)
        if isinstance(event, ReasoningDelta):
            self._shows_raw = self._shows_raw or self._display.show_raw

    def write_whole(self, end: ResponseEnded) -> bytes:
        body = self._writer.write_whole(end)
        if _CALL_NEEDLE not in body:
            return body
        parts = [summary.parts for summary in end.summaries.values() if summary.parts]
        blocks = BlockAttributor(
            self._limit,
            native=self._display.native or not self._shows_raw,
            summaries={PART_SEPARATOR.join(texts): texts for texts in parts},
            beside_raw=self._shows_raw,
        )

        def attribute(message: Json) -> Json:
            content = message.get("content")
            if not isinstance(content, list):
                return message
            return {**message, "content": list(map(blocks.attribute, content))}

        return change_answer(body, attribute)

    def _note_reasoning(self, event: Event) -> None:
        """Add the reasoning of an event, if it is shown, or that there is some which is not."""
        add = self._attributor.add_reasoning
        match event:
            case ReasoningStarted():  # each stretch of an item has a block of its own
                self._stretch += 1
            case ReasoningDelta() if self._display.show_raw:
                add(RAW, event.text, stretch=self._stretch)
            case SummaryTextDelta():
                add(SUMMARY, event.text, part=event.index, stretch=self._stretch)
            case NativeSummary() if self._display.show_summary:
                add(SUMMARY, event.text, part=event.index, stretch=self._stretch)

    def _attribute_frame(self, frame: bytes) -> bytes:
        """Return the frame that starts a block, of a call with its attribution."""
        if _START_NEEDLE not in frame:
            return frame
        event = parse_object(sse.frame_data(frame) or b"", loads_exact) or {}
        block = as_object(event.get("content_block"))
        kind = string(block.get("type"))
        if kind == "redacted_thinking":
            self._redacted_count += 1
            self._attributor.add_redacted(stretch=f"redacted {self._redacted_count}")
        if event.get("type") != BLOCK_START or not kind.endswith(TOOL_USE_SUFFIX):
            return frame
        attributed = attribute_block(block, self._attributor)
        if attributed == block:
            return frame
        return sse.encode_frame(dumps({**event, "content_block": attributed}), event=BLOCK_START)
