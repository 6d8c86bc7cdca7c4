"""Read and write the parameters of a request.

The first part reads single fields, and tells the client which is missing or has the wrong type: the
errors are RequestErrors, and `param` is the client's name of a field. The second has the plain
parameters, under neutral names. Each API has a table of those it knows: the neutral name and its
own key, `a.b` for one within an object.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from abridge.apis.json import dumps, nested_value, set_nested, spelled
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, TranslatedRequest
from abridge.errors import RequestError

T = TypeVar("T")

# Fields

_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}

DAMAGED_CODE = "invalid_encrypted_content"
"""OpenAI's error code for `encrypted_content` that cannot be opened (openai/codex issue 8145)."""


def require_object(holder: Json, key: str, param: str = "") -> Json:
    """Return an object field. `param` is the name of its holder, here and in the next."""
    return check_object(holder.get(key), _name(key, param))


def require_list(holder: Json, key: str, param: str = "") -> list[Any]:
    return check_list(holder.get(key), _name(key, param))


def require_string(holder: Json, key: str, param: str = "") -> str:
    return check_string(holder.get(key), _name(key, param))


def read_object(holder: Json, key: str, param: str = "") -> Json:
    """Return an object field, an empty one if it is missing."""
    return {} if holder.get(key) is None else require_object(holder, key, param)


def read_string(holder: Json, key: str, param: str = "") -> str | None:
    """Return a string field, None if it is missing or empty."""
    return None if holder.get(key) is None else require_string(holder, key, param) or None


def read_flag(holder: Json, key: str, param: str = "") -> bool:
    """Return a boolean field; null and absent are false."""
    return holder.get(key) is not None and _check(holder[key], _name(key, param), bool)


def check_object(value: Any, param: str, *, or_string: bool = False) -> Json:
    """Return a value that is an object. With `or_string` the error says that a string may be sent
    as well, which the caller has read."""
    return _check(value, param, dict, or_string=or_string)


def check_list(value: Any, param: str, *, or_string: bool = False) -> list[Any]:
    """Return a value that is a list; see `check_object`."""
    return _check(value, param, list, or_string=or_string)


def check_string(value: Any, param: str) -> str:
    return _check(value, param, str)


def read_arguments(value: Any) -> str:
    """Return a call's arguments as JSON text; some clients send the object itself."""
    return value if isinstance(value, str) else "" if value is None else dumps(value).decode()


def iter_objects(
    value: Any, param: str, *, dotted: bool = False, or_string: bool = False
) -> Iterator[tuple[Json, str]]:
    """Yield the objects in a list, each with its name; nothing if there is no list.

    The name is spelled `input[0]` as OpenAI does or, if `dotted`, `messages.0` as Anthropic does.
    """
    listed = [] if value is None else check_list(value, param, or_string=or_string)
    for index, entry in enumerate(listed):
        name = f"{param}.{index}" if dotted else f"{param}[{index}]"
        yield check_object(entry, name), name


def invalid_value_error(value: Any, param: str, supported: Iterable[str] = ()) -> RequestError:
    listed = ", ".join(map(repr, supported))
    told = f" Supported values are: {listed}." if listed else ""
    message = f"Invalid value: {spelled(value)}.{told}"
    return RequestError(message, param=param, code="invalid_value")


def damaged_error(param: str) -> RequestError:
    """Return the error for a blob of Abridge's that cannot be opened."""
    return RequestError(
        f"The encrypted content in {param} could not be verified.",
        param=param,
        code=DAMAGED_CODE,
    )


def _name(key: str, param: str) -> str:
    return f"{param}.{key}" if param else key


def _check(value: Any, param: str, expected: type[T], *, or_string: bool = False) -> T:
    if isinstance(value, expected):
        return value
    if value is None:
        raise RequestError(
            f"Missing required parameter: '{param}'.",
            param=param,
            code="missing_required_parameter",
        )
    others = "a string or " if or_string else ""
    raise RequestError(
        f"Invalid type for '{param}': expected {others}{_TYPE_NAMES[expected]}.",
        param=param,
        code="invalid_type",
    )


# Plain parameters


@dataclass(slots=True, frozen=True)
class Param:
    essential: bool = False  # an answer without it is not the one asked for
    no_effect: tuple[Any, ...] = ()
    """Values that have no effect, so that nothing is lost without them."""
    types: tuple[type, ...] = ()  # types of its value; empty if no API here looks at it
    may_be_list: bool = False  # its value may be a list of such values, and is one once it is read
    minimum: int | None = None  # the lowest value


_NUMBER, _FLAG = (int, float), (bool,)

