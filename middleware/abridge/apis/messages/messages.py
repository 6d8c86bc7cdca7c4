"""Read a request's messages, and write those of one for upstream: a system prompt, then user and
assistant messages in turn.

Each message is a list of content blocks, one for each part.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from abridge.apis.json import dumps, nested_value, string
from abridge.apis.media import PDF_BASE64_START, PDF_TYPE, REMOTE, split_data_url, write_data_url
from abridge.apis.messages.history import REASONING_TYPES, without_billing
from abridge.apis.messages.tools import INVALID_ARGUMENTS, unwrap_invalid, upstream_call_id
from abridge.apis.params import (
    NO_MESSAGES,
    invalid_value_error,
    iter_objects,
    read_object,
    read_string,
    require_list,
    require_object,
    require_string,
)
from abridge.apis.tools import ToolNames, parse_arguments, split_output
from abridge.core.conversation import Json
from abridge.core.model_request import (
    INSTRUCTION_ROLES,
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    MessagePart,
    ModelRequest,
    ReasoningPart,
    RefusalPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolOutputPart,
    TranslatedRequest,
    UnknownPart,
    Unsupported,
    joined_text,
    normalized,
    unsupported_part,
    with_name_in_text,
)
from abridge.providers.claude import ModelCapabilities

ROLES: Mapping[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "ctx": "user",
    "msg": "user",
}
"""The last two are Claude Code's since 2.1.154 (vllm/entrypoints/anthropic/protocol.py)."""

UNKNOWN_IMAGE = "The image has an unknown format."

UNKNOWN_FILE = "The file is neither PDF nor text."

NO_AUDIO = "Audio is not supported by this upstream."

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")

PDF_NAME = "document.pdf"
"""The name of a PDF without a title, since OpenAI requires one."""

DISPENSABLE_TYPES = frozenset(
    {
        *("server_tool_use", "web_search_tool_result", "web_fetch_tool_result"),
        *("tool_search_tool_result", "advisor_tool_result", "mcp_tool_listing", "fallback"),
    }
)
"""Types of blocks about what Anthropic did itself, which a model can do without in its next
answer."""

OWN_FIELDS = ("output_config", "clear_at")
"""What Anthropic alone can be told of one turn (anthropic-sdk-python, `BetaSystemMessageParam`)."""

_INVALID_ID_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")


# Read


def read_messages(body: Json, names: ToolNames) -> Iterator[Message]:
    """Yield the messages: the system prompt, then the others.

    The results of tools in a user's message are a message of their own.
    """
    if prompt := without_billing(body.get("system")):
        yield Message("system", read_blocks(prompt, "system", names), param="system")
    messages = require_list(body, "messages")
    for message, param in iter_objects(messages, "messages", dotted=True):
        role = string(message.get("role"))
        if role not in ROLES:
            raise invalid_value_error(message.get("role"), f"{param}.role")
        parts = read_blocks(message.get("content"), f"{param}.content", names)
        own = (key for key in OWN_FIELDS if message.get(key) not in (None, {}, "never"))
        parts += [UnknownPart({}, f"{param}.{key}", essential=False) for key in own]
        if role == "assistant":
            yield Message("assistant", joined_text(parts), param=param)
            continue
        for is_output, run in groupby(parts, lambda part: isinstance(part, ToolOutputPart)):
            yield Message("tool" if is_output else ROLES[role], list(run), param=param)


# Write


