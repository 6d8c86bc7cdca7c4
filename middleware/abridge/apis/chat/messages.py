"""Read the messages of a request, and write those of one for upstream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType
from typing import Any, get_args

from abridge.apis.chat.chunks import ARGUMENTS_FIELDS, kind_of_call
from abridge.apis.chat.replay import (
    add_reasoning,
    read_reasoning,
    report_lost_reasoning,
    split_leading_inline,
)
from abridge.apis.chat.tools import write_call
from abridge.apis.fields import (
    invalid_value_error,
    iter_objects,
    read_arguments,
    require_list,
    require_object,
    require_string,
)
from abridge.apis.json import as_object, string
from abridge.apis.openai import PartWriters, write_content
from abridge.apis.tools import stated_output
from abridge.core.conversation import Json
from abridge.core.model_request import (
    INSTRUCTION_ROLES,
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    MessagePart,
    ReasoningPart,
    RefusalPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolOutputPart,
    UnknownPart,
    Unsupported,
    joined_text,
    normalized,
    unsupported_part,
    without_marks,
)
from abridge.providers.profile import Profile

ROLES = get_args(Role)

IMAGE_DETAILS = ("auto", "low", "high")
"""Values of an image's `detail` (openai-openapi, image parts of a message)."""


# Read


def read_messages(body: Json) -> Iterator[Message]:
    """Read each message; consecutive tool messages become one."""
    outputs: Message | None = None
    for message, param in iter_objects(require_list(body.get("messages"), "messages"), "messages"):
        parsed = _read_message(message, param)
        if parsed.role == "tool" and outputs is not None:
            outputs.parts += parsed.parts
            continue
        outputs = parsed if parsed.role == "tool" else None
        yield parsed


def _read_message(message: Json, param: str) -> Message:
    role: Any = message.get("role")
    if role == "function":  # a call's output, in the API before tools
        return Message("tool", [UnknownPart(message, param)], param=param)
    if role not in ROLES:
        raise invalid_value_error(role, f"{param}.role")
    if role == "assistant":
        parts = _read_assistant(message, param)
    else:
        parts = read_parts(message.get("content"), f"{param}.content")
    if role == "tool":
        parts = _read_tool_output(message, param, parts)
    return Message(role, parts, name=string(message.get("name")), param=param)


def _read_assistant(message: Json, param: str) -> list[MessagePart]:
    """Read an assistant's message: its reasoning, its text, its calls."""
    parts = read_reasoning(message, param)
    reasoning = [part for part in parts if isinstance(part, ReasoningPart)]
    known = "".join(part.text for part in reasoning) if reasoning else None
    inline, content = split_leading_inline(message.get("content"), known=known)
    if inline.strip() and not reasoning:
        parts.append(ReasoningPart(inline, param=f"{param}.content"))
    parts += joined_text(read_parts(content, f"{param}.content"))
    if refusal := string(message.get("refusal")):
        parts.append(RefusalPart(refusal))
    if isinstance(audio := message.get("audio"), dict):
        parts.append(AudioPart(id=string(audio.get("id")), param=f"{param}.audio"))
    if message.get("function_call"):
        parts.append(UnknownPart(message, f"{param}.function_call"))
    calls = iter_objects(message.get("tool_calls"), f"{param}.tool_calls")
    return [*parts, *(_read_call(call, name) for call, name in calls)]


def _read_call(call: Json, param: str) -> ToolCallPart:
    kind = kind_of_call(call)
    payload = as_object(call.get(kind))
    given = read_arguments(payload.get(ARGUMENTS_FIELDS[kind]))
    id_ = require_string(call.get("id"), f"{param}.id")
    name = require_string(payload.get("name"), f"{param}.{kind}.name")
    return ToolCallPart(id_, name, given, custom=kind == "custom")


