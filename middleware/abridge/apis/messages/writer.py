"""Write Anthropic Messages: events as a stream, or into a whole message.

An event that carries its frame goes out in it, unless more is in it than is shown; one without is
composed (`content.py`). Of an answer from another API, the message around its content is composed,
too. A whole body is upstream's, with what the stages changed of its blocks, or the sum of the
stream that would have been written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from io import StringIO
from types import MappingProxyType
from typing import Any, ClassVar

from abridge.apis.api import RequestEcho
from abridge.apis.display import Display
from abridge.apis.errors import CONNECTION_LOST
from abridge.apis.frames import encode_event, parse_frame
from abridge.apis.hosted_calls import HOSTED_CALLS
from abridge.apis.json import as_object, dumps, loads_exact, parse_object, string
from abridge.apis.messages.blocks import LANE, Block
from abridge.apis.messages.content import (
    DELTA_FIELDS,
    MAX_SEALED_CHARS,
    PART_SEPARATOR,
    THINKING,
    MessageContent,
    WireEvents,
    encode,
    error_field,
)
from abridge.apis.messages.errors import error_body
from abridge.apis.messages.lifecycle import complete_call, complete_start
from abridge.apis.messages.shapes import show_reasoning
from abridge.apis.messages.tools import wrap_invalid
from abridge.apis.messages.usage import add_share, write_usage
from abridge.apis.openai import MintId, mint_id
from abridge.apis.translated_answer import TranslatedAnswer
from abridge.core.answer import Part
from abridge.core.conversation import Json
from abridge.core.events import (
    NO_SUMMARY,
    ErrorReported,
    Event,
    Finished,
    FinishReason,
    ItemSummary,
    ResponseEnded,
    ResponseStarted,
    UsageReported,
)

PING = encode_event("ping", {})

STOP_REASONS: Mapping[FinishReason, str] = MappingProxyType(
    {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
    }
)
"""Anthropic's stop reasons (Anthropic API reference, `StopReason`)."""


class MessagesWriter:
    """Write one response of an upstream that speaks Messages, too. See the protocol `Writer`."""

    final_response = None

    def __init__(self, display: Display) -> None:
        self._display = display
        self._content = MessageContent(display, {}, MAX_SEALED_CHARS, mint_id, given=True)
        self._first_usage: Json = {}
        self._has_failed = False
        self._parts: list[Part] = []  # of a whole message

    def write(self, event: Event) -> bytes:
        frame = event.frame
        if self._has_failed:
            return b""
        if frame is not None and event.part is not None:
            passed = self._content.pass_delta(event, frame)
            if passed is not None:
                return passed
        elif frame is None and (added := self._content.add_text(event)) is not None:
            return b"" if added[0] is None else added[0].write(added[1])
        change = self._CHANGES.get(type(event))
        if change is not None:
            return change(self, event)
        if event.part is None and frame is not None:
            return frame
        return b"".join(map(encode, self._content.write(event)))

    def keep_alive(self) -> bytes:
        return PING

    def note(self, event: Event) -> None:
        part = event.part
        if part is not None and (not self._parts or self._parts[-1] is not part):
            self._parts.append(part)

    def write_whole(self, end: ResponseEnded) -> bytes:
        message = None
        if end.ok and not self._is_unchanged(end):
            message = parse_object(end.frame or b"", loads_exact)
        if message is None:
            return end.frame or b""
        message["content"] = [block for part in self._parts for block in self._show(part, end)]
        if end.share is not None:
            usage, merged = message.get("usage"), self._display.merge_usage
            message["usage"] = add_share(usage, end.share, merged=merged)
        return _encode_whole(message, end)

    # The message around its content

    def _note_start(self, event: ResponseStarted) -> bytes:
        message = as_object(parse_frame(event.frame).get("message"))
        self._first_usage = as_object(message.get("usage"))
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
        if "input_tokens" in self._first_usage:
            usage = {"input_tokens": self._first_usage["input_tokens"], **usage}
        told["usage"] = add_share(usage, event.share, merged=self._display.merge_usage)
        return encode_event("message_delta", told)

    def _show_end(self, event: ResponseEnded) -> bytes:
        error = event.error if event.ok else event.error or CONNECTION_LOST
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

    # A whole message

    def _is_unchanged(self, end: ResponseEnded) -> bool:
        has_summaries = any(one.parts or one.error for one in end.summaries.values())
        is_shown = self._display.show_raw and not self._display.hides_raw
        is_same = all(isinstance(part, Block) and not _is_changed(part) for part in self._parts)
        keeps_end = end.share is None and end.error is None
        return is_shown and is_same and keeps_end and not has_summaries

    def _show(self, part: Part, end: ResponseEnded) -> Iterator[Json]:
        """Show a block as a stream would add up."""
        if isinstance(part, Block):
            if part.type == "tool_use":
                self._content.sealer.note_call(string(part.content_block.get("id")))
            block = _shown_block(part)
        else:
            field = "text" if part.kind == "text" else "thinking"
            block = {"type": field, field: part.shown_text}
            block |= {"signature": ""} if field == "thinking" else {}
        if part.kind == "reasoning":
            summary = end.summaries.get((LANE, part.number), NO_SUMMARY)
            yield from self._show_thinking(block, summary)
        else:
            yield self._visible(block)

    def _show_thinking(self, block: Json, summary: ItemSummary) -> Iterator[Json]:
        text, shown = PART_SEPARATOR.join(summary.parts), self._visible(block)
        marks, sealer = error_field(summary.error), self._content.sealer
        if self._display.show_raw:
            yield shown if text else {**shown, **marks}
            if text:
                yield {**THINKING, "thinking": text, "signature": sealer.seal([]), **marks}
        elif text or block.get("thinking"):
            yield {**shown, "thinking": text, "signature": sealer.seal([block]), **marks}
        else:
            yield {**shown, **marks}

    def _visible(self, block: Json) -> Json:
        return show_reasoning(block) if self._display.hides_raw else block