class MessagesConversationBuilder:
    """Take a request's messages in order; consecutive ones of one side become one message.

    Instructions at the start become the `system` prompt. Later ones stay in their place, after the
    user's message, if the model accepts that and there is such a message; otherwise they join the
    prompt, which keeps their weight and loses their place.
    """

    def __init__(
        self,
        request: ModelRequest,
        capabilities: ModelCapabilities,
        translated: TranslatedRequest,
        *,
        allow_unsigned: bool,
    ) -> None:
        self.messages: list[Json] = []
        self._translated = translated
        self._capabilities = capabilities
        self._param = request.param("messages")
        self._allow_unsigned = allow_unsigned
        self._system_texts: list[TextPart] = []
        self._late_instructions: list[TextPart] = []
        for message in normalized(request.messages):
            self._add(with_name_in_text(message, translated))
        self._place_instructions("end")
        if not self.messages and self._system_texts:  # Anthropic requires a message
            self._append("user", [{"type": "text", "text": self._system_text}])
            self._system_texts = []
        if not self.messages and not translated.unsupported:
            translated.leave_out(self._param, NO_MESSAGES, essential=True)

    @property
    def system(self) -> str | list[Json]:
        """The system prompt: one text, or blocks where marks for a cache stand between."""
        if all(part.cache_control is None for part in self._system_texts):
            return self._system_text
        return self._write_blocks(self._system_texts, allow_reasoning=False)

    @property
    def _system_text(self) -> str:
        return "\n\n".join(part.text for part in self._system_texts)

    def _add(self, message: Message) -> None:
        if message.role in INSTRUCTION_ROLES:
            self._add_instructions(message)
            return
        role = "assistant" if message.role == "assistant" else "user"
        blocks = self._write_blocks(message.parts, allow_reasoning=role == "assistant")
        while blocks and blocks[-1]["type"] in REASONING_TYPES:  # refused if nothing follows
            blocks.pop()
        if blocks:
            self._place_instructions(role)
            self._append(role, blocks)

    def _add_instructions(self, message: Message) -> None:
        texts = [part for part in message.parts if isinstance(part, TextPart) and part.text.strip()]
        others = [part for part in message.parts if not isinstance(part, TextPart)]
        self._translated.unsupported += map(unsupported_part, others)
        stays_in_place = self.messages and self._capabilities.late_instructions
        (self._late_instructions if stays_in_place else self._system_texts).extend(texts)

    def _write_blocks(self, parts: Sequence[MessagePart], *, allow_reasoning: bool) -> list[Json]:
        """Write parts as blocks. Reasoning is left out unless the message is the assistant's."""
        allowed = [part for part in parts if allow_reasoning or not isinstance(part, ReasoningPart)]
        blocks = [
            write_block(part, self._param, allow_unsigned=self._allow_unsigned) for part in allowed
        ]
        self._translated.unsupported += [each for each in blocks if isinstance(each, Unsupported)]
        return [block for block in blocks if isinstance(block, dict)]

    def _append(self, role: str, blocks: list[Json]) -> None:
        if self._last_role() == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def _place_instructions(self, role: str) -> None:
        """Place late instructions before a message of `role` is appended, unless the user goes
        on."""
        if role != "user" and self._late_instructions:
            if self._last_role() == "user":
                text = "\n\n".join(part.text for part in self._late_instructions)
                self.messages.append({"role": "system", "content": text})
            else:
                self._system_texts += self._late_instructions
            self._late_instructions = []

    def _last_role(self) -> str | None:
        return self.messages[-1]["role"] if self.messages else None


# The blocks of a content, read


def read_blocks(content: Any, param: str, names: ToolNames) -> list[MessagePart]:
    """Read a content: a text, or a list of blocks."""
    if content is None or isinstance(content, str):
        return [TextPart(content)] if content else []
    return [
        part
        for block, name in iter_objects(content, param, dotted=True, or_string=True)
        for part in _read_block(block, name, names)
    ]


def _read_block(block: Json, param: str, names: ToolNames) -> Iterable[MessagePart]:
    kind = require_string(block, "type", param)
    if kind in _BLOCK_READERS:
        return _BLOCK_READERS[kind](block, param, names)
    return [UnknownPart(block, param, essential=kind not in DISPENSABLE_TYPES)]


def _read_text(block: Json, param: str, _: ToolNames) -> Iterable[MessagePart]:
    return [TextPart(require_string(block, "text", param), _cache_mark(block))]


def _read_thinking(block: Json, param: str, _: ToolNames) -> Iterable[MessagePart]:
    text = require_string(block, "thinking", param)
    signature = read_string(block, "signature", param) or ""
    return [ReasoningPart(text, state=signature, is_signature=bool(signature), param=param)]


def _read_redacted_thinking(block: Json, param: str, _: ToolNames) -> Iterable[MessagePart]:
    return [ReasoningPart(state=require_string(block, "data", param), param=param)]


def _read_tool_use(block: Json, param: str, names: ToolNames) -> Iterable[MessagePart]:
    call_id = upstream_call_id(require_string(block, "id", param))
    name = names.assign(require_string(block, "name", param))
    arguments = read_object(block, "input", param)
    return [ToolCallPart(call_id, name, unwrap_invalid(arguments) or dumps(arguments).decode())]


