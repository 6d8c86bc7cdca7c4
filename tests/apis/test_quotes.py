"""What upstream says of a request may quote what Abridge has put into it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.quotes import MAX_MESSAGE, MIN_QUOTE, repeats_added

REASONING = "The user may be testing me, so I keep to even numbers and never to 17."
ASKED = "Which numbers do you prefer, and why do you prefer exactly those?"


def body(*texts: str) -> bytes:
    return json.dumps({"messages": [{"content": text} for text in texts]}).encode()


SENT, GIVEN = body(ASKED, REASONING), body(ASKED)


@pytest.mark.parametrize(
    "message",
    [
        REASONING,
        f"Invalid message: {REASONING!r}",
        f"messages[1]: {REASONING[9:40]}",
        f"x {REASONING[31:]}",
        REASONING.replace(" ", "\n"),
        "a" * (MAX_MESSAGE + 1),
    ],
)
def test_what_was_added_is_known_in_any_message(message: str) -> None:
    assert repeats_added(message, SENT, GIVEN)


@pytest.mark.parametrize(
    "message", ["", "prompt is too long: 208310 tokens > 200000 maximum", ASKED, REASONING[:15]]
)
def test_other_words_are_upstreams_own(message: str) -> None:
    assert not repeats_added(message, SENT, GIVEN)


def test_where_nothing_was_added_nothing_is_a_quote() -> None:
    assert not repeats_added(REASONING, SENT, SENT)


@given(st.data(), st.text(max_size=40), st.text(max_size=40))
def test_a_quote_is_known_wherever_it_begins(data: Any, before: str, after: str) -> None:
    start = data.draw(st.integers(0, len(REASONING) - 1))
    quote = REASONING[start:]
    if sum(map(str.isalnum, quote)) >= MIN_QUOTE:
        assert repeats_added(f"{before}{quote}{after}", SENT, GIVEN)
