"""Read the input of a request as messages, and write messages as the input of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from abridge.apis.effort import CONFIGURATION_UPDATE
from abridge.apis.json import dumps, entries, first_string, string
from abridge.apis.media import write_data_url
from abridge.apis.openai import PartWriters, write_content
from abridge.apis.params import (
    check_list,
    check_string,
    invalid_value_error,
    iter_objects,
    read_arguments,
    require_object,
    require_string,
)
from abridge.apis.responses.reasoning import (
    call_id_of,
    part_texts,
    raw_parts,
    raw_text,
    summary_parts,
)
from abridge.apis.responses.tools import (
    ADDITIONAL_TOOLS,
    BUILT_IN_TOOLS,
    FOUND_TOOLS,
    output_text,
    read_found_tools,
)
from abridge.apis.tools import ToolNames, split_output, stated_output
from abridge.core.conversation import Json
from abridge.core.model_request import (
    SIGNATURE_PREFIX,
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
    TranslatedRequest,
    UnknownPart,
    joined_text,
    merge_runs,
    normalized,
    unsupported_part,
    with_name_in_text,
    without_marks,
)
from abridge.providers.profile import TAGS, Profile
from abridge.stages.tags import TagSplitter

TEXT_TYPES = ("input_text", "output_text", "text")
"""Some servers and clients send `text` for either of the others."""


def read_parts(content: Any, param: str) -> list[MessagePart]:
    if content is None or isinstance(content, str):
        return [TextPart(content)] if content else []
    return [_read_part(part, name) for part, name in iter_objects(content, param, or_string=True)]


def _read_part(part: Json, param: str) -> MessagePart:
    part_type = part.get("type")
    if part_type in TEXT_TYPES:
        return TextPart(string(part.get("text")))
    if part_type == "refusal":
        return RefusalPart(string(part.get("refusal")))
    if part_type == "input_image":
        url, id_ = string(part.get("image_url")), string(part.get("file_id"))
        return ImagePart(url, id_, string(part.get("detail")), param=param)
    if part_type == "input_file":
        data, url = string(part.get("file_data")), string(part.get("file_url"))
        id_, name = string(part.get("file_id")), string(part.get("filename"))
        return FilePart(data, url, id_, name, param=param)
    if part_type == "input_audio":
        audio = require_object(part, "input_audio", param)
        return AudioPart(string(audio.get("data")), string(audio.get("format")), param=param)
    return UnknownPart(part, param)


def _write_image(image: ImagePart) -> Json:
    fields = {"image_url": image.url, "file_id": image.file_id}
    present = {key: value for key, value in fields.items() if value}
    return {"type": "input_image", **present, "detail": image.detail or "auto"}


def _write_file(file: FilePart) -> Json:
    fields = {
        "filename": file.name,
        "file_data": file.data,
        "file_url": file.url,
        "file_id": file.file_id,
    }
    return {"type": "input_file", **{key: value for key, value in fields.items() if value}}


PART_WRITERS: PartWriters = {
    TextPart: lambda part: {"type": "input_text", "text": part.text},
    RefusalPart: lambda part: {"type": "refusal", "refusal": part.text},
    ImagePart: _write_image,
    FilePart: _write_file,
}

ROLES: Mapping[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}

REFERENCE_FIELDS = ("prompt", "conversation", "previous_response_id")
"""Fields that refer to input which the request does not hold."""

UNRESOLVED_REFERENCE = (
    "This model's API stores no items to refer to: send the item itself, as clients do with "
    "store: false."
)
"""Error for a client that assumes `store`, the default: the AI SDK then sends only ids."""

IMAGE_CALL = "image_generation_call"
"""The type of an item with an image of the answer."""

DISPENSABLE_TYPES = frozenset({"web_search_call", "mcp_list_tools"})
"""Items of hosted tools that the model can do without in its next answer."""


def read_messages(body: Json, names: ToolNames) -> Iterator[Message]:
    """Yield the messages.

    Consecutive items of the assistant, or of tools, are one message. Each message of another role
    is one of its own. Reasoning that the text after it repeats in tags is read once.
    """
    for message in merge_runs(_read_input(body, names), "assistant", "tool"):
        message.parts = _said_once(message.parts)
        yield message


def read_input_items(body: Json) -> list[Any]:
    """Return the items of a request's input; a string is a message of the user."""
    value = body.get("input")
    return [{"role": "user", "content": value}] if isinstance(value, str) else entries(value)


def _read_input(body: Json, names: ToolNames) -> Iterator[Message]:
    instructions = body.get("instructions")
    if instructions:
        yield Message("system", read_parts(instructions, "instructions"), param="instructions")
    items = body.get("input")
    if isinstance(items, str):
        yield Message("user", read_parts(items, "input"), param="input")
        return
    if items is None and any(map(body.get, REFERENCE_FIELDS)):
        return
    for item, param in iter_objects(check_list(items, "input", or_string=True), "input"):
        if item.get("type") not in (ADDITIONAL_TOOLS, CONFIGURATION_UPDATE):
            yield _read_item(item, param, names)


