"""Encode the frames of a stream: chunks, the last one with the usage, errors and the end."""

from __future__ import annotations

from abridge.turn.events import Billed, Event, Other, Trouble
from abridge.turn.usage import Tokens
from abridge.wire import sse
from abridge.wire.chat.choice import Piece
from abridge.wire.codec import Json, dumps, objects
from abridge.wire.problem import problem

DONE = b"data: [DONE]\n\n"
ENVELOPE = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
"""Fields that every chunk of a response repeats."""


def envelope(chunk: Json) -> Json:
    """Return the fields that every chunk of a response repeats."""
    return {key: chunk[key] for key in ENVELOPE if key in chunk}


def says_more(chunk: Json) -> bool:
    """Return whether the chunk has fields besides its header, choices and usage."""
    known = (*ENVELOPE, "choices", "usage")
    return any(value is not None for key, value in chunk.items() if key not in known)


def bill(pieces: list[Piece], usage: Tokens) -> list[Piece]:
    """Report the usage in a last piece, together with the choices that hold nothing else."""
    bare = [piece for piece in pieces if _is_bare(piece)]
    choices = [choice for piece in bare for choice in piece.choices or ()]
    others = [piece for piece in pieces if not _is_bare(piece)]
    return [*others, Piece(Billed(None, None, usage), choices)]


def _is_bare(piece: Piece) -> bool:
    """Return whether the piece holds neither an answer nor a role."""
    deltas = [choice.get("delta") or {} for choice in piece.choices or ()]
    return isinstance(piece.event, Other) and not any(delta.get("role") for delta in deltas)


def frame_pieces(pieces: list[Piece], chunk: Json, frame: bytes | None = None) -> list[Event]:
    """Return the pieces' events: with the original frame, or with new ones if it holds several.

    The chunk's other fields go with the last piece.
    """
    carriers = [piece for piece in pieces if piece.choices is not None]
    if frame is not None and len(carriers) == 1 and _holds_all(carriers[0], chunk):
        carriers[0].event.frame = frame
    elif carriers:
        shared = {**envelope(chunk), **({"usage": None} if "usage" in chunk else {})}
        for piece in carriers:
            beside = chunk if piece is carriers[-1] else shared
            piece.event.frame = sse.encode(dumps({**beside, "choices": piece.choices}))
    return [piece.event for piece in pieces]


def _holds_all(piece: Piece, chunk: Json) -> bool:
    came = objects(chunk.get("choices"))
    return list(map(id, piece.choices or ())) == list(map(id, came))


def failure(trouble: Trouble) -> bytes:
    """Encode the chunk that reports an error."""
    return sse.encode(dumps(problem(trouble.message, code=trouble.code)))
