"""Reads Chat Completions: the chunks of a stream, or a whole completion, into turn events.

Each choice is a lane with one reasoning item, opened anew for every stretch of reasoning. A chunk
that holds one thing goes on as it came; usage, and what comes with it, waits for every lane.
"""

from __future__ import annotations

from abridge.turn.conversation import Heard
from abridge.turn.events import (
    Began,
    Billed,
    Ended,
    Event,
    Failed,
    Other,
    Trouble,
)
from abridge.turn.usage import Tokens
from abridge.wire import sse
from abridge.wire.chat.choice import Choice, Piece
from abridge.wire.chat.conversation import hear
from abridge.wire.codec import Json, dumps, loads_exactly, objects, read_object, string
from abridge.wire.display import Display
from abridge.wire.profiles import Profile
from abridge.wire.usage import CHAT

CUT = Trouble("upstream_error", "The connection to upstream ended before the answer did.")
MOST_CHOICES = 128  # the API's own bound on n
ENVELOPE = ("id", "object", "created", "model", "system_fingerprint", "service_tier")


class ChatReader:
    """Reads one response. See `abridge.wire.api.Reader`."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self._profile = profile
        self._hidden = not display.raw
        self._limit = limit
        self._choices: dict[int, Choice] = {}
        self._messages: dict[int, Json] = {}
        self._began = False
        self._failed = False
        self._ended = False
        self.faults = 0

    @property
    def dropped(self) -> int:
        return sum(choice.dropped for choice in self._choices.values())

    def read(self, frame: bytes) -> list[Event]:
        data = sse.data(frame)
        if data is None:
            return [Other(None, frame)]
        if self._ended:  # nothing follows the end, whatever upstream still says
            self.faults += 1
            return []
        if data.startswith(b"[DONE]"):
            return self._end(frame)
        chunk = read_object(data)
        if chunk is None:
            return [Other(None, frame)]
        events = self._begin(chunk)
        if chunk.get("error"):
            return [*events, self._fail(chunk, frame)]
        return events + self._read_chunk(chunk, frame)

    def end(self, trouble: Trouble | None = None) -> list[Event]:
        if self._ended:
            return []
        finished = self._choices and all(choice.finished for choice in self._choices.values())
        if not (self._failed or (finished and trouble is None)):
            self._failed = True
            return [Failed(None, None, trouble or CUT), *self._end(None)]
        return self._end(None)

    def whole(self, body: bytes) -> list[Event]:
        completion = read_object(body, loads_exactly)
        if completion is None or not isinstance(completion.get("choices"), list):
            return [Ended(None, body, ok=False)]
        events = self._begin(completion)
        for choice in objects(completion["choices"]):
            state, message = self._choice(choice), choice.get("message")
            if isinstance(message, dict):
                self._messages[state.lane] = message
            said = {"delta": message, "finish_reason": choice.get("finish_reason") or "stop"}
            events += [piece.event for piece in state.read(said, apart=False)]
        usage = CHAT.read(completion.get("usage"))
        return [*events, Ended(None, body, ok=True, usage=usage)]

    def heard(self) -> list[Heard]:
        for lane, choice in self._choices.items():
            if choice.message.whole:
                self._messages.setdefault(lane, choice.message.as_dict())
        found = (hear(message, lane, self._profile) for lane, message in self._messages.items())
        return [heard for heard in found if heard is not None]

    def _begin(self, chunk: Json) -> list[Event]:
        """The response has a name with the first chunk that says something: Azure's prelude, which
        holds filter results and no choices, has an empty one."""
        if self._began or not chunk.get("choices"):
            return []
        self._began = True
        created = chunk.get("created")
        moment = created if isinstance(created, int) else 0
        return [Began(None, None, string(chunk.get("id")), string(chunk.get("model")), moment)]

    def _fail(self, chunk: Json, frame: bytes) -> Failed:
        self._failed = True
        error = chunk["error"]
        message = string(error.get("message") if isinstance(error, dict) else error)
        return Failed(None, frame, Trouble("upstream_error", message))

    def _end(self, frame: bytes | None) -> list[Event]:
        self._ended = True
        events = [piece.event for choice in self._choices.values() for piece in choice.close()]
        return [*events, Ended(None, frame, ok=not self._failed)]

    def _choice(self, choice: Json) -> Choice:
        lane = _index(choice)
        if lane not in self._choices:
            self._choices[lane] = Choice(
                lane, self._profile, hidden=self._hidden, limit=self._limit
            )
        return self._choices[lane]

    def _read_chunk(self, chunk: Json, frame: bytes) -> list[Event]:
        choices = sorted(objects(chunk.get("choices")), key=_index)
        found = [(self._choice(choice), choice) for choice in choices]
        usage = CHAT.read(chunk.get("usage"))
        finishing = {state.lane for state, choice in found if choice.get("finish_reason")}
        final = usage is not None and all(
            state.finished or state.lane in finishing for state in self._choices.values()
        )
        pieces = self._announce_before(found)
        for state, choice in found:
            state.message.add(choice["delta"] if isinstance(choice.get("delta"), dict) else {})
            pieces += state.read(choice, apart=final)
        if usage is not None and final:
            pieces = _bill(pieces, usage)
        elif not choices:
            pieces = [Piece(Other(None, None), [])]
        return _frame(pieces, chunk, frame)

    def _announce_before(self, found: list[tuple[Choice, Json]]) -> list[Piece]:
        """Choices are announced in order of their index, or strict clients fail."""
        arriving = {state.lane for state, _ in found}
        before = range(min(max(arriving, default=0), MOST_CHOICES))
        missing = [self._choice({"index": lane}) for lane in before if lane not in arriving]
        return [state.announce() for state in missing if not state.announced]


def _index(choice: Json) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def _bill(pieces: list[Piece], usage: Tokens) -> list[Piece]:
    """The usage goes last, together with the choices that say nothing more."""
    bare = [piece for piece in pieces if _is_bare(piece)]
    choices = [choice for piece in bare for choice in piece.choices or ()]
    others = [piece for piece in pieces if not _is_bare(piece)]
    return [*others, Piece(Billed(None, None, usage), choices)]


def _is_bare(piece: Piece) -> bool:
    """Whether it neither answers nor announces."""
    deltas = [choice.get("delta") or {} for choice in piece.choices or ()]
    return isinstance(piece.event, Other) and not any(delta.get("role") for delta in deltas)


def _frame(pieces: list[Piece], chunk: Json, frame: bytes) -> list[Event]:
    """Give the pieces their frames: the one that came, or new ones where it holds several."""
    carriers = [piece for piece in pieces if piece.choices is not None]
    came = objects(chunk.get("choices"))
    if len(carriers) == 1 and list(map(id, carriers[0].choices or ())) == list(map(id, came)):
        carriers[0].event.frame = frame
        return [piece.event for piece in pieces]
    envelope = {key: chunk[key] for key in ENVELOPE if key in chunk}
    if "usage" in chunk:
        envelope["usage"] = None
    for piece in carriers:
        last = piece is carriers[-1]
        rest = {key: chunk[key] for key in chunk if key not in envelope} if last else {}
        if last and "usage" in chunk:
            rest["usage"] = chunk["usage"]
        spelled = {**envelope, **rest, "choices": piece.choices}
        piece.event.frame = sse.encode(dumps(spelled))
    return [piece.event for piece in pieces]
