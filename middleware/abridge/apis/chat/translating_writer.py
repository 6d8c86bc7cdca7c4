"""Write thinking blocks, in which clients keep the state that upstream wants back.

They have LiteLLM's shape: `{"type": "thinking", "thinking", "signature"}` and `{"type":
"redacted_thinking", "data"}`; pieces of one block have the same `index`.

Write the translated events of one choice as the deltas of a stream.

Write Chat Completions for an upstream of another API: as chunks, or as a whole completion.

A completion is the sum of its chunks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from abridge.apis import sse
from abridge.apis.api import RequestEcho
from abridge.apis.chat.envelope_builder import EnvelopeBuilder
from abridge.apis.chat.envelopes import make_entry
from abridge.apis.chat.errors import encode_error
from abridge.apis.chat.message import ARGUMENTS_FIELDS, MessageAccumulator
from abridge.apis.chat.reader import DONE_FRAME, MAX_CHOICES
from abridge.apis.chat.writer import PART_SEPARATOR, ReasoningFields
from abridge.apis.display import Display
from abridge.apis.errors import ANSWER_TOO_LONG, CONNECTION_LOST
from abridge.apis.json import dumps, string
from abridge.apis.openai import MintId, complete_logprobs, failure_body, mint_id
from abridge.apis.tools import unwrap_free_text
from abridge.apis.usage import CHAT_USAGE
from abridge.core.conversation import Json
from abridge.core.events import (
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    NativeSummary,
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
)
from abridge.core.model_request import Tool
from abridge.core.usage import Tokens
from abridge.providers.profile import Profile


class ThinkingBlocks:
    """Write the blocks of one choice.

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


@dataclass(slots=True)
class _WrittenCall:
    kind: str
    custom_tool: Tool | None = None  # a custom tool, which upstream was offered as a function
    held_arguments: list[str] = field(
        default_factory=list
    )  # its arguments, held until they are whole

    def fragment(self, text: str) -> Json:
        return {self.kind: {ARGUMENTS_FIELDS[self.kind]: text}}


