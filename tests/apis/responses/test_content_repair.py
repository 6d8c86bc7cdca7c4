"""Test the content of items where upstream's final text is not the sum of its deltas.

What upstream says last is the answer: each final text stands as upstream wrote it, and the
difference is counted. Only what it leaves out is filled in.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.apis.errors import CALL_CHANGED
from abridge.apis.messages.api import MESSAGES
from abridge.apis.protocols import Reader
from abridge.apis.responses.api import RESPONSES
from abridge.apis.responses.items import MAX_INDEXES
from abridge.providers.catalog import PROFILES
from tests.support.checker import ResponsesStream, check_chat, check_responses
from tests.support.messages_checker import check_messages
from tests.support.pipeline import Pipeline, responses, translating
from tests.support.streams import (
    THOUGHT,
    call_item,
    frame,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.translated import Answer, TranslatedTurn, turn_of

Event = dict[str, Any]

PARIS = '{"city":"Paris"}'
REPLACED = "I cannot say that."
ENDS = ("text_done", "content_part.done", "output_item.done")
"""The events that end a part or an item. The first stands for that of any kind of content."""

CONTENT = {
    "message": ("output_text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning": ("reasoning_text", "text"),
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
"""The middle of event types and the text's field, by kind of item."""

CALLS = ("function_call", "custom_tool_call")


def item_of(kind: str, text: str | None) -> Event:
    """Return an item with this text, or without any."""
    name, field = CONTENT[kind]
    more = {"annotations": [], "logprobs": []} if kind == "message" else {}
    parts = [] if text is None else [{"type": name, field: text, **more}]
    if kind == "reasoning":
        return {**reasoning_item(0, ""), "content": parts}
    if kind not in CALLS:
        return {**message_item(0, ""), "content": parts}
    call: Event = {**call_item(0, "look", ""), "id": "item_0", "type": kind}
    del call["arguments"]
    return call if text is None else {**call, field: text}


def streamed(
    kind: str, deltas: list[str], *finals: str | None, omit: frozenset[str] = frozenset()
) -> list[Event]:
    """Return the stream of one item.

    `finals` are its texts in the event that ends it, in that which ends its part, in the done item
    and in the final response, the last of them for all that follow; None leaves the text out.
    """
    name, field = CONTENT[kind]
    by_event, by_part, by_item, by_end = (*finals, *[finals[-1]] * (4 - len(finals)))
    item = item_of(kind, "" if kind in CALLS else None)
    at = {"output_index": 0, "item_id": item["id"]}
    index = {} if kind in CALLS else {"content_index": 0}
    text = {} if by_event is None else {field: by_event}
    part = {"type": name, **({} if by_part is None else {field: by_part})}
    ends = [
        {"type": f"response.{name}.done", **at, **index, **text},
        {"type": "response.content_part.done", **at, **index, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item_of(kind, by_item)},
    ]
    start = {"type": "response.content_part.added", **at, **index, "part": {**part, field: ""}}
    return [
        {"type": "response.created", "response": response([], status="in_progress", usage=None)},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *([] if kind in CALLS else [start]),
        *({"type": f"response.{name}.delta", **at, **index, "delta": delta} for delta in deltas),
        *(
            event
            for end, event in zip(ENDS, ends, strict=True)
            if end not in omit and not (kind in CALLS and end == "content_part.done")
        ),
        {"type": "response.completed", "response": response([item_of(kind, by_end)])},
    ]


def run(
    stream: list[Event], *, texts_agree: bool = False, **settings: Any
) -> tuple[Pipeline, ResponsesStream]:
    pipeline = responses(**{"expose": "raw", **settings})
    data = b"".join(frame(event, event["type"]) for event in stream)
    return pipeline, check_responses(pipeline.stream(data), texts_agree=texts_agree)


def text_of(item: Event) -> str | None:
    """Return the text of an item, whatever it is; None without any."""
    for field in ("arguments", "input"):
        if field in item:
            return str(item[field])
    texts = [part.get("text", part.get("refusal")) for part in item["content"]]
    return texts[0] if texts else None


def said(seen: ResponsesStream) -> list[str | None]:
    """Return the texts that each end gives, in order: of events, of done items, of the response."""
    found: list[str | None] = []
    for event in seen.events:
        name = event["type"].removeprefix("response.").removesuffix(".done")
        fields = [field for kind, field in CONTENT.values() if kind == name]
        if fields and event["type"].endswith(".done"):
            found.append(event[fields[0]])
        elif event["type"] == "response.content_part.done":
            found.append(text_of({"content": [event["part"]]}))
        elif event["type"] == "response.output_item.done":
            found.append(text_of(event["item"]))
    return [*found, *map(text_of, seen.response["output"])]


