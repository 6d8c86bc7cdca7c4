"""Read the messages of a request, and write those of one for upstream.

The reasoning that a client sends back with a message is read in any dialect's fields, and written
into, or moved to, the place where upstream reads it (`ReasoningReturn`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, TypeGuard, get_args

from abridge.apis.chat.chunks import ARGUMENTS_FIELDS, kind_of_call
from abridge.apis.chat.reasoning import (
    ENTRY_KINDS,
    IMAGES,
    LIST_FIELDS,
    REASONING_FIELDS,
    find_thinking_chunks,
    read_chunk_text,
    read_image,
    without_thinking_chunks,
)
from abridge.apis.chat.texts import is_plain, split_inline
from abridge.apis.chat.tools import write_call
from abridge.apis.history import in_tags
from abridge.apis.json import as_object, entries, first_string, string
from abridge.apis.openai import PartWriters, write_content
from abridge.apis.params import (
    invalid_value_error,
    iter_objects,
    read_arguments,
    require_list,
    require_object,
    require_string,
)
from abridge.apis.tools import split_output, stated_output
from abridge.core.conversation import Json
from abridge.core.events import PART_SEPARATOR
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
    merge_runs,
    normalized,
    unsupported_part,
    without_marks,
)
from abridge.providers.catalog import PROFILES, TEXT_FIELDS
from abridge.providers.profile import Profile, ReasoningPlace, ReasoningReturn
from abridge.stages.attribution import REDACTED, SUMMARY

ROLES = get_args(Role)

IMAGE_DETAILS = ("auto", "low", "high")
"""Values of an image's `detail` (openai-openapi, image parts of a message)."""

NO_TEXT_PLACES: frozenset[ReasoningPlace] = frozenset({*LIST_FIELDS, "extra_content", "nothing"})
"""Places to which plain text is not moved: upstream reads it in a field as well, or not at all."""


# Read


def read_messages(body: Json) -> Iterator[Message]:
    """Read each message; consecutive tool messages become one."""
    messages = iter_objects(require_list(body, "messages"), "messages")
    return merge_runs((_read_message(message, param) for message, param in messages), "tool")


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
    """Read an assistant's message: its reasoning, its text, its media, its calls."""
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
    parts += read_parts(message.get(IMAGES), f"{param}.{IMAGES}")
    if message.get("function_call"):
        parts.append(UnknownPart(message, f"{param}.function_call"))
    calls = iter_objects(message.get("tool_calls"), f"{param}.tool_calls")
    return [*parts, *(_read_call(call, name) for call, name in calls)]


def _read_call(call: Json, param: str) -> ToolCallPart:
    kind = kind_of_call(call)
    payload = as_object(call.get(kind))
    given = read_arguments(payload.get(ARGUMENTS_FIELDS[kind]))
    id_ = require_string(call, "id", param)
    name = require_string(payload, "name", f"{param}.{kind}")
    return ToolCallPart(id_, name, given, custom=kind == "custom")


def _read_tool_output(message: Json, param: str, parts: list[MessagePart]) -> list[MessagePart]:
    """Read a tool's message: its output, then the parts that no API takes from tools."""
    output, others = split_output(parts)
    call = require_string(message, "tool_call_id", param)
    return [ToolOutputPart(call, output), *others]


def read_parts(content: Any, param: str) -> list[MessagePart]:
    """Read the parts of a content; thinking chunks are left out."""
    if content is None or isinstance(content, str):
        return [TextPart(content)] if content else []
    chunks = iter_objects(content, param, or_string=True)
    return [_read_part(chunk, name) for chunk, name in chunks if chunk.get("type") != "thinking"]