def _read_tool_result(block: Json, param: str, names: ToolNames) -> Iterable[MessagePart]:
    """Read a tool's result, then the parts of it that no API takes from tools."""
    call_id = upstream_call_id(require_string(block, "tool_use_id", param))
    output, others = split_output(read_blocks(block.get("content"), f"{param}.content", names))
    if output and isinstance(output[-1], TextPart) and (mark := _cache_mark(block)):
        output = (*output[:-1], TextPart(output[-1].text, mark))
    return [ToolOutputPart(call_id, output, failed=block.get("is_error") is True), *others]


def _read_image(block: Json, param: str, _: ToolNames) -> Iterable[MessagePart]:
    source, source_param = _read_source(block, param)
    data, url, file_id = _read_address(source, source_param)
    return [ImagePart(data or url, file_id, param=source_param)]


def _read_document(block: Json, param: str, names: ToolNames) -> Iterable[MessagePart]:
    """Read a document. One that is text becomes text, which any model can read."""
    title, context = string(block.get("title")), string(block.get("context"))
    source, source_param = _read_source(block, param)
    unread = _read_wish_to_cite(block, param)
    match source["type"]:
        case "text":
            text = require_string(source, "data", source_param)
            return [*_enclose([TextPart(text)], title, context), *unread]
        case "content":
            parts = read_blocks(source.get("content"), f"{source_param}.content", names)
            return [*_enclose(parts, title, context), *unread]
    data, url, file_id = _read_address(source, source_param)
    name = title or (PDF_NAME if data else "")
    file = FilePart(data, url, file_id, name, param=param)
    return [*([TextPart(context)] if context else []), file, *unread]


def _read_search_result(block: Json, param: str, names: ToolNames) -> Iterable[MessagePart]:
    source = require_string(block, "source", param)
    parts = read_blocks(block.get("content"), f"{param}.content", names)
    enclosed = _enclose(parts, string(block.get("title")), f"Source: {source}")
    return [*enclosed, *_read_wish_to_cite(block, param)]


def _read_tool_reference(block: Json, param: str, names: ToolNames) -> Iterable[MessagePart]:
    """Read the finding of a tool that the client offers: it is offered with the others."""
    name = require_string(block, "tool_name", param)
    return [TextPart(f"Found, and offered from now on: {names.assigned_name(name)}")]


def _read_compaction(block: Json, _param: str, _names: ToolNames) -> Iterable[MessagePart]:
    """Read the summary in the place of earlier messages; null where there is none."""
    text = string(block.get("content"))
    return [TextPart(text)] if text else []


_BlockReader: TypeAlias = Callable[[Json, str, ToolNames], Iterable[MessagePart]]

_BLOCK_READERS: Mapping[str, _BlockReader] = {
    "text": _read_text,
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted_thinking,
    "tool_use": _read_tool_use,
    "tool_result": _read_tool_result,
    "image": _read_image,
    "document": _read_document,
    "search_result": _read_search_result,
    "tool_reference": _read_tool_reference,
    "compaction": _read_compaction,
}
"""The blocks that other APIs can express (anthropic-sdk-python, `ContentBlockParam`)."""


def _cache_mark(block: Json) -> Json | None:
    mark = block.get("cache_control")
    return mark if isinstance(mark, dict) else None


def _read_source(block: Json, param: str) -> tuple[Json, str]:
    """Return a block's source, and its name."""
    source, param = require_object(block, "source", param), f"{param}.source"
    require_string(source, "type", param)
    return source, param


def _read_address(source: Json, param: str) -> tuple[str, str, str]:
    """Return what a source has of these: data, as a URL, a URL, and the id of a file."""
    match source["type"]:
        case "base64":
            media_type = require_string(source, "media_type", param)
            data = require_string(source, "data", param)
            return write_data_url(media_type, data), "", ""
        case "url":
            return "", require_string(source, "url", param), ""
        case "file":
            return "", "", require_string(source, "file_id", param)
    raise invalid_value_error(source["type"], f"{param}.type")


def _enclose(parts: list[MessagePart], title: str, context: str) -> list[MessagePart]:
    """Say of a document's parts where it begins and ends, as Anthropic recommends for documents
    within a prompt (platform.claude.com: long context tips)."""
    head = [f"<document title={dumps(title).decode()}>" if title else "<document>", context]
    opening = TextPart("\n".join(filter(None, head)) + "\n")
    return [opening, *parts, TextPart("\n</document>")]


