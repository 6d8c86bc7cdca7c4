"""Responses streams that upstream does not quite keep in order, and what becomes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from abridge.apis.display import Display
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.items import OutputItems, ResponseState
from abridge.core.events import ContentDelta
from abridge.core.plan import Passage
from abridge.providers.catalog import PROFILES
from tests.support.asgi import call
from tests.support.checker import ResponsesStream, check_responses
from tests.support.deployments import build_app
from tests.support.pipeline import Pipeline, responses
from tests.support.streams import (
    DONE,
    call_item,
    frame,
    message_item,
    numbered,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

Event = dict[str, Any]

OUTPUT = [
    reasoning_item(0, "First I think."),
    call_item(1, "f", '{"x": 1}'),
    reasoning_item(2, "Then I think again."),
    message_item(3, "So."),
]
CREATED = {"type": "response.created", "response": response([], status="in_progress", usage=None)}
BEGUN = {"type": "message", "role": "assistant", "content": []}


def events(output: list[Event] = OUTPUT, **more: Any) -> list[Event]:
    """The events in which these items stream, to be changed."""
    stream = b"".join(responses_stream(output, **more)).decode()
    read = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    return [
        {key: value for key, value in event.items() if key != "sequence_number"} for event in read
    ]


def text_of(passage: Passage) -> str:
    return f"Of: {passage.text}"


def run(stream: list[Event], **settings: Any) -> tuple[Pipeline, ResponsesStream]:
    pipeline = responses(write=text_of, **settings)
    return pipeline, check_responses(pipeline.stream(b"".join(numbered(*stream))))


def final_response(stream: list[Event]) -> Event:
    """The final response of a stream that is not to be checked."""
    out = responses(write=text_of).stream(b"".join(numbered(*stream)))
    final = json.loads(out.split(b"event: response.completed\ndata: ")[1])["response"]
    assert isinstance(final, dict)
    return final


def final_output(stream: list[Event]) -> list[Any]:
    output = final_response(stream)["output"]
    assert isinstance(output, list)
    return output


def without_ids(seen: ResponsesStream) -> list[Event]:
    """The final response's output, but for its ids."""
    return [{**item, "id": None} for item in seen.response["output"]]


def summaries(seen: ResponsesStream) -> list[list[str]]:
    """What the final response's reasoning items say."""
    items = [item for item in seen.response["output"] if item["type"] == "reasoning"]
    return [[part["text"] for part in item["summary"]] for item in items]


def ending(output: Any, kind: str = "completed") -> list[Event]:
    """The usual stream, but for what its last event says of the output."""
    stream = events()
    final = {**stream[-1]["response"], "output": output, "status": kind}
    return [*stream[:-1], {"type": f"response.{kind}", "response": final}]


SUMMARIES = [["Of: First I think."], ["Of: Then I think again."]]
LACKING = {
    "none": None,
    "nothing": [],
    "no list": {},
    "no reasoning": [OUTPUT[1], OUTPUT[3]],
    "only the second": OUTPUT[1:],
    "only the first": [OUTPUT[0], OUTPUT[1], OUTPUT[3]],
    "all": OUTPUT,
}


