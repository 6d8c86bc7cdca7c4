"""Read Chat Completions, the chunks of a stream or a whole completion, into events.

Each choice is a lane with one reasoning item, which is reopened for every stretch of reasoning. A
chunk that holds one kind of thing keeps its frame. Usage, and what comes in the same chunk, waits
until every lane has finished.
"""

from __future__ import annotations

from typing import ClassVar

from abridge.turn.conversation import Heard
from abridge.turn.events import (
    Began,
    Ended,
    Event,
    Failed,
    Other,
    Reasoned,
    Trouble,
)
from abridge.wire import sse
from abridge.wire.chat.beside import is_silent
from abridge.wire.chat.choice import Choice, Piece
from abridge.wire.chat.dialects import place_in, said_in
from abridge.wire.chat.frames import bill, envelope, frame_pieces, says_more
from abridge.wire.chat.hearing import hear
from abridge.wire.chat.inline import closes_unopened, split_inline
from abridge.wire.chat.mend import Mender
from abridge.wire.codec import Json, dumps, loads_exactly, objects, read_object, string
from abridge.wire.display import Display
from abridge.wire.learned import Seen
from abridge.wire.problem import CUT, trouble_in
from abridge.wire.profiles import Profile
from abridge.wire.usage import CHAT, count

MOST_CHOICES = 128  # the API's upper bound on `n`


