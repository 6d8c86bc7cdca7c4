"""Read a client's Chat Completions body into a `ModelRequest`, and write one for upstream."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from abridge.turn.question import Format, Question, Unfit, Written
from abridge.turn.speeches import foreign
from abridge.wire.api import Asking
from abridge.wire.asking.disguise import as_function
from abridge.wire.asking.format import read_schema, spell_schema
from abridge.wire.asking.offer import write_tools
from abridge.wire.asking.params import (
    named,
    put,
    read_extra,
    read_params,
    write_extra,
    write_params,
)
from abridge.wire.asking.require import a_string, a_word, an_object, flag, invalid
from abridge.wire.chat.asking.messages import Messages
from abridge.wire.chat.asking.speeches import read_speeches
from abridge.wire.chat.asking.tools import read_choice, read_tools, spell_choice, spell_tool
from abridge.wire.codec import Json
from abridge.wire.profile import Profile
from abridge.wire.wish import KEYS, wanted

FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "max_tokens": "max_completion_tokens",
        **{
            name: name
            for name in (
                "temperature",
                "top_p",
                "top_k",
                "presence_penalty",
                "frequency_penalty",
                "seed",
                "stop",
                "n",
                "logit_bias",
                "logprobs",
                "top_logprobs",
                "verbosity",
                "parallel_tool_calls",
                "service_tier",
                "user",
                "safety_identifier",
                "metadata",
                "prompt_cache_key",
                "prompt_cache_retention",
                "prompt_cache_options",
                "store",
                "prediction",
                "moderation",
                "modalities",
                "audio",
                "web_search_options",
                "functions",
                "function_call",
            )
        },
    }
)
"""The plain parameters: their neutral names, and the fields of a request.

See openai-openapi, `CreateChatCompletionRequest`; `top_k` is vLLM's and most others'.
"""

OLD_MAX_TOKENS = {"max_tokens": "max_tokens"}

STRUCTURE = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "response_format"),
        *("reasoning", "reasoning_effort", "stream", "stream_options"),
        *FIELDS.values(),
        *OLD_MAX_TOKENS,
    }
)
"""Fields of a request that are read; all others go on unchanged."""


def read_question(body: Json) -> Question:
    """Read a body. Raises RequestError if it is invalid."""
    reasoning = body.get("reasoning")
    reasoning = reasoning if isinstance(reasoning, dict) else {}
    question = Question(
        model=a_string(body.get("model", ""), "model"),
        speeches=list(read_speeches(body)),
        tools=list(read_tools(body)),
        choice=read_choice(body),
        format=_read_format(body),
        effort=a_word(body, "reasoning_effort") or a_word(reasoning, "effort", "reasoning."),
        summary=wanted(body),
        sealed=True,
        stream=flag(body, "stream"),
        extra=read_extra(body, STRUCTURE),
    )
    question.params.update(format="response_format", effort="reasoning_effort", messages="messages")
    read_params(body, OLD_MAX_TOKENS, question)
    read_params(body, FIELDS, question)
    if left := read_extra(reasoning, ("effort", *KEYS)):
        question.extra["reasoning"] = left
    return question


def _read_format(body: Json) -> Format | None:
    given = body.get("response_format")
    if given is None:
        return None
    kind = an_object(given, "response_format").get("type")
    if kind == "json_schema":
        param = "response_format.json_schema"
        return read_schema(an_object(given.get("json_schema"), param), param)
    if kind not in ("text", "json_object"):
        raise invalid(kind, "response_format.type")
    return Format() if kind == "json_object" else None


def write_question(question: Question, asking: Asking) -> Written:
    """Write a body. A stream always asks for usage, even if the client did not."""
    profile = asking.profile
    written = Written(named(question), foreign(question.speeches))
    messages = Messages(profile)
    messages.write(question.speeches)
    written.body["messages"] = messages.messages
    written.unfit += messages.unfit
    if "custom_tools" not in profile.knows:
        question.tools = [as_function(tool) for tool in question.tools]
    write_tools(question, profile, written, spell_tool, spell_choice)
    if question.format is not None:
        written.body["response_format"] = _spell_format(question.format)
    written.unfit += _write_effort(question, profile, written.body)
    written.unfit += _write_params(question, profile, written)
    if question.stream:
        written.body["stream"] = True
        written.body["stream_options"] = {"include_usage": True}
    write_extra(question, written.body)
    return written


def _write_params(question: Question, profile: Profile, written: Written) -> list[Unfit]:
    fields = {**FIELDS, "max_tokens": profile.max_tokens}
    absent = set(profile.lacks.get("chat", ()))
    if not question.values.get("store"):  # OpenAI accepts it for stored ones only
        absent.add("metadata")
    if not written.tools:
        fields["parallel_tool_calls"] = ""
    known = {name: key for name, key in fields.items() if name not in absent}
    unfit = write_params(question, known, written.body)
    if "top_logprobs" in written.body:
        put(written.body, "logprobs", value=True)
    return unfit


def _write_effort(question: Question, profile: Profile, body: Json) -> list[Unfit]:
    said = {} if question.effort is None else profile.thinking(question.effort)
    body.update(said)
    if said or question.effort is None:
        return []
    message = "This model's API cannot be told how much to think."
    return [Unfit(question.params.get("effort", "effort"), message, matters=False)]


def _spell_format(format_: Format) -> Json:
    if format_.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": spell_schema(format_)}
