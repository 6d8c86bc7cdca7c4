"""Read one choice of a stream: split its deltas into reasoning and answer.

A delta that holds one kind of thing keeps its shape. One that holds several becomes several pieces:
the role first, then reasoning, then the answer; unknown fields go with the last. Text that may yet
turn out to be an inline tag is held back, and so are the unknown fields that came with it. Once it
is known to be text, each piece of it goes out as it came.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abridge.apis.chat.accumulator import MessageAccumulator
from abridge.apis.chat.inline import InlineSplit, TagReader
from abridge.apis.chat.reasoning import (
    ANSWER_FIELDS,
    DEFAULT_FIELD,
    REASONING_FIELDS,
    FoundReasoning,
    extract_native_summary,
    extract_reasoning,
    extract_state,
    find_reasoning,
    get_delta,
    is_reasoning_field,
    read_answer_text,
    trusts_summaries,
    without_thinking_chunks,
)
from abridge.apis.display import Display
from abridge.apis.endings import infer_reason
from abridge.core.conversation import Json
from abridge.core.events import (
    ContentDelta,
    Event,
    FinishReason,
    NativeSummary,
    Passthrough,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
)
from abridge.providers.catalog import TEXT_FIELDS
from abridge.providers.profile import Profile
from abridge.stages.tags import MAX_LEADING_BLANKS

REASONING_ITEM = 0
"""The number of a choice's only reasoning item."""

MAX_HELD_DELTAS = MAX_LEADING_BLANKS + 64
"""Deltas held back with text that may yet become a block. A tag and the blank before it have no
more characters: deltas beyond that hold no text."""


@dataclass(slots=True)
class ChunkPiece:
    """An event, and the choices that go into its frame."""

    event: Event
    choices: list[Json] | None = None  # None: the event has no frame