def deltas_of(seen: ResponsesStream) -> list[str]:
    return [event["delta"] for event in seen.events if event["type"].endswith(".delta")]


LOST = ('ris"}',)
DOUBLED = ('{"city":', '{"city":', '"Paris"}')


class TestTheFinalText:
    @pytest.mark.parametrize("kind", CONTENT)
    @pytest.mark.parametrize(
        ("deltas", "final"),
        [
            (("All ", "of it."), REPLACED),
            (("All ", "of it."), ""),
            (("All ", "of it. "), "All of it."),
            (LOST, PARIS),
            (DOUBLED, PARIS),
        ],
    )
    def test_any_other_than_the_deltas_stands_wherever_it_is(
        self, kind: str, deltas: tuple[str, ...], final: str
    ) -> None:
        pipeline, seen = run(streamed(kind, [*deltas], final))
        assert set(said(seen)) == {final}
        assert deltas_of(seen) == [*deltas]
        assert pipeline.reader.mismatches == 1

    @pytest.mark.parametrize("kind", CONTENT)
    @pytest.mark.parametrize("omit", [ENDS[:0], ENDS[:1], ENDS[:2], ENDS])
    def test_what_was_not_streamed_of_it_is_a_delta(self, kind: str, omit: tuple[str, ...]) -> None:
        stream = streamed(kind, ["All ", "of"], "All of it.", omit=frozenset(omit))
        pipeline, seen = run(stream, texts_agree=True)
        assert deltas_of(seen) == ["All ", "of", " it."]
        assert set(said(seen)) == {"All of it."}
        assert pipeline.reader.mismatches == 0

    def test_each_is_as_upstream_wrote_it_and_the_difference_counts_once(self) -> None:
        pipeline, seen = run(streamed("message", ["Zero."], "One.", "Two.", "Three.", "Four."))
        assert said(seen) == ["One.", "Two.", "Three.", "Four."]
        assert pipeline.reader.mismatches == 1

    def test_each_part_counts(self) -> None:
        stream = responses_stream([message_item(0, "First."), call_item(1, "look", PARIS)])
        last = stream[-1].replace(b"First.", b"Other.").replace(b"Paris", b"Rome")
        pipeline = responses()
        seen = check_responses(pipeline.stream(b"".join([*stream[:-1], last])), texts_agree=False)
        assert [text_of(item) for item in seen.response["output"]] == ["Other.", '{"city":"Rome"}']
        assert pipeline.reader.mismatches == 2

    def test_it_is_recorded_and_stored(self) -> None:
        thought = streamed("reasoning", ["I think."], "Nothing.")
        pipeline, seen = run(thought)
        assert pipeline.recorded_turns()[0].raw == "Nothing."
        assert pipeline.writer.final_response == seen.response

    def test_it_is_sealed(self) -> None:
        sealed: list[Any] = []
        run(
            streamed("reasoning", ["I think."], "Nothing."),
            seal=lambda each: str(sealed.append(each)),
        )
        assert [text_of(item) for each in sealed for item in each.reasoning] == ["Nothing."]

    def test_its_bytes_stay_as_they_came(self) -> None:
        stream = streamed("message", ["All."], REPLACED)
        reader = RESPONSES.reader(PROFILES["auto"], Display(), 1 << 20)
        frames = [frame(event, event["type"]) for event in stream]
        read = [event.frame for one in frames for event in reader.read(one)]
        assert read == frames

    def test_beyond_the_limit_it_stands_too(self) -> None:
        reader = RESPONSES.reader(PROFILES["auto"], Display(), 5)
        frames = [
            frame(event, event["type"]) for event in streamed("message", ["All of it."], REPLACED)
        ]
        read = [event.frame for one in frames for event in reader.read(one)]
        assert read == frames

    def test_a_whole_response_has_nothing_else(self) -> None:
        pipeline = responses(expose="raw")
        body = response([item_of("message", REPLACED), item_of("function_call", LOST[0])])
        assert json.loads(pipeline.whole(json.dumps(body).encode())) == body
        assert pipeline.reader.mismatches == 0

    def test_a_part_that_the_item_replaced_by_another_kind_is_gone(self) -> None:
        stream = streamed("message", ["All."], "All.", "All.", REPLACED)
        refused = item_of("refusal", REPLACED)
        stream[-2]["item"], stream[-1]["response"]["output"] = refused, [refused]
        pipeline, seen = run(stream)
        assert seen.response["output"] == [refused]
        assert pipeline.reader.mismatches == 1

    @pytest.mark.parametrize("division", [["One. ", "Two."], ["One. Two."]])
    def test_parts_that_are_divided_otherwise_agree(self, division: list[str]) -> None:
        stream = streamed("message", ["One. ", "Two."], "One. Two.")
        parts = [item_of("message", text)["content"][0] for text in division]
        item = {**item_of("message", ""), "content": parts}
        stream[-2]["item"], stream[-1]["response"]["output"] = item, [item]
        pipeline, seen = run(stream, texts_agree=True)
        assert seen.response["output"] == [item]
        assert (deltas_of(seen), pipeline.reader.mismatches) == (["One. ", "Two."], 0)


