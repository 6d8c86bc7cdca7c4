"""No field that a client may send is lost without a word.

The fields are those of the official clients' own types. Whatever is set in one of them changes what
goes upstream, is reported as left out, or is refused; the others say here why nothing is lost. A
field that a new release of a client adds is found here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from typing_extensions import is_typeddict

from abridge.apis.api import UpstreamOptions
from abridge.apis.registry import APIS, UPSTREAM_APIS
from abridge.core.model_request import TranslatedRequest
from abridge.errors import RequestError
from abridge.providers.catalog import PROFILES

Json = dict[str, Any]

FIELDS = {
    "chat": CompletionCreateParamsNonStreaming,
    "responses": ResponseCreateParamsNonStreaming,
    "messages": MessageCreateParamsNonStreaming,
}

HELLO = {"role": "user", "content": "Hi"}

BASES: dict[str, Json] = {
    "chat": {"model": "claude-sonnet-4-6", "messages": [HELLO]},
    "responses": {"model": "claude-sonnet-4-6", "input": [HELLO]},
    "messages": {"model": "claude-sonnet-4-6", "max_tokens": 8000, "messages": [HELLO]},
}

MAX_DEPTH = 4
"""Objects within one another that are walked into."""

_DEFAULT = "what an upstream does without it"
_OWN = "Abridge does it itself"
_NO_TOOLS = "it says something of tools, and there are none"
_NO_THINKING = "nothing is asked of a model that does not think"
_WISH = "it says what the client sees of the thinking, which Abridge decides"

HARMLESS = {
    # chat, responses
    "background=False": _DEFAULT,
    "function_call=*": "there are no functions",
    "include=reasoning.encrypted_content": _OWN,
    "logprobs=False": _DEFAULT,
    "modalities=text": _DEFAULT,
    "parallel_tool_calls=*": _NO_TOOLS,
    "reasoning.context=auto": _DEFAULT,
    "reasoning.generate_summary=*": _OWN,
    "reasoning.mode=standard": _DEFAULT,
    "reasoning.summary=*": _OWN,
    "reasoning.effort=none": _NO_THINKING,
    "reasoning_effort=none": _NO_THINKING,
    "service_tier=auto": _DEFAULT,
    "store=*": _OWN,
    "stream_options*": _OWN,
    "tool_choice*": _NO_TOOLS,
    "truncation=disabled": _DEFAULT,
    # messages
    "context_management": "an empty object",
    "metadata": "an empty object",
    "output_config": "an empty object",
    "reasoning": "an empty object",
    "speed=standard": _DEFAULT,
    "text": "an empty object",
    "thinking": "the model's own default is to think",
    "thinking.budget_tokens": "the budget is told as an effort, which is the least already",
    "thinking.block_binding*": "no thinking of another model's goes upstream",
    "thinking.display=*": _WISH,
    "thinking.type=adaptive": _DEFAULT,
    "thinking.type=between_tools": _NO_THINKING,
    "thinking.type=disabled": _NO_THINKING,
    "thinking.type=enabled": _DEFAULT,
}
"""Fields, or values of them, that may leave no trace, and why."""


class Sample(NamedTuple):
    """A value, and the same without what `path` names; None if nothing remains."""

    path: str
    value: Any
    without: Any = None


def samples(kind: Any, depth: int = MAX_DEPTH) -> Iterator[Sample]:
    """Yield values of a type, one for each of its fields and choices."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        yield from _samples_of_object(kind, depth)
    elif origin in (Union, UnionType):
        for each in arguments:
            yield from samples(each, depth)
    elif origin is Literal:
        yield from (Sample(f"={choice}", choice) for choice in arguments)
    elif origin in (list, Iterable, Sequence):
        for path, value, without in samples(arguments[0], depth):
            yield Sample(path, [value], None if without is None else [without])
    elif kind is bool:
        yield from (Sample(f"={flag}", flag) for flag in (True, False))
    elif kind in _PLAIN or origin is dict:
        yield Sample("", _least(kind))


def _samples_of_object(kind: Any, depth: int) -> Iterator[Sample]:
    if not depth:
        return
    least = _least(kind)
    yield Sample("", least)
    for key, inner in get_type_hints(kind).items():
        for path, value, without in samples(inner, depth - 1):
            if without is not None:
                yield Sample(f".{key}{path}", {**least, key: value}, {**least, key: without})
            elif key not in least:
                yield Sample(f".{key}{path}", {**least, key: value}, least)


_PLAIN: dict[Any, Any] = {int: 3, float: 0.5, str: "x", bool: True, object: "x"}


def _least(kind: Any) -> Any:
    """Return the least value of a type: an object has the fields that it must have."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        return {key: _least(hints[key]) for key in sorted(kind.__required_keys__)}
    if origin in (Union, UnionType):
        return _least(arguments[0])
    if origin is Literal:
        return arguments[0]
    if origin in (list, Iterable, Sequence):
        return [_least(arguments[0])]
    return {"k": "x"} if origin is dict else _PLAIN.get(kind, "x")


CONVERSATION = {"model", "messages", "input", "system", "tools", "stream"}
"""What the tests of each API's messages and tools walk through."""


def _requests(api: str) -> Iterator[tuple[str, Json, Json]]:
    """Yield requests with a field, and without it, each with the field's path."""
    base = BASES[api]
    for key, kind in get_type_hints(FIELDS[api]).items():
        for path, value, without in samples(kind) if key not in CONVERSATION else ():
            bare = base if without is None else {**base, key: without}
            yield key + path, {**base, key: value}, bare


def _translate(api: str, upstream: str, body: Json) -> tuple[Any, list[str]] | None:
    """Return what goes upstream, and the fields that are reported; None for a refusal."""
    try:
        written = _write(api, upstream, body)
    except RequestError:
        return None
    return written.body, [each.param for each in written.unsupported]