def _is_changed(part: Part) -> bool:
    return part.shown is not None and part.shown_text != part.said_text


def _shown_block(part: Block) -> Json:
    """Return a block of upstream's with what the stages left of its text."""
    block = complete_call(part.content_block)
    if not _is_changed(part):
        return block
    if part.kind == "call":
        shown = part.shown_text.encode(errors="surrogatepass")
        return {**block, "input": as_object(parse_object(shown, loads_exact))}
    return {**block, "text": part.shown_text}


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
        self._echo = echo
        self._mint_id = mint_id
        self._whole = MessageAccumulator()
        self._finished = Finished(None, None, "stop")

    def write(self, event: Event) -> bytes:
        added = self.add_text(event)
        if added is None:
            return b"".join(map(encode, self.compose(event)))
        frame, text = added
        return b"" if frame is None else frame.write(text)

    def keep_alive(self) -> bytes:
        return PING

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream."""
        for wire_event in self._translate(event):
            self._whole.add(*wire_event)

    def write_whole(self, end: ResponseEnded) -> bytes:
        """Write the whole message, also of an answer that is to fail with it."""
        self.note(replace(end, error=None))
        return _encode_whole(self._whole.message, end)

    # Events

    def _start(self, event: Event) -> WireEvents:
        model = event.model if isinstance(event, ResponseStarted) else ""
        message_id, model = self._mint_id("msg_"), model or string(self._echo.body.get("model"))
        message = complete_start({"id": message_id, "model": model})
        yield "message_start", {"message": message}
        yield "ping", {}

    def _finish(self, event: Finished) -> WireEvents:
        self._finished = event
        yield from self._blocks.finish()

    def _end(self, event: ResponseEnded) -> WireEvents:
        """End the message. One that fails has no stop reason."""
        self._is_over = True
        yield from self._blocks.finish() if event.ok else self._blocks.break_off()
        if (error := self._failure(event)) is not None:
            yield "error", error_body(error.message, code=error.code)
            return
        yield "message_delta", self._build_delta(event)
        yield "message_stop", {}

    def _build_delta(self, event: ResponseEnded) -> Json:
        tokens = event.usage or self._usage
        merged = self._merges_usage and tokens is not None and tokens.input is not None
        return {
            "delta": {**self._build_stop(), **self._other_fields()},
            "usage": add_share(write_usage(tokens), event.share, merged=merged),
        }

    def _other_fields(self) -> Json:
        """Return what no block can say: sources that came after their text, and what upstream ran
        itself."""
        citations = [self._blocks.write_citation(citation) for citation in self._citations]
        fields = {"citations": citations, HOSTED_CALLS: list(self._finished.hosted_calls)}
        return {name: entries for name, entries in fields.items() if entries}

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
    """Add up the events of a stream to the whole message, as Anthropic's clients do."""

    def __init__(self) -> None:
        self.message: Json = {}
        self._texts: dict[str, StringIO] = {}  # of the open block, by the field of a delta

    def add(self, event_type: str, fields: Json) -> None:
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


def _read_input(arguments: str) -> Json:
    """Return a call's input, which has to be an object."""
    given = parse_object(arguments.encode(errors="surrogatepass"), loads_exact)
    return wrap_invalid(arguments) if given is None else given
