"""The sources that answers of Chat Completions name, read for clients of other APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.streams import DONE, call, chunk, completion
from tests.support.translated import TranslatedTurn, read_events, turn_of

URL = "https://a.example/"


def annotation(start: int, end: int, **more: Any) -> dict[str, Any]:
    place = {"url": URL, "title": "A", "start_index": start, "end_index": end}
    return {"type": "url_citation", "url_citation": {**place, **more}}


def streamed(*chunks: bytes) -> TranslatedTurn:
    return turn_of(read_events("chat", b"".join([*chunks, chunk({}, finish="stop"), DONE])))


def whole(message: dict[str, Any], **more: Any) -> TranslatedTurn:
    body = json.dumps(completion(message, **more)).encode()
    return turn_of(read_events("chat", body, streamed=False))


def test_annotations_name_passages() -> None:
    notes = [annotation(3, 8), annotation(0, 2)]
    chunks = [chunk({"content": "It rains."}), *(chunk({"annotations": [note]}) for note in notes)]
    for turn in streamed(*chunks), whole({"content": "It rains.", "annotations": notes}):
        assert turn.answer.cited == [(URL, "rains"), (URL, "It")]
        assert turn.answer.citations[0].title == "A"


def test_an_annotation_may_be_flat_and_name_a_file() -> None:
    note = {"type": "file_citation", "file_id": "file-1", "filename": "a.txt"}
    (cited,) = streamed(chunk({"content": "So."}), chunk({"annotations": [note]})).answer.citations
    assert (cited.url, cited.file_id, cited.title, cited.passage) == ("", "file-1", "a.txt", None)


@pytest.mark.parametrize(
    "place", [(0, 0), (5, 2), (-1, 3), ("one", "two"), (None, 3), (1, None)], ids=str
)
def test_a_passage_that_is_none_is_not_invented(place: tuple[Any, Any]) -> None:
    turn = whole({"content": "It rains.", "annotations": [annotation(*place)]})
    assert [citation.passage for citation in turn.answer.citations] == [None]


def test_where_reasoning_may_have_stood_in_the_text_passages_are_unknown() -> None:
    message = {"content": "<think>Hm.</think>It rains.", "annotations": [annotation(3, 8)]}
    assert [citation.passage for citation in whole(message).answer.citations] == [None]


def test_sources_come_before_the_calls() -> None:
    message = {"content": "So.", "annotations": [annotation(0, 2)], "tool_calls": [call("f", "{}")]}
    kinds = [
        type(event).__name__
        for event in read_events("chat", json.dumps(completion(message)).encode(), streamed=False)
    ]
    assert kinds.index("CitationDelta") == kinds.index("ToolCallDelta") - 1


def test_addresses_beside_the_choices_are_sources_named_once() -> None:
    listed = {"citations": [URL, "https://b.example/"]}
    results = {"search_results": [{"url": URL, "title": "A"}]}
    chunks = [chunk({"content": piece}, **listed, **results) for piece in ("It ", "rains", ".")]
    for turn in streamed(*chunks), whole({"content": "It rains."}, **listed, **results):
        assert turn.answer.cited == [(URL, ""), ("https://b.example/", "")]
        assert [citation.title for citation in turn.answer.citations] == ["A", ""]


def test_they_are_not_named_where_the_message_has_annotations() -> None:
    message = {"content": "It rains.", "annotations": [annotation(0, 2)]}
    assert len(whole(message, citations=[URL]).answer.citations) == 1


@pytest.mark.parametrize(
    "odd",
    [
        {"annotations": "x"},
        {"annotations": [1, {}, {"type": "file", "file": {}}, {"type": "url_citation"}]},
        {"annotations": [{"type": 1, "url": URL}]},
    ],
)
def test_odd_annotations_are_no_sources(odd: dict[str, Any]) -> None:
    turn = whole({"content": "So.", **odd}, citations={"a": 1}, search_results="x")
    assert (turn.answer.text, turn.answer.citations) == ("So.", [])
