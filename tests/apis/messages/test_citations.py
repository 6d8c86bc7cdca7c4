"""The sources that texts of Messages name: read for clients of other APIs, and taken out again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.messages.history import MessagesHistory
from tests.apis.messages.scripts import begin, delta, finish, message, start, stop, text, thinking
from tests.support.translated import TranslatedTurn, read_events, turn_of

URL = "https://a.example/"

PAGE = {
    "type": "web_search_result_location",
    "url": URL,
    "title": "A",
    "cited_text": "It rained.",
    "encrypted_index": "b3BhcXVl",
}
PLACE = {"document_index": 0, "document_title": "B", "start_char_index": 0, "end_char_index": 2}
DOCUMENT = {"type": "char_location", "cited_text": "So", **PLACE}
RESULT = {"type": "search_result_location", "source": "shelf 2", "title": None, "cited_text": "x"}


def cited(words: str, *citations: dict[str, Any]) -> dict[str, Any]:
    return {**text(words), "citations": list(citations)}


def whole(*content: dict[str, Any], **how: Any) -> TranslatedTurn:
    body = json.dumps(message(list(content))).encode()
    return turn_of(read_events("messages", body, streamed=False, **how))


def streamed(*content: dict[str, Any]) -> TranslatedTurn:
    frames = [begin()]
    for index, block in enumerate(content):
        frames.append(start(index, {**block, "text": "", "citations": []}))
        notes = block.get("citations", [])
        frames += [delta(index, "citations", citation=note) for note in notes]
        frames += [delta(index, "text", text=piece) for piece in block["text"]]
        frames.append(stop(index))
    return turn_of(read_events("messages", b"".join([*frames, *finish()])))


def test_the_passage_is_the_block() -> None:
    content = text("Yes: "), cited("It rained", PAGE, DOCUMENT), text("; "), cited("so.", RESULT)
    for turn in streamed(*content), whole(*content):
        passages = [(URL, "It rained"), ("B", "It rained"), ("shelf 2", "so.")]
        assert turn.answer.cited == passages
        page, document, result = turn.answer.citations
        assert (page.url, page.title, page.quote) == (URL, "A", "It rained.")
        assert (document.url, document.file_id, document.title) == ("", "B", "B")
        assert (result.file_id, result.title) == ("shelf 2", "")


def test_thinking_that_is_hidden_moves_no_passage() -> None:
    hidden = "<think>Hm, let me see.</think>"
    turn = whole(text(f"{hidden}Yes: "), cited("It rained", PAGE), text("."))
    assert turn.answer.cited == [(URL, "It rained")]


def test_a_citation_that_names_nothing_is_none() -> None:
    assert whole(cited("So.", {"type": "page_location"})).answer.citations == []


class TestHistory:
    def strip(self, block: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        asked = {"messages": [{"role": "assistant", "content": [block, thinking("Hm.")]}]}
        history = MessagesHistory(asked)
        (turn,) = [turn for turn in history.turns if turn.role == "assistant"][:1]
        removed, _ = history.strip(turn, lambda _: False)
        return removed, turn.items[0]

    @pytest.mark.parametrize("ours", [PAGE, RESULT], ids=["page", "file"])
    def test_citations_of_abridges_are_taken_out(self, ours: dict[str, Any]) -> None:
        removed, block = self.strip(cited("So.", {**ours, "encrypted_index": ""}))
        assert (removed, block["citations"]) == (1, None)

    def test_anthropics_own_stay(self) -> None:
        removed, block = self.strip(cited("So.", PAGE, DOCUMENT))
        assert (removed, block["citations"]) == (0, [PAGE, DOCUMENT])
