"""The sources that answers of Gemini's name, read for clients of other APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apis.gemini.scripts import function_call, reader, text, thought, whole
from tests.support.streams import frame
from tests.support.translated import Answer, read_turn, turn_of

URL = "https://a.example/"
WORDS = "Café 26 °C. Ja?"

Json = dict[str, Any]


def answering(*parts: Json, **metadata: Json) -> Answer:
    body = whole(list(parts or [text(WORDS)]))
    body["candidates"][0] |= metadata
    return read_turn("gemini", json.dumps(body).encode(), streamed=False).answer


def grounding(*segments: Json, **source: str) -> Json:
    chunks = [{"web": source or {"uri": URL, "title": "A"}}]
    supports = [{"segment": segment, "groundingChunkIndices": [0, 7]} for segment in segments]
    return {"groundingChunks": chunks, "groundingSupports": supports}


def segment(words: str, **more: Any) -> Json:
    start = WORDS.encode().find(words.encode())
    return {"startIndex": start, "endIndex": start + len(words.encode()), **more}


@pytest.mark.parametrize("words", ["Café", "26 °C.", "Ja?"])
def test_places_in_bytes_become_places_in_characters(words: str) -> None:
    for given in segment(words), segment(words, text=words):
        assert answering(groundingMetadata=grounding(given)).cited == [(URL, words)]


@pytest.mark.parametrize(
    "odd",
    [
        segment("26", text="27"),
        segment("26", partIndex=2),
        {"startIndex": 0, "endIndex": 1000},
        {"startIndex": 9, "endIndex": 2},
        {"startIndex": "a"},
    ],
    ids=str,
)
def test_a_passage_that_is_not_there_is_unknown(odd: Json) -> None:
    (cited,) = answering(groundingMetadata=grounding(odd)).citations
    assert (cited.source, cited.passage) == (URL, None)


def test_a_source_that_supports_no_passage_is_named_too() -> None:
    assert answering(groundingMetadata=grounding()).cited == [(URL, "")]


def test_a_source_without_an_address_has_googles_name() -> None:
    (cited,) = answering(groundingMetadata=grounding(uri="gs://b/a.pdf", title="A")).citations
    assert (cited.url, cited.file_id, cited.title) == ("", "gs://b/a.pdf", "A")


@pytest.mark.parametrize("name", ["citationSources", "citations"])
def test_recited_sources_are_named(name: str) -> None:
    answer = answering(citationMetadata={name: [segment("Ja?", uri=URL)]})
    assert answer.cited == [(URL, "Ja?")]


def test_thoughts_are_no_part_of_the_text() -> None:
    parts = thought("Hm. "), text(WORDS[:7]), text(WORDS[7:])
    given = grounding(segment("26 °C."))
    assert answering(*parts, groundingMetadata=given).cited == [(URL, "26 °C.")]


def test_where_hidden_thinking_was_taken_out_passages_are_unknown() -> None:
    body = whole([text(f"<think>Hm.</think>{WORDS}")])
    body["candidates"][0]["groundingMetadata"] = grounding(segment("Ja?"))
    answer = turn_of(reader(hides_raw=True).read_whole(json.dumps(body).encode())).answer
    assert [(cited.source, cited.passage) for cited in answer.citations] == [(URL, None)]


@pytest.mark.parametrize(
    ("thinking", "passages"), [("", [(0, 10), (6, 11)]), ("<think>Hm.</think>", [None, None])]
)
def test_passages_of_several_texts_are_known_where_nothing_was_taken_out(
    thinking: str, passages: list[Any]
) -> None:
    parts = text(WORDS[:9]), function_call("fc_1"), text(thinking + WORDS[9:])
    body = whole(list(parts))
    given = grounding(segment("Café 26 °C"), segment("6 °C."))
    body["candidates"][0]["groundingMetadata"] = given
    answer = turn_of(reader(hides_raw=True).read_whole(json.dumps(body).encode())).answer
    assert [cited.passage for cited in answer.citations] == passages


def test_what_the_last_chunk_says_counts() -> None:
    chunks = [whole([text(piece)]) for piece in (WORDS[:5], WORDS[5:])]
    for body, metadata in zip(chunks, [{}, grounding(segment("26 °C."))], strict=True):
        body["candidates"][0]["groundingMetadata"] = metadata
    turn = read_turn("gemini", b"".join(map(frame, chunks)))
    assert turn.answer.cited == [(URL, "26 °C.")]


def test_sources_come_after_calls_that_follow_the_text() -> None:
    answer = answering(text(WORDS), function_call("fc_1"), groundingMetadata=grounding())
    assert len(answer.citations) == len(answer.calls) == 1
