"""Frame the events of a stream: strategies that turn pieces of chunks into events.

There are two. `OriginalFrames` is for clients of Chat Completions: an event carries the frame it
came in, or a new one where a frame held several things. `TranslatedEvents` (`translation.py`) is
for clients of other APIs: an event has no frame, but everything that another API can express.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from abridge.apis import sse
from abridge.apis.chat.choice_reader import ChoiceReader, ChunkPiece
from abridge.apis.chat.errors import read_finish_error
from abridge.apis.json import dumps, objects
from abridge.apis.obfuscation import PADDING_FIELDS, obfuscate_chunk
from abridge.core.conversation import Json
from abridge.core.events import ContentDelta, ErrorReported, Event, Passthrough, UsageReported
from abridge.core.usage import Tokens

DONE_FRAME = b"data: [DONE]\n\n"

CHUNK_OBJECT = "chat.completion.chunk"

MAX_CHOICES = 128  # the API's upper bound on `n`

HEADER_FIELDS = (
    *("id", "object", "created", "model", "system_fingerprint", "service_tier"),
    "provider",  # OpenRouter
)
"""Fields that every chunk of a response repeats."""

_PLAIN_FIELDS = frozenset({*HEADER_FIELDS, *PADDING_FIELDS, "choices", "usage"})


class Framing(Protocol):
    """Turns the pieces of a response's chunks into events."""

    carries_frames: ClassVar[bool]
    """Events carry frames, so chunks are repaired and recorded turns are reported."""

    failed: bool  # an error was reported

    def note_body(self, body: Json, /) -> None:
        """Note what a chunk, or a completion, says beside its choices."""

    def read_choice(
        self, reader: ChoiceReader, choice: Json, *, separate_finish: bool
    ) -> list[ChunkPiece]:
        """Read a chunk's choice with its reader."""

    def flush_choice(self, reader: ChoiceReader) -> list[ChunkPiece]:
        """Release what a reader has held back."""

    def proceed_call(
        self, reader: ChoiceReader, index: int, key: str, text: str, frame: bytes | None, /
    ) -> Event:
        """Return the event of more arguments of a call that has begun."""

    def make_events(
        self, pieces: list[ChunkPiece], chunk: Json, frame: bytes | None, /
    ) -> list[Event]:
        """Return the events of a chunk's pieces."""


class OriginalFrames:
    """Put events into the frame that came, or into new ones if it holds several of them."""

    carries_frames: ClassVar[bool] = True

    def __init__(self, *, obfuscate: bool = False) -> None:
        self.failed = False
        self._obfuscates = obfuscate

    def note_body(self, _body: Json, /) -> None:
        """Do nothing: all of it passes."""

    def read_choice(
        self, reader: ChoiceReader, choice: Json, *, separate_finish: bool
    ) -> list[ChunkPiece]:
        error = None if self.failed else read_finish_error(choice)
        if error is None:
            return reader.read(choice, separate_finish=separate_finish)
        self.failed = True
        *pieces, finish = reader.read(choice, separate_finish=True)
        return [*pieces, ChunkPiece(ErrorReported(None, None, error), finish.choices)]

    def flush_choice(self, reader: ChoiceReader) -> list[ChunkPiece]:
        return reader.flush()

    def proceed_call(
        self, reader: ChoiceReader, _index: int, _key: str, _text: str, frame: bytes | None, /
    ) -> Event:
        return ContentDelta(reader.lane, frame)

    def make_events(
        self, pieces: list[ChunkPiece], chunk: Json, frame: bytes | None
    ) -> list[Event]:
        """Give each event its frame; the chunk's other fields go with the last one."""
        framed = [piece for piece in pieces if piece.choices is not None]
        if frame is not None and len(framed) == 1 and _is_whole_chunk(framed[0], chunk):
            framed[0].event.frame = frame
        elif framed:
            shared = {**get_header(chunk), **({"usage": None} if "usage" in chunk else {})}
            for piece in framed:
                fields = chunk if piece is framed[-1] else shared
                chunk_of_piece = {**fields, "choices": piece.choices}
                piece.event.frame = encode_chunk(chunk_of_piece, obfuscate=self._obfuscates)
        return [piece.event for piece in pieces]


def encode_chunk(chunk: Json, *, obfuscate: bool) -> bytes:
    """Encode a chunk that upstream did not send like this."""
    return sse.encode_frame(dumps(obfuscate_chunk(chunk) if obfuscate else chunk))


def _is_whole_chunk(piece: ChunkPiece, chunk: Json) -> bool:
    choices = objects(chunk.get("choices"))
    return list(map(id, piece.choices or ())) == list(map(id, choices))


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


def get_header(chunk: Json) -> Json:
    """Return the fields that every chunk of a response repeats."""
    return {key: chunk[key] for key in HEADER_FIELDS if key in chunk}


def has_other_fields(chunk: Json) -> bool:
    """Return whether the chunk has fields besides its header, choices, usage and padding."""
    return any(chunk[key] is not None for key in chunk.keys() - _PLAIN_FIELDS)
