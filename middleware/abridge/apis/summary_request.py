"""The summary that a request asks for: `reasoning.summary`, alike on both of OpenAI's APIs.

On Responses it is a field of the API (openai-openapi, `Reasoning.summary`; `generate_summary` is
its old name). On Chat Completions it is an extension of Abridge's, which upstream never gets.
"""

from __future__ import annotations

from typing import get_args

from abridge.core.conversation import Json
from abridge.core.styles import SummaryStyle
from abridge.errors import RequestError

SUMMARY_KEYS = ("summary", "generate_summary")

SUMMARY_NEEDLE = b'summary"'
"""Occurs in every body that asks for a summary."""

STYLE_NAMES: tuple[str, ...] = get_args(SummaryStyle)


def requested_style(body: Json) -> str | None:
    """Return the requested style: `off` if the body has null, None if it has nothing.

    Raises RequestError for an invalid style.
    """
    reasoning = body.get("reasoning")
    if not isinstance(reasoning, dict):
        return None
    for key in SUMMARY_KEYS:
        if key in reasoning:
            return (
                "off"
                if reasoning[key] is None
                else _parse_style(reasoning[key], f"reasoning.{key}")
            )
    return None


def native_style(body: Json) -> str | None:
    """Return the style to request from an upstream that makes summaries itself."""
    style = requested_style(body)
    return None if style == "off" else style


def _parse_style(value: object, param: str) -> str:
    if value in STYLE_NAMES:
        return str(value)
    raise RequestError(
        f"Invalid value: {value!r:.80}. Supported values are: {_format_list(STYLE_NAMES)}.",
        param=param,
        code="invalid_value",
    )


def check_style_allowed(style: str, allowed: tuple[str, ...], param: str) -> None:
    """Raise RequestError if the settings do not allow a style."""
    if style not in allowed:
        supported = _format_list(allowed) if allowed else "none"
        raise RequestError(
            f"Unsupported value: {style!r}. Supported values are: {supported}.",
            param=param,
            code="unsupported_value",
        )


def remove_summary_request(body: Json) -> bool:
    """Remove the requested style from the body for an upstream that does not know it.

    Return True if there was one.
    """
    reasoning = body.get("reasoning")
    if not isinstance(reasoning, dict) or not any(key in reasoning for key in SUMMARY_KEYS):
        return False
    left = {key: value for key, value in reasoning.items() if key not in SUMMARY_KEYS}
    if left:
        body["reasoning"] = left
    else:
        del body["reasoning"]
    return True


def _format_list(values: tuple[str, ...]) -> str:
    return ", ".join(repr(value) for value in values)