class TestWhatIsLeftOut:
    @pytest.mark.parametrize("kind", CONTENT)
    @pytest.mark.parametrize(
        "finals", [(None,), ("All.", None), ("All.", "All.", None), ("All.", "All.", "All.", None)]
    )
    def test_it_is_filled_in_from_the_stream(
        self, kind: str, finals: tuple[str | None, ...]
    ) -> None:
        pipeline, seen = run(streamed(kind, ["All."], *finals), texts_agree=True)
        assert set(said(seen)) == {"All."}
        assert pipeline.reader.mismatches == 0

    @pytest.mark.parametrize("kind", CONTENT)
    @pytest.mark.parametrize(
        "finals", [(REPLACED, None), (None, None, REPLACED), (None, None, REPLACED, None)]
    )
    def test_it_is_filled_in_from_the_final_text_where_that_is_known(
        self, kind: str, finals: tuple[str | None, ...]
    ) -> None:
        pipeline, seen = run(streamed(kind, ["All."], *finals))
        assert said(seen)[-2:] == [REPLACED, REPLACED]
        assert pipeline.reader.mismatches == 1

    @pytest.mark.parametrize("output", [None, [], [{"type": "message", "id": "msg_0"}]])
    def test_a_final_response_without_it_has_what_the_item_said(self, output: Any) -> None:
        stream = streamed("message", ["All."], REPLACED)
        stream[-1]["response"]["output"] = output
        _, seen = run(stream)
        assert said(seen) == [REPLACED] * 4

    @pytest.mark.parametrize("odd", [None, 7, {}])
    def test_a_part_without_a_text_gets_it_and_the_others_stay(self, odd: Any) -> None:
        parts = [{"type": "output_text", "text": odd}, {"type": "output_text", "text": "More."}]
        stream = streamed("message", ["All."], "All.")
        stream[-2]["item"] = {**stream[-2]["item"], "content": parts}
        del stream[-1]
        _, seen = run(stream)
        assert seen.items[0].done is not None
        assert [part["text"] for part in seen.items[0].done["content"]] == ["All.", "More."]

    @pytest.mark.parametrize("kind", ["message", "reasoning"])
    def test_an_empty_text_at_the_end_of_a_part_does_not_empty_an_item_without_one(
        self, kind: str
    ) -> None:
        """As gateways end parts: agentgateway/agentgateway pull 2281, maximhq/bifrost pull 895."""
        pipeline, seen = run(streamed(kind, ["All."], "", "", None))
        assert said(seen) == ["", "", "All.", "All."]
        assert pipeline.reader.mismatches == 1

    @pytest.mark.parametrize("kind", CONTENT)
    def test_an_empty_text_in_the_item_is_one(self, kind: str) -> None:
        _, seen = run(streamed(kind, ["All."], "All.", "All.", ""))
        assert said(seen)[-2:] == ["", ""]

    def test_what_an_item_was_added_with_is_no_final_text(self) -> None:
        stream = streamed("function_call", [PARIS], PARIS, omit=frozenset(ENDS))
        stream[1]["item"]["arguments"] = "{}"
        stream[-1]["response"]["output"] = []
        pipeline, seen = run(stream, texts_agree=True)
        assert said(seen) == [PARIS] * 3
        assert pipeline.reader.mismatches == 0


