"""Test repairing Responses streams that leave out required events and fields."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import Any

import pytest

from abridge.apis import sse
from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display, Exposure
from abridge.apis.errors import CALL_CUT
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.support.checker import ResponsesStream, check_chat, check_responses, frames
from tests.support.openapi import event_faults
from tests.support.pipeline import responses, translating
from tests.support.shared import needs_openapi
from tests.support.sloppy_streams import CALLS, SLOPPY, TEXT, event
from tests.support.streams import (
    THOUGHT,
    call_item,
    frame,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

Event = dict[str, Any]

TURN = [reasoning_item(0, THOUGHT), message_item(1, TEXT), call_item(2, *CALLS[0])]
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "q"}}


@pytest.fixture(params=SLOPPY)
def server(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def events(output: list[Event]) -> list[Event]:
    return [json.loads(data) for _, data in frames(b"".join(responses_stream(output)))]


def run(stream: list[Event], **settings: Any) -> ResponsesStream:
    data = b"".join(frame(each, each["type"]) for each in stream)
    return check_responses(responses(**settings).stream(data))


def without(stream: list[Event], *kinds: str) -> list[Event]:
    return [each for each in stream if each["type"] not in kinds]


class TestServers:
    @pytest.mark.parametrize("expose", ["both", "summary", "raw", "none"])
    def test_their_streams_come_out_legal(self, server: str, expose: Exposure) -> None:
        pipeline = responses(expose=expose)
        seen = check_responses(pipeline.stream(b"".join(SLOPPY[server]())))
        assert seen.text == ("" if "only calls" in server else TEXT)
        assert seen.raw == (THOUGHT if expose in ("both", "raw") else "")
        assert len(seen.summary) == (expose in ("both", "summary"))
        calls = [item.arguments for item in seen.items.values() if item.type == "function_call"]
        assert calls in ([], [arguments for _, arguments in CALLS])
        assert [item["id"] for item in seen.response["output"]] == [
            item.id for item in seen.items.values()
        ]
        assert pipeline.recorded_turns()[0].raw == THOUGHT

    @needs_openapi
    def test_their_streams_come_out_as_openai_describes_them(self, server: str) -> None:
        """Except for usage details that they do not report, which are not invented."""
        seen = check_responses(responses().stream(b"".join(SLOPPY[server]())))
        faults = {fault for each in seen.events for fault in event_faults(each)}
        assert all(fault.startswith("response/usage") for fault in faults)

    def test_a_cut_anywhere_leaves_a_legal_stream_that_failed(self, server: str) -> None:
        stream = SLOPPY[server]()
        for place in range(1, len(stream)):
            seen = check_responses(responses().stream(b"".join(stream[:place])))
            assert seen.terminal is not None
            assert seen.terminal["type"] == "response.failed"

    def test_every_part_and_item_has_its_beginning_and_its_end(self, server: str) -> None:
        kinds = check_responses(responses().stream(b"".join(SLOPPY[server]()))).kinds
        for what in ("output_item", "content_part", "reasoning_summary_part"):
            assert kinds.count(f"response.{what}.added") == kinds.count(f"response.{what}.done") > 0

    def test_their_streams_are_translated_for_clients_of_another_api(self, server: str) -> None:
        out = translating("responses", CHAT, expose="raw").stream(b"".join(SLOPPY[server]()))
        choice = check_chat(out).choices[0]
        assert choice.text == ("" if "only calls" in server else TEXT)
        assert choice.fields["reasoning_content"] == THOUGHT
        calls = [(each["name"], each["arguments"]) for each in choice.calls.values()]
        assert calls in ([], [*CALLS])


def test_a_stream_that_is_right_keeps_its_bytes() -> None:
    stream = responses_stream(TURN)
    reader = RESPONSES.reader(PROFILES["auto"], Display(), 1 << 20)
    read = [each.frame for one in stream for each in reader.read(one)]
    assert [one for one in read if one is not None] == stream
    assert reader.faults == 0


DROPPED = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
]


@pytest.mark.parametrize("kind", DROPPED)
def test_an_event_that_is_left_out_is_supplied(kind: str) -> None:
    seen = run(without(events(TURN), kind))
    assert [each for each in seen.kinds if each == kind] or kind == "response.in_progress"
    assert (seen.raw, seen.text) == (THOUGHT, TEXT)
    assert seen.items[2].arguments == CALLS[0][1]
    assert [item["type"] for item in seen.response["output"]] == [item["type"] for item in TURN]


def test_only_deltas_and_items_are_enough() -> None:
    kept = ("delta", "output_item.added", "completed")
    stream = [each for each in events(TURN) if each["type"].endswith(kept)]
    seen = run(stream)
    assert seen.kinds == run(without(events(TURN), "response.in_progress")).kinds
    assert seen.response["output"][1:] == TURN[1:]


@pytest.mark.parametrize("key", ["sequence_number", "output_index", "content_index", "item_id"])
def test_a_field_that_is_left_out_is_supplied(key: str) -> None:
    stream = events(TURN)
    seen = run([{name: each[name] for name in each if name != key} for each in stream])
    assert [key in each for each in seen.events] == [key in each for each in run(stream).events]
    assert (seen.raw, seen.text) == (THOUGHT, TEXT)


class TestTheAnswer:
    def test_a_message_that_goes_on_after_others_began_is_another(self) -> None:
        stream = events([message_item(0, "So. And so."), call_item(1, *CALLS[0])])
        late = [each for each in stream if each["type"] == "response.output_text.delta"][-1]
        stream.remove(late)
        at = [each["type"] for each in stream].index("response.output_text.done")
        ends, call = stream[at : at + 3], stream[at + 3 : -1]
        seen = run([*stream[:at], *call[:-1], late, *ends, call[-1], stream[-1]])
        types = [item.type for item in seen.items.values()]
        assert types == ["message", "function_call", "message"]
        assert [item.text for item in seen.items.values()] == ["So. And", "", " so."]
        output = seen.response["output"]
        assert [item["content"][0]["text"] for item in (output[0], output[2])] == [
            "So. And",
            " so.",
        ]

    @pytest.mark.parametrize("final", [True, False])
    def test_messages_without_beginning_and_end_are_told_apart_by_index(self, final: bool) -> None:  # noqa: FBT001
        items = [message_item(number, f"{TEXT} {number}") for number in range(2)]
        deltas = [each for each in events(items) if each["type"] == "response.output_text.delta"]
        ends = events(items if final else [])[-1:]
        seen = run([*events([])[:2], *deltas, *ends])
        assert [item.text for item in seen.items.values()] == [f"{TEXT} 0", f"{TEXT} 1"]

    def test_ids_that_change_under_one_index_are_of_one_message(self) -> None:
        stream = [each for each in events([message_item(0, TEXT)]) if "item" not in each]
        for number, each in enumerate(stream):
            each.update({"item_id": f"msg_{number}"} if "item_id" in each else {})
        assert [item.text for item in run(stream).items.values()] == [TEXT]

    def test_reasonings_that_alternate_behind_an_open_call_come_whole(self) -> None:
        thoughts = [reasoning_item(1, "First this. Then that."), reasoning_item(2, THOUGHT)]
        items = [call_item(0, *CALLS[0]), *thoughts]
        stream = events(items)
        of = [[each for each in stream if each.get("output_index") == n] for n in range(3)]
        turns = [each for pair in zip_longest(of[1], of[2]) for each in pair if each]
        seen = run([*stream[:2], of[0][0], *turns, *of[0][1:], stream[-1]])
        assert [item["id"] for item in seen.response["output"]] == [item["id"] for item in items]
        assert seen.raw == "First this. Then that." + THOUGHT

    def test_several_items_that_never_end_end_with_the_response(self) -> None:
        searches = [{**SEARCH, "id": f"ws_{number}"} for number in range(2)]
        items = [*searches, reasoning_item(2, THOUGHT), message_item(3, TEXT)]
        seen = run(without(events(items), "response.output_item.done"))
        ids = [item["id"] for item in items]
        assert [item.id for item in seen.items.values()] == ids
        assert [item["id"] for item in seen.response["output"]] == ids
        assert (seen.raw, seen.text) == (THOUGHT, TEXT)

    @pytest.mark.parametrize("streamed", ["{}", '{"a": 0}'])
    def test_a_call_stays_open_until_upstream_ends_it(self, streamed: str) -> None:
        items = [call_item(0, "f", '{"a": 1}'), call_item(1, "g", '{"b": 2}')]
        stream = events(items)
        one, two = ([each for each in stream if each.get("output_index") == n] for n in (0, 1))
        delta = {**one[1], "delta": streamed}
        mixed = [*stream[:2], one[0], delta, *two, *one[-2:], stream[-1]]
        data = b"".join(frame(each, each["type"]) for each in mixed)
        pipeline = responses()
        seen = check_responses(pipeline.stream(data), texts_agree=False)
        said = [each["arguments"] for each in seen.events if "arguments" in each]
        assert said == [item["arguments"] for item in items]
        assert [item.done for item in seen.items.values()] == seen.response["output"] == items
        assert (pipeline.reader.faults, pipeline.reader.mismatches) == (0, 1)

    @pytest.mark.parametrize("final", [True, False])
    def test_a_call_that_never_ends_does_not_stop_the_others(self, final: bool) -> None:  # noqa: FBT001
        items = [call_item(0, "f", '{"a": 1}'), call_item(1, "g", '{"b": 2}')]
        ends = ("response.function_call_arguments.done", "response.output_item.done")
        stream = without(events(items), *ends)
        stream[-1]["response"]["output"] = items if final else []
        seen = run(stream)
        assert seen.response["output"] == items

    def test_an_item_of_any_other_type_keeps_all_its_events(self) -> None:
        """Later items wait for its end."""
        stream = events([SEARCH, message_item(1, TEXT)])
        at = {"output_index": 0, "item_id": "ws_1"}
        searching = event("web_search_call.searching", **at)
        completed = event("web_search_call.completed", **at)
        added, done = stream[2:4]
        text = stream[4:-1]
        seen = run(
            [*stream[:2], added, searching, *text[:4], completed, *text[4:], done, stream[-1]]
        )
        kinds = [each["type"] for each in seen.events if each.get("output_index") == 0]
        assert kinds == [each["type"] for each in (added, searching, completed, done)]
        assert seen.text == TEXT
        assert seen.items[0].done == SEARCH

    def test_an_item_that_never_ends_does_not_stop_the_others(self) -> None:
        stream = events([SEARCH, message_item(1, TEXT)])
        seen = run([*stream[:3], *stream[4:]])
        assert seen.text == TEXT
        assert [item["type"] for item in seen.response["output"]] == ["web_search_call", "message"]

    def test_no_more_is_queued_than_there_is_room_for(self) -> None:
        stream = events([SEARCH, message_item(1, TEXT * 9)])
        reader = RESPONSES.reader(PROFILES["auto"], Display(), 1000)
        out = [reader.read(frame(each, each["type"])) for each in (*stream[:3], *stream[4:-1])]
        assert out[3] == []
        assert sum(map(len, out)) >= len(stream) - 1

    @pytest.mark.parametrize("expose", ["auto", "none"])
    @pytest.mark.parametrize("limit", [1 << 22, 1500])
    def test_a_call_is_whole_or_the_answer_fails(self, limit: int, expose: Exposure) -> None:
        call, message = call_item(0, *CALLS[0]), message_item(1, TEXT * 30)
        stream = events([call, message])
        begun, *rest = (each for each in stream[2:-1] if each["output_index"] == 0)
        others = [each for each in stream[2:-1] if each["output_index"] == 1]
        seen = run(
            [*stream[:2], begun, rest[0], *others, *rest[1:], stream[-1]],
            limit=limit,
            expose=expose,
        )
        said = [each["item"] for each in seen.events if each["type"].endswith("item.done")]
        if limit > 1500:
            assert said == [call, message]
        else:
            assert seen.response["error"]["message"] == CALL_CUT.message
            assert said[0]["status"] == "incomplete"

    def test_arguments_that_a_call_is_added_with_are_not_repeated(self) -> None:
        stream = events([call_item(0, *CALLS[0])])
        stream[2]["item"]["arguments"] = CALLS[0][1]
        seen = run(stream)
        assert seen.events[2]["item"]["arguments"] == ""
        assert seen.items[0].arguments == CALLS[0][1]


class TestTheResponse:
    BARE = ("error", "instructions", "metadata", "model", "output", "tools", "created_at")

    def test_the_response_is_complete_from_its_beginning(self) -> None:
        stream = events(TURN)
        for each in stream[:2]:
            each["response"] = {"id": "resp_1"}
        seen = run(stream)
        assert all(key in seen.events[0]["response"] for key in self.BARE)
        assert seen.events[0]["response"]["status"] == "in_progress"

    def test_the_response_id_stays(self) -> None:
        stream = events(TURN)
        stream[-1]["response"]["id"] = "resp_2"
        assert run(stream).response["id"] == "resp_1"

    @pytest.mark.parametrize("end", [{}, {"response": None}, {"response": {"output": None}}])
    def test_an_end_without_the_response_is_completed(self, end: Event) -> None:
        stream = events(TURN)
        seen = run([*stream[:-1], event("completed", **end)])
        assert [item["type"] for item in seen.response["output"]] == [item["type"] for item in TURN]

    def test_an_end_without_usage_reports_only_the_summary(self) -> None:
        final = response(TURN)
        del final["usage"]
        seen = run([*events(TURN)[:-1], event("completed", response=final)])
        assert (seen.response.get("usage") or {}).get("input_tokens") is None

    def test_events_without_names_get_them(self) -> None:
        bare = [frame(each) for each in events(TURN)]
        assert check_responses(responses().stream(b"".join(bare))).text == TEXT

    @pytest.mark.parametrize("mark", [True, False])
    def test_the_stream_ends_with_or_without_done(self, mark: bool) -> None:  # noqa: FBT001
        stream = responses_stream(TURN) + ([b"data: [DONE]\n\n"] if mark else [])
        assert check_responses(responses().stream(b"".join(stream))).text == TEXT
        assert sse.frame_data(stream[-1]) is not None


def test_an_event_without_a_type_about_an_item_that_was_closed_for_the_next_is_read() -> None:
    reader = RESPONSES.reader(PROFILES["auto"], Display(style=None), 1 << 20)
    message, call = message_item(0, ""), call_item(1, *CALLS[0])
    added = [
        {"type": "response.output_item.added", "output_index": index, "item": item}
        for index, item in enumerate([message, {**call, "arguments": ""}])
    ]
    for each in [*added, {"output_index": 0, "item_id": message["id"]}]:
        reader.read(b"data: %b\n\n" % json.dumps(each).encode())
    assert reader.end()[-1].lane is None