class ChatReader:
    """Read one response. See the protocol `Reader`.

    Its events carry their frames. The translating reader overrides what makes them do so:
    `_CHOICE_READER`, `_TRANSLATES`, `_carry_frame` and `_make_events`.
    """

    _CHOICE: ClassVar[type[Choice]] = Choice
    _TOLD: ClassVar[bool] = False
    """The events are for a client of another API."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self._profile = profile
        self._display = display
        self._limit = limit
        self._choices: dict[int, Choice] = {}
        self._announced = 0
        self._seals = display.seal is not None and not self._TOLD
        self._chunk: Json = {}  # the last one read
        self._messages: dict[int, Json] = {}
        self._mender = Mender()
        self._bill: tuple[Json, bytes] | None = None  # a chunk with usage that came too early
        self._began = False
        self._failed = False
        self._ended = False
        self._unread = 0
        self.faults = 0

    @property
    def dropped(self) -> int:
        return self._unread + sum(choice.dropped for choice in self._choices.values())

    def read(self, frame: bytes) -> list[Event]:
        data = sse.data(frame)
        if data is None:
            return [Other(None, self._carried(frame))]
        if self._ended:  # drop whatever upstream sends after the end
            self.faults += 1
            return []
        if data.startswith(sse.DONE):
            return self._end(frame)
        chunk = read_object(data)
        if chunk is None:
            return self._pass_unread(frame)
        if (more := self._more(chunk, frame)) is not None:
            self._chunk = chunk
            return [more] if self._bill is None else [*self._let_go(), more]
        chunk, frame = self._mended(chunk, frame)
        self._chunk = chunk
        events = [*self._let_go(), *self._begin(chunk)]
        if chunk.get("error"):
            return [*events, *self._flush(), self._fail(chunk, frame)]
        if self._bills_early(chunk):
            self._bill = chunk, frame
            return events
        return events + self._read_chunk(chunk, frame)

    def end(self, trouble: Trouble | None = None) -> list[Event]:
        if self._ended:
            return []
        finished = self._choices and all(choice.finished for choice in self._choices.values())
        if not (self._failed or (finished and trouble is None)):
            self._failed = True
            said = [*self._flush(), *self._let_go()]
            return [*said, Failed(None, None, trouble or CUT), *self._end(None)]
        return self._end(None)

    def whole(self, body: bytes) -> list[Event]:
        completion = read_object(body, loads_exactly)
        if completion is None or not isinstance(completion.get("choices"), list):
            return [Ended(None, self._carried(body), ok=False, trouble=trouble_in(completion))]
        events = self._begin(completion)
        for choice in objects(completion["choices"]):
            state, message = self._choice(choice), choice.get("message")
            if isinstance(message, dict):
                self._messages[state.lane] = message
            beside = {key: choice[key] for key in choice if key != "message"}
            finish = choice.get("finish_reason") or "stop"
            said = {**beside, "delta": message, "finish_reason": finish}
            events += [piece.event for piece in self._pieces(state, said, apart=False)]
        usage = CHAT.read(completion.get("usage"))
        return [*events, Ended(None, self._carried(body), ok=True, usage=usage)]

    def heard(self) -> list[Heard]:
        found = (self._hear(lane, said) for lane, said in self._whole_messages().items())
        return [heard for heard in found if heard is not None]

    def seen(self) -> Seen:
        message = self._whole_messages().get(0, {})
        place, text = place_in(message), string(message.get("content"))
        if place is not None or not text:
            return Seen(place)
        if split_inline(text, self._profile, alone=True)[0].strip():
            return Seen("tags")
        return Seen(unopened=int(closes_unopened(text, self._profile)))

    def _hear(self, lane: int, message: Json) -> Heard | None:
        return hear(message, lane, self._profile, hidden=not self._display.raw)

    def _whole_messages(self) -> dict[int, Json]:
        for lane, choice in self._choices.items():
            if choice.message.whole:
                self._messages.setdefault(lane, choice.message.as_dict())
        return self._messages

    def _more(self, chunk: Json, frame: bytes) -> Event | None:
        """Read a chunk that only continues what one choice is saying; None for any other chunk."""
        choices = chunk.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            return None
        choice = choices[0]
        if self._mender.needed or not isinstance(choice, dict) or "index" not in choice:
            return None
        if chunk.get("usage") or chunk.get("error"):
            return None
        state = self._choices.get(_index(choice))
        return state.more(choice, self._carried(frame)) if state is not None else None

    def _mended(self, chunk: Json, frame: bytes) -> tuple[Json, bytes]:
        return self._mender.mend(chunk, frame)

    def _begin(self, chunk: Json) -> list[Event]:
        """Start the response at the first chunk with choices.

        Azure first sends filter results without choices, in a chunk whose id and model are empty.
        """
        if self._began or not chunk.get("choices"):
            return []
        self._began = True
        created = chunk.get("created")
        moment = count(created) or 0
        return [Began(None, None, string(chunk.get("id")), string(chunk.get("model")), moment)]

    def _pass_unread(self, frame: bytes) -> list[Event]:
        """Pass on a frame that is not JSON, unless raw reasoning is hidden, which it may hold."""
        if not self._display.raw:
            self._unread += 1
            return []
        return [Other(None, self._carried(frame))]

    def _fail(self, chunk: Json, frame: bytes) -> Failed:
        self._failed = True
        error = chunk["error"]
        message = string(error.get("message") if isinstance(error, dict) else error)
        if not (self._display.raw or all(map(is_silent, objects(chunk.get("choices"))))):
            self._unread += 1
            frame = sse.encode(dumps({**envelope(chunk), "error": error}))
        return Failed(None, self._carried(frame), Trouble("upstream_error", message))

    def _end(self, frame: bytes | None) -> list[Event]:
        self._ended = True
        events = self._flush()
        if not self._failed:
            events += self._finish()
        events += self._let_go()
        events += [piece.event for choice in self._choices.values() for piece in choice.close()]
        return [*events, Ended(None, self._carried(frame), ok=not self._failed)]

    def _finish(self) -> list[Event]:
        """Finish the choices for which upstream sent no finish reason before `[DONE]`."""
        pieces: list[Piece] = []
        for state in self._choices.values():
            if not state.finished:
                reason = "tool_calls" if state.message.calls else "stop"
                finish = {"index": state.lane, "delta": {}, "finish_reason": reason}
                pieces += self._pieces(state, finish, apart=False)
        return self._framed(pieces, envelope(self._chunk))

    def _bills_early(self, chunk: Json) -> bool:
        """Return whether the chunk holds only usage, and some choice has not finished yet."""
        billing = not chunk.get("choices") and CHAT.read(chunk.get("usage")) is not None
        return billing and not all(choice.finished for choice in self._choices.values())

    def _let_go(self) -> list[Event]:
        """Read the chunk with usage that came too early, if there is one."""
        if self._bill is None:
            return []
        (chunk, frame), self._bill = self._bill, None
        return self._read_chunk(chunk, frame)

    def _flush(self) -> list[Event]:
        """Release text held back as the possible beginning of a tag, as no more can come."""
        pieces = [piece for choice in self._choices.values() for piece in choice.flush()]
        return self._framed(pieces, envelope(self._chunk))

    def _choice(self, choice: Json) -> Choice:
        lane = _index(choice)
        if lane not in self._choices:
            self._choices[lane] = self._CHOICE(lane, self._profile, self._display, self._limit)
        return self._choices[lane]

    def _carried(self, frame: bytes | None) -> bytes | None:
        """Return the frame that an event carries; None in a translating reader."""
        return frame

    def _framed(self, pieces: list[Piece], chunk: Json, frame: bytes | None = None) -> list[Event]:
        return frame_pieces(pieces, chunk, frame)

    def _read_chunk(self, chunk: Json, frame: bytes) -> list[Event]:
        choices = sorted(objects(chunk.get("choices")), key=_index)
        usage = CHAT.read(chunk.get("usage"))
        final = usage is not None and self._finishes(choices)
        pieces: list[Piece] = []
        for choice in choices:
            state = self._choice(choice)
            pieces += self._announce_before(state.lane)
            state.message.add(said_in(choice))
            pieces += self._pieces(state, choice, apart=final)
        if usage is not None and final:
            pieces = bill(pieces, usage)
        elif not choices:
            pieces = [Piece(Other(None, None), [])]
        elif not pieces and says_more(chunk):
            pieces = [self._choice(choices[-1]).silence()]
        return self._framed(pieces, chunk, frame)

    def _pieces(self, state: Choice, choice: Json, *, apart: bool) -> list[Piece]:
        """Read a choice. If envelopes are made, record its turn before the piece that ends it."""
        ends = self._seals and bool(choice.get("finish_reason")) and not state.finished
        pieces = state.read(choice, apart=apart)
        return [*pieces[:-1], *self._reasoned(state), *pieces[-1:]] if ends else pieces

    def _reasoned(self, state: Choice) -> list[Piece]:
        message = self._messages.get(state.lane)
        if message is None and state.message.whole:
            message = state.message.as_dict()
        heard = None if message is None else self._hear(state.lane, message)
        if heard is None or not heard.raw.strip():  # opaque state needs no envelope
            return []
        return [Piece(Reasoned(state.lane, None, heard))]

    def _finishes(self, choices: list[Json]) -> bool:
        """Return whether every choice has finished once these are read."""
        finishing = {_index(choice) for choice in choices if choice.get("finish_reason")}
        finished = {lane for lane, state in self._choices.items() if state.finished}
        return self._choices.keys() | map(_index, choices) <= finishing | finished

    def _announce_before(self, lane: int) -> list[Piece]:
        """Announce choices in order of their index: strict clients fail otherwise."""
        pieces: list[Piece] = []
        while self._announced < min(lane, MOST_CHOICES):
            state = self._choice({"index": self._announced})
            self._announced += 1
            if not state.announced:
                pieces.append(state.announce())
        return pieces


def _index(choice: Json) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0