PARAMS: Mapping[str, Param] = {
    "max_tokens": Param(essential=True, types=(int,), minimum=1),
    "stop": Param(essential=True, no_effect=([], ""), types=(str,), may_be_list=True),
    "n": Param(essential=True, no_effect=(1,)),
    "logit_bias": Param(essential=True, no_effect=({},)),
    "logprobs": Param(essential=True, no_effect=(False,), types=_FLAG),
    "top_logprobs": Param(essential=True, no_effect=(0,), types=(int,)),
    "temperature": Param(types=_NUMBER),
    "top_p": Param(types=_NUMBER),
    "top_k": Param(types=(int,)),
    "presence_penalty": Param(no_effect=(0,), types=_NUMBER),
    "frequency_penalty": Param(no_effect=(0,), types=_NUMBER),
    "verbosity": Param(types=(str,)),
    "parallel_tool_calls": Param(essential=True, types=_FLAG),
    "service_tier": Param(no_effect=("auto",), types=(str,)),
    "user": Param(types=(str,)),
    "safety_identifier": Param(types=(str,)),
    "metadata": Param(no_effect=({},)),
    "prewarm": Param(essential=True, no_effect=(False,), types=_FLAG),
    "store": Param(no_effect=(False,)),
    "truncation": Param(no_effect=("disabled",)),
    "include": Param(no_effect=([],)),
    "reasoning_context": Param(no_effect=("auto",)),
    "reasoning_mode": Param(no_effect=("standard",)),
    "context_management": Param(no_effect=([],)),
    "modalities": Param(essential=True, no_effect=(["text"], [])),
    "functions": Param(essential=True, no_effect=([],)),
    "function_call": Param(essential=True, no_effect=("auto", "none")),
    "background": Param(essential=True, no_effect=(False,), types=_FLAG),
    "mcp_servers": Param(essential=True, no_effect=([],)),
    "inference_geo": Param(essential=True, no_effect=("global",)),
    "context_edits": Param(no_effect=({}, {"edits": []})),
    "speed": Param(no_effect=("standard",)),
    **dict.fromkeys(
        (
            *("moderation", "chat_moderation", "audio", "web_search_options"),
            *("previous_response_id", "conversation", "prompt"),
            *("container", "thread"),
            "compaction",  # it asks for a summary, not for an answer
        ),
        Param(essential=True),
    ),
    **dict.fromkeys(
        (
            *("seed", "max_tool_calls", "prediction", "client_metadata", "access_programs"),
            *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
            *("cache_control", "task_budget", "diagnostics", "fallbacks", "billing_policy"),
            *("fallback_credit_token", "user_profile_id", "workspace_id", "betas"),
        ),
        Param(),
    ),
}

# Why something is left out

CANNOT_DECLINE = "Thinking cannot be turned off through this model's API."

THINKING_ALWAYS_ON = "This model's thinking cannot be turned off; the lowest effort was requested."

NO_THINKING = "This model does not think."

NO_MESSAGES = "It contains nothing that this upstream could answer."

NOT_SUPPORTED = "Not supported by this upstream."


def unchanged(*names: str) -> dict[str, str]:
    """Return the fields of parameters that have their neutral names."""
    return dict(zip(names, names, strict=True))


def read_params(body: Json, fields: Mapping[str, str], request: ModelRequest) -> None:
    """Read the parameters that have an effect; the later of two keys of one name wins.

    Raises RequestError for an invalid value, since upstream would report it under a name that the
    client does not know.
    """
    for name, key in fields.items():
        value = nested_value(body, key)
        if value is not None and not _has_no_effect(value, PARAMS[name].no_effect):
            check_value(value, PARAMS[name], key)
            is_bare = PARAMS[name].may_be_list and not isinstance(value, list)
            request.params[name] = [value] if is_bare else value
            request.param_names[name] = key


def model_body(request: ModelRequest) -> Json:
    """Return a body that names the model if the client did; some upstreams have only one."""
    return {"model": request.model} if request.model else {}


def read_extra(body: Json, known: Collection[str]) -> Json:
    """Return the fields that are unknown here."""
    return {key: value for key, value in body.items() if key not in known and value is not None}


def write_params(
    request: ModelRequest,
    fields: Mapping[str, str],
    body: Json,
    translated: TranslatedRequest,
    *,
    reason: str = "This model's API does not know {}.",
) -> None:
    """Write the parameters that an API has a key for; report any other, for this `reason`.

    An empty key means that the parameter has no effect in this API, or is written elsewhere.
    """
    for name, value in request.params.items():
        if name not in fields:
            param, essential = request.param(name), PARAMS[name].essential
            translated.leave_out(param, reason.format(param), essential=essential)
        elif fields[name]:
            set_nested(body, fields[name], value)


def write_extra(request: ModelRequest, body: Json) -> None:
    """Pass on unknown keys as they are, except where the body already has a value."""
    for key, value in request.extra.items():
        if key not in body:
            body[key] = value
        elif isinstance(value, dict) and isinstance(body[key], dict):
            body[key] = {**value, **body[key]}


def check_value(value: Any, param: Param, key: str) -> None:
    """Raise RequestError for a value of the wrong type, or below the minimum."""
    entries = value if isinstance(value, list) and param.may_be_list else [value]
    for entry in entries:
        if param.types and type(entry) not in param.types:
            raise RequestError(
                f"Invalid type for '{key}': {spelled(entry)}.", param=key, code="invalid_type"
            )
    if param.minimum is not None and value < param.minimum:
        raise RequestError(
            f"Invalid value for '{key}': the least is {param.minimum}.",
            param=key,
            code="integer_below_min_value",
        )


def _has_no_effect(value: Any, no_effect: tuple[Any, ...]) -> bool:
    """Compare with types: `True == 1` in Python, but not in JSON."""
    return any(
        value == ineffective and isinstance(value, bool) is isinstance(ineffective, bool)
        for ineffective in no_effect
    )
