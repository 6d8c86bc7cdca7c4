"""Random characters that fill up the deltas which Abridge writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.json import dumps
from abridge.apis.obfuscation import (
    BLOCK,
    obfuscate_chunk,
    obfuscate_event,
    wants_obfuscation,
)


def encoded(text: str) -> int:
    return len(dumps(text)) - len('""')


@given(st.text())
def test_a_delta_and_its_obfuscation_fill_whole_blocks(text: str) -> None:
    event = obfuscate_event({"delta": text})
    assert event["delta"] == text
    assert event["obfuscation"].isascii()
    assert (encoded(text) + len(event["obfuscation"])) % BLOCK == 0
    assert len(event["obfuscation"]) < BLOCK


@given(st.text(min_size=1), st.text())
def test_all_texts_of_a_chunk_count(content: str, reasoning: str) -> None:
    delta = {"content": content, "reasoning_content": reasoning}
    chunk = obfuscate_chunk({"id": "c", "choices": [{"index": 0, "delta": delta}]})
    size = encoded(content) + encoded(reasoning) + len(chunk["obfuscation"])
    assert size % BLOCK == 0
    assert chunk["choices"] == [{"index": 0, "delta": delta}]


def test_it_is_another_each_time() -> None:
    assert len({obfuscate_event({"delta": "a"})["obfuscation"] for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_text.done", "text": "All."},
        {"delta": "On", "obfuscation": "upstream's"},
        {"delta": {"odd": 1}},
    ],
)
def test_what_is_no_delta_or_has_it_stays_as_it_is(event: dict[str, object]) -> None:
    assert obfuscate_event(event) is event


def test_a_chunk_without_a_delta_gets_none() -> None:
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert obfuscate_chunk(finish) is finish
    assert "obfuscation" not in obfuscate_chunk({"choices": [], "usage": {}})


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, True),
        ({"stream_options": None}, True),
        ({"stream_options": {"include_usage": True}}, True),
        ({"stream_options": {"include_obfuscation": True}}, True),
        ({"stream_options": {"include_obfuscation": False}}, False),
        ({"stream_options": "odd"}, True),
    ],
)
def test_only_the_client_switches_it_off(options: dict[str, object], *, wanted: bool) -> None:
    assert wants_obfuscation(options) is wanted
