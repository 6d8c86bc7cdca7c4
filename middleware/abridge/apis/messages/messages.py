"""Write a request's messages: a system prompt, then user and assistant messages in turn.

Each message is a list of content blocks, one for each part.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Sequence

from abridge.apis.json import loads_exact, parse_object
from abridge.apis.messages.history import REASONING_TYPES, TOOL_RESULT
from abridge.apis.tools import wrap_free_text
from abridge.core.conversation import Json
from abridge.core.model_request import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    MessagePart,
    ReasoningPart,
    RefusalPart,
    TextPart,
    ToolCallPart,
    ToolOutputPart,
    UnknownPart,
    Unsupported,
)
from abridge.providers.claude import ModelCapabilities

INSTRUCTION_ROLES = ("system", "developer")

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")

PDF_TYPE = "application/pdf"

NO_PARTICIPANT_NAMES = "Participants have no names with this upstream."

NO_MESSAGES = "There is nothing in it that this upstream could answer."

_DATA_URL = re.compile(r"data:([^;,]*)[^,]*;base64,", re.IGNORECASE)

_PDF_BASE64_START = "JVBERi0"  # %PDF-

_INVALID_ID_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")


class MessagesBuilder:
    """Take a request's messages in order; consecutive ones of one side become one message.

    Instructions at the start become the `system` prompt. Later ones stay in their place, after the
    user's message, if the model accepts that and there is such a message; otherwise they join the
    prompt, which keeps their weight and loses their place.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        capabilities: ModelCapabilities,
        param: str,
        *,
        allow_unsigned: bool = False,
    ) -> None:
        self.messages: list[Json] = []
        self.unsupported: list[Unsupported] = []
        self._capabilities = capabilities
        self._param = param
        self._allow_unsigned = allow_unsigned
        self._system_texts: list[str] = []
        self._late_instructions: list[str] = []
        for message in messages:
            self._add(message)
        self._end_turn("end")
        if not self.messages and self._system_texts:  # Anthropic requires a message
            self._append("user", [{"type": "text", "text": self.system}])
            self._system_texts = []
        if not self.messages and not self.unsupported:
            self.unsupported.append(Unsupported(self._param, NO_MESSAGES, essential=True))

    @property
    def system(self) -> str:
        return "\n\n".join(self._system_texts)

    def _add(self, message: Message) -> None:
        if message.name:
            param = f"{message.param}.name" if message.param else self._param
            self.unsupported.append(Unsupported(param, NO_PARTICIPANT_NAMES, essential=False))
        if message.role in INSTRUCTION_ROLES:
            self._add_instructions(message)
            return
        role = "assistant" if message.role == "assistant" else "user"
        blocks = self._write_blocks(message.parts, allow_reasoning=role == "assistant")
        if blocks:
            self._end_turn(role)
            self._append(role, blocks)

    def _add_instructions(self, message: Message) -> None:
        texts = [
            part.text for part in message.parts if isinstance(part, TextPart) and part.text.strip()
        ]
        others = [part for part in message.parts if not isinstance(part, TextPart)]
        self._write_blocks(others, allow_reasoning=False)  # to record what is unsupported
        stays_in_place = self.messages and self._capabilities.late_instructions
        (self._late_instructions if stays_in_place else self._system_texts).extend(texts)

    def _write_blocks(self, parts: Sequence[MessagePart], *, allow_reasoning: bool) -> list[Json]:
        """Write parts as blocks. Reasoning is left out unless the message is the assistant's."""
        allowed = [part for part in parts if allow_reasoning or not isinstance(part, ReasoningPart)]
        blocks = [
            write_block(part, self._param, allow_unsigned=self._allow_unsigned) for part in allowed
        ]
        self.unsupported += [block for block in blocks if isinstance(block, Unsupported)]
        return [block for block in blocks if isinstance(block, dict)]

    def _append(self, role: str, blocks: list[Json]) -> None:
        if self._last_role() == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def _end_turn(self, role: str) -> None:
        """Finish the last message before one of `role` is appended."""
        if role != "assistant" and self._last_role() == "assistant":
            self._trim_thinking()
        if role != "user" and self._last_role() == "user":  # tool results have to come first
            self.messages[-1]["content"].sort(key=lambda block: block["type"] != TOOL_RESULT)
        if role != "user" and self._late_instructions:
            if self._last_role() == "user":
                self.messages.append(
                    {"role": "system", "content": "\n\n".join(self._late_instructions)}
                )
            else:
                self._system_texts += self._late_instructions
            self._late_instructions = []

    def _trim_thinking(self) -> None:
        """Remove thinking at the end of a message: upstream refuses it if nothing follows."""
        content = self.messages[-1]["content"]
        while content and content[-1]["type"] in REASONING_TYPES:
            content.pop()
        if not content:
            self.messages.pop()

    def _last_role(self) -> str | None:
        return self.messages[-1]["role"] if self.messages else None


