"""Encode the frames of a stream: chunks, the last one with the usage, errors and the end.

Read Chat Completions, the chunks of a stream or a whole completion, into events.

Each choice is a lane with one reasoning item, which is reopened for every stretch of reasoning. A
chunk that holds one kind of thing keeps its frame. Usage, and what comes in the same chunk, waits
until every lane has finished.
"""

from __future__ import annotations

from typing import ClassVar

from abridge.apis import sse
from abridge.apis.chat.choice import ChoiceReader, ChunkPiece, has_no_reasoning
from abridge.apis.chat.history import record_turn
from abridge.apis.chat.inline import has_unopened_block, split_inline
from abridge.apis.chat.reasoning import find_reasoning_place, get_delta
from abridge.apis.chat.repair import ChunkRepair
from abridge.apis.display import Display
from abridge.apis.errors import CONNECTION_LOST
from abridge.apis.json import dumps, loads_exact, objects, parse_object, string
from abridge.apis.openai import error_in
from abridge.apis.usage import CHAT_USAGE, as_count
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    ErrorDetail,
    ErrorReported,
    Event,
    Passthrough,
    ResponseEnded,
    ResponseStarted,
    TurnRecorded,
    UsageReported,
)
from abridge.core.usage import Tokens
from abridge.providers.learned import Observation
from abridge.providers.profile import Profile

DONE_FRAME = b"data: [DONE]\n\n"

HEADER_FIELDS = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
"""Fields that every chunk of a response repeats."""


def get_header(chunk: Json) -> Json:
    """Return the fields that every chunk of a response repeats."""
    return {key: chunk[key] for key in HEADER_FIELDS if key in chunk}


def has_other_fields(chunk: Json) -> bool:
    """Return whether the chunk has fields besides its header, choices and usage."""
    known = (*HEADER_FIELDS, "choices", "usage")
    return any(value is not None for key, value in chunk.items() if key not in known)


def attach_usage(pieces: list[ChunkPiece], usage: Tokens) -> list[ChunkPiece]:
    """Report the usage in a last piece, together with the choices that hold nothing else."""
    empty = [piece for piece in pieces if _is_empty(piece)]
    choices = [choice for piece in empty for choice in piece.choices or ()]
    others = [piece for piece in pieces if not _is_empty(piece)]
    return [*others, ChunkPiece(UsageReported(None, None, usage), choices)]


def _is_empty(piece: ChunkPiece) -> bool:
    """Return whether the piece holds neither an answer nor a role."""
    deltas = [choice.get("delta") or {} for choice in piece.choices or ()]
    return isinstance(piece.event, Passthrough) and not any(delta.get("role") for delta in deltas)


def frame_pieces(pieces: list[ChunkPiece], chunk: Json, frame: bytes | None = None) -> list[Event]:
    """Return the pieces' events: with the original frame, or with new ones if it holds several.

    The chunk's other fields go with the last piece.
    """
    framed = [piece for piece in pieces if piece.choices is not None]
    if frame is not None and len(framed) == 1 and _is_whole_chunk(framed[0], chunk):
        framed[0].event.frame = frame
    elif framed:
        shared = {**get_header(chunk), **({"usage": None} if "usage" in chunk else {})}
        for piece in framed:
            fields = chunk if piece is framed[-1] else shared
            piece.event.frame = sse.encode_frame(dumps({**fields, "choices": piece.choices}))
    return [piece.event for piece in pieces]


def _is_whole_chunk(piece: ChunkPiece, chunk: Json) -> bool:
    choices = objects(chunk.get("choices"))
    return list(map(id, piece.choices or ())) == list(map(id, choices))


MAX_CHOICES = 128  # the API's upper bound on `n`