def _said_once(parts: Iterable[MessagePart]) -> list[MessagePart]:
    """Take out of each text the tags that hold what the reasoning before it says."""
    once: list[MessagePart] = []
    reasoning: list[str] = []  # its words
    for part in parts:
        if isinstance(part, TextPart) and reasoning:
            once.append(TextPart(_without_tags(part.text, reasoning)))
        else:
            once.append(part)
        reasoning = [*reasoning, *part.text.split()] if isinstance(part, ReasoningPart) else []
    return once


def _without_tags(text: str, reasoning: list[str]) -> str:
    """Return a text without leading tags that hold these words, or as it is."""
    splitter = TagSplitter(TAGS)
    pieces = [*splitter.feed(text), *splitter.end()]
    inline = "".join(piece.text for piece in pieces if piece.kind == "raw")
    rest = "".join(piece.text for piece in pieces if piece.kind == "text")
    return rest if inline.split() == reasoning else text


def _read_item(item: Json, param: str, names: ToolNames) -> Message:
    item_type = string(item.get("type"))
    if item_type in _ITEM_READERS:
        role, read = _ITEM_READERS[item_type]
        return Message(role, [read(item, param, names)], param=param)
    if item_type in ("", "message") and "role" in item:
        return _read_message(item, param)
    speaker: Role = "tool" if "output" in item else "assistant"
    message = UNRESOLVED_REFERENCE if item_type in ("item_reference", "") else ""
    part = UnknownPart(item, param, essential=item_type not in DISPENSABLE_TYPES, message=message)
    return Message(speaker, [part], param=param)


def _read_message(item: Json, param: str) -> Message:
    role = string(item.get("role"))
    if role not in ROLES:
        raise invalid_value_error(item.get("role"), f"{param}.role")
    parts = read_parts(item.get("content"), f"{param}.content")
    if role == "assistant":
        parts = joined_text(parts)
    return Message(ROLES[role], parts, param=param)


def _read_reasoning(item: Json, param: str, _: ToolNames) -> MessagePart:
    state = string(item.get("encrypted_content"))
    is_signed = state.startswith(SIGNATURE_PREFIX)
    return ReasoningPart(
        text=raw_text(item),
        summary=tuple(text for text in part_texts(item.get("summary")) if text.strip()),
        state=state.removeprefix(SIGNATURE_PREFIX),
        is_signature=is_signed,
        id=string(item.get("id")),
        param=param,
    )


def _read_call(item: Json, param: str, names: ToolNames) -> MessagePart:
    """Read a call. Its id is not its item's."""
    client_name = require_string(item, "name", param)
    name = names.assign(client_name, string(item.get("namespace")))
    call_id = require_string(item, "call_id", param)
    is_custom = item.get("type") == "custom_tool_call"
    arguments = item.get("input") if is_custom else read_arguments(item.get("arguments"))
    return ToolCallPart(call_id, name, string(arguments), custom=is_custom)


def _read_image(item: Json, param: str, _: ToolNames) -> MessagePart:
    media_type = f"image/{string(item.get('output_format')) or 'png'}"
    return ImagePart(write_data_url(media_type, string(item.get("result"))), param=param)


def _read_built_in_call(item: Json, param: str, names: ToolNames) -> MessagePart:
    tool = BUILT_IN_TOOLS[string(item.get("type")).removesuffix("_call")]
    asked = require_object(item, tool.place, param)
    return ToolCallPart(call_id_of(item), names.assign_type(tool.kind), tool.read_item(asked))


def _read_shell_output(item: Json, param: str, _: ToolNames) -> MessagePart:
    texts = [output_text(chunk) for chunk, _ in iter_objects(item.get("output"), f"{param}.output")]
    return ToolOutputPart(call_id_of(item), (TextPart("\n".join(texts)),))


def _read_patch_output(item: Json, _param: str, _: ToolNames) -> MessagePart:
    text = first_string(item, "output", "status")
    return ToolOutputPart(
        call_id_of(item), (TextPart(text),), failed=item.get("status") == "failed"
    )


def _read_search_call(item: Json, param: str, names: ToolNames) -> MessagePart:
    """Read a tool search. One that OpenAI ran itself means nothing to another model."""
    if item.get("execution") == "server":
        return UnknownPart(item, param, essential=False)
    arguments = require_object(item, "arguments", param)
    return ToolCallPart(
        call_id_of(item), names.assign_type("tool_search"), dumps(arguments).decode()
    )