class TestEventsOutOfOrder:
    @pytest.mark.parametrize("kind", ["message", "refusal", "reasoning"])
    def test_the_end_of_a_part_may_come_before_all_of_it(self, kind: str) -> None:
        stream = streamed(kind, ["So ", "it ", "is."], "So it is.")
        stream.insert(2, stream.pop(7))
        pipeline, seen = run(stream, texts_agree=True)
        assert "".join(deltas_of(seen)) == "So it is."
        assert pipeline.reader.faults == 5

    @pytest.mark.parametrize("kind", ["message", "refusal", "reasoning"])
    def test_the_beginning_of_a_part_may_come_after_a_delta(self, kind: str) -> None:
        stream = streamed(kind, ["So ", "it ", "is."], "So it is.")
        stream.insert(4, stream.pop(2))
        pipeline, seen = run(stream, texts_agree=True)
        assert "".join(deltas_of(seen)) == "So it is."
        assert pipeline.reader.faults == 1

    @pytest.mark.parametrize("behind", [1, 2])
    @pytest.mark.parametrize("kind", CONTENT)
    def test_a_delta_that_comes_after_the_end_of_its_part_is_there_once(
        self, kind: str, behind: int
    ) -> None:
        stream = streamed(kind, ["So ", "it is."], "So it is.")
        at = [event["type"].endswith(".delta") for event in stream].index(True) + 1
        stream.insert(at + behind, stream.pop(at))
        pipeline, seen = run(stream)
        assert "".join(deltas_of(seen)) == "So it is."
        assert set(said(seen)) == {"So it is."}
        assert pipeline.reader.faults == 1

    def test_a_delta_with_more_after_the_end_of_its_part_is_not_lost(self) -> None:
        stream = streamed("message", ["So"], "So", "So it is.", omit=frozenset(ENDS[1:2]))
        more = {**stream[3], "delta": " it is."}
        pipeline, seen = run([*stream[:5], more, *stream[5:]])
        assert "".join(deltas_of(seen)) == "So it is."
        assert pipeline.reader.faults == 0


class TestItemsClosedEarly:
    """Test items that upstream ends after others began, and those that it goes on with."""

    @staticmethod
    def run(*first: str, final: str) -> tuple[Pipeline, ResponsesStream]:
        """Run a message with these deltas, the last of them within a call that follows it."""
        message, call = message_item(0, final), call_item(1, "look", PARIS)
        one = streamed("message", [*first], final)
        events = [json.loads(raw.split(b"data: ")[1]) for raw in responses_stream([message, call])]
        second = [event for event in events if event.get("output_index") == 1]
        deltas = [event for event in one if event["type"].endswith(".delta")]
        ends = one[one.index(deltas[-1]) + 1 : -1]
        late = deltas[1:]
        end = {"type": "response.completed", "response": response([message, call])}
        return run([*one[:3], *deltas[:1], *second[:-1], *late, *ends, second[-1], end])

    @pytest.mark.parametrize("final", [REPLACED, "All of it."])
    def test_the_final_text_of_one_that_ends_late_is_in_the_final_response(
        self, final: str
    ) -> None:
        pipeline, seen = self.run("All", final=final)
        assert [text_of(item) for item in seen.response["output"]] == [final, PARIS]
        assert pipeline.reader.mismatches == 1

    def test_each_item_of_one_keeps_its_share(self) -> None:
        pipeline, seen = self.run("All", " of", final="All of")
        assert [text_of(item) for item in seen.response["output"]] == ["All", PARIS, " of"]
        assert pipeline.reader.mismatches == 0

    def test_the_shares_of_several_parts(self) -> None:
        message = message_item(0, "One. ")
        message["content"] += message_item(0, "Two. And more.")["content"]
        first, second = (streamed("message", [text], text) for text in ("One. ", "Two. "))
        rest = streamed("message", ["And"], "Two. And more.")
        call = [
            {**event, "output_index": 1, **({"item_id": "item_0"} if "item_id" in event else {})}
            for event in streamed("function_call", [PARIS], PARIS)[1:-1]
        ]
        one, two, more = (
            [
                {**event, **({"content_index": index} if "content_index" in event else {})}
                for event in events
            ]
            for index, events in ((0, first), (1, second), (1, rest))
        )
        done = {**more[-2], "item": message}
        end = {"type": "response.completed", "response": response([message, call[-1]["item"]])}
        pipeline, seen = run([*one[:6], *two[2:4], *call, *more[3:6], done, end])
        shares = [item["content"] for item in seen.response["output"] if "content" in item]
        assert [[part["text"] for part in parts] for parts in shares] == [
            ["One. ", "Two. "],
            ["And more."],
        ]
        assert deltas_of(seen) == ["One. ", "Two. ", PARIS, "And", " more."]
        assert pipeline.reader.mismatches == 0

    @pytest.mark.parametrize(
        ("final", "rest", "deltas", "mismatches"),
        [
            ("All of it.", " of it.", [" of", " it."], 0),
            ("All or nothing.", " or nothing.", [" of"], 1),
            (REPLACED, " of", [" of"], 1),
        ],
    )
    def test_the_last_share_is_what_follows_the_others_in_the_final_text(
        self, final: str, rest: str, deltas: list[str], mismatches: int
    ) -> None:
        pipeline, seen = self.run("All", " of", final=final)
        assert [text_of(item) for item in seen.response["output"]] == ["All", PARIS, rest]
        assert seen.items[2].done == seen.response["output"][2]
        assert [
            event["delta"]
            for event in seen.events
            if event.get("output_index") == 2 and "delta" in event
        ] == deltas
        assert pipeline.reader.mismatches == mismatches


