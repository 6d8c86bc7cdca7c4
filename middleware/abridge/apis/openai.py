"""What both of OpenAI's APIs share: errors, ids, log probabilities, contents, and what only one of
them nests."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from abridge.apis.api import ApiError
from abridge.apis.errors import read_detail
from abridge.apis.json import as_object, first_string, objects, string
from abridge.apis.params import (
    check_object,
    invalid_value_error,
    iter_objects,
    read_object,
    require_object,
    require_string,
)
from abridge.apis.tools import NamedTools, choose_tools
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail
from abridge.core.model_request import (
    MessagePart,
    ModelRequest,
    OutputFormat,
    TextPart,
    Tool,
    ToolChoice,
    ToolKind,
    TranslatedRequest,
    Unsupported,
    unsupported_part,
)
from abridge.providers.profile import Profile

# Errors


def error_body(
    message: str,
    *,
    kind: str = "server_error",
    param: str | None = None,
    code: str | None = None,
    status: int | None = None,  # noqa: ARG001 -- other APIs tell the type by it
) -> Json:
    """Return `{"error": {"message", "type", "param", "code"}}`, as in the API reference."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def failure_body(error: ErrorDetail, answer: Json) -> Json:
    """Return the body of an answer that failed: an error, with the whole answer within it."""
    body = error_body(error.message, code=error.code)
    body["error"]["response"] = answer
    return body


def respell_error(answer: Json) -> Json:
    """Return an answer that is an error of another form, as vLLM's and FastAPI's, as an error body.

    An answer with anything else in it stays as it is.
    """
    message = first_string(answer, "message", "detail")
    is_error = bool(message) or answer.get("object") == "error"
    if not is_error or any(answer.get(key) for key in ("error", "choices", "usage")):
        return answer
    return error_body(
        message,
        kind=string(answer.get("type")) or "server_error",
        param=answer.get("param"),
        code=answer.get("code"),
    )


def read_error(body: Json) -> ApiError | None:
    """Read an error body; return None if it is not one."""
    error = respell_error(body).get("error")
    if not isinstance(error, dict):
        return None
    return ApiError(
        string(error.get("message")),
        string(error.get("type")) or "server_error",
        string(error.get("param")) or None,
        string(error.get("code")) or None,
    )


def error_in(body: Any) -> ErrorDetail | None:
    """Read an error body in this form or a similar one; return None if it is not one."""
    error = read_detail(as_object(body))
    return error if error.message else None


# Ids, for what upstream gave none

MintId: TypeAlias = Callable[[str], str]
"""Returns a new id with the given prefix."""

MINT_MARK = "ab71d6e0"
"""Follows the prefix in every id of Abridge's. By it they are recognized even if nothing else is
known about them: no upstream knows such an id.
"""

MINT_SIZE = 20
"""Number of bytes after the mark."""

_MINTED_ID = re.compile(rf"[a-z]+[_-]{MINT_MARK}[0-9a-f]{{{2 * MINT_SIZE}}}")


def mint_id(prefix: str) -> str:
    return derived_id(prefix, secrets.token_bytes(MINT_SIZE))


def derived_id(prefix: str, digest: bytes) -> str:
    """Return the id for a digest, always the same, made of the digest's beginning."""
    return f"{prefix}{MINT_MARK}{digest[:MINT_SIZE].hex()}"


class CallIds:
    """The ids of one answer's calls: upstream's, but a new one where it gave none, or another call
    has it."""

    def __init__(self, prefix: str, mint_id: MintId) -> None:
        self._prefix = prefix
        self._mint_id = mint_id
        self._taken: dict[str, None] = {}  # an empty set takes four times as much

    def take(self, given: str) -> str:
        taken = given if given and given not in self._taken else self._mint_id(self._prefix)
        self._taken[taken] = None
        return taken


def is_minted(identity: str) -> bool:
    return MINT_MARK in identity and _MINTED_ID.fullmatch(identity) is not None


# Log probabilities


def complete_logprobs(entries: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return the valid entries with all their fields; the deltas of Responses leave some out.

    An entry without a token or a probability is invalid.
    """
    return [
        {
            **_with_bytes(entry),
            "top_logprobs": list(map(_with_bytes, _valid_entries(entry.get("top_logprobs")))),
        }
        for entry in _valid_entries(list(entries))
    ]


def _valid_entries(entries: Any) -> list[Json]:
    return [entry for entry in objects(entries) if _is_valid_entry(entry)]


def _is_valid_entry(entry: Json) -> bool:
    return isinstance(entry.get("token"), str) and isinstance(entry.get("logprob"), int | float)


def _with_bytes(entry: Mapping[str, Any]) -> Json:
    encoded = entry.get("bytes")
    if isinstance(encoded, list) and all(isinstance(byte, int) for byte in encoded):
        return dict(entry)
    return {**entry, "bytes": list(string(entry.get("token")).encode(errors="surrogatepass"))}


# A message's content: a string, or a list of parts

PartWriters: TypeAlias = Mapping[type, Callable[[Any], Json | None]]
"""An API's writer for each kind of part, which returns None for a part that it cannot express."""


def write_content(
    parts: Sequence[MessagePart], writers: PartWriters, unsupported: list[Unsupported]
) -> str | list[Json]:
    """Return a string if that is enough, else a list; add inexpressible parts to `unsupported`."""
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], TextPart) and parts[0].cache_control is None:
        return parts[0].text
    content = []
    for part in parts:
        written = writers[type(part)](part) if type(part) in writers else None
        if written is None:
            unsupported.append(unsupported_part(part))
        else:
            content.append(written)
    return content


