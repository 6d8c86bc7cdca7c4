"""Sources, and what upstream ran itself, written for clients of each API, and what comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.lib.streaming._deltas import accumulate_delta

from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.apis.errors import ANSWER_TOO_LONG
from abridge.apis.protocols import RequestEcho
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    Event,
    Finished,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ResponseEnded,
    ToolCallDelta,
)
from abridge.providers.catalog import PROFILES
from tests.apis.translation import (
    chat_request,
    messages_request,
    responses_request,
    to_chat,
    to_messages,
    to_responses,
)
from tests.support.checker import check_chat, check_responses
from tests.support.messages_checker import check_message, check_messages
from tests.support.pipeline import LIMIT, TRANSLATING_WRITERS, Minting

Json = dict[str, Any]

URL = "https://a.example/"
PAGE = CitationDelta(0, None, url=URL, title="A", quote="It rained.", passage=(0, 2))
FILE = CitationDelta(0, None, file_id="file-1", title="a.txt", passage=(3, 5))
CALL = ToolCallDelta(0, None, call_index=0, id="call_1", name="f", arguments="{}")
SEARCHED = Finished(0, None, "stop", hosted_calls=[{"type": "web_search_call"}])
STOP = Finished(0, None, "stop")
END = ResponseEnded(None, None, ok=True)


def text(words: str, message: int = 0) -> ContentDelta:
    return ContentDelta(0, None, words, message_index=message)


def writer(api: str, limit: int = LIMIT) -> Any:
    display = Display(show_raw=True)
    return TRANSLATING_WRITERS[api](PROFILES["auto"], display, RequestEcho(), limit, Minting())


def streamed(api: str, *events: Event, **how: int) -> bytes:
    return b"".join(map(writer(api, **how).write, [*events, END]))


def whole(api: str, *events: Event) -> Json:
    by = writer(api)
    for event in events:
        by.note(event)
    body: Json = json.loads(by.write_whole(END))
    return body


def both_messages(*events: Event) -> list[Json]:
    """Return the streamed and the whole message of Chat Completions."""
    message: Json = {}
    for chunk in check_chat(streamed("chat", *events)).chunks:
        for choice in chunk["choices"]:
            message = accumulate_delta(message, choice["delta"])
    return [message, whole("chat", *events)["choices"][0]["message"]]


def both_responses(*events: Event) -> list[Json]:
    return [check_responses(streamed("responses", *events)).response, whole("responses", *events)]


def both_anthropics(*events: Event) -> list[Json]:
    seen = check_messages(streamed("messages", *events))
    added = {**seen.message, **seen.events[-2]["delta"]}
    return [added, check_message(whole("messages", *events))]


def notes_of(response: Json) -> list[list[Json]]:
    parts = [part for item in response["output"] for part in item.get("content", [])]
    return [part["annotations"] for part in parts if part["type"] == "output_text"]


class TestChat:
    def test_a_message_is_annotated_with_pages_and_files(self) -> None:
        for message in both_messages(text("It rains."), PAGE, FILE, STOP):
            place = {"start_index": 0, "end_index": 2}
            page = {"url": URL, "title": "A", **place, "content": "It rained."}
            assert message["annotations"][0] == {"type": "url_citation", "url_citation": page}
            file = {"url": "file-1", "title": "a.txt", "start_index": 3, "end_index": 5}
            assert message["annotations"][1] == {"type": "url_citation", "url_citation": file}

    def test_the_blank_line_between_messages_is_counted(self) -> None:
        cited = CitationDelta(0, None, url=URL, passage=(4, 7), message_index=1)
        for message in both_messages(text("One."), text("Two.", 1), cited, STOP):
            (note,) = (one["url_citation"] for one in message["annotations"])
            assert message["content"][note["start_index"] : note["end_index"]] == "Two"

    def test_a_source_without_a_passage_claims_none(self) -> None:
        cited = CitationDelta(0, None, url=URL)
        for message in both_messages(text("One."), text("Two.", 1), cited, STOP):
            note = message["annotations"][0]["url_citation"]
            assert (note["start_index"], note["end_index"]) == (0, 0)

    def test_more_sources_than_may_be_held_end_the_answer(self) -> None:
        out = streamed("chat", text("So."), *[PAGE] * 100, STOP, limit=1000)
        assert check_chat(out).error == {
            **(check_chat(out).error or {}),
            "message": ANSWER_TOO_LONG.message,
        }


class TestResponses:
    def test_a_text_is_annotated_with_pages_and_files(self) -> None:
        for response in both_responses(text("It rains."), PAGE, FILE, STOP):
            place = {"start_index": 0, "end_index": 2}
            page = {"type": "url_citation", "url": URL, "title": "A", **place}
            file = {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 5}
            assert notes_of(response) == [[page, file]]

    def test_places_are_counted_in_each_text(self) -> None:
        cited = [CitationDelta(0, None, url=URL, passage=place) for place in ((0, 3), (4, 7))]
        refusal = RefusalDelta(0, None, refusal="No.")
        events = text("One."), cited[0], refusal, text("Two."), cited[1], text("Six.", 1)
        last = CitationDelta(0, None, url=URL, passage=(8, 11))
        for response in both_responses(*events, last, STOP):
            places = [
                [(note["start_index"], note["end_index"]) for note in each]
                for each in notes_of(response)
            ]
            assert places == [[(0, 3)]] * 3

    def test_a_passage_of_another_text_is_not_claimed(self) -> None:
        later = CitationDelta(0, None, url=URL, passage=(0, 3))
        for response in both_responses(text("One."), text("Two.", 1), later, STOP):
            ((), (note,)) = notes_of(response)
            assert (note["start_index"], note["end_index"]) == (0, 0)


class TestMessages:
    def test_a_text_cites_pages_and_files(self) -> None:
        for message in both_anthropics(text("It rains."), PAGE, FILE, STOP):
            (block,) = message["content"]
            page, file = block["citations"]
            assert page == {
                "type": "web_search_result_location",
                "url": URL,
                "title": "A",
                "cited_text": "It rained.",
                "encrypted_index": "",
            }
            assert (file["type"], file["source"]) == ("search_result_location", "file-1")
            assert (file["title"], file["search_result_index"]) == ("a.txt", 0)


BOTH = {"chat": both_messages, "responses": both_responses, "messages": both_anthropics}


def sources_in(value: Any) -> int:
    """Count the sources anywhere in an answer."""
    if isinstance(value, list):
        return sum(map(sources_in, value))
    if not isinstance(value, dict):
        return 0
    is_source = value.get("url") == URL or value.get("source") == URL
    return is_source + sum(map(sources_in, value.values()))


ALL = pytest.mark.parametrize("client", list(BOTH))


@ALL
class TestAnyClient:
    @pytest.mark.parametrize(
        "events",
        [
            (PAGE, text("So.")),
            (text("So."), CALL, PAGE),
            (text("So."), CALL, PAGE, text("Yes.", 1)),
            (CALL, PAGE),
            (PAGE,),
            (
                ReasoningStarted(0, None, 0),
                ReasoningDelta(0, None, 0, "Hm."),
                PAGE,
                ReasoningEnded(0, None, 0),
                text("So."),
            ),
        ],
        ids=["before", "after a call", "between", "no text", "alone", "while it thinks"],
    )
    def test_a_source_is_named_once_wherever_it_comes(
        self, client: str, events: tuple[Event, ...]
    ) -> None:
        stop = Finished(0, None, "tool_calls" if CALL in events else "stop")
        for answer in BOTH[client](*events, stop):
            assert sources_in(answer) == 1

    def test_what_upstream_ran_itself_is_said_and_the_answer_stops(self, client: str) -> None:
        for answer in BOTH[client](SEARCHED):
            assert answer["hosted_calls"] == [{"type": "web_search_call"}]

    def test_nothing_is_said_otherwise(self, client: str) -> None:
        for answer in BOTH[client](text("So."), STOP):
            assert "hosted_calls" not in answer
            assert sources_in(answer) == 0


def test_hosted_calls_leave_the_next_request() -> None:
    message = {"role": "assistant", "content": None, "hosted_calls": [{"type": "web_search_call"}]}
    asked = {"messages": [{"role": "user", "content": "Hi"}, message]}
    history = CHAT.history(asked)
    assert [history.strip(turn, lambda _: False)[0] for turn in history.turns] == [0, 1]
    assert asked["messages"][1] == {"role": "assistant", "content": None}


class TestTheWayBack:
    """What a client returns of sources keeps no request from its upstream."""

    @pytest.mark.parametrize("write", [to_responses, to_messages])
    def test_from_chat(self, write: Any) -> None:
        (message,) = both_messages(text("It rains."), PAGE, FILE, STOP)[1:]
        assert "It rains." in json.dumps(write(chat_request(HELLO, message, HELLO)).body)

    @pytest.mark.parametrize("write", [to_chat, to_messages])
    def test_from_responses(self, write: Any) -> None:
        (response,) = both_responses(text("It rains."), PAGE, FILE, STOP)[1:]
        written = write(responses_request(HELLO, *response["output"], HELLO))
        assert "It rains." in json.dumps(written.body)
        assert not written.unsupported

    @pytest.mark.parametrize("write", [to_chat, to_responses])
    def test_from_messages(self, write: Any) -> None:
        (message,) = both_anthropics(text("It rains."), PAGE, FILE, STOP)[1:]
        turn = {"role": "assistant", "content": message["content"]}
        written = write(messages_request(HELLO, turn, HELLO))
        assert "It rains." in json.dumps(written.body)
        assert not written.unsupported


HELLO = {"role": "user", "content": "Hi"}
