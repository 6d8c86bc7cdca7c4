"""Make a response of what upstream sent: strategies that complete a stream, or build a whole body.

There are two. `UpstreamCompletion` is for an upstream of the same API: its chunks go out in their
frames, so that only what Abridge adds is composed, and its whole body is patched.
`TranslatedCompletion` is for an upstream of another API: all chunks are composed, and a whole
completion is their sum.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from abridge.apis.api import RequestEcho
from abridge.apis.chat.accumulator import MessageAccumulator
from abridge.apis.chat.choice_reader import REASONING_ITEM
from abridge.apis.chat.choice_writer import PART_SEPARATOR, ChoiceWriter
from abridge.apis.chat.envelopes import EnvelopeBuilder, make_entry, make_envelope, next_index
from abridge.apis.chat.framing import CHUNK_OBJECT, MAX_CHOICES
from abridge.apis.chat.inline import split_inline
from abridge.apis.chat.reasoning import (
    DEFAULT_FIELD,
    FieldLayout,
    FoundReasoning,
    extract_native_summary,
    find_reasoning,
    get_index,
    replace_reasoning,
    trusts_summaries,
    without_reasoning,
)
from abridge.apis.display import Display
from abridge.apis.hosted_calls import HOSTED_CALLS
from abridge.apis.json import loads_exact, objects, parse_object, string
from abridge.apis.openai import MintId, mint_id
from abridge.apis.usage import CHAT_USAGE
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    NO_SUMMARY,
    Event,
    ItemSummary,
    ResponseEnded,
    ResponseStarted,
    TurnRecorded,
    UsageReported,
)
from abridge.core.usage import Tokens
from abridge.providers.profile import Profile


class Completion(Protocol):
    """Makes one response for the client."""

    is_translated: ClassVar[bool]
    """Every chunk is composed, so nothing follows an error."""

    header: Json  # the fields that every composed chunk repeats

    choices: dict[int | None, ChoiceWriter]  # by their lanes

    includes_usage: bool  # the client asked for a last chunk with the usage, to be composed

    over_limit: bool  # more would have to be held than is allowed

    def get_choice(self, lane: int) -> ChoiceWriter | None:
        """Return the writer of a choice; None if there is to be no such choice."""

    def compose(self, event: Event) -> list[Json]:
        """Compose the choices of chunks, one each, for an event that carries no frame."""

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream."""

    def build_whole(self, end: ResponseEnded) -> Json | None:
        """Build the whole completion; None if upstream's body is to go out as it is."""

    def write_usage(self, end: ResponseEnded, /) -> Json:
        """Return the fields with the usage."""


class UpstreamCompletion:
    """Add to what upstream wrote in this API."""

    is_translated: ClassVar[bool] = False
    includes_usage = False
    over_limit = False

    def __init__(self, profile: Profile, display: Display) -> None:
        self._display = display
        self._rewriter = ChoiceRewriter(profile, display)
        self.choices: dict[int | None, ChoiceWriter] = {}
        self._recorded_turns: dict[int, RecordedTurn] = {}
        self.header: Json = {}

    def get_choice(self, lane: int) -> ChoiceWriter:
        if lane not in self.choices:
            self.choices[lane] = ChoiceWriter(lane, self._display)
        return self.choices[lane]

    def compose(self, event: Event) -> list[Json]:
        lane = event.lane
        if lane is not None:
            return (self.choices.get(lane) or self.get_choice(lane)).write(event)
        if isinstance(event, ResponseStarted):
            header = {"id": event.id, "object": CHUNK_OBJECT}
            self.header = {**header, "created": event.created, "model": event.model}
        return []

    def note(self, event: Event) -> None:
        """Keep the recorded turn; all else is in upstream's body, which the last event carries."""
        if isinstance(event, TurnRecorded):
            self._recorded_turns[event.lane or 0] = event.turn

    def build_whole(self, end: ResponseEnded) -> Json | None:
        completion = parse_object(end.frame or b"", loads_exact) if end.ok else None
        if completion is None:
            return None
        for choice in objects(completion.get("choices")):
            lane = get_index(choice)
            self._rewriter.rewrite(choice, end.summaries.get((lane, REASONING_ITEM), NO_SUMMARY))
            if lane in self._recorded_turns:
                self._add_envelope(choice["message"], self._recorded_turns[lane])
        CHAT_USAGE.add_share(completion, end.share, merged=self._display.merge_usage)
        return completion

    def write_usage(self, _end: ResponseEnded, /) -> Json:
        return {}  # upstream writes it

    def _add_envelope(self, message: Json, turn: RecordedTurn) -> None:
        name, seal = self._display.envelope_field, self._display.seal
        if seal is not None and (blob := seal(make_envelope(turn))):
            entries = message.get(name)
            entries = entries if isinstance(entries, list) else []
            message[name] = [*entries, make_entry(blob, name, next_index(entries))]


