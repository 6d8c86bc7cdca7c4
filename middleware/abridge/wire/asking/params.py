"""The plain parameters of a request, under neutral names.

Each API has a table of the parameters it knows: the neutral name and its own key, `a.b` for one
within an object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from abridge.errors import RequestError
from abridge.turn.question import Question, Unfit
from abridge.wire.codec import Json


@dataclass(slots=True, frozen=True)
class Param:
    matters: bool = False  # an answer without it is not the one asked for
    idle: tuple[Any, ...] = ()
    """Values that have no effect, so that nothing is lost without them."""
    takes: tuple[type, ...] = ()  # types of its value; empty if no API here looks at it
    least: int | None = None  # the lowest value


_MATTERS, _HELPS = Param(matters=True), Param()
_NUMBER, _FLAG = (int, float), (bool,)

PARAMS: Mapping[str, Param] = MappingProxyType(
    {
        "max_tokens": Param(matters=True, takes=(int,), least=1),
        "stop": Param(matters=True, idle=([],), takes=(str, list)),
        "n": Param(matters=True, idle=(1,)),
        "logit_bias": Param(matters=True, idle=({},)),
        "logprobs": Param(matters=True, idle=(False,), takes=_FLAG),
        "top_logprobs": Param(matters=True, idle=(0,), takes=(int,)),
        "temperature": Param(takes=_NUMBER),
        "top_p": Param(takes=_NUMBER),
        "top_k": Param(takes=(int,)),
        "presence_penalty": Param(idle=(0,), takes=_NUMBER),
        "frequency_penalty": Param(idle=(0,), takes=_NUMBER),
        "seed": _HELPS,
        "verbosity": Param(takes=(str,)),
        "parallel_tool_calls": Param(matters=True, takes=_FLAG),
        "max_tool_calls": _HELPS,
        "service_tier": Param(idle=("auto",), takes=(str,)),
        "user": Param(takes=(str,)),
        "safety_identifier": Param(takes=(str,)),
        "metadata": Param(idle=({},)),
        "prompt_cache_key": _HELPS,
        "prompt_cache_retention": _HELPS,
        "prompt_cache_options": _HELPS,
        "store": Param(idle=(False,)),
        "truncation": Param(idle=("disabled",)),
        "include": Param(idle=([],)),
        "reasoning_context": Param(idle=("auto",)),
        "reasoning_mode": Param(idle=("standard",)),
        "context_management": Param(idle=([],)),
        "client_metadata": _HELPS,
        "access_programs": _HELPS,
        "prediction": _HELPS,
        "moderation": _MATTERS,
        "modalities": Param(matters=True, idle=(["text"], [])),
        "audio": _MATTERS,
        "web_search_options": _MATTERS,
        "functions": Param(matters=True, idle=([],)),
        "function_call": Param(matters=True, idle=("auto", "none")),
        "previous_response_id": _MATTERS,
        "conversation": _MATTERS,
        "prompt": _MATTERS,
        "background": Param(matters=True, idle=(False,)),
    }
)


def read_params(body: Json, fields: Mapping[str, str], question: Question) -> None:
    """Read the parameters that have an effect; the later of two keys of one name wins.

    Raises RequestError for an invalid value, since upstream would report it under a name that the
    client does not know.
    """
    for name, key in fields.items():
        holder, _, last = key.rpartition(".")
        value = _object(body.get(holder)).get(last) if holder else body.get(last)
        if value is not None and not _idle(value, PARAMS[name].idle):
            _check(value, PARAMS[name], key)
            question.values[name] = value
            question.params[name] = key


def named(question: Question) -> Json:
    """Return a body that names the model if the client did; some upstreams have only one."""
    return {"model": question.model} if question.model else {}


def read_extra(body: Json, known: Collection[str]) -> Json:
    """Return the fields that are unknown here."""
    return {key: value for key, value in body.items() if key not in known and value is not None}


def write_params(question: Question, fields: Mapping[str, str], body: Json) -> list[Unfit]:
    """Write the parameters that an API has a key for; return the others as unsupported.

    An empty key means that the parameter has no effect in this API.
    """
    unfit = []
    for name, value in question.values.items():
        if name in fields:
            if fields[name]:
                put(body, fields[name], value)
        else:
            param = question.params.get(name, name)
            unfit.append(
                Unfit(param, f"{param} is unknown to this model's API.", PARAMS[name].matters)
            )
    return unfit


def write_extra(question: Question, body: Json) -> None:
    """Pass on unknown keys as they are, except where the body already has a value."""
    for key, value in question.extra.items():
        if key not in body:
            body[key] = value
        elif isinstance(value, dict) and isinstance(body[key], dict):
            body[key] = {**value, **body[key]}


def put(body: Json, key: str, value: Any) -> None:
    holder, _, last = key.rpartition(".")
    within = body.setdefault(holder, {}) if holder else body
    within[last] = value


def _check(value: Any, param: Param, key: str) -> None:
    entries = value if isinstance(value, list) and list in param.takes else [value]
    for entry in entries:
        if param.takes and type(entry) not in param.takes:
            raise RequestError(
                f"Invalid type for '{key}': {entry!r:.80}.", param=key, code="invalid_type"
            )
    if param.least is not None and value < param.least:
        raise RequestError(
            f"Invalid value for '{key}': the least is {param.least}.",
            param=key,
            code="integer_below_min_value",
        )


def _idle(value: Any, idle: tuple[Any, ...]) -> bool:
    """Compare with types: `True == 1` in Python, but not in JSON."""
    return any(value == none and isinstance(value, bool) is isinstance(none, bool) for none in idle)


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