class ChoiceReader:
    """Read the deltas of one choice into pieces."""

    def __init__(self, lane: int, profile: Profile, display: Display, limit: int) -> None:
        self.lane = lane
        self.message = MessageAccumulator(limit)
        self.announced = False
        self.finished = False
        self.reasoning_open = False  # a stretch of reasoning is open
        self._shows_raw = display.show_raw
        self._shows_summary = display.show_summary
        self._trusts_summaries = trusts_summaries(profile, display)
        tags = () if display.hides_raw else profile.tags  # the texts have no thinking any more
        self._tag_reader = TagReader(tags, prefilled=profile.prefilled and bool(tags))
        self._held: list[HeldContent] = []

    def infer_reason(self) -> FinishReason | None:
        """Return why the choice stops, where upstream does not say so; None if it fails."""
        message = self.message
        return infer_reason(has_open_part=message.has_cut_call, has_calls=message.has_calls)

    def announce(self) -> ChunkPiece:
        """Make the choice's first chunk, with the role, where upstream sent none."""
        self.announced = True
        return self._make_piece(Passthrough(self.lane, None), {"role": "assistant", "content": ""})

    def empty_piece(self) -> ChunkPiece:
        """Make a piece with an empty delta, to carry other fields."""
        return self._make_piece(Passthrough(self.lane, None), {})

    def open_reasoning(self, field: str) -> ReasoningStarted:
        """Begin a stretch of reasoning."""
        self.reasoning_open = True
        return ReasoningStarted(self.lane, None, REASONING_ITEM, field)

    def close_reasoning(self) -> list[ChunkPiece]:
        """End the stretch of reasoning, if one is open."""
        was_open, self.reasoning_open = self.reasoning_open, False
        return [ChunkPiece(ReasoningEnded(self.lane, None, REASONING_ITEM))] if was_open else []

    def flush(self) -> list[ChunkPiece]:
        """Release what was held back, when the stream ends without a finish reason."""
        inline = self._tag_reader.read({}, is_last=True)
        return (
            [] if inline is None else self._split_delta({}, {}, None, inline, separate_finish=False)
        )

    def is_continued_by(self, field: str) -> bool:
        """Return whether text in this field of a delta continues what is being said.

        If it is all that the chunk says, `proceed` gives the result of `read` in a fraction of the
        time, and so it does with the text of any chunk like it that follows.
        """
        tags = self._tag_reader
        if not self.announced or self.finished or self._held or tags.holding:
            return False
        if field == "content":
            return tags.answering and not self.reasoning_open
        if field == "tool_calls":
            return not (self.reasoning_open or tags.is_inside)
        return field in TEXT_FIELDS and self.reasoning_open

    def proceed(self, name: str, text: str, frame: bytes | None) -> Event:
        """Read more of what is being said."""
        self.message.append_text(name, text)
        if name == "content":
            return ContentDelta(self.lane, frame, text)
        self._tag_reader.note_field()
        return ReasoningDelta(self.lane, frame if self._shows_raw else None, REASONING_ITEM, text)

    def read(self, choice: Json, *, separate_finish: bool) -> list[ChunkPiece]:
        """Read a chunk's choice. With `separate_finish` the finish comes as a separate piece.

        A piece that holds `choice` itself needs no new frame.
        """
        delta = get_delta(choice)
        if "message" in choice:
            choice = self._without_message(choice, delta)
        finish = bool(choice.get("finish_reason"))
        found = find_reasoning(delta, trusts_summaries=self._trusts_summaries)
        if found is not None and found.text:
            self._tag_reader.note_field()
        gives_up = len(self._held) >= MAX_HELD_DELTAS
        inline = self._tag_reader.read(delta, is_last=finish, gives_up=gives_up)
        repeated = self.announced and bool(delta.get("role"))
        follows = bool(self._held) and (found is None or not self._tag_reader.holding)
        plain = not (inline is not None or repeated or follows or (finish and separate_finish))
        if plain and found is None:
            pieces = self._read_answer(choice, delta, finish=finish)
        elif plain and found is not None and self._has_only_reasoning(choice, delta, found):
            pieces = self._make_reasoning(found, [choice])
        else:
            pieces = self._split_delta(
                choice, delta, found, inline, separate_finish=separate_finish
            )
        self.finished = self.finished or finish
        self.announced = True
        return pieces

    def _without_message(self, choice: Json, delta: Json) -> Json:
        """Make a delta of a message that takes its place; one that repeats all deltas stays."""
        if choice.get("delta") is delta:
            return choice
        others = {key: value for key, value in choice.items() if key != "message"}
        return {**others, "delta": delta}

    def _has_only_reasoning(self, choice: Json, delta: Json, found: FoundReasoning) -> bool:
        """Return whether the choice holds reasoning alone, and all of that is shown."""
        if not self._is_shown(found):
            return False
        answers = without_thinking_chunks(delta.get("content")) or any(
            delta.get(key) for key in ANSWER_FIELDS[1:]
        )
        fresh = delta.get("role") or not self.announced
        return not (answers or fresh or choice.get("finish_reason"))

    def _read_answer(self, choice: Json, delta: Json, *, finish: bool) -> list[ChunkPiece]:
        answers = any(delta.get(key) for key in ANSWER_FIELDS)
        closing = self.close_reasoning() if answers or finish else []
        text = read_answer_text(delta.get("content"))
        event = ContentDelta(self.lane, None, text) if answers else Passthrough(self.lane, None)
        return [*closing, ChunkPiece(event, [choice])]

    def _is_shown(self, found: FoundReasoning) -> bool:
        return self._shows_summary if found.native else self._shows_raw

    def _read_reasoning(self, found: FoundReasoning, delta: Json) -> list[ChunkPiece]:
        """Read the reasoning of a delta that holds more."""
        if not self._is_shown(found):
            opaque = extract_state(delta)
            rest = [self._make_piece(Passthrough(self.lane, None), opaque)] if opaque else []
            return [*self._make_reasoning(found, None), *rest]
        visible = extract_reasoning(delta) if self._shows_raw else extract_native_summary(delta)
        return self._make_reasoning(found, self._wrap_delta(visible))

    def _make_reasoning(
        self, found: FoundReasoning, choices: list[Json] | None
    ) -> list[ChunkPiece]:
        """Open a stretch at its first word that is not blank; after the finish open none."""
        opens = not (self.reasoning_open or self.finished) and bool(found.text.strip())
        opened = [ChunkPiece(self.open_reasoning(found.field))] if opens else []
        event: Event = ReasoningDelta(self.lane, None, REASONING_ITEM, found.text)
        if found.native and self.reasoning_open:
            event = NativeSummary(self.lane, None, REASONING_ITEM, 0, "delta", found.text)
        elif found.native:  # blank, or after the finish: part of no stretch
            event = Passthrough(self.lane, None)
        return [*opened, ChunkPiece(event, choices)]

    def _split_delta(
        self,
        choice: Json,
        delta: Json,
        found: FoundReasoning | None,
        inline: InlineSplit | None,
        *,
        separate_finish: bool,
    ) -> list[ChunkPiece]:
        pieces = [] if self.announced else [self.announce()]
        if found is not None:
            pieces += self._read_reasoning(found, delta)
        others, in_block = OtherFields.from_choice(choice, delta), bool(inline and inline.in_block)
        if self._tag_reader.holding and found is None and not in_block:
            self._held.append(HeldContent.of(delta, inline, others))
            return [*pieces, *self._split_answer(delta, inline)]
        if self._held and (in_block or not self._tag_reader.holding):
            released, inline = self._release_held(delta, inline)
            before, pieces = [*pieces, *released], []
        else:
            before = []
        pieces += self._read_inline(inline)
        answer = self._split_answer(delta, inline)
        pieces += answer
        if choice.get("finish_reason"):
            pieces += self.close_reasoning()
            pieces += [self.empty_piece()] if separate_finish or not answer else []
        return [*before, *self._attach_fields(pieces, choice, others)]

    def _read_inline(self, inline: InlineSplit | None) -> list[ChunkPiece]:
        """Read inline reasoning; where that is not shown, even tags have an event."""
        if inline is None or not (inline.raw or (inline.in_block and not self._shows_raw)):
            return []
        return self._make_reasoning(FoundReasoning(inline.raw, DEFAULT_FIELD), None)

    def _release_held(
        self, delta: Json, inline: InlineSplit | None
    ) -> tuple[list[ChunkPiece], InlineSplit | None]:
        """Release what was held back. If all of it is text, it goes out as it came, and so does
        the delta that follows it; else only the other fields are left of it."""
        held, self._held = self._held, []
        contents = [*(part.content for part in held), delta.get("content")]
        is_text = inline is not None and inline.is_text_of(contents)
        pieces = self.close_reasoning() if is_text else []
        kept = [part for part in held if part.others or (is_text and part.content)]
        pieces += [self._make_held_piece(part, is_text=is_text) for part in kept]
        return pieces, None if is_text else inline

    def _split_answer(self, delta: Json, inline: InlineSplit | None) -> list[ChunkPiece]:
        """Make the piece with the delta's part of the answer, if it holds any."""
        content = delta.get("content") if inline is None else inline.content
        answer = {"content": without_thinking_chunks(content)}
        answer |= {key: delta.get(key) for key in ANSWER_FIELDS[1:]}
        answer = {key: value for key, value in answer.items() if value}
        if not answer:
            return []
        text = read_answer_text(answer.get("content"))
        return [
            *self.close_reasoning(),
            self._make_piece(ContentDelta(self.lane, None, text), answer),
        ]

    def _attach_fields(
        self, pieces: list[ChunkPiece], choice: Json, others: OtherFields
    ) -> list[ChunkPiece]:
        """Add the finish reason and the unknown fields to the last piece."""
        if others and not any(piece.choices for piece in pieces):
            pieces.append(self.empty_piece())
        last = next((piece.choices[0] for piece in reversed(pieces) if piece.choices), None)
        if last is not None:
            last["delta"] = {**last["delta"], **others.delta}
            last["finish_reason"] = choice.get("finish_reason")
            last.update(others.choice)
        return pieces

    def _wrap_delta(self, delta: Json) -> list[Json]:
        return [{"index": self.lane, "delta": delta, "finish_reason": None}]

    def _make_held_piece(self, held: HeldContent, *, is_text: bool) -> ChunkPiece:
        """Make a piece of what was held back: all of it if it is text, else the other fields."""
        content = held.content if is_text else None
        text = read_answer_text(content)
        event = ContentDelta(self.lane, None, text) if content else Passthrough(self.lane, None)
        delta = {**({"content": content} if content else {}), **held.others.delta}
        (choice,) = self._wrap_delta(delta)
        return ChunkPiece(event, [{**choice, **held.others.choice}])

    def _make_piece(self, event: Event, delta: Json) -> ChunkPiece:
        return ChunkPiece(event, self._wrap_delta(delta))