def _read_part(chunk: Json, param: str) -> MessagePart:
    kind = chunk.get("type")
    if kind == "text":
        mark = chunk.get("cache_control")
        return TextPart(string(chunk.get("text")), mark if isinstance(mark, dict) else None)
    if kind == "refusal":
        return RefusalPart(string(chunk.get("refusal")))
    if kind == "image_url":
        image = read_image(chunk)
        return ImagePart(string(image.get("url")), detail=string(image.get("detail")), param=param)
    if kind == "file":
        file = require_object(chunk, "file", param)
        data, id_ = string(file.get("file_data")), string(file.get("file_id"))
        return FilePart(data, file_id=id_, name=string(file.get("filename")), param=param)
    if kind == "input_audio":
        audio = require_object(chunk, "input_audio", param)
        return AudioPart(string(audio.get("data")), string(audio.get("format")), param=param)
    return UnknownPart(chunk, param)


# Write


class ChatConversationBuilder:
    """Write the messages of one request, and report what they cannot hold."""

    def __init__(self, profile: Profile, unsupported: list[Unsupported]) -> None:
        self._profile = profile
        self._unsupported = unsupported
        self._tool_media: list[MessagePart] = []  # from tools, for a user message after theirs
        self.messages: list[Json] = []

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
            content = write_parts(message.parts, self._unsupported)
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
        self._write_media(parts, message)
        reasoning = [part for part in parts if isinstance(part, ReasoningPart)]
        self._unsupported += report_lost_reasoning(reasoning, self._profile)
        self.messages.append(add_reasoning(message, reasoning, self._profile))

    def _write_media(self, parts: Sequence[MessagePart], message: Json) -> None:
        """Write what an answer holds beside text, as far as it may come back."""
        images = [part for part in parts if isinstance(part, ImagePart)]
        if "images" not in self._profile.supports:
            self._unsupported += map(unsupported_part, images)
        elif images:
            message[IMAGES] = write_parts(images, self._unsupported)
        for part in parts:
            if isinstance(part, AudioPart) and part.id:
                message["audio"] = {"id": part.id}
            elif isinstance(part, AudioPart | FilePart):
                self._unsupported.append(unsupported_part(part))

    def _write_tool_output(self, part: MessagePart) -> None:
        """Write a tool's message, which holds only text.

        Its images and files go into a message of the user's after the last tool message.
        """
        if not isinstance(part, ToolOutputPart):
            self._unsupported.append(unsupported_part(part))
            return
        output = stated_output(part)
        texts = [inner for inner in output if isinstance(inner, TextPart)]
        media = [inner for inner in output if not isinstance(inner, TextPart)]
        if media:
            texts = texts or [TextPart("See the next message.")]
            self._tool_media += [TextPart(f"From the tool call {part.call_id}:"), *media]
        content = write_parts(texts, self._unsupported)
        self.messages.append({"role": "tool", "tool_call_id": part.call_id, "content": content})

    def _flush_tool_media(self) -> None:
        if self._tool_media:
            content = write_parts(self._tool_media, self._unsupported)
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


PART_WRITERS: PartWriters = {
    TextPart: _write_text,
    RefusalPart: lambda part: {"type": "refusal", "refusal": part.text},
    ImagePart: _write_image,
    FilePart: _write_file,
    AudioPart: _write_audio,
}


# The reasoning of earlier turns, read


def read_reasoning(message: Json, param: str) -> list[MessagePart]:
    """Read the reasoning of an assistant's message, inline reasoning excepted.

    Text that several fields repeat is read once, opaque state from every field that holds some.
    """
    listed = _read_lists(message, param)
    if any(isinstance(part, ReasoningPart) and (part.text or part.summary) for part in listed):
        return listed
    chunks = find_thinking_chunks(message.get("content"))
    text = first_string(message, *TEXT_FIELDS)
    text = text or "\n".join(filter(str.strip, map(read_chunk_text, chunks)))
    return _attach_signatures(
        [*([ReasoningPart(text, param=param)] if text.strip() else []), *listed]
    )


def split_leading_inline(content: Any, *, known: str | None = None) -> tuple[str, Any]:
    """Split inline reasoning from a content.

    With `known`, the reasoning that a field holds, tags belong to the answer, unless what they hold
    is the same.
    """
    inline, rest = split_inline(content, PROFILES["auto"])
    is_reasoning = known is None or inline.strip() == known.strip()
    return (inline, rest) if is_reasoning else ("", content)


