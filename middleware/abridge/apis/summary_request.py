"""The summary that a request asks for: `reasoning.summary`, alike on all APIs, and its language.

On Responses it is a field of the API (openai-openapi, `Reasoning.summary`; `generate_summary` is
its old name). On the others it is an extension of Abridge's, which upstream never gets; Messages
has a word of its own beside it (`apis/messages/reasoning.py`). `reasoning.summary_language` is such
an extension on all. Where neither it nor the settings name a language, the last message of the
user's tells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from abridge.apis.json import as_object, objects, spelled, string
from abridge.apis.params import invalid_value_error
from abridge.core.conversation import Json
from abridge.core.language import parse_language
from abridge.core.styles import STYLES, SummaryStyle
from abridge.errors import RequestError

SUMMARY_KEYS = ("summary", "generate_summary")

LANGUAGE_KEY = "summary_language"

OWN_KEYS = (*SUMMARY_KEYS, LANGUAGE_KEY)
"""Keys of `reasoning` that Abridge reads."""

_NEEDLES = (b'summary"', f'{LANGUAGE_KEY}"'.encode())

STYLE_NAMES: tuple[str, ...] = get_args(SummaryStyle)


def may_request_summary(body: bytes) -> bool:
    """Return whether a body may ask for a summary, or name its language, by a byte search alone."""
    return b"summary" in body and any(needle in body for needle in _NEEDLES)


def requested_style(body: Json) -> str | None:
    """Return the requested style: `off` if the body has null, None if it has nothing.

    Raises RequestError for an invalid style.
    """
    reasoning = as_object(body.get("reasoning"))
    for key in SUMMARY_KEYS:
        if key in reasoning:
            given = reasoning[key]
            return "off" if given is None else _parse_style(given, f"reasoning.{key}")
    return None


def requested_language(body: Json) -> str | None:
    """Return the language that the summary is to be written in: `auto`, `reasoning` or a tag; None
    if the body does not say.

    Raises RequestError for anything else.
    """
    value = as_object(body.get("reasoning")).get(LANGUAGE_KEY)
    return None if value is None else check_language(value, f"reasoning.{LANGUAGE_KEY}")


def check_language(value: object, param: str) -> str:
    """Return `auto`, `reasoning`, or a tag in its usual spelling. Raises RequestError."""
    try:
        return parse_language(value if isinstance(value, str) else "")
    except ValueError as error:
        raise RequestError(
            f"Invalid value: {spelled(value)}. It {error}.", param=param, code="invalid_value"
        ) from None


def native_style(body: Json) -> str | None:
    """Return the style to request from an upstream that makes summaries itself."""
    style = requested_style(body)
    return None if style in (None, "off") else _native(style)


def _parse_style(value: object, param: str) -> str:
    if value in STYLE_NAMES:
        return str(value)
    raise invalid_value_error(value, param, STYLE_NAMES)


def check_style_allowed(style: str, allowed: Sequence[str], param: str) -> None:
    """Raise RequestError if the settings do not allow a style."""
    if style not in allowed:
        supported = ", ".join(map(repr, allowed)) or "none"
        raise RequestError(
            f"Unsupported value: {style!r}. Supported values are: {supported}.",
            param=param,
            code="unsupported_value",
        )


def rewrite_summary_request(body: Json, *, keep_style: bool) -> bool:
    """Leave in the body what upstream knows of the request for a summary: not the language, and the
    style only if it is to be kept, as one of OpenAI's.

    Return True if that changed the body.
    """
    reasoning = body.get("reasoning")
    if not isinstance(reasoning, dict):
        return False
    left: Json = {}
    for key, value in reasoning.items():
        if key not in OWN_KEYS:
            left[key] = value
        elif keep_style and key != LANGUAGE_KEY:
            left[key] = _native(value)
    if left == reasoning:
        return False
    if left:
        body["reasoning"] = left
    else:
        del body["reasoning"]
    return True


def _native(style: Any) -> Any:
    """Return the style of OpenAI's for one of ours; anything else as it is."""
    return STYLES[style].native if style in STYLE_NAMES else style


# The last message of the user's, alike in the shapes of all APIs: a text, or a list of messages or
# items whose content is a text or a list of parts

EDGE_PARTS = 8
"""How many parts at the beginning of a message, and at its end, are read. What a user asks comes
before or after what is attached."""


def last_user_text(body: Json, field: str) -> str:
    """Return the text of the last message of the user's in `field`, empty if there is none.

    Outputs of tools are not the user's, whatever their role. Of a message in many parts only the
    first and the last ones are read.
    """
    conversation = body.get(field)
    if isinstance(conversation, str):
        return conversation
    asked = (each for each in reversed(objects(conversation)) if each.get("role") == "user")
    return next(filter(None, (_text_of(message.get("content")) for message in asked)), "")


def _text_of(content: Any) -> str:
    if not isinstance(content, list):
        return string(content)
    edges = content[:EDGE_PARTS] + content[EDGE_PARTS:][-EDGE_PARTS:]
    return "\n".join(filter(None, (string(as_object(part).get("text")) for part in edges)))
