"""The ids and arguments of calls, in the form that Messages allows, and back."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

from abridge.core.conversation import Json

INVALID_ARGUMENTS = "INVALID_JSON"
"""The only key of an input that was no JSON object, whose text is its value (Anthropic's guide to
fine-grained tool streaming)."""


def wrap_invalid(arguments: str) -> Json:
    """Return an input for arguments that are no JSON object."""
    return {INVALID_ARGUMENTS: arguments}


def unwrap_invalid(call_input: Json) -> str | None:
    """Return the arguments within an input that `wrap_invalid` made; None for any other."""
    text = call_input.get(INVALID_ARGUMENTS)
    return text if len(call_input) == 1 and isinstance(text, str) else None


_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def escape_halves(arguments: str) -> str:
    """Return JSON with halves of characters escaped. Two deltas may part a pair, and Anthropic's
    Python client encodes each by itself."""
    if arguments.isascii():
        return arguments
    return _HALF_CHARACTER.sub(lambda half: f"\\u{ord(half[0]):04x}", arguments)


_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
"""An id of a call as Anthropic allows it (Anthropic API reference, `ToolUseBlockParam.id`)."""

_ENCODED_ID_PREFIX = "toolu_b64_"
"""Begins an id of upstream's in another form, which has it in base64url."""


def client_call_id(call_id: str) -> str:
    """Return an id that every client accepts for one of upstream's; "" for none."""
    if not call_id or _CALL_ID.fullmatch(call_id):
        return call_id
    encoded = urlsafe_b64encode(call_id.encode(errors="surrogatepass")).rstrip(b"=")
    return _ENCODED_ID_PREFIX + encoded.decode()


def upstream_call_id(call_id: str) -> str:
    """Return upstream's id for one that `client_call_id` returned."""
    encoded = call_id.removeprefix(_ENCODED_ID_PREFIX)
    if encoded == call_id:
        return call_id
    try:
        decoded = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode(
            errors="surrogatepass"
        )
    except ValueError:
        return call_id
    return decoded if client_call_id(decoded) == call_id else call_id
