"""Read a client's Responses body into a model request, and write one into upstream's body."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from abridge.turn.question import Format, Question, Unfit, Written
from abridge.turn.speeches import foreign
from abridge.wire.api import Asking
from abridge.wire.asking.format import read_schema, spell_schema
from abridge.wire.asking.offer import Names, write_tools
from abridge.wire.asking.params import (
    named,
    put,
    read_extra,
    read_params,
    write_extra,
    write_params,
)
from abridge.wire.asking.require import a_list, a_string, a_word, an_object, flag, invalid
from abridge.wire.codec import Json
from abridge.wire.profile import Profile
from abridge.wire.responses.asking.input import Input
from abridge.wire.responses.asking.speeches import read_speeches
from abridge.wire.responses.asking.tools import read_choice, read_tools, spell_choice, spell_tool
from abridge.wire.wish import KEYS, wanted

FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "max_tokens": "max_output_tokens",
        "verbosity": "text.verbosity",
        "reasoning_context": "reasoning.context",
        "reasoning_mode": "reasoning.mode",
        **{
            name: name
            for name in (
                "temperature",
                "top_p",
                "top_k",
                "presence_penalty",
                "frequency_penalty",
                "top_logprobs",
                "parallel_tool_calls",
                "max_tool_calls",
                "service_tier",
                "user",
                "safety_identifier",
                "metadata",
                "prompt_cache_key",
                "prompt_cache_retention",
                "prompt_cache_options",
                "truncation",
                "context_management",
                "moderation",
                "previous_response_id",
                "conversation",
                "prompt",
                "background",
                "client_metadata",
                "access_programs",
            )
        },
    }
)
"""The fields of plain parameters, by neutral name.

Source: openai-openapi, `CreateResponse`. The penalties are of Open Responses, `top_k` is vLLM's.
The last two are Codex's, and many chat servers reject them (litellm issue 29834).
"""

SEALED, LOGPROBS = "reasoning.encrypted_content", "message.output_text.logprobs"

STRUCTURE = frozenset(
    {
        *("model", "instructions", "input", "tools", "tool_choice", "text", "reasoning"),
        *("include", "store", "stream", "stream_options", *FIELDS.values()),
    }
)


def read_question(body: Json) -> Question:
    """Read a request. Raise RequestError for what cannot be understood."""
    names = Names()
    tools = read_tools(body, names)
    reasoning = _object(body, "reasoning")
    question = Question(
        model=a_string(body.get("model", ""), "model"),
        speeches=list(read_speeches(body, names)),
        tools=tools,
        choice=read_choice(body, names),
        format=_read_format(_object(body, "text").get("format")),
        effort=a_word(reasoning, "effort", "reasoning."),
        summary=wanted(body),
        stream=flag(body, "stream"),
        extra=read_extra(body, STRUCTURE),
    )
    question.params.update(format="text.format", effort="reasoning.effort", messages="input")
    read_params(body, FIELDS, question)
    _read_include(body, question)
    if left := read_extra(reasoning, ("effort", "context", "mode", *KEYS)):
        question.extra["reasoning"] = left
    if left := read_extra(_object(body, "text"), ("format", "verbosity")):
        question.extra["text"] = left
    return question


def asks_for_state(body: Json) -> bool:
    """Return whether reasoning must come with opaque state: requested, or `store` is false."""
    included = body.get("include")
    return (isinstance(included, list) and SEALED in included) or body.get("store") is False


def _read_include(body: Json, question: Question) -> None:
    given = body.get("include")
    asked = [] if given is None else a_list(given, "include")
    question.sealed = SEALED in asked
    if LOGPROBS in asked:
        question.values["logprobs"] = True
        question.params["logprobs"] = "include"
    if others := [name for name in asked if name not in (SEALED, LOGPROBS)]:
        question.values["include"] = others
        question.params["include"] = "include"


def _object(body: Json, key: str) -> Json:
    return {} if body.get(key) is None else an_object(body[key], key)


def _read_format(given: Any) -> Format | None:
    if given is None:
        return None
    said = an_object(given, "text.format")
    kind = said.get("type")
    if kind == "json_schema":
        return read_schema(said, "text.format")
    if kind not in ("text", "json_object"):
        raise invalid(kind, "text.format.type")
    return Format() if kind == "json_object" else None


def write_question(question: Question, asking: Asking) -> Written:
    """Write a request for upstream.

    The client keeps the history itself, so upstream is to store nothing unless the client asks for
    it, and to return the state it would store.
    """
    profile = asking.profile
    body = named(question)
    written = Written(body, foreign(question.speeches))
    written_input = Input(profile)
    written_input.write(question.speeches)
    body["input"] = written_input.items
    written.unfit += written_input.unfit
    write_tools(question, profile, written, spell_tool, spell_choice)
    if question.format is not None:
        put(body, "text.format", _spell_format(question.format))
    if question.effort is not None:
        put(body, "reasoning.effort", question.effort)
    if question.summary is not None and not profile.summary_is_raw:
        put(body, "reasoning.summary", question.summary)
    written.unfit += _write_params(question, profile, written)
    body["store"] = bool(question.values.get("store"))
    if include := _include(question, profile):
        body["include"] = include
    if question.stream:
        body["stream"] = True
    write_extra(question, body)
    return written


def _write_params(question: Question, profile: Profile, written: Written) -> list[Unfit]:
    fields = {**FIELDS, "store": "", "logprobs": "", "include": ""}  # written elsewhere
    if not written.tools:
        fields["parallel_tool_calls"] = ""
    lacks = profile.lacks.get("responses", ())
    known = {name: key for name, key in fields.items() if name not in lacks}
    unfit = write_params(question, known, written.body)
    bound = written.body.get("max_output_tokens")
    if isinstance(bound, int):
        written.body["max_output_tokens"] = max(bound, profile.least_tokens)
    return unfit


def _include(question: Question, profile: Profile) -> list[str]:
    model = question.model.rpartition("/")[2]
    thinks = not any(fnmatchcase(model, glob) for glob in profile.unsealed)
    sealed = [SEALED] if question.sealed and thinks else []
    logprobs = [LOGPROBS] if question.values.get("logprobs") else []
    return [*sealed, *logprobs, *question.values.get("include", ())]


def _spell_format(format_: Format) -> Json:
    if format_.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", **spell_schema(format_)}
