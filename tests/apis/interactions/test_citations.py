"""The sources that annotate texts, read for clients of other APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.apis.interactions.scripts import function_call, output, reader, stream, text, whole
from tests.support.translated import Answer, read_turn, turn_of

URL = "https://a.example/"
WORDS = "Café 26 °C. Ja?"

Json = dict[str, Any]


def cite(words: str, kind: str = "url_citation", **more: Any) -> Json:
    start = WORDS.encode().find(words.encode())
    place = {"start_index": start, "end_index": start + len(words.encode())}
    return {"type": kind, **place, **(more or {"url": URL, "title": "A"})}


def answering(*steps: Json, streamed: bool = False) -> Answer:
    given = list(steps)
    data = b"".join(stream(given)) if streamed else json.dumps(whole(given)).encode()
    return read_turn("interactions", data, streamed=streamed).answer


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("words", ["Café", "26 °C.", "Ja?"])
def test_places_in_bytes_become_places_in_characters(words: str, *, streamed: bool) -> None:
    answer = answering(output(text(WORDS, cite(words))), streamed=streamed)
    assert answer.cited == [(URL, words)]


def test_places_are_counted_within_their_own_text() -> None:
    first = output(text("Nö. "))
    answer = answering(first, function_call("fc_1"), output(text(WORDS, cite("26 °C."))))
    assert answer.cited == [(URL, "26 °C.")]


@pytest.mark.parametrize(
    "odd",
    [{"start_index": 0, "end_index": 1000}, {"start_index": 9, "end_index": 2}, {"end_index": "a"}],
    ids=str,
)
def test_a_passage_that_is_not_there_is_unknown(odd: Json) -> None:
    (cited,) = answering(output(text(WORDS, {**cite("Ja?"), **odd}))).citations
    assert (cited.source, cited.passage) == (URL, None)


@pytest.mark.parametrize(
    ("annotation", "url", "file_id"),
    [
        (
            cite("Ja?", "file_citation", document_uri="gs://b/a.pdf", file_name="A"),
            "",
            "gs://b/a.pdf",
        ),
        (cite("Ja?", "file_citation", file_name="A"), "", "A"),
        (cite("Ja?", "place_citation", url=URL, name="A"), URL, ""),
    ],
)
def test_files_and_places(annotation: Json, url: str, file_id: str) -> None:
    (cited,) = answering(output(text(WORDS, annotation))).citations
    assert (cited.url, cited.file_id, cited.title) == (url, file_id, "A")


def test_what_names_no_source_is_none() -> None:
    annotations = [{"type": "speech_metadata", "speaker": "A"}, {"type": "url_citation"}]
    assert answering(output(text(WORDS, *annotations))).citations == []


def test_where_hidden_thinking_was_taken_out_passages_are_unknown() -> None:
    body = whole([output(text(f"<think>Hm.</think>{WORDS}", cite("26 °C.")))])
    answer = turn_of(reader(hides_raw=True).read_whole(json.dumps(body).encode())).answer
    assert [(cited.source, cited.passage) for cited in answer.citations] == [(URL, None)]
