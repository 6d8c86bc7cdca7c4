"""Reading and changing the messages of a request: most of them have no place for reasoning."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from abridge.apis.chat.history import ChatHistory
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import TAGS, Profile

SUMMARY = "A summary."
TEXTS = st.sampled_from(
    ["", "Hi.", SUMMARY, *(f"{tag.opening}{SUMMARY}{tag.closing}Hi." for tag in TAGS)]
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "content": st.none()
    | TEXTS
    | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=2),
    "refusal": st.none() | TEXTS,
    "reasoning": TEXTS,
    "reasoning_content": st.none() | TEXTS,
    "reasoning_details": st.lists(st.fixed_dictionaries({"summary": TEXTS}), max_size=2),
    "provider_specific_fields": st.fixed_dictionaries({"reasoning": TEXTS}) | st.none(),
    "summary_error": st.just("timeout"),
    "extra_content": st.just({"google": {}}),
    "tool_calls": st.just([{"id": "call_1", "type": "function", "function": {"name": "f"}}]),
    "name": TEXTS,
}
MESSAGES = st.fixed_dictionaries({"role": st.just("assistant")}, optional=FIELDS)


def changed(message: dict[str, Any], profile: Profile) -> tuple[Any, ...]:
    """Return what is read of a message, and what becomes of it."""
    history = ChatHistory({"messages": [copy.deepcopy(message)]})
    [turn] = history.turns
    read = turn.text, turn.reasoning_texts, turn.calls, turn.has_opaque_state
    stripped = history.strip(turn, SUMMARY.__eq__)
    return read, stripped, turn.text, history.place_reasoning(turn, profile), history.body()


def slowly(message: dict[str, Any], profile: Profile) -> tuple[Any, ...]:
    with patch("abridge.apis.chat.history._is_bare", lambda _: False):
        return changed(message, profile)


@given(MESSAGES, st.sampled_from(sorted(PROFILES)))
@example({"role": "assistant", "content": "Hi."}, "auto")
@example({"role": "assistant", "content": None, "refusal": "No."}, "auto")
def test_a_message_without_reasoning_is_treated_as_any_other(
    message: dict[str, Any], name: str
) -> None:
    assert changed(message, PROFILES[name]) == slowly(message, PROFILES[name])


def test_a_message_without_reasoning_is_not_searched_for_it() -> None:
    finding: Callable[..., Any] = patch("abridge.apis.chat.history.find_reasoning")
    with finding as find:
        changed({"role": "assistant", "content": "Hi."}, PROFILES["auto"])
    assert not find.called