class TestTheFinalResponse:
    @pytest.mark.parametrize("output", LACKING.values(), ids=LACKING)
    @pytest.mark.parametrize("kind", ["completed", "incomplete", "failed"])
    def test_it_holds_the_items_that_streamed(self, output: Any, kind: str) -> None:
        pipeline, seen = run(ending(output, kind))
        assert [item["id"] for item in seen.response["output"]] == ["rs_0", "fc_1", "rs_2", "msg_3"]
        assert summaries(seen) == SUMMARIES
        assert [turn.original for turn in pipeline.recorded_turns()] == [[OUTPUT[0]], [OUTPUT[2]]]
        assert [turn.item_keys for turn in pipeline.recorded_turns()] == [((0, 0),), ((0, 2),)]

    def test_an_item_that_did_not_stream_stays_in_its_place_without_a_summary(self) -> None:
        late = {**reasoning_item(9, "Unseen."), "id": "rs_9"}
        stream = ending([OUTPUT[0], late, *OUTPUT[1:]])
        output = final_output(stream)
        assert [item["id"] for item in output] == ["rs_0", "rs_9", "fc_1", "rs_2", "msg_3"]
        assert output[1]["summary"] == []

    def test_summaries_are_matched_by_id_where_places_differ(self) -> None:
        _, seen = run(ending(OUTPUT[::-1]))
        assert summaries(seen) == SUMMARIES

    @pytest.mark.parametrize("told", ["in_progress", "queued"])
    @pytest.mark.parametrize("kind", ["completed", "incomplete", "failed"])
    def test_its_event_says_that_it_has_ended(self, kind: str, told: str) -> None:
        stream = ending(OUTPUT, kind)
        stream[-1]["response"]["status"] = told
        _, seen = run(stream)
        assert seen.response["status"] == kind

    @pytest.mark.parametrize("told", ["incomplete", "failed"])
    def test_it_may_have_ended_otherwise_than_its_event_says(self, told: str) -> None:
        stream = ending(OUTPUT)
        stream[-1]["response"]["status"] = told
        assert final_response(stream)["status"] == told

    def test_what_is_no_object_in_it_is_left_alone(self) -> None:
        _, seen = run(ending([*OUTPUT]))
        output = final_output(ending([None, "x", *OUTPUT]))
        assert output == [None, "x", *seen.response["output"]]

    def test_long_numbers_in_a_repaired_response_are_exact(self) -> None:
        stream = ending([])
        stream[-1]["response"]["metadata"] = {"odd": 2**70 + 1}
        out = responses().stream(b"".join(numbered(*stream)))
        assert str(2**70 + 1).encode() in out

    def test_beyond_the_limit_it_is_as_upstream_sent_it(self) -> None:
        output = OutputItems(ResponseState(Display(), 10, carries_frames=True))
        item = output.add(OUTPUT[3], 3)
        if output.state.reserve(11):
            item.done = OUTPUT[3]
        assert output.reconcile([]) == []

    @pytest.mark.parametrize("more", [{}, {"content": []}])
    def test_what_was_only_streamed_is_in_the_item_and_the_final_response(
        self, more: Event
    ) -> None:
        bare = {"id": "rs_0", "type": "reasoning", "summary": [], **more}
        stream = [
            {**event, "item": bare} if event["type"] == "response.output_item.done" else event
            for event in events(OUTPUT[:1])
        ]
        stream[-1] = {"type": "response.completed", "response": response([bare])}
        pipeline, seen = run(stream)
        assert seen.response["output"][0]["content"] == OUTPUT[0]["content"]
        assert pipeline.recorded_turns()[0].raw == "First I think."

    def test_turns_are_recorded_of_a_response_cut_short(self) -> None:
        pipeline, seen = run(events()[:-3])
        assert seen.response["status"] == "failed"
        assert [turn.item_keys for turn in pipeline.recorded_turns()] == [((0, 0),), ((0, 2),)]

    @pytest.mark.parametrize("output", [None, [], OUTPUT[1:2]])
    async def test_the_next_turn_gets_the_reasoning_and_not_its_summary(self, output: Any) -> None:
        call_id = "call_a8f3k2m9z0q1x7"
        sent = [OUTPUT[0], {**OUTPUT[1], "call_id": call_id}]
        stream = events(sent)
        stream[-1]["response"]["output"] = output and [sent[1]]
        upstream = Upstream(Answer(numbered(*stream)))
        app = build_app("mounted", upstream, writer=Scripted(), reasoning={"expose": "summary"})
        headers = {"authorization": "Bearer sk-abc123456"}
        question = {"role": "user", "content": "x"}
        body = {"model": "m", "stream": True, "reasoning": {"summary": "auto"}}
        answer = await call(app, "/v1/responses", {**body, "input": [question]}, headers)
        shown = check_responses(answer.data).response["output"]
        assert shown[0]["summary"]
        assert shown[0]["content"] == []
        result = {"type": "function_call_output", "call_id": call_id, "output": "1"}
        await call(app, "/v1/responses", {**body, "input": [question, *shown, result]}, headers)
        assert upstream.requests[1].json["input"] == [question, *sent, result]


