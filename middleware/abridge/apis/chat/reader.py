"""Read Chat Completions, the chunks of a stream or a whole completion, into events.

Most frames only continue a choice's reasoning or text (`continuation.py`). Any other is repaired
(`repair.py`), its choices are split into pieces (`choice_reader.py`), and a `Framing` makes events
of these: with frames for clients of the same API (`framing.py`), without for clients of others
(`translation.py`).

Each choice is a lane with one reasoning item, which is reopened for every stretch of reasoning.
Usage, and what comes in the same chunk, waits until every lane has finished.
"""

from __future__ import annotations

from abridge.apis import sse
from abridge.apis.chat.accumulator import has_cut_call
from abridge.apis.chat.choice_reader import ChoiceReader, ChunkPiece
from abridge.apis.chat.continuation import Continuation, Continuations
from abridge.apis.chat.framing import (
    DONE_FRAME,
    MAX_CHOICES,
    Framing,
    attach_usage,
    encode_chunk,
    get_header,
    has_other_fields,
)
from abridge.apis.chat.hiding import CompletionRebuilder
from abridge.apis.chat.history import record_turn
from abridge.apis.chat.inline import observe
from abridge.apis.chat.reasoning import get_delta, get_index
from abridge.apis.chat.repair import ChunkRepair
from abridge.apis.delta_patterns import DeltaPatterns
from abridge.apis.display import Display
from abridge.apis.endings import UNFINISHED
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE
from abridge.apis.json import (
    as_object,
    begins_object,
    dumps,
    loads,
    loads_exact,
    objects,
    parse_object,
    replace_invalid,
    string,
)
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
)
from abridge.core.usage import Tokens
from abridge.providers.learned import Observation
from abridge.providers.profile import Profile


