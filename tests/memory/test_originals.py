"""Originals, and the turns that identify them."""

from __future__ import annotations

import pytest

from abridge.core.conversation import ToolCall, Turn, is_random_id
from abridge.memory.originals import Original, digest_text, is_unique


@pytest.mark.parametrize("altered", [True, False])
def test_a_packed_original_unpacks(*, altered: bool) -> None:
    original = Original.from_reasoning(
        [{"reasoning": "Hm, \u00fc."}], "Hm, \u00fc.", altered=altered
    )
    assert Original.unpack(original.pack()) == original
    assert original.reasoning == [{"reasoning": "Hm, \u00fc."}]
    assert original.raw_digest == digest_text(" Hm, \u00fc.\n")


def test_texts_that_differ_in_their_blanks_alone_are_the_same() -> None:
    assert digest_text("One.Two\n.") == digest_text("One.\n\nTwo .\t")
    assert digest_text("One.") != digest_text("One")


def test_a_turn_is_unique_by_the_random_ids_of_its_calls() -> None:
    random, counted = ToolCall("call_9f149c74c42f265b", "f", "{}"), ToolCall("call_0", "f", "{}")
    assert is_unique(Turn("assistant", calls=(random,)))
    assert not is_unique(Turn("assistant", calls=(random, counted)))
    assert not is_unique(Turn("assistant", "Hello."))


@pytest.mark.parametrize(
    ("identifier", "random"),
    [
        ("call_eee11723464a4b9eb8cee71d", True),
        ("chatcmpl-tool-9f149c74c42f265b", True),
        ("D681PevKs", True),
        ("call_0", False),
        ("functions.get_weather:0", False),
        ("toolcallnumber", False),
        ("1", False),
        ("", False),
        ("123456789", False),
    ],
)
def test_random_ids_are_recognised(identifier: str, random: bool) -> None:  # noqa: FBT001 -- a table
    assert is_random_id(identifier) == random