class TestIds:
    @staticmethod
    def rotated(stream: list[Event]) -> list[Event]:
        """As GitHub Copilot has it: another id in each event but the one that adds the item."""

        def other(event: Event, count: int) -> Event:
            if "item_id" in event:
                return {**event, "item_id": f"odd_{count}"}
            if event["type"] == "response.output_item.done":
                return {**event, "item": {**event["item"], "id": f"odd_{count}"}}
            return event

        turned = [other(event, count) for count, event in enumerate(stream)]
        final = turned[-1]["response"]
        output = [{**item, "id": f"last_{place}"} for place, item in enumerate(final["output"])]
        return [*turned[:-1], {**turned[-1], "response": {**final, "output": output}}]

    def test_the_id_an_item_was_added_with_is_its_id_throughout(self) -> None:
        pipeline, seen = run(self.rotated(events()))
        assert seen.response == run(events())[1].response
        assert pipeline.reader.faults == 0

    def test_native_parts_too(self) -> None:
        item = {**reasoning_item(0, ""), "summary": [{"type": "summary_text", "text": "Theirs."}]}
        _, seen = run(self.rotated(events([item, message_item(1, "So.")])))
        assert seen.summary == ["Theirs."]

    def test_a_final_response_that_lacks_an_item_has_the_others_by_their_type(self) -> None:
        stream = self.rotated(events())
        del stream[-1]["response"]["output"][1]
        _, seen = run(stream)
        assert summaries(seen) == SUMMARIES

    def test_events_that_name_only_the_id_get_the_index(self) -> None:
        """As llama.cpp has it."""
        stream = [
            {key: value for key, value in event.items() if key != "output_index"}
            for event in events()
        ]
        pipeline, seen = run(stream)
        assert seen.response == run(events())[1].response
        assert pipeline.reader.faults == 0

    @pytest.mark.parametrize("expose", ["auto", "summary"])
    @pytest.mark.parametrize("begun", [[], [{"type": "response.output_item.added", "item": BEGUN}]])
    @pytest.mark.parametrize("address", [{}, {"id": "msg_1"}], ids=["never", "at its end"])
    def test_the_end_of_a_message_without_an_address_repeats_nothing(
        self, address: Event, begun: list[Event], expose: str
    ) -> None:
        said = {**message_item(0, "So."), **address}
        if not address:
            del said["id"]
        delta, done = "response.output_text.delta", "response.output_item.done"
        stream = [
            CREATED,
            *begun,
            *({"type": delta, "delta": text} for text in ("S", "o.")),
            {"type": done, "item": said},
            {"type": "response.completed", "response": response([said])},
        ]
        _, seen = run(stream, expose=expose)
        assert [item["content"][0]["text"] for item in seen.response["output"]] == ["So."]
        assert seen.text == "So."
        reader = RESPONSES.upstream.translating_reader(PROFILES["auto"], Display(), 1000)
        texts = [event for each in numbered(*stream) for event in reader.read(each)]
        assert "".join(one.text for one in texts if isinstance(one, ContentDelta)) == "So."

    def test_two_items_on_one_index_are_two(self) -> None:
        stream = [
            {**event, "output_index": 0} if "output_index" in event else event for event in events()
        ]
        _, seen = run(stream)
        assert seen.response == run(events())[1].response

    @pytest.mark.parametrize("expose", ["both", "summary"])
    def test_items_of_one_id_are_told_apart_by_their_index(self, expose: str) -> None:
        output = [*OUTPUT, call_item(4, "g", '{"y": 2}')]
        pipeline, seen = run(self.alike(events(output)), expose=expose)
        assert seen.response["output"][0]["id"] == "one"
        assert without_ids(seen) == without_ids(run(events(output), expose=expose)[1])
        assert pipeline.reader.faults == 0

    def test_without_indexes_items_of_one_id_are_told_apart_by_their_type(self) -> None:
        stream = self.alike(events())
        for event in stream:
            event.pop("output_index", None)
        _, seen = run(stream)
        assert without_ids(seen) == without_ids(run(events())[1])

    @staticmethod
    def alike(stream: list[Event]) -> list[Event]:
        """The stream with one id for all items."""
        alike = re.sub('"(rs|fc|msg)_[0-9]"', '"one"', json.dumps(stream))
        read: list[Event] = json.loads(alike)
        return read

    def test_an_item_that_says_only_at_its_end_what_it_is_is_one(self) -> None:
        message = message_item(0, "So.")
        added, done = (
            {"type": f"response.output_item.{stage}", "output_index": 0, "item": item}
            for stage, item in (("added", {"a": 1}), ("done", message))
        )
        end = {"type": "response.completed", "response": response([message])}
        stream = responses().stream(b"".join(numbered(CREATED, added, done, end)))
        final = json.loads(stream.rpartition(b"data: ")[2])["response"]
        assert [item["content"] for item in final["output"]] == [message["content"]]

    def test_items_without_ids_are_known_by_their_index(self) -> None:
        stream = json.loads(json.dumps(events()))
        items = [event["item"] for event in stream if "item" in event]
        for item in [*items, *stream[-1]["response"]["output"]]:
            del item["id"]
        shown = [item["summary"] for item in final_output(stream) if item["type"] == "reasoning"]
        assert [[part["text"] for part in summary] for summary in shown] == SUMMARIES

    @pytest.mark.parametrize("expose", ["both", "summary"])
    @pytest.mark.parametrize("number", [int, float, str])
    def test_items_that_alternate_are_told_apart_however_their_index_is_spelled(
        self, number: Callable[[int], Any], expose: str
    ) -> None:
        items = [call_item(index, "f", '{"a": 1}') for index in (0, 1)]
        begun = [
            {"type": "function_call", "name": "f", "call_id": item["call_id"]} for item in items
        ]
        told = [
            *({"type": "response.output_item.added", "item": item} for item in begun),
            *(
                {"type": "response.function_call_arguments.delta", "delta": piece}
                for piece in ('{"a"', '{"a"', ": 1}", ": 1}")
            ),
        ]
        placed = [{**event, "output_index": number(place % 2)} for place, event in enumerate(told)]
        end = {"type": "response.completed", "response": response(items)}
        _, seen = run([CREATED, *placed, end], expose=expose)
        assert [item.arguments for item in seen.items.values()] == ['{"a": 1}'] * 2
        indexes = [event["output_index"] for event in seen.events if "output_index" in event]
        assert {*map(type, indexes)} == {int}