def _write(api: str, upstream: str, body: Json) -> TranslatedRequest:
    readers = {each.name: each for each in APIS}
    request = readers[api].read_request(body)
    return UPSTREAM_APIS[upstream].write_request(request, UpstreamOptions(PROFILES["auto"]))


PAIRS = [(api, upstream) for api in FIELDS for upstream in UPSTREAM_APIS if api != upstream]


@pytest.mark.parametrize(("api", "upstream"), PAIRS)
def test_no_field_is_lost_without_a_word(api: str, upstream: str) -> None:
    lost = []
    for path, body, bare in _requests(api):
        with_field = _translate(api, upstream, body)
        if with_field is None or with_field != _translate(api, upstream, bare):
            continue
        reported = any(path.startswith(param) for param in with_field[1])
        if not reported and not any(fnmatchcase(path, harmless) for harmless in HARMLESS):
            lost.append(path)
    assert lost == []


Fate = Literal["sent", "left out", "refused"]

REMINDER = {"role": "system", "content": "Be brief."}

MINDED: dict[str, tuple[str, Json, dict[str, Fate]]] = {
    "a speaker's name": (
        "chat",
        {"messages": [{**HELLO, "name": "Ada"}]},
        {"responses": "sent", "messages": "sent", "gemini": "sent", "interactions": "sent"},
    ),
    "the model's own name": (
        "chat",
        {"messages": [{"role": "assistant", "content": "Hi", "name": "Eve"}, HELLO]},
        {
            "responses": "left out",
            "messages": "left out",
            "gemini": "left out",
            "interactions": "left out",
        },
    ),
    "truncation": (  # what is too long is refused by upstream
        "responses",
        {"truncation": "auto"},
        {
            "chat": "left out",
            "messages": "left out",
            "gemini": "left out",
            "interactions": "left out",
        },
    ),
    "penalties": (
        "chat",
        {"presence_penalty": 0.5},
        {"responses": "sent", "messages": "left out", "gemini": "sent", "interactions": "left out"},
    ),
    "verbosity": (
        "responses",
        {"text": {"verbosity": "low"}},
        {"chat": "sent", "messages": "left out", "gemini": "left out", "interactions": "left out"},
    ),
    "a predicted output": (  # it makes the same answer come sooner
        "chat",
        {"prediction": {"type": "content", "content": "x"}},
        {
            "responses": "left out",
            "messages": "left out",
            "gemini": "left out",
            "interactions": "left out",
        },
    ),
    "an extension": (
        "chat",
        {"x_of_a_server": 1},
        {"responses": "sent", "messages": "sent", "gemini": "left out", "interactions": "left out"},
    ),
    "an effort for a model whose name upstream may not know": (
        "chat",
        {"reasoning_effort": "high"},
        {"responses": "sent", "messages": "sent", "gemini": "sent", "interactions": "sent"},
    ),
    "a change of effort in the input": (
        "responses",
        {"input": [HELLO, {"type": "configuration_update", "reasoning": {"effort": "high"}}]},
        {"chat": "sent", "messages": "sent", "gemini": "sent", "interactions": "sent"},
    ),
    "the effort of one turn": (
        "messages",
        {"messages": [HELLO, {"role": "system", "output_config": {"effort": "low"}}]},
        {
            "chat": "left out",
            "responses": "left out",
            "gemini": "left out",
            "interactions": "left out",
        },
    ),
    "that an instruction is for one turn": (
        "messages",
        {"messages": [HELLO, {**REMINDER, "clear_at": "next_user_message"}, HELLO]},
        {
            "chat": "left out",
            "responses": "left out",
            "gemini": "left out",
            "interactions": "left out",
        },
    ),
    "that an instruction stays": (
        "messages",
        {"messages": [HELLO, {**REMINDER, "output_config": {}, "clear_at": "never"}, HELLO]},
        {"chat": "sent", "responses": "sent", "gemini": "sent", "interactions": "sent"},
    ),
    "moderation by Chat Completions": (  # its results have a form of their own
        "chat",
        {"moderation": {"model": "omni-moderation-latest"}},
        {"responses": "refused", "messages": "refused", "gemini": "refused"},
    ),
    "moderation by Responses": (
        "responses",
        {"moderation": {"model": "omni-moderation-latest"}},
        {"chat": "refused", "messages": "refused", "gemini": "refused"},
    ),
    "a search beside functions": (
        "responses",
        {"tools": [{"type": "function", "name": "f"}, {"type": "web_search"}]},
        {
            "chat": "left out",
            "messages": "left out",
            "gemini": "left out",
            "interactions": "left out",
        },
    ),
    "a search beside nothing": (
        "responses",
        {"tools": [{"type": "web_search"}]},
        {"chat": "refused", "messages": "refused", "gemini": "refused", "interactions": "refused"},
    ),
}
"""What people mind most, with the API that it is of, and what becomes of it for each upstream."""


@pytest.mark.parametrize("loss", MINDED)
def test_what_people_mind_is_sent_or_told(loss: str) -> None:
    api, fields, fates = MINDED[loss]
    for upstream, fate in fates.items():
        written = _write(api, upstream, {**BASES[api], **fields})
        bare = _write(api, upstream, BASES[api])
        essential = [each.essential for each in written.unsupported]
        assert essential == {"sent": [], "left out": [False], "refused": [True]}[fate], upstream
        assert fate != "sent" or written.body != bare.body, upstream


def test_each_reason_is_of_a_field_that_there_is() -> None:
    paths = {path for api in FIELDS for path, _, _ in _requests(api)}
    known = [each for each in HARMLESS if any(fnmatchcase(path, each) for path in paths)]
    assert known == list(HARMLESS)
