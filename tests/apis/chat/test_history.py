"""Reading and changing the messages of a request: most of them have no place for reasoning."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from abridge.apis.chat.history import ChatHistory
from abridge.core.envelope import Envelope
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import TAGS, Profile

SUMMARY = "A summary."
TEXTS = st.sampled_from(
    ["", "Hi.", SUMMARY, *(f"{tag.opening}{SUMMARY}{tag.closing}Hi." for tag in TAGS)]
)
BLOBS = st.sampled_from(["abr1.opens", "abr1.is foreign"])
DETAILS = st.lists(
    st.fixed_dictionaries({"summary": TEXTS}) | st.fixed_dictionaries({"data": BLOBS}), max_size=2
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "content": st.none()
    | TEXTS
    | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), max_size=2),
    "refusal": st.none() | TEXTS,
    "reasoning": TEXTS,
    "reasoning_content": st.none() | TEXTS,
    "reasoning_details": DETAILS,
    "provider_specific_fields": st.fixed_dictionaries({"reasoning": TEXTS})
    | st.fixed_dictionaries({"reasoning_details": DETAILS})
    | st.none(),
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
    read = turn.text, history.reasoning_texts(turn), turn.calls, turn.has_opaque_state
    stripped = history.strip(turn, SUMMARY.__eq__)
    history.open_envelopes(turn, open_envelope)
    opened = turn.from_envelope, turn.text, history.reasoning_texts(turn)
    return read, stripped, opened, history.place_reasoning(turn, profile), history.body()


def open_envelope(blob: str, _param: str, place: bytes | None, *_where: object) -> Envelope | None:
    return Envelope([{"reasoning": f"At {place!r}."}]) if blob == "abr1.opens" else None


def slowly(message: dict[str, Any], profile: Profile) -> tuple[Any, ...]:
    names = dict.fromkeys(["_is_bare", "is_plain"], lambda _: False)
    with (
        patch.multiple("abridge.apis.chat.history", **names),
        patch("abridge.apis.chat.messages.is_plain", names["is_plain"]),
    ):
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
        history = ChatHistory({"messages": [{"role": "assistant", "content": "Hi."}]})
        [turn] = history.turns
        history.strip(turn, SUMMARY.__eq__)
        history.open_envelopes(turn, open_envelope)
        history.place_reasoning(turn, PROFILES["auto"])
    assert not find.called