class TranslatedChoiceWriter:
    """Write each event as choices of chunks, without their index."""

    def __init__(
        self,
        lane: int,
        display: Display,
        reasoning_fields: ReasoningFields,
        tools: Mapping[str, Tool],
        mint_id: MintId,
        *,
        remaining: int,
        whole: bool,
    ) -> None:
        self._lane = lane
        self._display = display
        self._reasoning_fields = reasoning_fields
        self._tools = tools
        self._mint_id = mint_id
        self.remaining = remaining  # characters that may still be held
        self._thinking_blocks = ThinkingBlocks(with_text=whole)
        self._calls: dict[int, _WrittenCall] = {}
        self._last_message: int | None = None
        self._error_written = False
        self._envelope_builder = EnvelopeBuilder(remaining) if display.seal is not None else None

    def write(self, event: Event) -> Iterator[Json]:
        return (
            self._write(event)
            if self._envelope_builder is None
            else self._write_and_record(event, self._envelope_builder)
        )

    def _write_and_record(self, event: Event, builder: EnvelopeBuilder) -> Iterator[Json]:
        builder.add_event(event)
        for choice in self._write(event):
            builder.add_delta(choice["delta"])
            yield choice

    def _write(self, event: Event) -> Iterator[Json]:
        match event:
            case ReasoningStarted():
                self._reasoning_fields.note_start(event)
            case ReasoningDelta() if self._display.show_raw and event.text:
                self._thinking_blocks.add_raw(event.text)
                yield _wrap_delta(
                    self._reasoning_fields.add_raw((self._lane, event.item), event.text)
                )
            case SummaryTextDelta():
                yield _wrap_delta(self._add_summary(event.item, event.index, event.text))
            case NativeSummary() if self._display.show_summary and event.text:
                blocks = self._thinking_blocks.add_summary(event.index, event.text)
                yield _wrap_delta(
                    {**self._add_summary(event.item, event.index, event.text), **blocks}
                )
            case ProviderState():
                yield _wrap_delta(self._thinking_blocks.add_state(event))
            case ReasoningEnded():
                yield from self._write_summary_error(event)
            case ToolCallDelta():
                yield from self._write_call(event)
            case ContentDelta():
                yield self._write_answer(event)
            case Finished():
                yield from self._write_held_calls()
                yield from self._write_envelope()
                yield {"delta": {}, "finish_reason": event.reason}

    def _add_summary(self, item: int, index: int, text: str) -> Json:
        return self._reasoning_fields.add_summary((self._lane, item), index, text)

    def _write_summary_error(self, event: ReasoningEnded) -> Iterator[Json]:
        """Report once, as a stretch ends, why there is no summary."""
        self._thinking_blocks.close()
        error = event.summary.error
        if error is not None and not self._error_written:
            self._error_written = True
            yield _wrap_delta({"summary_error": error.as_dict()})

    def _write_answer(self, event: ContentDelta) -> Json:
        """Write a piece of the answer; a blank line separates several messages of upstream's."""
        logprobs = complete_logprobs(event.logprobs) or None
        if isinstance(event, RefusalDelta):
            fields = {"content": None, "refusal": logprobs}
            return _wrap_delta({"refusal": event.refusal}, fields if logprobs else None)
        is_new = self._last_message not in (None, event.message_index)
        self._last_message = event.message_index
        fields = {"content": logprobs, "refusal": None}
        return _wrap_delta(
            {"content": PART_SEPARATOR * is_new + event.text}, fields if logprobs else None
        )

    def _write_call(self, event: ToolCallDelta) -> Iterator[Json]:
        call = self._calls.get(event.call_index)
        if call is None:
            yield _wrap_delta({"tool_calls": [self._start_call(event)]})
        elif call.custom_tool is not None:
            self._hold_arguments(call, event.arguments)
        elif event.arguments:
            fragment = {"index": event.call_index, **call.fragment(event.arguments)}
            yield _wrap_delta({"tool_calls": [fragment]})

    def _start_call(self, event: ToolCallDelta) -> Json:
        tool = self._tools.get(event.name)
        custom = event.custom or (tool is not None and tool.kind == "custom")
        call = self._calls[event.call_index] = _WrittenCall("custom" if custom else "function")
        text = event.arguments
        if custom and not event.custom:
            call.custom_tool, text = tool, ""
            self._hold_arguments(call, event.arguments)
        name = tool.client_name if tool is not None and tool.client_name else event.name
        return {
            "index": event.call_index,
            "id": event.id or self._mint_id("call_"),
            "type": call.kind,
            call.kind: {"name": name, ARGUMENTS_FIELDS[call.kind]: text},
        }

    def _hold_arguments(self, call: _WrittenCall, arguments: str) -> None:
        self.remaining -= len(arguments)
        call.held_arguments.append(arguments)

    def _write_held_calls(self) -> Iterator[Json]:
        """Write the input of the custom tools' calls, whose arguments are whole now."""
        for number, call in self._calls.items():
            if call.custom_tool is not None:
                text = unwrap_free_text(call.custom_tool, "".join(call.held_arguments))
                yield _wrap_delta({"tool_calls": [{"index": number, **call.fragment(text)}]})

    def _write_envelope(self) -> Iterator[Json]:
        """Write the envelope in which the reasoning comes back unchanged, if there is one."""
        envelope = self._envelope_builder.build() if self._envelope_builder is not None else None
        if self._display.seal is None or envelope is None:
            return
        name, blocks = self._display.envelope_field, self._thinking_blocks.next_index
        if blob := self._display.seal(envelope):
            entries = self._reasoning_fields.count_entries(self._lane, name)
            index = blocks if name == "thinking_blocks" else entries
            yield _wrap_delta({name: [make_entry(blob, name, index)]})


def _wrap_delta(delta: Json, logprobs: Json | None = None) -> Json:
    fields = {} if logprobs is None else {"logprobs": logprobs}
    return {"delta": delta, **fields, "finish_reason": None}


@dataclass(slots=True)
class _CompletionChoice:
    """A choice of a completion, added up from its chunks."""

    message: MessageAccumulator = field(default_factory=lambda: MessageAccumulator(sys.maxsize))
    other_fields: Json = field(default_factory=dict)
    logprobs: dict[str, list[Json]] = field(default_factory=dict)
    finish: str = "stop"

    def add(self, choice: Json) -> None:
        delta = choice["delta"]
        self.message.add(delta)
        self.other_fields.update({key: delta[key] for key in ("summary_error",) if key in delta})
        for name, entries in (choice.get("logprobs") or {}).items():
            if entries:
                self.logprobs.setdefault(name, []).extend(entries)
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


