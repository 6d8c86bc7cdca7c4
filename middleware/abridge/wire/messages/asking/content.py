"""Writes message parts as content blocks."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BadBase64

from abridge.turn.question import (
    Audio,
    File,
    Foreign,
    Image,
    Part,
    Refusal,
    Text,
    Thought,
    ToolCall,
    ToolOutput,
    Unfit,
)
from abridge.wire.asking.disguise import as_arguments
from abridge.wire.codec import Json, loads_exactly, read_object

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"

_DATA = re.compile(r"data:([^;,]*)[^,]*;base64,", re.IGNORECASE)
_PDF_BEGINS = "JVBERi0"  # %PDF-
_NO_ID = re.compile(r"[^a-zA-Z0-9_-]")


def spell(part: Part, where: str, *, unsigned: bool) -> Json | Unfit | None:
    """Return the content block for a part; None if it holds nothing. `param` is the client's name
    of the field that the part is in, used if the part has no name of its own. `allow_unsigned`:
    reasoning without a signature is sent, too."""
    match part:
        case Text(text) | Refusal(text):  # Anthropic refuses blank text
            return {"type": "text", "text": text} if text.strip() else None
        case Thought():
            return _thought(part, unsigned=unsigned)
        case ToolCall():
            spelled = {"id": identity(part.id), "name": part.name, "input": _input(part)}
            return {"type": "tool_use", **spelled}
        case Image():
            message = "An image in a form nobody here knows."
            return _image(part) or Unfit(part.param or where, message, matters=True)
        case File():
            message = "A file that is neither PDF nor text."
            return _file(part) or Unfit(part.param or where, message, matters=True)
        case ToolOutput():
            return _output(part, where)
        case Audio():
            message = "Audio is not supported by this upstream."
            return Unfit(part.param or where, message, matters=True)
        case Foreign():
            message = part.message or "This upstream knows nothing like it."
            return Unfit(part.param, message, part.matters)


def identity(call: str) -> str:
    """Return a call's id in the characters Anthropic allows, alike for call and result."""
    return _NO_ID.sub("_", call)


def _thought(thought: Thought, *, unsigned: bool) -> Json | None:
    """Write reasoning. Anthropic refuses unsigned thinking, so it is left out unless
    `allow_unsigned` is set."""
    if thought.sealed and thought.signed:
        return {"type": "thinking", "thinking": thought.text, "signature": thought.sealed}
    if thought.sealed:
        return {"type": "redacted_thinking", "data": thought.sealed}
    if unsigned and thought.text.strip():
        return {"type": "thinking", "thinking": thought.text, "signature": ""}
    return None


def _input(call: ToolCall) -> Json:
    """Parse a call's arguments. Those that are no object (of a call that was cut short) are kept as
    text."""
    arguments = as_arguments(call.arguments) if call.custom else call.arguments
    if not arguments.strip():
        return {}
    given = read_object(arguments.encode(errors="surrogatepass"), loads_exactly)
    return {"arguments": arguments} if given is None else given


def _output(output: ToolOutput, where: str) -> Json | Unfit:
    content: list[Json] = []
    for part in output.parts:
        block = spell(part, where, unsigned=False)
        if isinstance(block, Unfit):
            return block
        content += [] if block is None else [block]
    texts = [block["text"] for block in content if block["type"] == "text"]
    said = texts[0] if len(content) == len(texts) == 1 else content
    spelled: Json = {"type": "tool_result", "tool_use_id": identity(output.call)}
    return {**spelled, **({"content": said} if said else {}), **_failed(output)}


def _failed(output: ToolOutput) -> Json:
    return {"is_error": True} if output.failed else {}


def _image(image: Image) -> Json | None:
    if image.file:
        return {"type": "image", "source": {"type": "file", "file_id": image.file}}
    if image.url.lower().startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    kind, data = _data(image.url)
    kind = "image/jpeg" if kind == "image/jpg" else kind
    if kind not in IMAGES:
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _file(file: File) -> Json | None:
    source = _source(file)
    titled = {"title": file.name} if file.name else {}
    return None if source is None else {"type": "document", "source": source, **titled}


def _source(file: File) -> Json | None:
    if file.file:
        return {"type": "file", "file_id": file.file}
    if file.url.lower().startswith(("http://", "https://")):
        return {"type": "url", "url": file.url}
    kind, data = _data(file.data)
    if kind == PDF or (not kind and data.startswith(_PDF_BEGINS)):
        return {"type": "base64", "media_type": PDF, "data": data}
    text = _decoded(data) if kind.startswith("text/") else None
    return None if text is None else {"type": "text", "media_type": "text/plain", "data": text}


def _data(given: str) -> tuple[str, str]:
    """Split a data URL into media type and base64. For anything else the type is empty."""
    head = _DATA.match(given)
    return (head[1].lower(), given[head.end() :]) if head is not None else ("", given)


def _decoded(data: str) -> str | None:
    try:
        return b64decode(data, validate=True).decode()
    except (BadBase64, UnicodeDecodeError):
        return None
