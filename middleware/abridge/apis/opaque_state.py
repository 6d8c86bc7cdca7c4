"""Opaque reasoning state in a request of any API: which turns have it, whether upstream took it.

A provider takes only state that it made itself, for the same account.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from abridge.apis.json import as_object, objects, parse_object, string
from abridge.apis.params import DAMAGED_CODE
from abridge.core.conversation import Json, Turn
from abridge.core.envelope import ENVELOPE_PREFIX

STATE_FIELDS = ("encrypted_content", "signature", "data")
"""Fields with opaque state: of a reasoning item on Responses, of a `thinking` and of a
`redacted_thinking` block on Messages; the last two also of OpenRouter's `reasoning_details`."""

STATE_KEYS = frozenset({*STATE_FIELDS, "thoughtSignature", "thought_signature"})
"""The same, with Gemini's: of a part, and on Chat Completions in `extra_content`."""

STATE_OR_ENVELOPE = re.compile(
    b'"(?:' + re.escape(ENVELOPE_PREFIX.encode()) + b"|"
    rb"(?:encrypted_content|signature|redacted_thinking|reasoning\.encrypted"
    rb'|extra_content|thoughtSignature)")'
)
"""Every body with such state, or with an envelope of Abridge's, contains one of these."""

STATE_TYPES = re.compile(r"reasoning(\..*)?|(redacted_)?thinking")
"""The types of what holds them."""

LISTS = ("content", "reasoning_details", "thinking_blocks")
"""The lists of a message that may hold them."""

_STATE_REFUSED = re.compile(
    r"Invalid `(?:signature|data)` in\s+`(?:redacted_)?thinking`\s+block"  # Anthropic
    r"|encrypted content (?:(?!encrypted content ).){1,1000}? could not be"
    r" (?:verified|decrypted)"  # OpenAI, via gateways
    r"|thought[ _]signature is not valid|(?:corrupted|invalid) thought signature",  # Gemini
    re.IGNORECASE | re.DOTALL,
)
"""How providers say that they do not take the reasoning state in a request
(anthropic-sdk-python issue 1598; openai/codex issue 8145; opencode-antigravity-auth issue 368)."""


def has_opaque_state(turn: Turn) -> bool:
    """Return whether a turn has opaque state of a provider's."""
    return turn.has_opaque_state or any(
        _has_state(holder) for item in turn.items for holder in _holders(item)
    )


def _has_state(holder: Json) -> bool:
    return any(not value.startswith(ENVELOPE_PREFIX) for value in _states_of(holder))


def _states_of(holder: Json) -> list[str]:
    if STATE_TYPES.fullmatch(string(holder.get("type"))) is None:
        return []
    return list(filter(None, (string(holder.get(field)) for field in STATE_FIELDS)))


def last_states(items: Any) -> list[str]:
    """Return all state, and envelopes, of the last item of a conversation that has any."""
    for item in reversed(objects(items)):
        if states := [state for holder in _holders(item) for state in _states_of(holder)]:
            return states
    return []


def _holders(item: Json) -> Iterator[Json]:
    yield item
    for name in LISTS:
        yield from objects(item.get(name))


def find_states(reasoning: Any) -> Iterator[str]:
    """Yield all opaque state in reasoning of any API, wherever in it that stands."""
    if isinstance(reasoning, list):
        for entry in reasoning:
            yield from find_states(entry)
    elif isinstance(reasoning, dict):
        for key, value in reasoning.items():
            if key not in STATE_KEYS:
                yield from find_states(value)
            elif (state := string(value)) and not state.startswith(ENVELOPE_PREFIX):
                yield state


def refuses_state(body: bytes) -> bool:
    """Return whether an error body says that opaque reasoning state in the request is invalid."""
    inner = body.strip().removeprefix(b"[").removesuffix(b"]")  # Gemini's, where it would stream
    error = as_object((parse_object(inner) or {}).get("error"))
    message = string(error.get("message"))
    return error.get("code") == DAMAGED_CODE or bool(_STATE_REFUSED.search(message))