class ChatReader:
    """Read one response. See the protocol `Reader`.

    Its events carry their frames. The translating reader overrides what makes them do so:
    `_CHOICE_READER`, `_TRANSLATES`, `_carry_frame` and `_make_events`.
    """

    _CHOICE_READER: ClassVar[type[ChoiceReader]] = ChoiceReader
    _TRANSLATES: ClassVar[bool] = False
    """The events are for a client of another API."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self._profile = profile
        self._display = display
        self._limit = limit
        self._choices: dict[int, ChoiceReader] = {}
        self._announced_count = 0
        self._makes_envelopes = display.seal is not None and not self._TRANSLATES
        self._last_chunk: Json = {}  # the last one read
        self._messages: dict[int, Json] = {}
        self._repair = ChunkRepair()
        self._early_usage: tuple[Json, bytes] | None = (
            None  # a chunk with usage that came too early
        )
        self._started = False
        self._failed = False
        self._ended = False
        self._unread_count = 0
        self.faults = 0

    @property
    def dropped(self) -> int:
        return self._unread_count + sum(choice.dropped for choice in self._choices.values())

    def read(self, frame: bytes) -> list[Event]:
        data = sse.frame_data(frame)
        if data is None:
            return [Passthrough(None, self._carry_frame(frame))]
        if self._ended:  # drop whatever upstream sends after the end
            self.faults += 1
            return []
        if data.startswith(sse.DONE):
            return self._read_end(frame)
        chunk = parse_object(data)
        if chunk is None:
            return self._pass_unparsed(frame)
        if (continuation := self._read_continuation(chunk, frame)) is not None:
            self._last_chunk = chunk
            return (
                [continuation]
                if self._early_usage is None
                else [*self._release_usage(), continuation]
            )
        chunk, frame = self._repair_chunk(chunk, frame)
        self._last_chunk = chunk
        events = [*self._release_usage(), *self._start(chunk)]
        if chunk.get("error"):
            return [*events, *self._flush_choices(), self._read_error(chunk, frame)]
        if self._is_early_usage(chunk):
            self._early_usage = chunk, frame
            return events
        return events + self._read_chunk(chunk, frame)

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        finished = self._choices and all(choice.finished for choice in self._choices.values())
        if not (self._failed or (finished and error is None)):
            self._failed = True
            events = [*self._flush_choices(), *self._release_usage()]
            return [
                *events,
                ErrorReported(None, None, error or CONNECTION_LOST),
                *self._read_end(None),
            ]
        return self._read_end(None)

    def read_whole(self, body: bytes) -> list[Event]:
        completion = parse_object(body, loads_exact)
        if completion is None or not isinstance(completion.get("choices"), list):
            return [
                ResponseEnded(None, self._carry_frame(body), ok=False, error=error_in(completion))
            ]
        events = self._start(completion)
        for choice in objects(completion["choices"]):
            state, message = self._get_choice(choice), choice.get("message")
            if isinstance(message, dict):
                self._messages[state.lane] = message
            others = {key: choice[key] for key in choice if key != "message"}
            finish = choice.get("finish_reason") or "stop"
            delta_choice = {**others, "delta": message, "finish_reason": finish}
            events += [
                piece.event
                for piece in self._read_choice(state, delta_choice, separate_finish=False)
            ]
        usage = CHAT_USAGE.read(completion.get("usage"))
        return [*events, ResponseEnded(None, self._carry_frame(body), ok=True, usage=usage)]

    def recorded_turns(self) -> list[RecordedTurn]:
        turns = (
            self._record_message(lane, message)
            for lane, message in self._complete_messages().items()
        )
        return [turn for turn in turns if turn is not None]

    def observed(self) -> Observation:
        message = self._complete_messages().get(0, {})
        place, text = find_reasoning_place(message), string(message.get("content"))
        if place is not None or not text:
            return Observation(place)
        if split_inline(text, self._profile, no_field=True)[0].strip():
            return Observation("tags")
        return Observation(unopened_tags=int(has_unopened_block(text, self._profile)))

    def _record_message(self, lane: int, message: Json) -> RecordedTurn | None:
        return record_turn(message, lane, self._profile, hides_raw=not self._display.show_raw)

    def _complete_messages(self) -> dict[int, Json]:
        for lane, choice in self._choices.items():
            if choice.message.is_complete:
                self._messages.setdefault(lane, choice.message.as_dict())
        return self._messages

    def _read_continuation(self, chunk: Json, frame: bytes) -> Event | None:
        """Read a chunk that only continues what one choice is saying; None for any other chunk."""
        choices = chunk.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            return None
        choice = choices[0]
        if self._repair.needed or not isinstance(choice, dict) or "index" not in choice:
            return None
        if chunk.get("usage") or chunk.get("error"):
            return None
        state = self._choices.get(_get_index(choice))
        return (
            state.read_continuation(choice, self._carry_frame(frame)) if state is not None else None
        )

    def _repair_chunk(self, chunk: Json, frame: bytes) -> tuple[Json, bytes]:
        return self._repair.repair(chunk, frame)

    def _start(self, chunk: Json) -> list[Event]:
        """Start the response at the first chunk with choices.

        Azure first sends filter results without choices, in a chunk whose id and model are empty.
        """
        if self._started or not chunk.get("choices"):
            return []
        self._started = True
        created = chunk.get("created")
        timestamp = as_count(created) or 0
        return [
            ResponseStarted(
                None, None, string(chunk.get("id")), string(chunk.get("model")), timestamp
            )
        ]

    def _pass_unparsed(self, frame: bytes) -> list[Event]:
        """Pass on a frame that is not JSON, unless raw reasoning is hidden, which it may hold."""
        if not self._display.show_raw:
            self._unread_count += 1
            return []
        return [Passthrough(None, self._carry_frame(frame))]

    def _read_error(self, chunk: Json, frame: bytes) -> ErrorReported:
        self._failed = True
        error = chunk["error"]
        message = string(error.get("message") if isinstance(error, dict) else error)
        if not (
            self._display.show_raw or all(map(has_no_reasoning, objects(chunk.get("choices"))))
        ):
            self._unread_count += 1
            frame = sse.encode_frame(dumps({**get_header(chunk), "error": error}))
        return ErrorReported(None, self._carry_frame(frame), ErrorDetail("upstream_error", message))

    def _read_end(self, frame: bytes | None) -> list[Event]:
        self._ended = True
        events = self._flush_choices()
        if not self._failed:
            events += self._finish_choices()
        events += self._release_usage()
        events += [
            piece.event for choice in self._choices.values() for piece in choice.close_reasoning()
        ]
        return [*events, ResponseEnded(None, self._carry_frame(frame), ok=not self._failed)]

    def _finish_choices(self) -> list[Event]:
        """Finish the choices for which upstream sent no finish reason before `[DONE]`."""
        pieces: list[ChunkPiece] = []
        for state in self._choices.values():
            if not state.finished:
                reason = "tool_calls" if state.message.has_calls else "stop"
                finish = {"index": state.lane, "delta": {}, "finish_reason": reason}
                pieces += self._read_choice(state, finish, separate_finish=False)
        return self._make_events(pieces, get_header(self._last_chunk))

    def _is_early_usage(self, chunk: Json) -> bool:
        """Return whether the chunk holds only usage, and some choice has not finished yet."""
        only_usage = not chunk.get("choices") and CHAT_USAGE.read(chunk.get("usage")) is not None
        return only_usage and not all(choice.finished for choice in self._choices.values())

    def _release_usage(self) -> list[Event]:
        """Read the chunk with usage that came too early, if there is one."""
        if self._early_usage is None:
            return []
        (chunk, frame), self._early_usage = self._early_usage, None
        return self._read_chunk(chunk, frame)

    def _flush_choices(self) -> list[Event]:
        """Release text held back as the possible beginning of a tag, as no more can come."""
        pieces = [piece for choice in self._choices.values() for piece in choice.flush()]
        return self._make_events(pieces, get_header(self._last_chunk))

    def _get_choice(self, choice: Json) -> ChoiceReader:
        lane = _get_index(choice)
        if lane not in self._choices:
            self._choices[lane] = self._CHOICE_READER(
                lane, self._profile, self._display, self._limit
            )
        return self._choices[lane]

    def _carry_frame(self, frame: bytes | None) -> bytes | None:
        """Return the frame that an event carries; None in a translating reader."""
        return frame

    def _make_events(
        self, pieces: list[ChunkPiece], chunk: Json, frame: bytes | None = None
    ) -> list[Event]:
        return frame_pieces(pieces, chunk, frame)

    def _read_chunk(self, chunk: Json, frame: bytes) -> list[Event]:
        choices = sorted(objects(chunk.get("choices")), key=_get_index)
        usage = CHAT_USAGE.read(chunk.get("usage"))
        final = usage is not None and self._is_last(choices)
        pieces: list[ChunkPiece] = []
        for choice in choices:
            state = self._get_choice(choice)
            pieces += self._announce_before(state.lane)
            state.message.add(get_delta(choice))
            pieces += self._read_choice(state, choice, separate_finish=final)
        if usage is not None and final:
            pieces = attach_usage(pieces, usage)
        elif not choices:
            pieces = [ChunkPiece(Passthrough(None, None), [])]
        elif not pieces and has_other_fields(chunk):
            pieces = [self._get_choice(choices[-1]).empty_piece()]
        return self._make_events(pieces, chunk, frame)

    def _read_choice(
        self, state: ChoiceReader, choice: Json, *, separate_finish: bool
    ) -> list[ChunkPiece]:
        """Read a choice. If envelopes are made, record its turn before the piece that ends it."""
        ends = self._makes_envelopes and bool(choice.get("finish_reason")) and not state.finished
        pieces = state.read(choice, separate_finish=separate_finish)
        return [*pieces[:-1], *self._record_turn(state), *pieces[-1:]] if ends else pieces

    def _record_turn(self, state: ChoiceReader) -> list[ChunkPiece]:
        message = self._messages.get(state.lane)
        if message is None and state.message.is_complete:
            message = state.message.as_dict()
        turn = None if message is None else self._record_message(state.lane, message)
        if turn is None or not turn.raw.strip():  # opaque state needs no envelope
            return []
        return [ChunkPiece(TurnRecorded(state.lane, None, turn))]

    def _is_last(self, choices: list[Json]) -> bool:
        """Return whether every choice has finished once these are read."""
        finishing = {_get_index(choice) for choice in choices if choice.get("finish_reason")}
        finished = {lane for lane, state in self._choices.items() if state.finished}
        return self._choices.keys() | map(_get_index, choices) <= finishing | finished

    def _announce_before(self, lane: int) -> list[ChunkPiece]:
        """Announce choices in order of their index: strict clients fail otherwise."""
        pieces: list[ChunkPiece] = []
        while self._announced_count < min(lane, MAX_CHOICES):
            state = self._get_choice({"index": self._announced_count})
            self._announced_count += 1
            if not state.announced:
                pieces.append(state.announce())
        return pieces


def _get_index(choice: Json) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0