ADDED, DELTA, TEXT_DONE, DONE = "added", "delta", "text_done", "done"

Step = tuple[str, int, str]
"""An event of a part: its stage, the part's `content_index`, and a text."""


def parts_item(texts: list[str]) -> Event:
    return {
        **item_of("message", ""),
        "content": [item_of("message", t)["content"][0] for t in texts],
    }


def in_parts(steps: list[Step], finals: list[str]) -> list[Event]:
    """Return the stream of a message whose parts stream in these steps."""
    whole = {stage: streamed("message", [""], "")[2 + place] for place, stage in enumerate(STAGES)}
    head = streamed("message", [], "")
    item = parts_item(finals)
    return [
        *head[:2],
        *(_with_text({**whole[stage], "content_index": at}, text) for stage, at, text in steps),
        {**head[-2], "item": item},
        {"type": "response.completed", "response": response([item])},
    ]


STAGES = (ADDED, DELTA, TEXT_DONE, DONE)


def _with_text(event: Event, text: str) -> Event:
    if "part" in event:
        return {**event, "part": {**event["part"], "text": text}}
    return {**event, "delta" if event["type"].endswith("delta") else "text": text}


def ended(index: int, text: str) -> list[Step]:
    return [(TEXT_DONE, index, text), (DONE, index, text)]


A, B = (DELTA, 0, "A"), (DELTA, 1, "B")
ADD_A, ADD_B = (ADDED, 0, ""), (ADDED, 1, "")

SEVERAL_PARTS: dict[str, list[Step]] = {
    "one after the other": [ADD_A, A, *ended(0, "A"), ADD_B, B, *ended(1, "B")],
    "ended at the end": [ADD_A, A, ADD_B, B, *ended(0, "A"), *ended(1, "B")],
    "all texts done, then all parts": [
        *(ADD_A, ADD_B, A, B, (TEXT_DONE, 0, "A"), (TEXT_DONE, 1, "B"), (DONE, 0, "A")),
        (DONE, 1, "B"),
    ],
    "ended in the other order": [ADD_A, A, ADD_B, B, *ended(1, "B"), *ended(0, "A")],
    "the second not added": [ADD_A, A, B, *ended(0, "A"), *ended(1, "B")],
    "the first not ended": [ADD_A, A, B, *ended(1, "B")],
    "no parts but texts that are done": [A, (TEXT_DONE, 0, "A"), B, (TEXT_DONE, 1, "B")],
    "nothing but deltas": [A, B],
    "nothing but ends": [*ended(0, "A"), *ended(1, "B")],
    "nothing": [],
}


