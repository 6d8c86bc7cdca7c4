"""The sources that messages of Responses name, read for clients of other APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.chat.api import CHAT
from tests.support.checker import check_chat
from tests.support.pipeline import translating
from tests.support.streams import message_item, numbered, response, responses_stream
from tests.support.translated import TranslatedTurn, read_events, turn_of

URL = "https://a.example/"

Json = dict[str, Any]


def page(start: int, end: int) -> Json:
    named = {"url": URL, "title": "A"}
    return {"type": "url_citation", "start_index": start, "end_index": end, **named}


def citing(number: int, *texts: tuple[str, list[Json]]) -> Json:
    parts = [{"type": "output_text", "text": text, "annotations": notes} for text, notes in texts]
    return {**message_item(number, ""), "content": parts}


def both_ways(*output: Json) -> list[TranslatedTurn]:
    body = json.dumps(response(list(output))).encode()
    streamed = turn_of(read_events("responses", b"".join(responses_stream(list(output)))))
    return [streamed, turn_of(read_events("responses", body, streamed=False))]


def test_passages_are_found_in_each_part_of_each_message() -> None:
    first = citing(0, ("One.", [page(0, 3)]), ("Two.", [page(0, 3)]))
    for turn in both_ways(first, citing(1, ("Three.", [page(0, 5)]))):
        assert turn.answer.cited == [(URL, "One"), (URL, "Two"), (URL, "Three")]
        assert [citation.message_index for citation in turn.answer.citations] == [0, 0, 1]


def test_a_file_is_cited_at_one_place() -> None:
    note = {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 3}
    for turn in both_ways(citing(0, ("So it.", [note]))):
        (cited,) = turn.answer.citations
        assert (cited.file_id, cited.title, cited.passage) == ("file-1", "a.txt", (3, 3))


def test_a_passage_beyond_the_text_is_unknown() -> None:
    for turn in both_ways(citing(0, ("One.", [page(0, 30)]))):
        assert [citation.passage for citation in turn.answer.citations] == [None]


def test_annotations_that_only_stream_are_read_too() -> None:
    item = message_item(0, "One.")
    events = [json.loads(raw.split(b"data: ")[1]) for raw in responses_stream([item])]
    at = next(n for n, event in enumerate(events) if event["type"] == "response.output_text.done")
    kind = "response.output_text.annotation.added"
    address = {"item_id": item["id"], "output_index": 0, "content_index": 0, "annotation_index": 0}
    events.insert(at, {"type": kind, **address, "annotation": page(0, 3)})
    turn = turn_of(read_events("responses", b"".join(numbered(*events))))
    assert turn.answer.cited == [(URL, "One")]


def test_odd_annotations_are_no_sources() -> None:
    odd = [{"type": "x", "url": URL}, {"type": "url_citation"}, {"type": "url_citation", "url": 1}]
    for turn in both_ways(citing(0, ("One.", odd))):
        assert (turn.answer.text, turn.answer.citations) == ("One.", [])


@pytest.mark.parametrize("streamed", [True, False])
def test_where_hidden_thinking_was_taken_out_passages_are_unknown(*, streamed: bool) -> None:
    output = [citing(0, ("<think>Hm.</think>It rains.", [page(3, 8)]))]
    data = b"".join(responses_stream(output)) if streamed else json.dumps(response(output)).encode()
    pipeline = translating("responses", CHAT, expose="none")
    if streamed:
        seen = check_chat(pipeline.stream(data))
        text, note = seen.choices[0].text, seen.chunks[-2]["choices"][0]["delta"]["annotations"][0]
    else:
        message = json.loads(pipeline.whole(data))["choices"][0]["message"]
        text, note = message["content"], message["annotations"][0]
    assert text == "It rains."
    cited = note["url_citation"]
    assert (cited["url"], cited["start_index"], cited["end_index"]) == (URL, 0, 0)
