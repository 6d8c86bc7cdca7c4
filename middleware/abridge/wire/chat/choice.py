"""Read one choice of a stream: split its deltas into reasoning and answer.

A delta that holds one kind of thing keeps its shape. One that holds several becomes several: the
role first, then reasoning, then the answer; unknown fields go with the last. Text that may yet turn
out to be an inline tag is held back, and so are the unknown fields that came with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from abridge.turn.events import Closed, Event, Native, Opened, Other, Raw, Said
from abridge.wire.chat.beside import Beside
from abridge.wire.chat.dialects import (
    ANSWER,
    PLAIN,
    Found,
    answer_text,
    find,
    native_summary,
    said_in,
    sealed,
    thought,
    without_chunks,
)
from abridge.wire.chat.inline import Inline, TagReader
from abridge.wire.chat.message import Message
from abridge.wire.codec import Json
from abridge.wire.display import Display
from abridge.wire.profiles import Profile

ITEM = 0
"""The number of a choice's only reasoning item."""


@dataclass(slots=True)
class Piece:
    """An event, and the choices that go into its frame."""

    event: Event
    choices: list[Json] | None = None  # None: the event has no frame


class Choice:
    """Read the deltas of one choice into pieces."""

    def __init__(self, lane: int, profile: Profile, display: Display, limit: int) -> None:
        self.lane = lane
        self.message = Message(limit)
        self.announced = False
        self.finished = False
        self.dropped = 0  # unknown fields removed along with hidden reasoning
        self._hidden = not display.raw
        self._shows_summary = display.summary
        self._open = False  # a stretch of reasoning is open
        self._tags = TagReader(profile, hidden=not display.raw)
        self._held: Beside | None = None

    def announce(self) -> Piece:
        """Make the choice's first chunk, with the role, where upstream sent none."""
        self.announced = True
        return self._piece(Other(self.lane, None), {"role": "assistant", "content": ""})

    def silence(self) -> Piece:
        """Make a piece with an empty delta, to carry other fields."""
        return self._piece(Other(self.lane, None), {})

    def close(self) -> list[Piece]:
        """End the stretch of reasoning, if one is open."""
        was_open, self._open = self._open, False
        return [Piece(Closed(self.lane, None, ITEM))] if was_open else []

    def flush(self) -> list[Piece]:
        """Release what was held back, when the stream ends without a finish reason."""
        inline = self._tags.read({}, over=True)
        return [] if inline is None else self._split({}, {}, None, inline, apart=False)

    def more(self, choice: Json, frame: bytes | None) -> Event | None:
        """Read a chunk that only continues the current text, as nearly every chunk does; else None.

        The result is the same as that of `read`, in a fraction of the time.
        """
        delta = choice.get("delta")
        settled = self.announced and not self.finished and self._held is None
        if not settled or not isinstance(delta, dict) or choice.get("finish_reason"):
            return None
        said = [name for name, value in delta.items() if value]
        if len(said) != 1 or "message" in choice:
            return None
        name, text = said[0], delta[said[0]]
        if not isinstance(text, str):
            return None
        if name == "content" and self._tags.answering and not self._open:
            self.message.grow(name, text)
            return Said(self.lane, frame, text)
        if name in PLAIN and self._open:
            self._tags.give_way()
            self.message.grow(name, text)
            return Raw(self.lane, None if self._hidden else frame, ITEM, text)
        return None

    def read(self, choice: Json, *, apart: bool) -> list[Piece]:
        """Read a chunk's choice. With `separate_finish` the finish comes as a separate piece.

        A piece that holds `choice` itself needs no new frame.
        """
        delta = said_in(choice)
        if "message" in choice:
            choice = self._without_message(choice, delta)
        finish = bool(choice.get("finish_reason"))
        found = find(delta)
        if found is not None and found.text:
            self._tags.give_way()
        inline = self._tags.read(delta, over=finish)
        repeated = self.announced and bool(delta.get("role"))
        settled = self._held is not None and not self._tags.holding
        plain = not (inline is not None or repeated or settled or (finish and apart))
        if plain and found is None:
            pieces = self._answer(choice, delta, finish=finish)
        elif plain and found is not None and self._holds_one_thing(choice, delta, found):
            pieces = self._thought(found, delta, choice)
        else:
            pieces = self._split(choice, delta, found, inline, apart=apart)
        self.finished = self.finished or finish
        self.announced = True
        return pieces

    def _without_message(self, choice: Json, delta: Json) -> Json:
        """Drop a message, which in a stream takes the place of a delta or repeats them all."""
        if choice.get("delta") is delta:
            if not self._hidden:
                return choice
            self.dropped += 1
        kept = {key: value for key, value in choice.items() if key != "message"}
        return {**kept, "delta": delta}

    def _holds_one_thing(self, choice: Json, delta: Json, found: Found) -> bool:
        if found.native and self._hidden:
            beside = Beside.of(choice, delta)
            if native_summary(delta) != delta or len(beside) != len(beside.concealed()):
                return False
        answers = without_chunks(delta.get("content")) or any(delta.get(key) for key in ANSWER[1:])
        fresh = delta.get("role") or not self.announced
        return not (answers or fresh or choice.get("finish_reason"))

    def _answer(self, choice: Json, delta: Json, *, finish: bool) -> list[Piece]:
        answers = any(delta.get(key) for key in ANSWER)
        closing = self.close() if answers or finish else []
        text = answer_text(delta.get("content"))
        event = Said(self.lane, None, text) if answers else Other(self.lane, None)
        return [*closing, Piece(event, [choice])]

    def _thought(self, found: Found, delta: Json, alone: Json | None = None) -> list[Piece]:
        """Read the reasoning of a delta; `alone` is the choice, if it holds nothing else."""
        if not (self._shows_summary if found.native else not self._hidden):
            opaque = sealed(delta)
            rest = [self._piece(Other(self.lane, None), opaque)] if opaque else []
            return [*self._reasoning(found, None), *rest]
        if alone is not None:
            return self._reasoning(found, [alone])
        spelled = native_summary(delta) if self._hidden else thought(delta)
        return self._reasoning(found, self._choices(spelled))

    def _reasoning(self, found: Found, choices: list[Json] | None) -> list[Piece]:
        """Open a stretch at its first word that is not blank; after the finish open none."""
        opening = not (self._open or self.finished) and bool(found.text.strip())
        self._open = self._open or opening
        opened = [Piece(Opened(self.lane, None, ITEM, found.field))] if opening else []
        event: Event = Raw(self.lane, None, ITEM, found.text)
        if found.native and self._open:
            event = Native(self.lane, None, ITEM, 0, "say", found.text)
        elif found.native:  # blank, or after the finish: part of no stretch
            event = Other(self.lane, None)
        return [*opened, Piece(event, choices)]

    def _split(
        self, choice: Json, delta: Json, found: Found | None, inline: Inline | None, *, apart: bool
    ) -> list[Piece]:
        pieces = [] if self.announced else [self.announce()]
        if found is not None:
            pieces += self._thought(found, delta)
        if inline is not None and (inline.raw or (inline.thinking and self._hidden)):
            pieces += self._reasoning(Found(inline.raw, PLAIN[0]), None)
        pieces += self._rest(delta, inline)
        if choice.get("finish_reason"):
            pieces += self.close()
            if apart or not pieces or not isinstance(pieces[-1].event, Said):
                pieces.append(self.silence())
        reasoned = found is not None or (inline is not None and inline.thinking)
        return self._hand_on(pieces, choice, Beside.of(choice, delta), reasoned=reasoned)

    def _rest(self, delta: Json, inline: Inline | None) -> list[Piece]:
        """Make the piece with the delta's part of the answer, if it holds any."""
        content = delta.get("content") if inline is None else inline.content
        answer = {"content": without_chunks(content)}
        answer |= {key: delta.get(key) for key in ANSWER[1:]}
        answer = {key: value for key, value in answer.items() if value}
        if not answer:
            return []
        text = answer_text(answer.get("content"))
        return [*self.close(), self._piece(Said(self.lane, None, text), answer)]

    def _hand_on(
        self, pieces: list[Piece], choice: Json, beside: Beside, *, reasoned: bool
    ) -> list[Piece]:
        """Add the finish reason and the unknown fields to the last piece."""
        if self._tags.holding and not reasoned:
            self._held = beside.after(self._held)
            return pieces
        if not self._tags.holding:
            beside, self._held = beside.after(self._held), None
        carried = any(piece.choices for piece in pieces)
        if reasoned and self._hidden:
            kept = beside.concealed() if carried else Beside({}, {})
            self.dropped += len(beside) - len(kept)
            beside = kept
        if beside and not carried:
            pieces.append(self.silence())
        last = next((piece.choices[0] for piece in reversed(pieces) if piece.choices), None)
        if last is not None:
            last["delta"] = {**last["delta"], **beside.delta}
            last["finish_reason"] = choice.get("finish_reason")
            last.update(beside.choice)
        return pieces

    def _choices(self, delta: Json) -> list[Json]:
        return [{"index": self.lane, "delta": delta, "finish_reason": None}]

    def _piece(self, event: Event, delta: Json) -> Piece:
        return Piece(event, self._choices(delta))