def _read_tool_output(message: Json, param: str, parts: list[MessagePart]) -> list[MessagePart]:
    """Read a tool's message: its output, then the parts that no API takes from tools."""
    supported = tuple(part for part in parts if isinstance(part, TextPart | ImagePart | FilePart))
    others = [part for part in parts if not isinstance(part, TextPart | ImagePart | FilePart)]
    call = require_string(message.get("tool_call_id"), f"{param}.tool_call_id")
    return [ToolOutputPart(call, supported), *others]


def read_parts(content: Any, param: str) -> list[MessagePart]:
    """Read the parts of a content; thinking chunks are left out."""
    if content is None or isinstance(content, str):
        return [TextPart(content)] if content else []
    chunks = iter_objects(content, param)
    return [_read_part(chunk, name) for chunk, name in chunks if chunk.get("type") != "thinking"]


def _read_part(chunk: Json, param: str) -> MessagePart:
    kind = chunk.get("type")
    if kind == "text":
        mark = chunk.get("cache_control")
        return TextPart(string(chunk.get("text")), mark if isinstance(mark, dict) else None)
    if kind == "refusal":
        return RefusalPart(string(chunk.get("refusal")))
    if kind == "image_url":
        image = chunk.get("image_url")
        image = image if isinstance(image, dict) else {"url": image}
        return ImagePart(string(image.get("url")), detail=string(image.get("detail")), param=param)
    if kind == "file":
        file = require_object(chunk.get("file"), f"{param}.file")
        data, id_ = string(file.get("file_data")), string(file.get("file_id"))
        return FilePart(data, file_id=id_, name=string(file.get("filename")), param=param)
    if kind == "input_audio":
        audio = require_object(chunk.get("input_audio"), f"{param}.input_audio")
        return AudioPart(string(audio.get("data")), string(audio.get("format")), param=param)
    return UnknownPart(chunk, param)


# Write


