"""Build a message from translated events, block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from types import MappingProxyType

from abridge.apis.api import RequestEcho
from abridge.apis.display import Display
from abridge.apis.hosted_calls import HOSTED_CALLS
from abridge.apis.json import loads_exact, parse_object, string
from abridge.apis.messages.calls import wrap_invalid
from abridge.apis.messages.errors import error_body
from abridge.apis.messages.lifecycle import complete_start
from abridge.apis.messages.translated_blocks import (
    DELTA_FIELDS,
    TranslatedContent,
)
from abridge.apis.messages.usage import add_share, write_usage
from abridge.apis.openai import MintId, mint_id
from abridge.apis.translated_answer import TranslatedAnswer, WireEvents
from abridge.core.conversation import Json
from abridge.core.events import (
    Event,
    Finished,
    FinishReason,
    ResponseEnded,
    ResponseStarted,
)

STOP_REASONS: Mapping[FinishReason, str] = MappingProxyType(
    {
        "stop": "end_turn",
        "length": "max_tokens",
        "tool_calls": "tool_use",
        "content_filter": "refusal",
    }
)
"""Anthropic's stop reasons (Anthropic API reference, `StopReason`)."""


class TranslatedMessage(TranslatedAnswer):
    """Build one message. A stream fails once more than `limit` characters came of it."""

    def __init__(
        self, display: Display, echo: RequestEcho, limit: int, mint_id: MintId = mint_id
    ) -> None:
        self._blocks = TranslatedContent(display, echo.tools, limit, mint_id)
        super().__init__(self._blocks, limit)
        self._merges_usage = display.merge_usage
        self._echo = echo
        self._mint_id = mint_id
        self._whole = MessageAccumulator()
        self._finished = Finished(None, None, "stop")

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream."""
        for event_type, fields in self._translate(event):
            self._whole.add(event_type, fields)

    def build_whole(self, end: ResponseEnded) -> Json:
        """Build the whole message, also of an answer that is to fail with it."""
        self.note(replace(end, error=None))
        return self._whole.message

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