# Content blocks


def write_block(
    part: MessagePart, param: str, *, allow_unsigned: bool
) -> Json | Unsupported | None:
    """Return the content block for a part; None if it holds nothing. `param` is the client's name
    of the field that the part is in, used if the part has no name of its own. `allow_unsigned`:
    reasoning without a signature is sent, too."""
    match part:
        case TextPart(text) | RefusalPart(text):  # Anthropic refuses blank text
            return {"type": "text", "text": text} if text.strip() else None
        case ReasoningPart():
            return _write_thinking(part, allow_unsigned=allow_unsigned)
        case ToolCallPart():
            fields = {"id": write_call_id(part.id), "name": part.name, "input": _write_input(part)}
            return {"type": "tool_use", **fields}
        case ImagePart():
            message = "An image in a form nobody here knows."
            return _write_image(part) or Unsupported(part.param or param, message, essential=True)
        case FilePart():
            message = "A file that is neither PDF nor text."
            return _write_document(part) or Unsupported(
                part.param or param, message, essential=True
            )
        case ToolOutputPart():
            return _write_tool_result(part, param)
        case AudioPart():
            message = "Audio is not supported by this upstream."
            return Unsupported(part.param or param, message, essential=True)
        case UnknownPart():
            message = part.message or "This upstream knows nothing like it."
            return Unsupported(part.param, message, part.essential)


def write_call_id(call_id: str) -> str:
    """Return a call's id in the characters Anthropic allows, alike for call and result."""
    return _INVALID_ID_CHARACTERS.sub("_", call_id)


def _write_thinking(reasoning: ReasoningPart, *, allow_unsigned: bool) -> Json | None:
    """Write reasoning. Anthropic refuses unsigned thinking, so it is left out unless
    `allow_unsigned` is set."""
    if reasoning.state and reasoning.is_signature:
        return {"type": "thinking", "thinking": reasoning.text, "signature": reasoning.state}
    if reasoning.state:
        return {"type": "redacted_thinking", "data": reasoning.state}
    if allow_unsigned and reasoning.text.strip():
        return {"type": "thinking", "thinking": reasoning.text, "signature": ""}
    return None


def _write_input(call: ToolCallPart) -> Json:
    """Parse a call's arguments. Those that are no object (of a call that was cut short) are kept as
    text."""
    arguments = wrap_free_text(call.arguments) if call.custom else call.arguments
    if not arguments.strip():
        return {}
    parsed = parse_object(arguments.encode(errors="surrogatepass"), loads_exact)
    return {"arguments": arguments} if parsed is None else parsed


def _write_tool_result(output: ToolOutputPart, param: str) -> Json | Unsupported:
    content: list[Json] = []
    for part in output.parts:
        block = write_block(part, param, allow_unsigned=False)
        if isinstance(block, Unsupported):
            return block
        content += [] if block is None else [block]
    texts = [block["text"] for block in content if block["type"] == "text"]
    value = texts[0] if len(content) == len(texts) == 1 else content
    result: Json = {"type": "tool_result", "tool_use_id": write_call_id(output.call_id)}
    return {**result, **({"content": value} if value else {}), **_error_flag(output)}


def _error_flag(output: ToolOutputPart) -> Json:
    return {"is_error": True} if output.failed else {}


def _write_image(image: ImagePart) -> Json | None:
    if image.file_id:
        return {"type": "image", "source": {"type": "file", "file_id": image.file_id}}
    if image.url.lower().startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    kind, data = _split_data_url(image.url)
    kind = "image/jpeg" if kind == "image/jpg" else kind
    if kind not in IMAGE_TYPES:
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def _write_document(file: FilePart) -> Json | None:
    source = _document_source(file)
    title = {"title": file.name} if file.name else {}
    return None if source is None else {"type": "document", "source": source, **title}


def _document_source(file: FilePart) -> Json | None:
    if file.file_id:
        return {"type": "file", "file_id": file.file_id}
    if file.url.lower().startswith(("http://", "https://")):
        return {"type": "url", "url": file.url}
    kind, data = _split_data_url(file.data)
    if kind == PDF_TYPE or (not kind and data.startswith(_PDF_BASE64_START)):
        return {"type": "base64", "media_type": PDF_TYPE, "data": data}
    text = _decode_text(data) if kind.startswith("text/") else None
    return None if text is None else {"type": "text", "media_type": "text/plain", "data": text}


def _split_data_url(url: str) -> tuple[str, str]:
    """Split a data URL into media type and base64. For anything else the type is empty."""
    match = _DATA_URL.match(url)
    return (match[1].lower(), url[match.end() :]) if match is not None else ("", url)


def _decode_text(data: str) -> str | None:
    try:
        return b64decode(data, validate=True).decode()
    except (BadBase64, UnicodeDecodeError):
        return None
