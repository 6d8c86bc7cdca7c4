"""Originals, and the turns that identify them."""

from __future__ import annotations

import pytest

from abridge.core.conversation import ToolCall, Turn, is_counted_id, is_random_id
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
    named = ToolCall("functions.getCurrentWeatherForecast:0", "getCurrentWeatherForecast", "{}")
    assert not is_unique(Turn("assistant", calls=(named,)))


@pytest.mark.parametrize(
    ("identifier", "random"),
    [
        ("call_eee11723464a4b9eb8cee71d", True),
        ("chatcmpl-tool-9f149c74c42f265b", True),
        ("D681PevKs", True),
        ("call_00_sXqYgMESDht75NCLLZtt9804", True),
        ("fc_bfb39741-3748-4def-9886-a93fc9c64a90", True),
        ("call_0", False),
        (f"call_{1:035x}", False),
        ("functions.get_weather:0", False),
        ("toolcallnumber", False),
        ("1", False),
        ("", False),
        ("123456789", False),
    ],
)
def test_random_ids_are_recognised(identifier: str, random: bool) -> None:  # noqa: FBT001 -- a table
    assert is_random_id(identifier) == random


@pytest.mark.parametrize(
    ("identifier", "counted"),
    [
        ("call_0", True),
        ("functions.get_weather:12", True),
        ("1", True),
        ("0000000a", True),
        (f"call_{31:035x}", True),
        ("chatcmpl-tool-9f149c74c42f265b-0", False),
        ("fc_bfb39741-3748-4def-9886-a93fc9c64a90", False),
        ("QhrTFbfPc", False),
        ("call_79382389", False),
        ("toolcallnumber", False),
        ("", False),
    ],
)
def test_ids_that_only_count_are_recognised(identifier: str, counted: bool) -> None:  # noqa: FBT001 -- a table
    assert is_counted_id(identifier) == counted