def _read_lists(message: Json, param: str) -> list[MessagePart]:
    """Read LiteLLM's `thinking_blocks`, or else OpenRouter's `reasoning_details`."""
    for name in reversed(LIST_FIELDS):
        found: list[MessagePart] = []
        for i, entry in enumerate(entries(message.get(name))):
            found += _read_entry(as_object(entry), f"{param}.{name}[{i}]")
        if found:
            return _attach_signatures(found)
    return []


def _read_entry(entry: Json, param: str) -> list[MessagePart]:
    """Read an entry of a list.

    A thinking block without a signature holds a summary: among the APIs that give blocks, only one
    that has no signatures omits it, and it shows summaries only.
    """
    entry_type, signature = string(entry.get("type")), string(entry.get("signature"))
    if entry_type not in ENTRY_KINDS:
        return [UnknownPart(entry, param, essential=False)]
    kind, key = ENTRY_KINDS[entry_type]
    text = string(entry.get(key))
    if kind == REDACTED:
        return [ReasoningPart(state=text, param=param)] if text else []
    if kind == SUMMARY or (entry_type == "thinking" and not signature):
        return [ReasoningPart(summary=(text,), param=param)] if text.strip() else []
    reasoning = ReasoningPart(text, state=signature, is_signature=bool(signature), param=param)
    return [reasoning] if text.strip() or signature else []