# The other fields

_HANDLED_FIELDS = frozenset({"role", *ANSWER_FIELDS})

_KNOWN_FIELDS = _HANDLED_FIELDS.union(REASONING_FIELDS)

_CHUNK_CHOICE_FIELDS = frozenset({"index", "delta", "finish_reason"})


@dataclass(slots=True, frozen=True)
class OtherFields:
    """Fields of a delta and of its choice that hold neither reasoning nor answer."""

    delta: Json
    choice: Json

    @classmethod
    def from_choice(cls, choice: Json, delta: Json) -> OtherFields:
        others = _other_fields(delta, _HANDLED_FIELDS)
        return cls(
            {key: others[key] for key in others if not is_reasoning_field(key, others[key])},
            _other_fields(choice, _CHUNK_CHOICE_FIELDS),
        )

    def __len__(self) -> int:
        return len(self.delta) + len(self.choice)


@dataclass(slots=True, frozen=True)
class HeldContent:
    """Content that may yet become a block, as it came, and the fields beside it."""

    content: Any  # None if some of it is not held back
    others: OtherFields

    @classmethod
    def of(cls, delta: Json, inline: InlineSplit | None, others: OtherFields) -> HeldContent:
        is_whole = inline is not None and not inline.content
        return cls(delta.get("content") if is_whole else None, others)


def loses_fields(choice: Json) -> bool:
    """Return whether a choice with one text holds anything that is lost where that is not shown."""
    delta = choice["delta"]
    if delta.keys() <= _KNOWN_FIELDS:  # the usual case
        return bool(_other_fields(choice, _CHUNK_CHOICE_FIELDS))
    return bool(OtherFields.from_choice(choice, delta))


def _other_fields(fields: Json, known: frozenset[str]) -> Json:
    return {key: value for key, value in fields.items() if key not in known and value is not None}
