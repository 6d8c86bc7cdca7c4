"""Obfuscation: random characters beside each streamed delta, so that the sizes of packets tell less
of its text.

As OpenAI has it: the text and its `obfuscation` together are a multiple of 16 long, and
`stream_options.include_obfuscation = false` switches it off (openai-openapi,
`ChatCompletionStreamOptions`, `ResponseStreamOptions`). Abridge adds it to the deltas that it
writes; one that passes as upstream wrote it has what upstream gave it.
"""

from __future__ import annotations

from io import BytesIO
from secrets import token_urlsafe

from abridge.apis.json import as_object, dumps, objects
from abridge.core.conversation import Json

BLOCK = 16
"""Bytes to a multiple of which a delta is filled up."""

FIELD = "obfuscation"

PADDING_FIELDS = (
    FIELD,
    "p",  # Mistral
)
"""Fields that pad a frame, and say nothing."""

_BATCH = 1024  # random bytes that are asked for at once: each call costs more than a padding

_random = BytesIO()  # their characters, read as far as they were used


def wants_obfuscation(body: Json) -> bool:
    """Return False if a request switches it off."""
    return as_object(body.get("stream_options")).get("include_obfuscation") is not False


def obfuscate_event(event: Json) -> Json:
    """Return an event of a Responses stream, with obfuscation if it is a delta without any."""
    delta = event.get("delta")
    if not isinstance(delta, str) or FIELD in event:
        return event
    return {**event, FIELD: fill_up(_encoded_size(delta)).decode()}


def obfuscate_chunk(chunk: Json) -> Json:
    """Return a chunk of Chat Completions with obfuscation that suits its deltas."""
    size = sum(
        _encoded_size(value)
        for choice in objects(chunk.get("choices"))
        if isinstance(delta := choice.get("delta"), dict)
        for value in delta.values()
    )
    return {**chunk, FIELD: fill_up(size).decode()} if size else chunk


def _encoded_size(value: object) -> int:
    """Return how long a string is between its quotes, or anything else as JSON."""
    return len(dumps(value)) - 2 * isinstance(value, str)


def fill_up(size: int) -> bytes:
    """Return random characters that fill up a size to a multiple of `BLOCK`."""
    missing = -size % BLOCK
    while len(padding := _random.read(missing)) < missing:
        _random.seek(0)
        _random.write(token_urlsafe(_BATCH).encode())
        _random.seek(0)
    return padding