class TestSeveralParts:
    @staticmethod
    def texts(seen: ResponsesStream) -> list[str]:
        return [part.text for part in seen.items[0].contents]

    @pytest.mark.parametrize("steps", SEVERAL_PARTS.values(), ids=SEVERAL_PARTS)
    def test_each_gets_its_own_words_once(self, steps: list[Step]) -> None:
        pipeline, seen = run(in_parts(steps, ["A", "B"]), texts_agree=True)
        assert self.texts(seen) == ["A", "B"]
        assert seen.response["output"] == [parts_item(["A", "B"])]
        assert (pipeline.reader.mismatches, pipeline.reader.faults) == (0, 0)

    @pytest.mark.parametrize("steps", SEVERAL_PARTS.values(), ids=SEVERAL_PARTS)
    def test_a_client_of_another_api_gets_each_word_once(self, steps: list[Step]) -> None:
        out = translating("responses", CHAT).stream(
            b"".join(frame(event, event["type"]) for event in in_parts(steps, ["A", "B"]))
        )
        assert check_chat(out).choices[0].text == "AB"

    @pytest.mark.parametrize("name", ["one after the other", "ended at the end"])
    def test_each_final_text_stands_where_upstream_addressed_it(self, name: str) -> None:
        other = {"A": "X", "B": "Y"}
        steps = [
            (stage, at, text if stage == DELTA else other.get(text, text))
            for stage, at, text in SEVERAL_PARTS[name]
        ]
        pipeline, seen = run(in_parts(steps, ["X", "Y"]))
        assert [part.done for part in seen.items[0].contents] == ["X", "Y"]
        assert self.texts(seen) == ["A", "B"]
        assert seen.response["output"] == [parts_item(["X", "Y"])]
        assert pipeline.reader.mismatches == 2

    def test_parts_that_stream_by_turns_keep_their_bytes(self) -> None:
        steps = [ADD_A, ADD_B, A, B, (DELTA, 0, "a"), (DELTA, 1, "b")]
        stream = in_parts([*steps, *ended(0, "Aa"), *ended(1, "Bb")], ["Aa", "Bb"])
        frames = [frame(event, event["type"]) for event in stream]
        reader = RESPONSES.reader(PROFILES["auto"], Display(), 1 << 20)
        assert [event.frame for one in frames for event in reader.read(one)] == frames

    def test_parts_are_counted_as_they_begin(self) -> None:
        steps = [ADD_B, B, ADD_A, A, *ended(0, "A"), *ended(1, "B")]
        pipeline, seen = run(in_parts(steps, ["A", "B"]))
        assert self.texts(seen) == ["B", "A"]
        assert seen.response["output"] == [parts_item(["A", "B"])]
        assert pipeline.reader.mismatches == 0

    @pytest.mark.parametrize("first", [1, 7])
    def test_an_index_that_counts_events_names_no_part(self, first: int) -> None:
        """As in older vLLM."""
        deltas = [(DELTA, first + place, text) for place, text in enumerate("ABC")]
        steps = [ADD_A, *deltas, (TEXT_DONE, first + 3, "ABC"), (DONE, first + 4, "ABC")]
        _, seen = run(in_parts(steps, ["ABC"]), texts_agree=True)
        assert self.texts(seen) == ["ABC"]

    def test_an_end_that_repeats_all_parts_is_none_of_another(self) -> None:
        steps = [A, B, *ended(2, "AB")]
        _, seen = run(in_parts(steps, ["AB"]), texts_agree=True)
        assert self.texts(seen) == ["A", "B"]

    @pytest.mark.parametrize("expose", ["auto", "none"])
    def test_indexes_that_count_without_end_make_no_parts_without_end(self, expose: str) -> None:
        words = [f"{at} " for at in range(3 * MAX_INDEXES)]
        begun = in_parts([(DELTA, at, word) for at, word in enumerate(words)], [])[:-2]
        events = [*begun, *in_parts([], ["".join(words)])[-2:]]
        stream = b"".join(frame(event, event["type"]) for event in events)
        seen = check_responses(responses(expose=expose).stream(stream), texts_agree=False)
        assert text_of(seen.response["output"][0]) == "".join(words)
        deltas = [event for event in seen.events if event["type"] == "response.output_text.delta"]
        assert "".join(event["delta"] for event in deltas) == "".join(words)
        assert len({event["content_index"] for event in deltas}) <= MAX_INDEXES

    def test_those_that_go_on_after_others_began_keep_their_shares(self) -> None:
        stream = in_parts(
            [ADD_A, ADD_B, A, B, (DELTA, 1, "b"), (DELTA, 0, "a"), *ended(1, "Bb")], ["Aa", "Bb"]
        )
        call = {**call_item(1, "look", PARIS), "id": "fc_1"}
        kinds = ("response.output_item.added", "response.output_item.done")
        between = [{"type": kind, "output_index": 1, "item": call} for kind in kinds]
        stream[-1]["response"]["output"].append(call)
        _, seen = run([*stream[:6], *between, *stream[6:]])
        output = seen.response["output"]
        assert [[part["text"] for part in output[place]["content"]] for place in (0, 2)] == [
            ["A", "B"],
            ["b", "a"],
        ]


