"""A model request, independent of any API.

A client's request is read into a `ModelRequest` by the client's API and written by the upstream's.
`param` is always the field's name in the client's request, for use in error messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Json: TypeAlias = dict[str, Any]
Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
ToolKind: TypeAlias = Literal["function", "custom", "local_shell", "tool_search", "hosted"]

SIGNED = "sig1."
"""Prefix of a signature in APIs that have one field for signatures and other opaque state."""


def _named() -> str:
    """Declare a `param` field, which is ignored in comparisons."""
    return field(default="", compare=False)


@dataclass(slots=True, frozen=True)
class Text:
    text: str


@dataclass(slots=True, frozen=True)
class Refusal:
    text: str


@dataclass(slots=True, frozen=True)
class Image:
    url: str = ""  # may be a data URL
    file: str = ""  # id of an uploaded file
    detail: str = ""
    param: str = _named()


@dataclass(slots=True, frozen=True)
class File:
    data: str = ""  # base64, as a data URL or bare
    url: str = ""
    file: str = ""  # id of an uploaded file
    name: str = ""
    param: str = _named()


@dataclass(slots=True, frozen=True)
class Audio:
    data: str = ""  # base64
    format: str = ""
    id: str = ""  # id of audio from an earlier answer of the model's
    param: str = _named()


@dataclass(slots=True, frozen=True)
class Thought:
    """Reasoning of an earlier turn, as the client returns it."""

    text: str = ""  # as the model wrote it
    summary: tuple[str, ...] = ()  # made by upstream
    sealed: str = ""  # opaque state
    signed: bool = False  # the opaque state is a signature of `text`
    id: str = ""
    param: str = _named()


@dataclass(slots=True, frozen=True)
class ToolCall:
    id: str
    name: str
    arguments: str  # JSON; free text if custom
    custom: bool = False


@dataclass(slots=True, frozen=True)
class ToolOutput:
    call: str
    parts: tuple[Text | Image | File, ...]
    failed: bool = False


@dataclass(slots=True, frozen=True)
class Foreign:
    """A part or an item that exists in the client's API only."""

    spelled: Json  # the client's JSON of it
    param: str = _named()
    matters: bool = True  # the request means something else without it
    message: str = ""  # error message for the client, if a generic one is not enough


Part: TypeAlias = Text | Refusal | Image | File | Audio | Thought | ToolCall | ToolOutput | Foreign


@dataclass(slots=True)
class Speech:
    """One speaker's parts, in order.

    Of the assistant: reasoning, then text, then calls, repeated as often as it happened. Tool
    outputs are a message of their own. Adjacent texts of one message may be merged, those of two
    messages never.
    """

    role: Role
    parts: list[Part] = field(default_factory=list)
    name: str = ""
    param: str = _named()


@dataclass(slots=True, frozen=True)
class Tool:
    """A tool that the model may call."""

    name: str  # as offered to upstream: unique, `[A-Za-z0-9_-]{1,64}`; of a hosted tool, its type
    kind: ToolKind = "function"  # `hosted`: only the provider of the tool's own API can run it
    description: str = ""
    parameters: Json | None = None  # also set on a custom tool that is offered as a function
    strict: bool = False  # the API's default if the client left it open
    grammar: Json | None = None  # a custom tool's `syntax` and `definition`
    own: str = ""  # the client's name for it
    group: str = ""  # the client's name for the group it belongs to, if any
    spelled: Json = field(default_factory=dict)  # the client's JSON of it
    param: str = "tools"


@dataclass(slots=True, frozen=True)
class ToolChoice:
    mode: Literal["none", "auto", "required"]
    names: tuple[str, ...] = ()
    """Only these tools may be called; if required and only one, it must be."""


@dataclass(slots=True, frozen=True)
class Format:
    """Structured output: JSON that follows a schema, or any JSON if there is none."""

    schema: Json | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None


@dataclass(slots=True)
class Question:
    model: str = ""
    speeches: list[Speech] = field(default_factory=list)
    tools: list[Tool] = field(default_factory=list)
    choice: ToolChoice | None = None
    format: Format | None = None
    effort: str | None = None  # reasoning effort
    summary: str | None = None  # style of the summary that upstream itself is to make
    sealed: bool = False  # the client wants opaque state in the answer
    stream: bool = False
    values: dict[str, Any] = field(default_factory=dict)
    """Plain parameters that mean the same in every API, under neutral names (see `PARAMS` in
    `apis/params.py`), without those that are null or have no effect.
    """
    params: dict[str, str] = field(default_factory=dict)
    """The client's names of these, and of the output format and the effort."""
    extra: Json = field(default_factory=dict)
    """Keys unknown to Abridge, which are passed on as they are."""


@dataclass(slots=True, frozen=True)
class Unfit:
    """Something in a request that the upstream's API cannot express."""

    param: str
    message: str
    matters: bool
    """The answer would mean something else without it: the request is refused, unless the settings
    allow to drop it.
    """


@dataclass(slots=True)
class Written:
    """A request in the upstream's API."""

    body: Json
    unfit: list[Unfit] = field(default_factory=list)
    """Parts of the request that this API cannot express."""
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """The tools offered, by the name that upstream uses; needed to translate the calls in the
    answer.
    """