def _read_search_output(item: Json, param: str, names: ToolNames) -> MessagePart:
    """Read the result of a tool search. The tools themselves are offered with the others."""
    if item.get("execution") == "server":
        return UnknownPart(item, param, essential=False)
    found = read_found_tools(item, param, names)
    text = f"Found, and offered from now on: {', '.join(found)}" if found else "Found nothing."
    return ToolOutputPart(call_id_of(item), (TextPart(text),))


def _read_tool_output(item: Json, param: str, _: ToolNames) -> MessagePart:
    output, others = split_output(read_parts(item.get("output"), f"{param}.output"))
    if others:
        return UnknownPart(item, f"{param}.output")
    is_shell = item.get("type") == "local_shell_call_output"
    call_id = call_id_of(item) if is_shell else item.get("call_id")
    return ToolOutputPart(check_string(call_id, f"{param}.call_id"), output)


_ITEM_READERS: Mapping[str, tuple[Role, Callable[[Json, str, ToolNames], Any]]] = {
    "reasoning": ("assistant", _read_reasoning),
    **dict.fromkeys(("function_call", "custom_tool_call"), ("assistant", _read_call)),
    **{tool.call_type: ("assistant", _read_built_in_call) for tool in BUILT_IN_TOOLS.values()},
    "tool_search_call": ("assistant", _read_search_call),
    IMAGE_CALL: ("assistant", _read_image),
    "function_call_output": ("tool", _read_tool_output),
    "custom_tool_call_output": ("tool", _read_tool_output),
    "local_shell_call_output": ("tool", _read_tool_output),
    "shell_call_output": ("tool", _read_shell_output),
    "apply_patch_call_output": ("tool", _read_patch_output),
    FOUND_TOOLS: ("tool", _read_search_output),
}


class ResponsesConversationBuilder:
    """Write the input items of one request, and report what they cannot express."""

    def __init__(self, profile: Profile, translated: TranslatedRequest) -> None:
        self._profile = profile
        self._translated = translated
        self._custom_call_ids: set[str] = set()
        self.items: list[Json] = []

    def write(self, messages: Iterable[Message]) -> None:
        for message in map(without_marks, normalized(messages)):
            client_message = with_name_in_text(message, self._translated)
            if client_message.role in ("assistant", "tool"):
                for part in client_message.parts:
                    self.items += self._write_part(part)
            else:
                content = self._write_parts(client_message.parts)
                head = {"type": "message", "role": client_message.role}
                self.items.append({**head, "content": content})

    def _write_part(self, part: MessagePart) -> list[Json]:
        if isinstance(part, ReasoningPart):
            return self._write_reasoning(part)
        if isinstance(part, ToolCallPart):
            return [self._write_call(part)]
        if isinstance(part, ToolOutputPart):
            is_custom = part.call_id in self._custom_call_ids
            kind = "custom_tool_call_output" if is_custom else "function_call_output"
            output = self._write_parts(stated_output(part))
            return [{"type": kind, "call_id": part.call_id, "output": output}]
        message: Json = {"type": "message", "role": "assistant"}
        if isinstance(part, TextPart):
            return [{**message, "content": part.text}]
        if isinstance(part, RefusalPart):
            return [{**message, "content": self._write_parts([part])}]
        self._translated.unsupported.append(unsupported_part(part))
        return []

    def _write_parts(self, parts: Sequence[MessagePart]) -> str | list[Json]:
        return write_content(parts, PART_WRITERS, self._translated.unsupported)

    def _write_call(self, call: ToolCallPart) -> Json:
        """Write a call without an item id, since that is upstream's to give."""
        fields = {"call_id": call.id, "name": call.name}
        if call.custom:
            self._custom_call_ids.add(call.id)
            return {"type": "custom_tool_call", **fields, "input": call.arguments}
        return {"type": "function_call", **fields, "arguments": call.arguments}

    def _write_reasoning(self, part: ReasoningPart) -> list[Json]:
        """Write reasoning.

        Signed reasoning of another API becomes a summary, which is all that such APIs show. The
        signature is dropped: it means nothing here.
        """
        summary, raw = part.summary, part.text
        if part.is_signature and raw.strip():
            summary, raw = (*summary, raw), ""
        item: Json = {"type": "reasoning", "summary": summary_parts(summary)}
        if raw.strip() and self._profile.rejects_clear_reasoning:
            message = "This model's API accepts only its own reasoning back."
            self._translated.leave_out(part.param, message)
        elif raw.strip() and self._profile.summary_is_raw:
            item |= {"summary": summary_parts([raw]), "encrypted_content": raw}
        elif raw.strip():
            item["content"] = raw_parts([raw])
        if part.state and not part.is_signature:
            item["encrypted_content"] = part.state
        return [item] if len(item) > 2 or item["summary"] else []