class MessageWriter:
    """Write the messages of one request."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._tool_media: list[MessagePart] = []  # from tools, for a user message after theirs
        self.messages: list[Json] = []
        self.unsupported: list[Unsupported] = []  # parts that these messages cannot hold

    def write(self, messages: Iterable[Message]) -> None:
        ordered = normalized(messages)
        if not self._profile.cache_marks:
            ordered = [without_marks(message) for message in ordered]
        if "developer" not in self._profile.supports:
            ordered = _place_instructions(ordered)
        for message in ordered:
            if message.role != "tool":
                self._flush_tool_media()
            self._write_message(message)
        self._flush_tool_media()
        if not self.messages:  # there was reasoning alone, which no message can carry
            self.messages.append({"role": "user", "content": ""})

    def _write_message(self, message: Message) -> None:
        if message.role == "assistant":
            self._write_assistant(message)
        elif message.role == "tool":
            for part in message.parts:
                self._write_tool_output(part)
        else:
            role = "system" if message.role in INSTRUCTION_ROLES else message.role
            role = message.role if "developer" in self._profile.supports else role
            name = {"name": message.name} if message.name else {}
            content = write_parts(message.parts, self.unsupported)
            self.messages.append({"role": role, **name, "content": content})

    def _write_assistant(self, source: Message) -> None:
        """Write all consecutive parts as one message: parallel calls share the reasoning before."""
        parts = source.parts
        texts, refusals = _texts(parts, TextPart), _texts(parts, RefusalPart)
        if "refusals" not in self._profile.supports:
            texts, refusals = [*texts, *refusals], []
        message: Json = {"role": "assistant", "content": "\n\n".join(texts) or None}
        if refusals:
            message["refusal"] = "\n\n".join(refusals)
        if calls := [part for part in parts if isinstance(part, ToolCallPart)]:
            native = "custom_tools" in self._profile.supports
            message["tool_calls"] = [write_call(call, native=native) for call in calls]
        for part in parts:
            if isinstance(part, AudioPart) and part.id:
                message["audio"] = {"id": part.id}
            elif isinstance(part, AudioPart | ImagePart | FilePart):
                self.unsupported.append(unsupported_part(part))
        reasoning = [part for part in parts if isinstance(part, ReasoningPart)]
        self.unsupported += report_lost_reasoning(reasoning, self._profile)
        self.messages.append(add_reasoning(message, reasoning, self._profile))

    def _write_tool_output(self, part: MessagePart) -> None:
        """Write a tool's message, which holds only text.

        Its images and files go into a message of the user's after the last tool message.
        """
        if not isinstance(part, ToolOutputPart):
            self.unsupported.append(unsupported_part(part))
            return
        output = stated_output(part)
        texts = [inner for inner in output if isinstance(inner, TextPart)]
        media = [inner for inner in output if not isinstance(inner, TextPart)]
        if media:
            texts = texts or [TextPart("See the next message.")]
            self._tool_media += [TextPart(f"From the tool call {part.call_id}:"), *media]
        content = write_parts(texts, self.unsupported)
        self.messages.append({"role": "tool", "tool_call_id": part.call_id, "content": content})

    def _flush_tool_media(self) -> None:
        if self._tool_media:
            content = write_parts(self._tool_media, self.unsupported)
            self.messages.append({"role": "user", "content": content})
            self._tool_media = []


def _place_instructions(messages: list[Message]) -> list[Message]:
    """Make the leading instructions one system message, and later ones the user's, marked as Claude
    Code marks its own: chat templates take one system message, at the start, and some raise an
    error at any other (QwenLM/Qwen3.8 issue 244)."""
    leading = list(takewhile(lambda message: message.role in INSTRUCTION_ROLES, messages))
    others = [
        _as_reminder(message) if message.role in INSTRUCTION_ROLES else message
        for message in messages[len(leading) :]
    ]
    return [*_merge_system_messages(leading), *others]


def _as_reminder(message: Message) -> Message:
    text = "\n\n".join(_texts(message.parts, TextPart))
    others = [part for part in message.parts if not isinstance(part, TextPart)]
    reminder = TextPart(f"<system-reminder>\n{text}\n</system-reminder>")
    return replace(message, role="user", parts=[reminder, *others])


def _merge_system_messages(leading: list[Message]) -> list[Message]:
    parts = [part for message in leading for part in message.parts]
    if len(leading) < 2 and len(parts) < 2:
        return leading
    others = [part for part in parts if not isinstance(part, TextPart)]
    texts = [part for part in parts if isinstance(part, TextPart)]
    if all(part.cache_control is None for part in texts):
        texts = [TextPart("\n\n".join(_texts(parts, TextPart)))]
    return [Message("system", [*texts, *others])]


def _texts(parts: Sequence[MessagePart], kind: type[TextPart | RefusalPart]) -> list[str]:
    return [part.text for part in parts if isinstance(part, kind)]


def write_parts(parts: Sequence[MessagePart], unsupported: list[Unsupported]) -> str | list[Json]:
    return write_content(parts, PART_WRITERS, unsupported)


def _write_text(part: TextPart) -> Json:
    mark = {"cache_control": part.cache_control} if part.cache_control else {}
    return {"type": "text", "text": part.text, **mark}


def _write_image(image: ImagePart) -> Json | None:
    if not image.url:
        return None
    detail = "high" if image.detail == "original" else image.detail
    known_detail = {"detail": detail} if detail in IMAGE_DETAILS else {}
    return {"type": "image_url", "image_url": {"url": image.url, **known_detail}}


def _write_file(file: FilePart) -> Json | None:
    fields = {"filename": file.name, "file_data": file.data, "file_id": file.file_id}
    given = {key: value for key, value in fields.items() if value}
    return {"type": "file", "file": given} if file.data or file.file_id else None


def _write_audio(audio: AudioPart) -> Json | None:
    given = {"data": audio.data, "format": audio.format}
    return {"type": "input_audio", "input_audio": given} if audio.data else None


PART_WRITERS: PartWriters = MappingProxyType(
    {
        TextPart: _write_text,
        RefusalPart: lambda part: {"type": "refusal", "refusal": part.text},
        ImagePart: _write_image,
        FilePart: _write_file,
        AudioPart: _write_audio,
    }
)
