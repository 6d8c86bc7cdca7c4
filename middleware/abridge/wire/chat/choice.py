"""One choice of a stream: its chunks' deltas, told apart into what they hold.

A delta that holds one thing keeps its shape. One that holds several becomes several: the role
first, then reasoning, then the answer; unknown keys go with the last. Where raw
is hidden, what stands beside reasoning is dropped, and counted: nobody knows whether it repeats it.
"""

from __future__ import annotations

from dataclasses import dataclass

from abridge.turn.events import Closed, Event, Native, Opened, Other, Raw, Said
from abridge.wire.chat.dialects import (
    ANSWER,
    PLAIN,
    SPELLINGS,
    Found,
    answer_text,
    find,
    thinking_chunks,
    without_chunks,
)
from abridge.wire.chat.message import Message
from abridge.wire.codec import Json, string
from abridge.wire.display import Display
from abridge.wire.profiles import Profile
from abridge.wire.think import Piece as Inline
from abridge.wire.think import Splitter

ITEM = 0


@dataclass(slots=True)
class Piece:
    """An event, and the choices its frame is to hold; None for an event without a frame."""

    event: Event
    choices: list[Json] | None = None


class Choice:
    """What is known of one choice. `dropped` counts fields that went with hidden reasoning."""

    def __init__(self, lane: int, profile: Profile, display: Display, limit: int) -> None:
        self.lane = lane
        self.message = Message(limit)
        self.announced = False
        self.finished = False
        self.dropped = 0
        self._display = display
        self._open = False
        self._splitter = Splitter(profile.tags, prefilled=profile.prefilled)

    def announce(self) -> Piece:
        """The choice's first chunk, where upstream did not begin with one."""
        self.announced = True
        return self._piece(Other(self.lane, None), {"role": "assistant", "content": ""})

    def close(self) -> list[Piece]:
        """The stretch of reasoning ends, if one is open."""
        was_open, self._open = self._open, False
        return [Piece(Closed(self.lane, None, ITEM))] if was_open else []

    def read(self, choice: Json, *, apart: bool) -> list[Piece]:
        """A chunk's choice. With `apart` the finish comes as a piece of its own.

        A piece that holds `choice` itself needs no new frame.
        """
        delta = choice["delta"] if isinstance(choice.get("delta"), dict) else {}
        finish = choice.get("finish_reason")
        found = find(delta)
        if found is not None and found.text:
            self._splitter.answering = True  # tags in the text are the answer's own
        inline = self._inline(delta, finish=bool(finish))
        repeated = bool(delta.get("role")) and self.announced
        plain = inline is None and not repeated and not (finish and apart)
        if plain and found is None:
            pieces = self._answer(choice, delta)
        elif plain and found is not None and self._holds_one_thing(choice, delta):
            pieces = self._reasoning(found, [choice])
        else:
            pieces = self._split(choice, delta, found, inline, apart=apart)
        self.finished = self.finished or bool(finish)
        self.announced = True
        return pieces

    def _inline(self, delta: Json, *, finish: bool) -> list[Inline] | None:
        """The text told apart by its tags; None where it stays as it is."""
        text = string(delta.get("content"))
        if self._splitter.answering or not (text or finish):
            return None
        found = self._splitter.feed(text)
        if finish:
            found += self._splitter.end()
        return None if found == ([Inline("text", text)] if text else []) else found

    def _holds_one_thing(self, choice: Json, delta: Json) -> bool:
        answers = without_chunks(delta.get("content")) or any(delta.get(key) for key in ANSWER[1:])
        fresh = delta.get("role") or not self.announced
        return not (answers or fresh or choice.get("finish_reason"))

    def _answer(self, choice: Json, delta: Json) -> list[Piece]:
        answers = any(delta.get(key) for key in ANSWER)
        closing = self.close() if answers or choice.get("finish_reason") else []
        text = answer_text(delta.get("content"))
        event = Said(self.lane, None, text) if answers else Other(self.lane, None)
        return [*closing, Piece(event, [choice])]

    def _reasoning(self, found: Found, choices: list[Json] | None) -> list[Piece]:
        """A stretch opens with its first word; after the finish none does."""
        opening = not (self._open or self.finished) and bool(found.text.strip())
        self._open = self._open or opening
        opened = [Piece(Opened(self.lane, None, ITEM, found.field))] if opening else []
        shown = self._display.summary if found.native else self._display.raw
        event: Event = Raw(self.lane, None, ITEM, found.text)
        if found.native and self._open:
            event = Native(self.lane, None, ITEM, 0, "say", found.text)
        elif found.native:  # too blank or too late to be of a stretch
            event = Other(self.lane, None)
        return [*opened, Piece(event, choices if shown else None)]

    def _split(
        self,
        choice: Json,
        delta: Json,
        found: Found | None,
        inline: list[Inline] | None,
        *,
        apart: bool,
    ) -> list[Piece]:
        pieces = [] if self.announced else [self.announce()]
        if found is not None:
            thought = {key: delta[key] for key in SPELLINGS if delta.get(key)}
            if chunks := thinking_chunks(delta.get("content")):
                thought["content"] = chunks
            pieces += self._reasoning(found, self._choices(thought))
        for piece in inline or ():
            if piece.kind == "raw":
                pieces += self._reasoning(Found(piece.text, PLAIN[0]), None)
        pieces += self._rest(delta, inline)
        finish = choice.get("finish_reason")
        if finish:
            pieces += self.close()
            if apart or not pieces or not isinstance(pieces[-1].event, Said):
                pieces.append(self._piece(Other(self.lane, None), {}))
        reasoned = found is not None or any(piece.kind == "raw" for piece in inline or ())
        self._hand_on(pieces, choice, delta, reasoned=reasoned)
        return pieces

    def _rest(self, delta: Json, inline: list[Inline] | None) -> list[Piece]:
        """The answer's piece, if the delta holds some."""
        answer = {key: delta[key] for key in ANSWER if delta.get(key)}
        if "content" in answer:
            answer["content"] = without_chunks(answer["content"])
        if inline is not None:
            answer["content"] = "".join(piece.text for piece in inline if piece.kind == "text")
        answer = {key: value for key, value in answer.items() if value}
        if not answer:
            return []
        text = answer_text(answer.get("content"))
        return [*self.close(), self._piece(Said(self.lane, None, text), answer)]

    def _hand_on(self, pieces: list[Piece], choice: Json, delta: Json, *, reasoned: bool) -> None:
        """Give the last piece what no other has: the finish, and the keys nobody knows."""
        unknown = {
            key: value
            for key, value in delta.items()
            if key not in SPELLINGS and key not in ANSWER and key != "role" and value is not None
        }
        beside = {
            key: value
            for key, value in choice.items()
            if key not in ("index", "delta", "finish_reason") and value is not None
        }
        if reasoned and not self._display.raw:
            self.dropped += len(unknown) + ("logprobs" in beside)
            unknown, beside = {}, {key: beside[key] for key in beside.keys() - {"logprobs"}}
        last = next((piece.choices[0] for piece in reversed(pieces) if piece.choices), None)
        if last is not None:
            last["delta"] = {**last["delta"], **unknown}
            last["finish_reason"] = choice.get("finish_reason")
            last.update(beside)

    def _choices(self, delta: Json) -> list[Json]:
        return [{"index": self.lane, "delta": delta, "finish_reason": None}]

    def _piece(self, event: Event, delta: Json) -> Piece:
        return Piece(event, self._choices(delta))