PIECES = st.lists(st.text("ab {}", min_size=1, max_size=3), max_size=4)


@st.composite
def turns_of_parts(draw: st.DrawFn) -> tuple[list[Step], list[str]]:
    """Draw parts that stream by turns, each step of a part in its place, and their texts."""
    texts = draw(st.lists(PIECES.filter(bool), min_size=1, max_size=3))
    queues = [
        [(ADDED, at, ""), *((DELTA, at, piece) for piece in pieces), *ended(at, "".join(pieces))]
        for at, pieces in enumerate(texts)
    ]
    steps = [queue.pop(0) for queue in queues] if draw(st.booleans()) else [queues[0].pop(0)]
    while any(queues):
        begun = [
            queue for at, queue in enumerate(queues) if queue and (at == 0 or _began(steps, at))
        ]
        steps.append(draw(st.sampled_from(begun)).pop(0))
    return steps, ["".join(pieces) for pieces in texts]


def _began(steps: list[Step], at: int) -> bool:
    """Return whether a part may stream: it has begun, or the one before it has."""
    return any(index >= at - 1 for _, index, _ in steps)


class TestTranslated:
    @staticmethod
    def read(stream: list[Event]) -> tuple[Reader, TranslatedTurn]:
        reader = RESPONSES.upstream.translating_reader(PROFILES["auto"], Display(), 1 << 22)
        return reader, turn_of(each for event in stream for each in reader.read(frame(event)))

    @classmethod
    def run(cls, stream: list[Event]) -> tuple[Reader, Answer]:
        reader, turn = cls.read(stream)
        return reader, turn.answer

    @pytest.mark.parametrize("kind", CONTENT)
    @pytest.mark.parametrize("omit", [ENDS[:0], ENDS[:1], ENDS[:2], ENDS])
    @pytest.mark.parametrize(
        ("final", "text", "mismatches"),
        [("All of it.", "All of it.", 0), ("All", "All", 0), (REPLACED, "All", 1)],
    )
    def test_what_was_not_streamed_is_a_delta_and_the_rest_is_counted(
        self, kind: str, omit: tuple[str, ...], final: str, text: str, mismatches: int
    ) -> None:
        reader, answer = self.run(streamed(kind, ["All"], final, omit=frozenset(omit)))
        calls = [call.arguments for call in answer.calls]
        assert "".join([answer.text, answer.refusal, answer.raw, *calls]) == text
        assert reader.mismatches == mismatches

    @pytest.mark.parametrize("kind", ["message", "refusal", "reasoning", *CALLS])
    @pytest.mark.parametrize("omit", [ENDS[:2], ENDS[:0]])
    def test_a_delta_that_comes_after_the_end_of_its_item_is_there_once(
        self, kind: str, omit: tuple[str, ...]
    ) -> None:
        stream = streamed(kind, ["So ", "it is."], "So it is.", omit=frozenset(omit))
        late = [event for event in stream if event["type"].endswith(".delta")][1]
        stream.remove(late)
        reader, answer = self.run([*stream[:-1], late, stream[-1]])
        calls = [call.arguments for call in answer.calls]
        assert "".join([answer.text, answer.refusal, answer.raw, *calls]) == "So it is."
        assert reader.faults == 1

    @pytest.mark.parametrize("deltas", [LOST, DOUBLED])
    def test_arguments_that_cannot_be_mended_are_counted(self, deltas: tuple[str, ...]) -> None:
        reader, turn = self.read(streamed("function_call", [*deltas], PARIS))
        assert turn.answer.calls[0].arguments == "".join(deltas)
        assert reader.mismatches == 1
        assert (turn.ok, turn.error) == (False, CALL_CHANGED)

    @pytest.mark.parametrize("omit", [ENDS[:0], ENDS[:1], ENDS])
    @pytest.mark.parametrize("kind", CALLS)
    def test_a_call_that_lacks_a_piece_fails(self, kind: str, omit: tuple[str, ...]) -> None:
        """It is a whole call by itself, and another."""
        deltas = ['{"to": "bob", ', '"sum": 5}']
        final = '{"to": "bob", "dry_run": true, "sum": 5}'
        reader, turn = self.read(streamed(kind, deltas, final, omit=frozenset(omit)))
        assert reader.mismatches == 1
        assert (turn.ok, turn.error) == (False, CALL_CHANGED)

    @pytest.mark.parametrize("final", ['{"sum":5.0}', '{ "sum": 5.0 }', "", None])
    def test_a_call_that_ends_as_the_same_does_not(self, final: str | None) -> None:
        _, turn = self.read(streamed("function_call", ['{"sum":', " 5.0}"], final))
        assert turn.ok
        assert turn.answer.calls[0].arguments == '{"sum": 5.0}'

    @pytest.mark.parametrize("client", [CHAT, MESSAGES], ids=lambda api: api.name)
    def test_its_client_hears_that_it_failed(self, client: Api) -> None:
        events = streamed("function_call", ['{"sum": 5}'], PARIS)
        pipeline = translating("responses", client)
        out = pipeline.stream(b"".join(frame(event, event["type"]) for event in events))
        seen = check_chat(out) if client is CHAT else check_messages(out)
        assert (seen.error or {})["message"] == CALL_CHANGED.message
        assert b"content_block_stop" not in out

    @pytest.mark.parametrize("omit", [ENDS[:0], ENDS[:1], ENDS])
    @pytest.mark.parametrize("final", [PARIS, "{}", "", None])
    def test_empty_arguments_give_way_to_those_at_the_end(
        self, final: str | None, omit: tuple[str, ...]
    ) -> None:
        stream = streamed("function_call", ["{}"], final, omit=frozenset(omit))
        _, answer = self.run(stream)
        assert answer.calls[0].arguments == (final or "{}")

    @pytest.mark.parametrize("omit", [ENDS[:0], ENDS[2:]])
    def test_they_give_way_to_those_that_only_an_event_has(self, omit: tuple[str, ...]) -> None:
        stream = streamed("function_call", ["{}"], PARIS, None, omit=frozenset(omit))
        _, answer = self.run(stream)
        assert answer.calls[0].arguments == PARIS

    def test_empty_arguments_of_a_call_that_never_ends_are_its_arguments(self) -> None:
        for deltas in (["{}"], ["{", "}"]):
            stream = streamed("function_call", deltas, None, omit=frozenset(ENDS))
            stream[-1]["response"]["output"] = []
            _, answer = self.run(stream)
            assert answer.calls[0].arguments == "{}"

    def test_the_final_text_is_recorded(self) -> None:
        stream = streamed("reasoning", [THOUGHT], "Nothing.")
        reader, _ = self.run(stream)
        assert reader.recorded_turns()[0].raw == "Nothing."

    def test_a_chat_client_gets_what_was_not_streamed(self) -> None:
        pipeline = translating("responses", CHAT)
        events = streamed("function_call", ['{"city"'], PARIS)
        out = pipeline.stream(b"".join(frame(event, event["type"]) for event in events))
        assert check_chat(out).choices[0].calls[0]["arguments"] == PARIS