class ChatReader:
    """Read one response. See the protocol `Reader`."""

    def __init__(self, profile: Profile, display: Display, limit: int, framing: Framing) -> None:
        self._framing = framing
        self._carries_frames = framing.carries_frames
        self._profile = profile
        self._display = display
        self._limit = limit
        self._choices: dict[int, ChoiceReader] = {}
        self._announced_count = 0
        self._makes_envelopes = display.seal is not None and framing.carries_frames
        self._messages: dict[int, Json] = {}
        self._repair = ChunkRepair()
        self._patterns = DeltaPatterns(rewrites=display.hides_raw)
        self.read_delta = self._patterns.read
        self._continuations = Continuations(self._choices, framing, display)
        self._rebuilder: CompletionRebuilder | None = None
        if display.hides_raw:
            drops_inline = display.drops_inline
            self._rebuilder = CompletionRebuilder(profile, limit, drops_inline=drops_inline)
        self._early_usage: tuple[Json, bytes | None] | None = None
        """A chunk with usage that came too early."""
        self._usage: Tokens | None = None  # the last that was reported
        self._started = False
        self._failed = False
        self._ended = False
        self._unread_count = 0
        self.faults = 0
        self.mismatches = 0

    @property
    def dropped(self) -> int:
        return self._unread_count + (self._rebuilder.dropped if self._rebuilder is not None else 0)

    def read(self, frame: bytes) -> list[Event]:
        events = self._patterns.read(frame)
        return self._read(frame) if events is None else events

    def _read(self, frame: bytes) -> list[Event]:
        """Read a frame that fits no pattern."""
        data, carried = sse.frame_data(frame), frame if self._carries_frames else None
        if data is None:
            return [] if self._rebuilder is not None else [Passthrough(None, carried)]
        if self._ended:  # drop whatever upstream sends after the end
            self.faults += 1
            return []
        if data.startswith(sse.DONE):
            return self._read_end(carried if self._rebuilder is None else carried and DONE_FRAME)
        chunk = parse_object(data, loads if self._rebuilder is None else loads_exact)
        if chunk is None:
            return self._read_unparsed(data, frame)
        if self._rebuilder is not None:
            return self._read_rebuilt(self._rebuilder, chunk, frame, carried)
        if not self._repair.needed:
            event = self._read_continuation(chunk, frame, carried)
            if event is not None:
                return [event]
        chunk = parse_object(data, loads_exact) or chunk  # it may be written again
        return self._read_repaired(chunk, frame, carried)

    def _read_repaired(self, chunk: Json, frame: bytes, carried: bytes | None) -> list[Event]:
        """Read a chunk that does not merely continue as it is, but perhaps once it is repaired."""
        self._patterns.clear()
        if carried is not None:
            chunk, carried = self._repair.repair(chunk, frame)
        if carried not in (None, frame):
            event = self._read_continuation(chunk, frame, carried)
            if event is not None:
                return [event]
        return self._read_repeated(chunk, frame, carried)

    def _read_rebuilt(
        self, rebuilder: CompletionRebuilder, chunk: Json, frame: bytes, carried: bytes | None
    ) -> list[Event]:
        """Read a chunk of which only what is known goes on; but all of it is recorded."""
        dropped = rebuilder.dropped
        chunk = rebuilder.arrangement.arrange_chunk(chunk)
        if carried is not None:
            chunk, carried = self._repair.repair(chunk, carried)
        originals, rebuilt = objects(chunk.get("choices")), rebuilder.rebuild_chunk(chunk)
        if rebuilt is None:
            return []
        carried = carried and encode_chunk(rebuilt, obfuscate=self._display.obfuscate)
        whole = frame if rebuilder.dropped == dropped else None
        if (event := self._read_continuation(rebuilt, whole, carried)) is not None:
            return [event]
        return self._read_parsed(rebuilt, carried, originals)

    def _read_parsed(
        self, chunk: Json, carried: bytes | None, originals: list[Json] | None = None
    ) -> list[Event]:
        """Read a chunk that does not merely continue. `originals` are its choices as they came."""
        self._patterns.clear()
        if chunk.get("choices"):
            self._continuations.last_frame = carried
        events = self._start(chunk)
        if chunk.get("usage") or chunk.get("error"):
            events += self._release_usage()  # that came earlier
        if chunk.get("error"):
            return [*events, *self._flush_choices(is_cut=True), *self._read_error(chunk, carried)]
        if self._is_early_usage(chunk):
            self._early_usage = chunk, carried
            return events
        events += self._read_chunk(chunk, carried, originals)
        is_released = self._early_usage is not None and self._is_last([])
        return [*events, *self._release_usage()] if is_released else events

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        finished = self._choices and all(choice.finished for choice in self._choices.values())
        if not (self._failed or (finished and error is None)):
            self._failed = True
            events = [*self._flush_choices(is_cut=True), *self._release_usage()]
            return [
                *events,
                ErrorReported(None, None, error or CONNECTION_LOST),
                *self._read_end(None),
            ]
        return self._read_end(None)

    def read_whole(self, body: bytes) -> list[Event]:
        completion = parse_object(body, loads_exact)
        if completion is None and (valid := replace_invalid(body)) != body:
            return self.read_whole(valid)
        originals = objects((completion or {}).get("choices"))
        if completion is not None and self._rebuilder is not None:
            arranged = self._rebuilder.arrangement.arrange_completion(completion)
            originals = objects(arranged.get("choices"))
            completion = self._rebuilder.rebuild_completion(arranged)
        if completion is None or not isinstance(completion.get("choices"), list):
            unread = body if self._carries_frames and self._rebuilder is None else None
            return [ResponseEnded(None, unread, ok=False, error=error_in(completion))]
        events = self._start(completion)
        for choice, original in zip(objects(completion["choices"]), originals, strict=True):
            reader, message = self._get_choice(choice), choice.get("message")
            if isinstance(message, dict):
                self._messages[reader.lane] = as_object(original.get("message"))
                if self._rebuilder is not None:
                    message = choice["message"] = self._rebuilder.split_message(choice, message)
            others = {key: choice[key] for key in choice if key != "message"}
            finish = choice.get("finish_reason") or "stop"
            if not choice.get("finish_reason"):
                self.faults += 1
                is_cut = has_cut_call(self._messages.get(reader.lane, {}))
                events += [ErrorReported(None, None, UNFINISHED)] if is_cut else []
            delta_choice = {**others, "delta": message, "finish_reason": finish}
            pieces = self._read_choice(reader, delta_choice, separate_finish=False)
            events += [piece.event for piece in pieces]
        usage = CHAT_USAGE.read(completion.get("usage"))
        errors = (event.error for event in events if isinstance(event, ErrorReported))
        error = next(errors, None)
        carried = body if self._rebuilder is None else dumps(completion)
        frame = carried if self._carries_frames else None
        return [*events, ResponseEnded(None, frame, ok=error is None, usage=usage, error=error)]

    def recorded_turns(self) -> list[RecordedTurn]:
        return [
            self._record_message(lane, message)
            for lane, message in self._complete_messages().items()
        ]

    def observed(self) -> Observation:
        return observe(self._complete_messages().get(0, {}), self._profile)

    # Chunks

    def _read_continuation(
        self, chunk: Json, frame: bytes | None, carried: bytes | None
    ) -> Event | None:
        """Read a chunk that only continues what one choice is saying; None for any other chunk.

        If it is all that upstream's `frame` says, learn its pattern.
        """
        found = self._find_continuation(chunk, carried)
        if found is None or not found.is_bare:
            return None
        if frame is not None:
            written = carried if self._display.show_raw or not found.is_reasoning else None
            accepts = None
            if self._rebuilder is not None and not found.is_reasoning:
                accepts = self._rebuilder.content_filter(found.lane)
            self._continuations.learn(
                self._patterns, found, frame, carried, written, accepts=accepts
            )
        return self._continuations.proceed(found, carried)

    def _read_repeated(self, chunk: Json, frame: bytes, carried: bytes | None) -> list[Event]:
        """Read a chunk that may say more than a text; learn its pattern if that is a continuation
        all the same: of a call's arguments, or with the role that some servers repeat."""
        found = self._find_continuation(chunk, carried)
        events = self._read_parsed(chunk, carried)
        if found is not None and len(events) == 1 and not self._repair.varies(found.field):
            self._continuations.learn(self._patterns, found, frame, carried, events[0].frame)
        return events

    def _find_continuation(self, chunk: Json, frame: bytes | None) -> Continuation | None:
        """Return how a chunk continues a choice, if it does; `frame` is that in which it goes
        out."""
        found = self._continuations.find(chunk, is_translated=frame is None)
        if found is None or self._rebuilder is None:
            return found
        return found if self._rebuilder.passes(chunk["choices"][0]) else None

    def _start(self, chunk: Json) -> list[Event]:
        """Start the response at the first chunk with choices.

        Azure first sends filter results without choices, in a chunk whose id and model are empty.
        """
        self._framing.note_body(chunk)
        if self._started or not chunk.get("choices"):
            return []
        self._started = True
        id_, model = string(chunk.get("id")), string(chunk.get("model"))
        return [ResponseStarted(None, None, id_, model, as_count(chunk.get("created")) or 0)]

    def _read_chunk(
        self, chunk: Json, frame: bytes | None, originals: list[Json] | None = None
    ) -> list[Event]:
        choices = objects(chunk.get("choices"))
        recorded = dict(zip(map(id, choices), originals or choices, strict=True))
        choices.sort(key=get_index)
        usage = CHAT_USAGE.read(chunk.get("usage"))
        self._usage = usage or self._usage
        final = usage is not None and self._is_last(choices)
        pieces: list[ChunkPiece] = []
        for choice in choices:
            reader = self._get_choice(choice)
            pieces += self._announce_before(reader.lane)
            reader.message.add(get_delta(recorded[id(choice)]))
            for part in self._without_thinking(choice):
                pieces += self._read_choice(reader, part, separate_finish=final)
        if usage is not None and final:
            pieces = attach_usage(pieces, usage)
        elif not choices:
            pieces = [ChunkPiece(Passthrough(None, None), [])]
        elif has_other_fields(chunk) and not any(piece.choices for piece in pieces):
            pieces.append(self._get_choice(choices[-1]).empty_piece())
        if usage is not None and not choices and self._display.hides_usage:
            pieces = [ChunkPiece(piece.event) for piece in pieces]  # none of them has a frame
        self._failed = self._failed or self._framing.failed
        return self._framing.make_events(pieces, chunk, frame)

    def _read_error(self, chunk: Json, frame: bytes | None) -> list[Event]:
        """Read an error. It is reported once; another only passes."""
        reported, self._failed, self._framing.failed = self._failed, True, True
        error = chunk["error"]
        message = string(error.get("message") if isinstance(error, dict) else error)
        if frame is not None and self._rebuilder is not None:
            frame = sse.encode_frame(dumps({**get_header(chunk), "error": error}))
        if reported:
            return [Passthrough(None, frame)]
        return [ErrorReported(None, frame, ErrorDetail("upstream_error", message))]

    def _read_unparsed(self, data: bytes, frame: bytes) -> list[Event]:
        """Read a frame that is not JSON. Without its chunk the answer would be another one.

        What is no chunk passes, unless raw reasoning is hidden, which it may hold.
        """
        if (valid := replace_invalid(frame)) != frame:
            return self.read(valid)
        if begins_object(data):
            return self.end(UNREADABLE)
        if self._rebuilder is not None:
            self._unread_count += 1
            return []
        return [Passthrough(None, frame if self._carries_frames else None)]

    # Choices

    def _without_thinking(self, choice: Json) -> list[Json]:
        """Return a choice as one or several without thinking in their texts, where that is hidden;
        nothing if all of it is held back."""
        if self._rebuilder is None:
            return [choice]
        delta, is_last = get_delta(choice), bool(choice.get("finish_reason"))
        *first, last = self._rebuilder.split_delta(choice, delta, is_last=is_last)
        head = {"index": choice.get("index"), "finish_reason": None}
        choices = [{**head, "delta": each} for each in first]
        if last is delta:
            return [*choices, choice]
        is_empty = not (is_last or any(last.values()))
        return choices if is_empty else [*choices, {**choice, "delta": last}]

    def _get_choice(self, choice: Json) -> ChoiceReader:
        lane = get_index(choice)
        if lane not in self._choices:
            self._choices[lane] = ChoiceReader(lane, self._profile, self._display, self._limit)
        return self._choices[lane]

    def _announce_before(self, lane: int) -> list[ChunkPiece]:
        """Announce choices in order of their index: strict clients fail otherwise."""
        pieces: list[ChunkPiece] = []
        while self._announced_count < min(lane, MAX_CHOICES):
            reader = self._get_choice({"index": self._announced_count})
            self._announced_count += 1
            if not reader.announced:
                pieces.append(reader.announce())
        return pieces

    def _read_choice(
        self, reader: ChoiceReader, choice: Json, *, separate_finish: bool
    ) -> list[ChunkPiece]:
        """Read a choice. If envelopes are made, record its turn before the piece that ends it."""
        ends = self._makes_envelopes and bool(choice.get("finish_reason")) and not reader.finished
        pieces = self._framing.read_choice(reader, choice, separate_finish=separate_finish)
        return [*pieces[:-1], *self._record_turn(reader), *pieces[-1:]] if ends else pieces

    def _record_turn(self, reader: ChoiceReader) -> list[ChunkPiece]:
        message = self._messages.get(reader.lane)
        if message is None and reader.message.is_complete:
            message = reader.message.as_dict()
        if message is None:
            return []
        turn = self._record_message(reader.lane, message)
        if not turn.raw.strip():  # opaque state needs no envelope
            return []
        return [ChunkPiece(TurnRecorded(reader.lane, None, turn))]

    def _record_message(self, lane: int, message: Json) -> RecordedTurn:
        return record_turn(message, lane, self._profile, self._display)

    def _complete_messages(self) -> dict[int, Json]:
        for lane, choice in self._choices.items():
            if choice.message.is_complete:
                self._messages.setdefault(lane, choice.message.as_dict())
        return self._messages

    # Usage

    def _is_early_usage(self, chunk: Json) -> bool:
        """Return whether the chunk holds only usage, and some choice has not finished yet."""
        only_usage = not chunk.get("choices") and CHAT_USAGE.read(chunk.get("usage")) is not None
        return only_usage and not all(choice.finished for choice in self._choices.values())

    def _is_last(self, choices: list[Json]) -> bool:
        """Return whether every choice has finished once these are read."""
        finishing = {get_index(choice) for choice in choices if choice.get("finish_reason")}
        finished = {lane for lane, reader in self._choices.items() if reader.finished}
        return self._choices.keys() | map(get_index, choices) <= finishing | finished

    def _release_usage(self) -> list[Event]:
        """Read the chunk with usage that came too early, if there is one.

        It passes as it is where another follows it, which has the figures so far.
        """
        if self._early_usage is None:
            return []
        (chunk, frame), self._early_usage = self._early_usage, None
        return self._read_chunk(chunk, frame)

    # The end

    def _read_end(self, frame: bytes | None) -> list[Event]:
        self._ended = True
        self._patterns.clear()
        events = self._flush_choices(is_cut=self._failed)
        if not self._failed:
            events += self._finish_choices()
        events += self._release_usage()
        events += [
            piece.event for choice in self._choices.values() for piece in choice.close_reasoning()
        ]
        return [*events, ResponseEnded(None, frame, ok=not self._failed, usage=self._usage)]

    def _finish_choices(self) -> list[Event]:
        """Finish the choices for which upstream sent no finish reason before `[DONE]`."""
        unfinished = [reader for reader in self._choices.values() if not reader.finished]
        reasons = [reader.infer_reason() for reader in unfinished]
        if None in reasons:
            self._failed = True
            return [ErrorReported(None, None, UNFINISHED)]
        self.faults += bool(reasons)
        pieces: list[ChunkPiece] = []
        for reader, reason in zip(unfinished, reasons, strict=True):
            finish = {"index": reader.lane, "delta": {}, "finish_reason": reason}
            pieces += self._read_choice(reader, finish, separate_finish=False)
        return self._framing.make_events(pieces, self._continuations.header(), None)

    def _flush_choices(self, *, is_cut: bool) -> list[Event]:
        """Release text held back as the possible beginning of a tag, as no more can come."""
        pieces: list[ChunkPiece] = []
        for choice in self._rebuilder.flush(is_cut=is_cut) if self._rebuilder is not None else ():
            pieces += self._read_choice(self._get_choice(choice), choice, separate_finish=False)
        for reader in self._choices.values():
            pieces += self._framing.flush_choice(reader)
        return self._framing.make_events(pieces, self._continuations.header(), None)