class ChatTranslatingWriter:
    """Write one response. See the protocol `Writer`.

    A stream holds the arguments of calls that can be written only once they are whole, at most
    `limit` characters for each choice: past that it fails.
    """

    final_response = None

    def __init__(
        self,
        _profile: Profile,
        display: Display,
        echo: RequestEcho,
        limit: int,
        mint_id: MintId = mint_id,
    ) -> None:
        self._display = display
        self._echo = echo
        self._limit = limit
        self._mint_id = mint_id
        self._reasoning_fields = ReasoningFields(display)
        self._header: Json = {}
        self._choices: dict[int, TranslatedChoiceWriter] = {}
        self._whole_choices: dict[int, _CompletionChoice] | None = None
        self._usage: Tokens | None = None
        self._error: ErrorDetail | None = None
        options = echo.body.get("stream_options")
        self._includes_usage = isinstance(options, dict) and options.get("include_usage") is True

    def write(self, event: Event) -> bytes:
        if isinstance(event, ErrorReported):
            self._error = event.error
            return encode_error(event.error)
        if isinstance(event, ResponseEnded):
            return self._write_end(event)
        if self._error is not None:
            return b""
        data = b"".join(self._encode_chunk([choice]) for choice in self._write_choices(event))
        if any(choice.remaining < 0 for choice in self._choices.values()):
            return data + self.write(ErrorReported(None, None, ANSWER_TOO_LONG))
        return data

    def keep_alive(self) -> bytes:
        return b""

    def note(self, event: Event) -> None:
        whole = self._whole_choices = self._whole_choices or {}
        if isinstance(event, ErrorReported):
            self._error = event.error
        for choice in self._write_choices(event):
            whole.setdefault(choice["index"], _CompletionChoice()).add(choice)

    def write_whole(self, end: ResponseEnded) -> bytes:
        self.note(end)
        error = end.error if end.ok else end.error or self._error or CONNECTION_LOST
        completion = self._make_completion(end, self._whole_choices or {})
        if error is None:
            return dumps(completion)
        return dumps(failure_body(error, completion))

    def _make_completion(
        self, end: ResponseEnded, choices: Mapping[int, _CompletionChoice]
    ) -> Json:
        completion = {
            **self._header,
            "object": "chat.completion",
            "choices": [whole.as_dict(index) for index, whole in choices.items()],
        }
        CHAT_USAGE.write_with_share(
            completion, end.usage or self._usage, end.share, merged=self._display.merge_usage
        )
        return completion

    # Chunks

    def _encode_chunk(self, choices: list[Json], **more: Json | None) -> bytes:
        usage = {"usage": None} if self._includes_usage else {}
        return sse.encode_frame(dumps({**self._header, "choices": choices, **usage, **more}))

    def _write_choices(self, event: Event) -> Iterator[Json]:
        if not self._header:
            self._start(event)
            yield from self._announce(0)
        if isinstance(event, UsageReported):
            self._usage = event.usage
        elif event.lane is not None:
            yield from self._announce(event.lane)
            if (choice := self._choices.get(event.lane)) is not None:
                for fields in choice.write(event):
                    yield {"index": event.lane, **fields}

    def _start(self, event: Event) -> None:
        started = (
            event if isinstance(event, ResponseStarted) else ResponseStarted(None, None, "", "", 0)
        )
        self._header = {
            "id": self._mint_id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": started.created or int(self._echo.now()),
            "model": started.model or string(self._echo.body.get("model")),
        }

    def _announce(self, lane: int) -> Iterator[Json]:
        """Announce choices in order of their index: strict clients fail otherwise."""
        for number in range(len(self._choices), min(lane + 1, MAX_CHOICES)):
            self._choices[number] = TranslatedChoiceWriter(
                number,
                self._display,
                self._reasoning_fields,
                self._echo.tools,
                self._mint_id,
                remaining=self._limit,
                whole=self._whole_choices is not None,
            )
            delta = {"role": "assistant", "content": ""}
            yield {"index": number, "delta": delta, "finish_reason": None}

    def _write_end(self, event: ResponseEnded) -> bytes:
        """Write the end; before it, if the client asked for usage, a separate chunk with that."""
        if self._error is not None:
            return b""
        opening = b"".join(self._encode_chunk([choice]) for choice in self._write_choices(event))
        error = event.error if event.ok else event.error or CONNECTION_LOST
        if error is not None:
            return opening + encode_error(error)
        if not self._includes_usage:
            return opening + DONE_FRAME
        usage: Json = {}
        CHAT_USAGE.write_with_share(
            usage, event.usage or self._usage, event.share, merged=self._display.merge_usage
        )
        return opening + self._encode_chunk([], **usage) + DONE_FRAME
