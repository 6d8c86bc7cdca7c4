"""A model request, independent of any API.

A client's request is read into a `ModelRequest` by the client's API and written by the upstream's.
`param` is always the field's name in the client's request, for use in error messages. `normalized`
puts the messages into an order that every API accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from abridge.core.conversation import Json

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]

INSTRUCTION_ROLES: tuple[Role, ...] = ("system", "developer")

ToolKind: TypeAlias = Literal[
    "function", "custom", "local_shell", "shell", "apply_patch", "tool_search", "hosted"
]

SIGNATURE_PREFIX = "sig1."
"""Prefix of a signature in APIs that have one field for signatures and other opaque state."""


def _param_field() -> str:
    """Declare a `param` field, which is ignored in comparisons."""
    return field(default="", compare=False)


@dataclass(slots=True, frozen=True)
class TextPart:
    text: str
    cache_control: Json | None = field(default=None, compare=False)
    """Anthropic's mark that a cache may end here, which others take as well."""


@dataclass(slots=True, frozen=True)
class RefusalPart:
    text: str


@dataclass(slots=True, frozen=True)
class ImagePart:
    url: str = ""  # may be a data URL
    file_id: str = ""  # id of an uploaded file
    detail: str = ""
    param: str = _param_field()


@dataclass(slots=True, frozen=True)
class FilePart:
    data: str = ""  # base64, as a data URL or bare
    url: str = ""
    file_id: str = ""  # id of an uploaded file
    name: str = ""
    param: str = _param_field()


@dataclass(slots=True, frozen=True)
class AudioPart:
    data: str = ""  # base64
    format: str = ""
    id: str = ""  # id of audio from an earlier answer of the model's
    param: str = _param_field()


@dataclass(slots=True, frozen=True)
class ReasoningPart:
    """Reasoning of an earlier turn, as the client returns it, or of an answer, to be sealed."""

    text: str = ""  # as the model wrote it
    summary: tuple[str, ...] = ()  # made by upstream
    state: str = ""  # opaque state, which came after it
    is_signature: bool = False  # the opaque state is a signature of `text`
    id: str = ""
    param: str = _param_field()


@dataclass(slots=True, frozen=True)
class ToolCallPart:
    id: str
    name: str
    arguments: str  # JSON; free text if custom
    custom: bool = False


@dataclass(slots=True, frozen=True)
class ToolOutputPart:
    call_id: str
    parts: tuple[TextPart | ImagePart | FilePart, ...]
    failed: bool = False


@dataclass(slots=True, frozen=True)
class UnknownPart:
    """A part or an item that exists in the client's API only."""

    source: Json  # the client's JSON of it
    param: str = _param_field()
    essential: bool = True  # the request means something else without it
    message: str = ""  # error message for the client, if a generic one is not enough


MessagePart: TypeAlias = (
    TextPart
    | RefusalPart
    | ImagePart
    | FilePart
    | AudioPart
    | ReasoningPart
    | ToolCallPart
    | ToolOutputPart
    | UnknownPart
)


@dataclass(slots=True)
class Message:
    """One speaker's parts, in order.

    Of the assistant: reasoning, then text, then calls, repeated as often as it happened. Tool
    outputs are a message of their own. Adjacent texts of one message may be merged, those of two
    messages never.
    """

    role: Role
    parts: list[MessagePart] = field(default_factory=list)
    name: str = ""
    param: str = _param_field()

    def with_parts(self, parts: list[MessagePart]) -> Message:
        """Return a message with other parts. `replace` would take a tenth of a translation."""
        return Message(self.role, parts, self.name, self.param)


@dataclass(slots=True, frozen=True)
class Tool:
    """A tool that the model may call."""

    name: str  # as offered to upstream: unique, `[A-Za-z0-9_-]{1,64}`; of a hosted tool, its type
    kind: ToolKind = "function"  # `hosted`: only the provider of the tool's own API can run it
    description: str = ""
    parameters: Json | None = None  # also set on a custom tool that is offered as a function
    strict: bool = False  # the API's default if the client left it open
    grammar: Json | None = None  # a custom tool's `syntax` and `definition`
    client_name: str = ""  # the client's name for it
    group: str = ""  # the client's name for the group it belongs to, if any
    source: Json = field(default_factory=dict)  # the client's JSON of it
    param: str = "tools"


@dataclass(slots=True, frozen=True)
class ToolChoice:
    mode: Literal["none", "auto", "required"]
    names: tuple[str, ...] = ()
    """Only these tools may be called; if required and only one, it must be."""


@dataclass(slots=True, frozen=True)
class OutputFormat:
    """Structured output: JSON that follows a schema, or any JSON if there is none."""

    schema: Json | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None


@dataclass(slots=True)
class ModelRequest:
    model: str = ""
    messages: list[Message] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    tool_choice: ToolChoice | None = None
    output_format: OutputFormat | None = None
    effort: str | None = None  # reasoning effort
    budget: int | None = None  # tokens to reason with at most; `effort` says the same more roughly
    declines_reasoning: bool = False  # not to reason, where upstream can be told so
    native_style: str | None = None  # style of the summary that upstream itself is to make
    wants_state: bool = False  # the client wants opaque state in the answer
    foreign_reasoning: list[str] = field(default_factory=list)
    """Names of the reasoning that was left out because it belongs to another conversation."""
    stream: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    """Plain parameters that mean the same in every API, under neutral names (see `PARAMS` in
    `apis/params.py`), without those that are null or have no effect.
    """
    param_names: dict[str, str] = field(default_factory=dict)
    """The client's names of these, and of the output format and the effort."""
    extra: Json = field(default_factory=dict)
    """Keys unknown to Abridge, which are passed on as they are."""

    def param(self, name: str, default: str = "") -> str:
        """Return the client's name of a parameter."""
        return self.param_names.get(name, default or name)