def reasoning(*inside: Event, item: Event, added: Event | None = None) -> list[Event]:
    """A stream whose reasoning item is left open when its message begins."""
    bare = {"id": "rs_0", "type": "reasoning", "summary": [], **(added or {})}
    message = message_item(1, "So.")
    return [
        CREATED,
        {"type": "response.output_item.added", "output_index": 0, "item": bare},
        *({"item_id": "rs_0", "output_index": 0, **event} for event in inside),
        {"type": "response.output_item.added", "output_index": 1, "item": message},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
        {"type": "response.completed", "response": response([item, message])},
    ]


def native(kind: str, index: int | None = 0, **fields: Any) -> Event:
    at = {} if index is None else {"summary_index": index}
    return {"type": f"response.reasoning_summary_{kind}", **at, **fields}


def part(text: str) -> Event:
    return {"part": {"type": "summary_text", "text": text}}


ITEM: Event = {"id": "rs_0", "type": "reasoning", "summary": [part("S.")["part"]]}
OPEN = native("part.added", **part(""))
SAY = native("text.delta", delta="S.")
SAID = native("text.done", text="S.")
CLOSE = native("part.done", **part("S."))


class TestNativeParts:
    @pytest.mark.parametrize(
        "inside",
        [
            (OPEN, SAY, SAID, CLOSE),
            (OPEN, SAY, SAID),
            (OPEN, SAY, CLOSE),
            (OPEN, SAY),
            (OPEN, SAID, CLOSE),
            (OPEN, CLOSE),
            (SAY, SAID, CLOSE),
            (SAY, SAID),
            (SAY,),
            (SAID,),
            (CLOSE,),
            (native("text.delta", None, delta="S."), native("text.done", None, text="S.")),
        ],
    )
    def test_a_part_is_added_and_done_whatever_upstream_leaves_out(
        self, inside: tuple[Event, ...]
    ) -> None:
        pipeline, seen = run(reasoning(*inside, item=ITEM))
        kinds = [kind.rpartition("summary_")[2] for kind in seen.kinds if "summary_" in kind]
        assert kinds == ["part.added", "text.delta", "text.done", "part.done"]
        assert seen.summary == ["S."]
        assert pipeline.reader.faults == 0

    def test_a_part_is_done_before_the_next_is_added(self) -> None:
        second = native("text.delta", 1, delta="T.")
        item = {**ITEM, "summary": [*ITEM["summary"], part("T.")["part"]]}
        _, seen = run(reasoning(OPEN, SAY, second, item=item))
        assert seen.summary == ["S.", "T."]

    def test_parts_that_are_only_in_the_done_item_are_emitted(self) -> None:
        stream = events([{**ITEM, "content": []}, message_item(1, "So.")])
        bare = [event for event in stream if "reasoning_summary" not in event["type"]]
        _, seen = run(bare)
        assert seen.summary == ["S."]

    @pytest.mark.parametrize("late", [OPEN, SAY, SAID, CLOSE])
    def test_an_event_of_a_part_that_is_done_is_a_fault(self, late: Event) -> None:
        stream = reasoning(OPEN, SAY, SAID, CLOSE, late, item=ITEM)
        pipeline, seen = run(stream)
        assert pipeline.reader.faults == 1
        assert seen.summary == ["S."]

    @pytest.mark.parametrize("again", [OPEN, SAY, SAID])
    def test_a_repeated_event_of_a_part_is_a_fault(self, again: Event) -> None:
        stream = reasoning(OPEN, SAY, SAID, again, CLOSE, item=ITEM)
        pipeline, seen = run(stream)
        assert pipeline.reader.faults == 1
        assert seen.summary == ["S."]

    def test_a_cut_ends_the_open_part(self) -> None:
        _, seen = run(reasoning(OPEN, SAY, item=ITEM)[:4])
        assert seen.kinds[-2:] == ["response.reasoning_summary_part.done", "response.failed"]
        assert seen.response["output"][0]["summary"] == ITEM["summary"]