def _read_wish_to_cite(block: Json, param: str) -> list[UnknownPart]:
    """Read the wish that answers cite a block, if it is one. No other API fulfils it."""
    if nested_value(block, "citations.enabled") is not True:
        return []
    return [UnknownPart(block["citations"], f"{param}.citations", essential=False)]


# Written


def write_block(
    part: MessagePart, param: str, *, allow_unsigned: bool
) -> Json | Unsupported | None:
    """Return the content block for a part; None if it holds nothing. `param` is the client's name
    of the field that the part is in, used if the part has no name of its own. `allow_unsigned`:
    reasoning without a signature is sent, too."""
    match part:
        case TextPart() | RefusalPart():
            return _write_text(part)
        case ReasoningPart():
            return _write_thinking(part, allow_unsigned=allow_unsigned)
        case ToolCallPart():
            call_input = parse_arguments(part, INVALID_ARGUMENTS)
            named = {"id": write_call_id(part.id), "name": part.name}
            return {"type": "tool_use", **named, "input": call_input}
        case ImagePart():
            refused = Unsupported(part.param or param, UNKNOWN_IMAGE, essential=True)
            return _write_image(part) or refused
        case FilePart():
            refused = Unsupported(part.param or param, UNKNOWN_FILE, essential=True)
            return _write_document(part) or refused
        case AudioPart():
            return Unsupported(part.param or param, NO_AUDIO, essential=True)
        case ToolOutputPart():
            return _write_tool_result(part, param)
        case UnknownPart():
            return None  # `normalized` leaves none


def write_call_id(call_id: str) -> str:
    """Return a call's id in the characters Anthropic allows, alike for call and result. Any
    other is spelled by its number, so that ids stay apart."""
    return _INVALID_ID_CHARACTERS.sub(lambda found: f"_{ord(found[0]):x}_", call_id) or "_"


def _write_text(part: TextPart | RefusalPart) -> Json | None:
    """Write a text. Anthropic refuses a blank one."""
    if not part.text.strip():
        return None
    mark = part.cache_control if isinstance(part, TextPart) else None
    return {"type": "text", "text": part.text, **({"cache_control": mark} if mark else {})}


def _write_thinking(reasoning: ReasoningPart, *, allow_unsigned: bool) -> Json | None:
    """Write reasoning. Anthropic refuses unsigned thinking, so it is left out unless
    `allow_unsigned` is set. A signature may be for what clients were shown as a summary."""
    if reasoning.state and reasoning.is_signature:
        text = reasoning.text or "".join(reasoning.summary)
        return {"type": "thinking", "thinking": text, "signature": reasoning.state}
    if reasoning.state:
        return {"type": "redacted_thinking", "data": reasoning.state}
    if allow_unsigned and reasoning.text.strip():
        return {"type": "thinking", "thinking": reasoning.text, "signature": ""}
    return None


def _write_tool_result(output: ToolOutputPart, param: str) -> Json | Unsupported:
    content: list[Json] = []
    for part in output.parts:
        block = write_block(part, param, allow_unsigned=False)
        if isinstance(block, Unsupported):
            return block
        content += [] if block is None else [block]
    texts = [block["text"] for block in content if block.keys() == {"type", "text"}]
    value = texts[0] if len(content) == len(texts) == 1 else content
    result: Json = {"type": "tool_result", "tool_use_id": write_call_id(output.call_id)}
    if value:
        result["content"] = value
    return {**result, "is_error": True} if output.failed else result


def _write_image(image: ImagePart) -> Json | None:
    if image.file_id:
        return {"type": "image", "source": {"type": "file", "file_id": image.file_id}}
    if image.url.lower().startswith(REMOTE):
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    kind, data = split_data_url(image.url)
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
    if file.url.lower().startswith(REMOTE):
        return {"type": "url", "url": file.url}
    kind, data = split_data_url(file.data)
    if kind == PDF_TYPE or (not kind and data.startswith(PDF_BASE64_START)):
        return {"type": "base64", "media_type": PDF_TYPE, "data": data}
    text = _decode_text(data) if kind.startswith("text/") else None
    return None if text is None else {"type": "text", "media_type": "text/plain", "data": text}


def _decode_text(data: str) -> str | None:
    try:
        return b64decode(data, validate=True).decode()
    except (BadBase64, UnicodeDecodeError):
        return None