class TranslatedCompletion:
    """Write a whole answer of translated events.

    A stream holds the arguments of calls that can be written only once they are whole, at most
    `limit` characters for each choice.
    """

    is_translated: ClassVar[bool] = True

    def __init__(
        self, display: Display, echo: RequestEcho, limit: int, mint_id: MintId = mint_id
    ) -> None:
        self._display = display
        self._echo = echo
        self._limit = limit
        self._mint_id = mint_id
        self.choices: dict[int | None, ChoiceWriter] = {}
        self._sums: dict[int, _ChoiceSum] | None = None
        self._usage: Tokens | None = None
        self.header: Json = {}
        self.over_limit = False
        options = echo.body.get("stream_options")
        self.includes_usage = isinstance(options, dict) and options.get("include_usage") is True

    def get_choice(self, lane: int) -> ChoiceWriter | None:
        return self.choices.get(lane)

    def compose(self, event: Event) -> list[Json]:
        announced: list[Json] = []
        if not self.header:
            self._start(event)
            announced = self._announce(0)
        if isinstance(event, UsageReported):
            self._usage = event.usage
        if (lane := event.lane) is None:
            return announced
        if lane not in self.choices:
            announced += self._announce(lane)
        if (choice := self.choices.get(lane)) is None:
            return announced
        composed = choice.write(event)
        self.over_limit = self.over_limit or choice.remaining < 0
        return announced + composed if announced else composed

    def note(self, event: Event) -> None:
        sums = self._sums = self._sums or {}
        for choice in self.compose(event):
            sums.setdefault(choice["index"], _ChoiceSum()).add(choice)

    def build_whole(self, end: ResponseEnded) -> Json:
        self.note(end)
        choices = [added.as_dict(index) for index, added in (self._sums or {}).items()]
        completion = {**self.header, "object": "chat.completion", "choices": choices}
        return {**completion, **self.write_usage(end)}

    def write_usage(self, end: ResponseEnded, /) -> Json:
        fields: Json = {}
        tokens, merged = end.usage or self._usage, self._display.merge_usage
        CHAT_USAGE.write_with_share(fields, tokens, end.share, merged=merged)
        return fields

    def _start(self, event: Event) -> None:
        unknown = ResponseStarted(None, None, "", "", 0)
        started = event if isinstance(event, ResponseStarted) else unknown
        self.header = {
            "id": self._mint_id("chatcmpl-"),
            "object": CHUNK_OBJECT,
            "created": started.created or int(self._echo.now()),
            "model": started.model or string(self._echo.body.get("model")),
        }

    def _announce(self, lane: int) -> list[Json]:
        """Announce choices in order of their index: strict clients fail otherwise."""
        announced: list[Json] = []
        for number in range(len(self.choices), min(lane + 1, MAX_CHOICES)):
            self.choices[number] = self._make_choice(number)
            delta = {"role": "assistant", "content": ""}
            announced.append({"index": number, "delta": delta, "finish_reason": None})
        return announced

    def _make_choice(self, number: int) -> ChoiceWriter:
        builder = EnvelopeBuilder(self._limit) if self._display.seal is not None else None
        return ChoiceWriter(
            number,
            self._display,
            self._echo.tools,
            self._mint_id,
            builder,
            max_held=self._limit,
            whole=self._sums is not None,
        )


OTHER_FIELDS = ("summary_error", "annotations", HOSTED_CALLS)
"""Fields of a message that come whole, in one delta."""


@dataclass(slots=True)
class _ChoiceSum:
    """A choice of a completion, added up from the choices of its chunks."""

    message: MessageAccumulator = field(default_factory=lambda: MessageAccumulator(sys.maxsize))
    other_fields: Json = field(default_factory=dict)
    logprobs: dict[str, list[Json]] = field(default_factory=dict)
    finish: str = "stop"

    def add(self, choice: Json) -> None:
        delta = choice["delta"]
        self.message.add(delta)
        self.other_fields.update({key: delta[key] for key in OTHER_FIELDS if key in delta})
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


class ChoiceRewriter:
    """Put a summary into a choice, and remove what its client is not to see.

    The rules are those of a stream.
    """

    def __init__(self, profile: Profile, display: Display) -> None:
        self._profile = profile
        self._display = display
        self._layout = FieldLayout(display)

    def rewrite(self, choice: Json, summary: ItemSummary) -> None:
        message = choice.get("message")
        found = self._take_reasoning(message) if isinstance(message, dict) else None
        if message is None or found is None or self._display.is_plain:
            return
        if not (found.native and self._display.show_summary):
            choice["message"] = self._rewrite_message(message, found, summary)
        elif not self._display.show_raw:
            choice["message"] = {**without_reasoning(message), **extract_native_summary(message)}

    def _take_reasoning(self, message: Json) -> FoundReasoning | None:
        """Find the message's reasoning; inline reasoning is removed from the content.

        Where a field holds the reasoning, tags in the text belong to the answer.
        """
        trusted = trusts_summaries(self._profile, self._display)
        found = find_reasoning(message, trusts_summaries=trusted)
        if found is not None or self._display.hides_raw:
            return found
        inline, rest = split_inline(message.get("content"), self._profile, no_field=True)
        if not inline.strip():
            return None
        message["content"], message[DEFAULT_FIELD] = rest, inline
        return FoundReasoning(inline, DEFAULT_FIELD)

    def _rewrite_message(self, message: Json, found: FoundReasoning, summary: ItemSummary) -> Json:
        field = self._layout.raw_field(found.field)
        if found.native or not self._display.show_raw:
            message = without_reasoning(message)
        elif field != found.field or self._display.show_summary:
            message = replace_reasoning(message, self._layout.build_raw(field, found.text))
        if summary.parts:
            message[self._layout.summary_field(found.field)] = PART_SEPARATOR.join(summary.parts)
        if summary.parts and self._display.add_details:
            details = [
                self._layout.build_summary_detail(text, part)
                for part, text in enumerate(summary.parts)
            ]
            message["reasoning_details"] = objects(message.get("reasoning_details")) + details
        if summary.error is not None:
            message["summary_error"] = summary.error.as_dict()
        return message