class TestOrder:
    def test_a_made_end_copies_no_provisional_state(self) -> None:
        raw = {"type": "response.reasoning_text.delta", "content_index": 0, "delta": "Hm."}
        item = {**reasoning_item(0, "Hm."), "encrypted_content": "final"}
        _, seen = run(reasoning(raw, item=item, added={"encrypted_content": "provisional"}))
        assert seen.items[0].done is not None
        assert "encrypted_content" not in seen.items[0].done
        assert seen.response["output"][0]["encrypted_content"] == "final"

    def test_an_item_that_was_not_added_is_added_without_content(self) -> None:
        item = {**OUTPUT[0], "encrypted_content": "final"}
        stream = [event for event in events([item]) if "output_index" not in event]
        done = {"type": "response.output_item.done", "output_index": 0, "item": item}
        _, seen = run([*stream[:2], done, *stream[2:]])
        added = next(event for event in seen.events if event["type"].endswith("item.added"))
        assert added["item"]["content"] == []
        assert "encrypted_content" not in added["item"]
        assert seen.response["output"][0]["encrypted_content"] == "final"

    @pytest.mark.parametrize("place", [3, -1])
    def test_a_second_beginning_of_an_item_is_a_fault(self, place: int) -> None:
        stream = events()
        stream.insert(place, stream[2])
        pipeline, seen = run(stream)
        assert pipeline.reader.faults == 1
        assert seen.text == "So."

    def test_a_second_end_of_an_item_is_a_fault(self) -> None:
        done = [event for event in events() if event["type"] == "response.output_item.done"]
        stream = events()
        pipeline, _ = run([*stream[:-1], *done, stream[-1]])
        assert pipeline.reader.faults == len(done)

    def test_a_second_response_created_is_a_fault(self) -> None:
        pipeline, _ = run([CREATED, *events()])
        assert pipeline.reader.faults == 1

    @pytest.mark.parametrize("kind", ["completed", "incomplete", "failed"])
    def test_an_event_after_the_end_is_a_fault(self, kind: str) -> None:
        after = [ending(OUTPUT, kind)[-1], *events()[2:6], {"type": "error", "message": "No."}]
        pipeline, seen = run([*events(), *after])
        assert pipeline.reader.faults == len(after)
        assert seen.response["status"] == "completed"

    @pytest.mark.parametrize("odd", [{"a": 1}, ["x"]], ids=str)
    def test_an_event_whose_type_is_no_text_passes(self, odd: Any) -> None:
        first, *rest = numbered(*events())
        unknown = frame({"type": odd, "sequence_number": 0})
        out = responses(expose="raw").stream(b"".join([first, unknown, *rest]))
        assert json.dumps(odd).encode() in out
        assert b"event: response.completed" in out

    def test_done_passes_after_the_end(self) -> None:
        stream = numbered(*events())
        pipeline = responses(expose="summary")
        out = pipeline.stream(b"".join([*stream[:3], DONE, *stream[3:], DONE]))
        assert check_responses(out).text == "So."
        assert out.count(DONE) == 1
        assert pipeline.reader.faults == 1