def _attach_signatures(parts: list[MessagePart]) -> list[MessagePart]:
    """Join a signature that comes alone, as in LiteLLM's streams, to the text before it."""
    joined: list[MessagePart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if _is_signature(part) and isinstance(last, ReasoningPart) and not last.state:
            text = last.text or "".join(last.summary)
            joined[-1] = replace(last, text=text, summary=(), state=part.state, is_signature=True)
        else:
            joined.append(part)
    return joined


def _is_signature(part: MessagePart) -> TypeGuard[ReasoningPart]:
    return isinstance(part, ReasoningPart) and part.is_signature and not part.text


# Written


def add_reasoning(message: Json, reasoning: Sequence[ReasoningPart], profile: Profile) -> Json:
    """Return the message with the reasoning that preceded it: raw text and state, no summaries.

    What its content repeats of that, in tags, is said once.
    """
    place = profile.returns.place
    text = PART_SEPARATOR.join(part.text for part in reasoning if part.text.strip())
    if text and message.get("content"):
        message = {**message, "content": split_leading_inline(message["content"], known=text)[1]}
    if place in _INLINE_WRITERS and text:
        return {**message, "content": _INLINE_WRITERS[place](text, message, profile)}
    if place in _LIST_WRITERS:
        written = [entry for part in reasoning for entry in _LIST_WRITERS[place](part)]
        indexed = [{**entry, "index": index} for index, entry in enumerate(written)]
        fields: Json = {place: indexed} if indexed else {}
        unsigned = [part.text for part in reasoning if not part.is_signature]
        if place == "thinking_blocks" and (
            unsigned_text := PART_SEPARATOR.join(filter(str.strip, unsigned))
        ):
            fields["reasoning_content"] = unsigned_text
        return {**message, **fields}
    needed = profile.returns.required_even_empty and "tool_calls" in message
    return {**message, place: text} if place in TEXT_FIELDS and (text or needed) else message


def report_lost_reasoning(
    reasoning: Sequence[ReasoningPart], profile: Profile
) -> Iterator[Unsupported]:
    """Report the reasoning that upstream does not get; none of it is essential."""
    place = profile.returns.place
    for part in reasoning:
        if part.state and place not in LIST_FIELDS:
            message = "Opaque reasoning can be used only by the API that it came from."
            yield Unsupported(part.param, message, essential=False)
        elif part.text.strip() and place in ("nothing", "extra_content"):
            yield Unsupported(
                part.param, "This model's API does not accept earlier reasoning.", essential=False
            )


def _write_tags(text: str, message: Json, profile: Profile) -> str | list[Json]:
    content, inline = message["content"], in_tags(text, profile)
    if isinstance(content, list):
        return [{"type": "text", "text": inline}, *content]
    return inline + (content or "")


def _write_chunks(text: str, message: Json, _: Profile) -> list[Json]:
    thinking: Json = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    content = message["content"] or []
    chunks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return [thinking, *chunks]


def write_details(part: ReasoningPart) -> Iterator[Json]:
    signature = {"signature": part.state} if part.is_signature else {}
    if part.text.strip() or signature:
        yield {"type": "reasoning.text", "text": part.text, **signature}
    if part.state and not part.is_signature:
        yield {"type": "reasoning.encrypted", "data": part.state}


def _write_blocks(part: ReasoningPart) -> Iterator[Json]:
    if part.is_signature:
        yield {"type": "thinking", "thinking": part.text, "signature": part.state}
    elif part.state:
        yield {"type": "redacted_thinking", "data": part.state}


_INLINE_WRITERS: Mapping[ReasoningPlace, Callable[[str, Json, Profile], str | list[Json]]] = {
    "tags": _write_tags,
    "chunks": _write_chunks,
}

_LIST_WRITERS: Mapping[ReasoningPlace, Callable[[ReasoningPart], Iterator[Json]]] = {
    "reasoning_details": write_details,
    "thinking_blocks": _write_blocks,
}

# Moved to where upstream reads it

_UNKNOWN_RETURN = ReasoningReturn()
"""What is assumed of an upstream of which nothing is known."""


def move_reasoning(message: Json, profile: Profile) -> bool:
    """Move a message's reasoning to the profile's place; return true if the message has changed.

    Reasoning that is there already, or inline in the content, stays as it is. Fields that upstream
    refuses, and empty ones, are removed; an empty one is added if upstream requires it with calls.
    """
    returns = profile.returns
    knows_nothing = profile.learns and returns == _UNKNOWN_RETURN  # more of this upstream yet
    if knows_nothing and is_plain(message.get("content")):
        return False
    before = dict(message)
    _say_once(message, returns.place)
    if knows_nothing:
        return message != before
    if returns.place not in NO_TEXT_PLACES and _is_elsewhere(message, returns.place):
        _move_text(message, profile)
    for name in TEXT_FIELDS:
        if name in message and (name in returns.rejects or not message[name]):
            del message[name]
    if returns.required_even_empty and message.get("tool_calls") and returns.place in TEXT_FIELDS:
        message.setdefault(returns.place, "")
    return message != before


def _say_once(message: Json, place: ReasoningPlace) -> None:
    """Remove reasoning that is said twice, in a field and in tags, where the profile does not read
    it."""
    for name in [name for name in TEXT_FIELDS if string(message.get(name)).strip()]:
        inline, rest = split_leading_inline(message.get("content"), known=message[name])
        if not inline.strip():
            continue
        if place == "tags":
            del message[name]
        else:
            message["content"] = rest


def _is_elsewhere(message: Json, place: ReasoningPlace) -> bool:
    content = message.get("content")
    chunks = bool(find_thinking_chunks(content))
    if message.get(place) or (place == "chunks" and chunks):
        return False
    elsewhere = chunks or any(message.get(name) for name in REASONING_FIELDS)
    return elsewhere and not split_leading_inline(content)[0].strip()


def _move_text(message: Json, profile: Profile) -> None:
    """Move the text alone: opaque state is of use only to the API that it came from."""
    parts = read_reasoning(message, "")
    reasoning = [
        ReasoningPart(part.text) for part in parts if isinstance(part, ReasoningPart) and part.text
    ]
    content = message.get("content")
    bare = {key: value for key, value in message.items() if key not in REASONING_FIELDS}
    bare["content"] = without_thinking_chunks(content) or None
    moved = add_reasoning(bare, reasoning, profile)
    if moved["content"] is None and content is None:
        moved = {key: value for key, value in moved.items() if key != "content" or key in message}
    message.clear()
    message.update(moved)