@dataclass(slots=True, frozen=True)
class Unsupported:
    """Something in a request that the upstream's API cannot express."""

    param: str
    message: str
    essential: bool
    """The answer would mean something else without it: the request is refused, unless the settings
    allow to drop it.
    """


@dataclass(slots=True)
class TranslatedRequest:
    """A request in the upstream's API."""

    body: Json
    unsupported: list[Unsupported] = field(default_factory=list)
    """Parts of the request that this API cannot express."""
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The tools offered, by the name that upstream uses; needed to translate the calls in the
    answer.
    """

    def leave_out(self, param: str, message: str, *, essential: bool = False) -> None:
        """Report that this API cannot express something."""
        self.unsupported.append(Unsupported(param, message, essential))


def merge_runs(messages: Iterable[Message], *roles: Role) -> Iterator[Message]:
    """Yield the messages, consecutive ones of one of these roles as one."""
    for role, run in groupby(messages, attrgetter("role")):
        if role in roles:
            first = next(run)
            for message in run:
                first.parts += message.parts
            yield first
        else:
            yield from run


def normalized(messages: Iterable[Message]) -> list[Message]:
    """Return the messages in the order that all APIs but Responses require.

    Drops unknown parts and the assistant's empty texts, merges what it said without interruption
    into one message, and puts the outputs of its calls right after it. Reasoning stays with what
    the assistant says next; if somebody else speaks next, or nobody, it is left out.
    """
    ordered: list[Message] = []
    outputs: dict[str, Message] = {}
    for message in _merge_assistant(messages):
        if message.role != "tool":
            ordered.append(message)
            if calls := [part.id for part in message.parts if isinstance(part, ToolCallPart)]:
                ordered.append(Message("tool"))
                outputs.update(dict.fromkeys(calls, ordered[-1]))
            continue
        unmatched = message.with_parts([])
        for part in message.parts:
            call = part.call_id if isinstance(part, ToolOutputPart) else ""
            outputs.get(call, unmatched).parts.append(part)
        ordered.append(unmatched)
    return [message for message in ordered if message.parts or message.role != "tool"]


_EMPTY_TEXTS = (TextPart(""), RefusalPart(""))


def _merge_assistant(messages: Iterable[Message]) -> Iterator[Message]:
    for role, run in groupby(messages, attrgetter("role")):
        known = [(message, [*filter(_is_known, message.parts)]) for message in run]
        if role != "assistant":
            told = ((message, parts) for message, parts in known if parts or not message.parts)
            yield from (message.with_parts(parts) for message, parts in told)
            continue
        said = [part for _, parts in known for part in parts if part not in _EMPTY_TEXTS]
        while said and isinstance(said[-1], ReasoningPart):
            said.pop()
        if said:
            yield known[0][0].with_parts(said)


def _is_known(part: MessagePart) -> bool:
    return not isinstance(part, UnknownPart)


def unknown_parts(messages: Iterable[Message]) -> list[Unsupported]:
    """List the parts that exist in the client's API only."""
    return [
        Unsupported(part.param, part.message or _unknown_message(part), part.essential)
        for message in messages
        for part in message.parts
        if isinstance(part, UnknownPart)
    ]


def _unknown_message(part: UnknownPart) -> str:
    kind = part.source.get("type") or part.source.get("role")
    subject = f"{kind!r:.80}" if kind else "This"
    return f"This model's API does not know {subject}."


def joined_text(parts: Iterable[MessagePart]) -> list[MessagePart]:
    """Merge adjacent texts: a message's text may come in any number of pieces. None is merged
    behind a mark for a cache."""
    joined: list[MessagePart] = []
    for part in parts:
        last = joined[-1] if joined else None
        mergeable = isinstance(last, TextPart) and last.cache_control is None
        if isinstance(part, TextPart) and isinstance(last, TextPart) and mergeable:
            joined[-1] = TextPart(last.text + part.text, part.cache_control)
        else:
            joined.append(part)
    return joined


def with_name_in_text(message: Message, translated: TranslatedRequest) -> Message:
    """Return a message that begins with its speaker's name, for an API that has no names. That of
    the model or a tool is left out: the model would begin its own answers like that."""
    if not message.name:
        return message
    if message.role in ("assistant", "tool"):
        translated.leave_out(
            f"{message.param}.name", "This model's API does not support speakers' names."
        )
        return message
    opening = joined_text([TextPart(f"{message.name}: "), *message.parts[:1]])
    return message.with_parts([*opening, *message.parts[1:]])


def without_marks(message: Message) -> Message:
    """Return a message without the marks for caches."""
    return message.with_parts([_without_mark(part) for part in message.parts])


def _without_mark(part: MessagePart) -> MessagePart:
    match part:
        case TextPart(text) if part.cache_control is not None:
            return TextPart(text)
        case ToolOutputPart():
            texts = tuple(
                TextPart(inner.text) if isinstance(inner, TextPart) else inner
                for inner in part.parts
            )
            return replace(part, parts=texts)
    return part


def unsupported_part(part: MessagePart) -> Unsupported:
    """Report that an API cannot express a part."""
    param = getattr(part, "param", "")
    return Unsupported(param, f"This model's API does not accept {param}.", essential=True)