SCHEMAS = [{"sequence_number": {"type": "integer"}}, {"sequence_number": 7}]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_sequence_number_in_a_tools_schema_does_not_pass_for_the_events(schema: Event) -> None:
    tools = {"id": "m", "type": "mcp_list_tools", "tools": [{"input_schema": schema}]}
    bare = [frame(event, event["type"]) for event in events([tools])]
    seen = check_responses(responses().stream(b"".join(bare)))
    assert seen.response["output"] == [tools]
    assert seen.items[0].done == tools


class TestItemsThatOnlyTheEndHas:
    """Gateways that wrap a whole response as a stream send only its last event."""

    def test_they_are_streamed_with_summaries(self) -> None:
        created, *_, completed = events()
        _, seen = run([created, completed])
        assert [item["type"] for item in seen.response["output"]] == [
            item["type"] for item in OUTPUT
        ]
        assert summaries(seen) == [["Of: First I think."], ["Of: Then I think again."]]
        assert seen.items[3].contents[0].text == "So."

    def test_they_are_hidden_as_others_are(self) -> None:
        _, seen = run([events()[-1]], expose="summary")
        assert summaries(seen) == [["Of: First I think."], ["Of: Then I think again."]]
        assert "First I think" not in json.dumps(seen.events).replace("Of: First I think.", "")

    def test_beside_streamed_ones_they_stand_in_the_end_alone(self) -> None:
        streamed = events(OUTPUT[3:])
        streamed[-1]["response"]["output"] = OUTPUT
        added = [item for item in streamed if item["type"] == "response.output_item.added"]
        out = responses(write=text_of).stream(b"".join(numbered(*streamed)))
        assert out.count(b"response.output_item.added") == 2 * len(added)  # in event and data

    def test_an_error_in_their_place_fails(self) -> None:
        broken = {"type": "response.completed", "response": {"error": {"message": "Out of order."}}}
        _, seen = run([CREATED, broken])
        assert seen.terminal is not None
        assert seen.terminal["type"] == "response.failed"