@given(
    kind=st.sampled_from(list(CONTENT)),
    deltas=PIECES,
    rest=PIECES,
    continues=st.booleans(),
    omit=st.frozensets(st.sampled_from(ENDS)),
)
def test_the_final_text_is_upstreams_whatever_its_deltas(
    *, kind: str, deltas: list[str], rest: list[str], continues: bool, omit: frozenset[str]
) -> None:
    final = "".join([*deltas, *rest] if continues else rest)
    agrees = final.startswith("".join(deltas))
    stream = streamed(kind, deltas, final, omit=omit)
    pipeline, seen = run(stream, texts_agree=agrees)
    assert said(seen)[-2:] == [final, final]
    assert "".join(deltas_of(seen)) == (final if agrees else "".join(deltas))
    assert pipeline.reader.mismatches == (not agrees)
    given_ends = [event for event in stream if event["type"].endswith((".done", "completed"))]
    assert said(seen).count(final) >= len(given_ends)


@given(turns_of_parts(), st.sampled_from(["raw", "none"]), st.data())
def test_parts_that_stream_by_turns_keep_their_words(
    turns: tuple[list[Step], list[str]], expose: str, data: st.DataObject
) -> None:
    """Also where upstream leaves out any of their ends, and where texts are searched for tags."""
    steps, texts = turns
    left = [step for step in steps if step[0] in (ADDED, DELTA) or data.draw(st.booleans())]
    profile = PROFILES["transformers"]
    pipeline, seen = run(in_parts(left, texts), texts_agree=True, expose=expose, profile=profile)
    assert [part.text for part in seen.items[0].contents] == texts
    assert seen.response["output"] == [parts_item(texts)]
    assert pipeline.reader.mismatches == 0