# What one API nests and the other has flat

Spelling: TypeAlias = Callable[[str, Json], Json]
"""Returns an object of a type with these fields: `nested` or `flat`."""

CHOICE_MODES = ("none", "auto", "required")


def nested(kind: str, fields: Json) -> Json:
    """As Chat Completions: the fields in an object under the name of the type."""
    return {"type": kind, kind: fields}


def flat(kind: str, fields: Json) -> Json:
    """As Responses: the fields beside the type."""
    return {"type": kind, **fields}


def _read_fields(entry: Json, kind: str, param: str, spell: Spelling) -> tuple[Json, str]:
    """Return the object with the fields of an entry of some type, and its name."""
    if spell is flat:
        return entry, param
    return require_object(entry, kind, param), f"{param}.{kind}"


def read_output_format(value: Any, param: str, spell: Spelling) -> OutputFormat | None:
    if value is None:
        return None
    kind = check_object(value, param).get("type")
    if kind == "json_schema":
        return read_schema(*_read_fields(value, kind, param, spell))
    if kind not in ("text", "json_object"):
        raise invalid_value_error(kind, f"{param}.type")
    return OutputFormat() if kind == "json_object" else None


def write_output_format(format_: OutputFormat, spell: Spelling) -> Json:
    if format_.schema is None:
        return {"type": "json_object"}
    return spell("json_schema", write_schema(format_))


def read_schema(source: Json, param: str) -> OutputFormat:
    """Read a schema; `param` is the client's name of it."""
    name, description = string(source.get("name")), string(source.get("description"))
    schema = read_object(source, "schema", param)
    return OutputFormat(schema, name, description, source.get("strict"))


def write_schema(format_: OutputFormat) -> Json:
    """Write a schema. The API requires a name; the answer does not show it."""
    written: Json = {"name": format_.name or "answer", "schema": format_.schema}
    if format_.description:
        written["description"] = format_.description
    if format_.strict is not None:
        written["strict"] = format_.strict
    return written


NAMED_KINDS = ("function", "custom")
"""Kinds of tools that the client names as it likes."""


def read_named_tool(tool: Json, param: str) -> tuple[Tool, Json]:
    """Read a function or a custom tool, nested or flat, but for what each API has of its own.
    Return also the object with its fields."""
    kind: ToolKind = "custom" if tool.get("type") == "custom" else "function"
    inner = tool.get(kind)
    fields, holder = (inner, f"{param}.{kind}") if isinstance(inner, dict) else (tool, param)
    name = require_string(fields, "name", holder)
    parameters = fields.get("parameters") if kind == "function" else None
    if parameters is not None:
        require_object(fields, "parameters", holder)
    described = string(fields.get("description")), parameters
    return Tool(name, kind, *described, client_name=name, source=tool, param=param), fields


def read_tool_choice(
    body: Json, read_names: Callable[[Json, str], Iterable[str]], spell: Spelling
) -> ToolChoice | None:
    """Read a tool choice. `read_names` returns the names of the tools that an entry names."""
    choice = body.get("tool_choice")
    if choice is None or choice in CHOICE_MODES:
        return ToolChoice(choice) if choice else None
    if isinstance(choice, str):
        raise invalid_value_error(choice, "tool_choice", CHOICE_MODES)
    entry = check_object(choice, "tool_choice", or_string=True)
    if entry.get("type") != "allowed_tools":
        return ToolChoice("required", tuple(read_names(entry, "tool_choice")))
    allowed, param = _read_fields(entry, "allowed_tools", "tool_choice", spell)
    mode, tools = allowed.get("mode"), iter_objects(allowed.get("tools"), f"{param}.tools")
    if mode not in CHOICE_MODES[1:]:
        raise invalid_value_error(mode, f"{param}.mode")
    names = tuple(name for tool, at in tools for name in read_names(tool, at))
    return ToolChoice(mode if names else "none", names)


def write_tool_choice(choice: ToolChoice, tools: Mapping[str, Tool], spell: Spelling) -> str | Json:
    """Write a tool choice; `tools` are those offered, by name."""
    if not choice.names:
        return choice.mode
    named = [spell(_kind_of(tools.get(name)), {"name": name}) for name in choice.names]
    if choice.mode == "required" and len(named) == 1:
        return named[0]
    return spell("allowed_tools", {"mode": choice.mode, "tools": named})


def _kind_of(tool: Tool | None) -> str:
    is_custom = tool is not None and tool.kind == "custom" and tool.parameters is None
    return "custom" if is_custom else "function"


def write_tools(
    request: ModelRequest,
    profile: Profile,
    translated: TranslatedRequest,
    write_tool: Callable[[Tool], Json],
    spell: Spelling,
    *,
    as_functions: bool = False,
) -> None:
    """Write the tools into the body, and the choice if there are any."""
    named: NamedTools = "some" if "allowed_tools" in profile.supports else "one"
    tools, choice = choose_tools(request, translated, named, as_functions=as_functions)
    if tools:
        translated.body["tools"] = list(map(write_tool, tools))
        if choice is not None:
            translated.body["tool_choice"] = write_tool_choice(choice, translated.tools, spell)


def write_custom_tool(tool: Tool, spell: Spelling) -> Json:
    description = {"description": tool.description} if tool.description else {}
    format_ = {"format": spell("grammar", tool.grammar)} if tool.grammar else {}
    return spell("custom", {"name": tool.name, **description, **format_})
