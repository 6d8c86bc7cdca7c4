"""Test the last word of a Responses upstream toward clients of other APIs, which have none.

What such a client has been told cannot be taken back: what a final text has beyond it is told, and
where it says anything else, the answer fails.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.errors import CALL_CHANGED, TEXT_CHANGED
from abridge.apis.messages.api import MESSAGES
from tests.apis.responses.test_content_repair import (
    LOST,
    PARIS,
    PIECES,
    REPLACED,
    Event,
    item_of,
    streamed,
)
from tests.support.checker import check_chat
from tests.support.messages_checker import check_messages
from tests.support.pipeline import Pipeline, translating
from tests.support.streams import call_item, frame, message_item, response

CLIENTS = pytest.mark.parametrize("client", [CHAT, MESSAGES], ids=lambda api: api.name)
TEXTS = pytest.mark.parametrize("kind", ["message", "refusal"])
PLACES = pytest.mark.parametrize(
    "place", range(4), ids=["its text is done", "its part", "the item", "the response"]
)


def told(client: Api, stream: list[Event]) -> tuple[str, str | None, Pipeline]:
    """Return what a client of another API is told: all its text, and why the answer fails."""
    pipeline = translating("responses", client)
    out = pipeline.stream(b"".join(frame(event, event["type"]) for event in stream))
    if client is CHAT:
        chat = check_chat(out)
        choice = chat.choices[0]
        assert chat.done is (chat.error is None)
        text = choice.text + choice.fields.get("refusal", "")
        return text, chat.error and chat.error["message"], pipeline
    message = check_messages(out)
    text = "".join(block["text"] for block in message.blocks if block["type"] == "text")
    return text, message.error and message.error["message"], pipeline


def finals(place: int, final: str | None, before: str | None) -> list[str | None]:
    """Return the texts of the four ends, of which that at `place` is the first to say `final`."""
    return [before] * place + [final] * (4 - place)


@CLIENTS
@TEXTS
@PLACES
class TestOneText:
    @pytest.mark.parametrize("before", [None, "All "])
    def test_what_was_not_streamed_is_told(
        self, client: Api, kind: str, place: int, before: str | None
    ) -> None:
        stream = streamed(kind, ["All "], *finals(place, "All of it.", before))
        text, failed, pipeline = told(client, stream)
        assert (text, failed, pipeline.reader.mismatches) == ("All of it.", None, 0)

    @pytest.mark.parametrize("before", [None, "All of it."])
    @pytest.mark.parametrize("final", [REPLACED, "All it.", "All"])
    def test_any_other_difference_ends_the_answer_failed(
        self, client: Api, kind: str, place: int, final: str, before: str | None
    ) -> None:
        stream = streamed(kind, ["All ", "of it."], *finals(place, final, before))
        _, failed, pipeline = told(client, stream)
        assert (failed, pipeline.reader.mismatches) == (TEXT_CHANGED.message, 1)

    def test_so_does_a_text_that_upstream_takes_back(
        self, client: Api, kind: str, place: int
    ) -> None:
        """But gateways end parts without their text (`test_content_repair.py`)."""
        stream = streamed(kind, ["All ", "of it."], *finals(max(place, 2), "", None))
        assert told(client, stream)[1] == TEXT_CHANGED.message
        stream = streamed(kind, ["All ", "of it."], "", "", None)
        assert told(client, stream)[:2] == ("All of it.", None)

    def test_a_text_replaced_by_one_of_the_other_kind_fails(
        self, client: Api, kind: str, place: int
    ) -> None:
        stream = streamed(kind, ["All ", "of it."], "All of it.")
        other = item_of("refusal" if kind == "message" else "message", REPLACED)
        stream[-1]["response"]["output"] = [other]
        if place < 3:
            stream[-2]["item"] = other
        assert told(client, stream)[1] == TEXT_CHANGED.message


TEXT_ENDS = st.one_of(st.none(), PIECES.map("".join))


@CLIENTS
@given(
    kind=st.sampled_from(["message", "refusal"]),
    deltas=PIECES,
    rests=st.lists(st.one_of(st.none(), PIECES.map("".join)), min_size=4, max_size=4),
    continues=st.booleans(),
)
def test_an_answer_is_the_final_text_or_it_fails(
    *, client: Api, kind: str, deltas: list[str], rests: list[str | None], continues: bool
) -> None:
    said = "".join(deltas)
    ends = [rest if rest is None or not continues else said + rest for rest in rests]
    text, failed, _ = told(client, streamed(kind, deltas, *ends))
    *parts, item, last = ends
    words = [end for end in (*(part for part in parts if part), item, last) if end is not None]
    if failed is None:
        assert text == (words[-1] if words else said)
    else:
        so_far = [said, *words]
        assert any(not after.startswith(one) for one, after in zip(so_far, words, strict=False))


FIRST, SECOND = "One of them.", "The other."


def message(number: int, text: str) -> Event:
    return message_item(number, text)


def events_of(items: list[Event], output: list[Event]) -> list[Event]:
    """Return the stream of these items, whose final response has another output."""
    stream: list[Event] = [{"type": "response.created", "response": response([], usage=None)}]
    for number, item in enumerate(items):
        at = {"output_index": number}
        stream.append({"type": "response.output_item.added", **at, "item": _begun(item)})
        stream += _deltas(item, number)
        stream.append({"type": "response.output_item.done", **at, "item": item})
    return [*stream, {"type": "response.completed", "response": response(output)}]


def _begun(item: Event) -> Event:
    field = "content" if item["type"] == "message" else "arguments"
    return {**item, field: [] if field == "content" else ""}


def _deltas(item: Event, number: int) -> list[Event]:
    at: dict[str, Any] = {"output_index": number, "item_id": item["id"]}
    if item["type"] != "message":
        kind = "response.function_call_arguments.delta"
        return [{"type": kind, **at, "delta": item["arguments"]}]
    text = item["content"][0]["text"]
    return [{"type": "response.output_text.delta", **at, "content_index": 0, "delta": text}]


CALL = call_item(1, "look", PARIS)


@CLIENTS
class TestSeveralItems:
    def test_one_that_only_the_final_response_has_is_told(self, client: Api) -> None:
        items = [message(0, FIRST), CALL]
        text, failed, pipeline = told(client, events_of(items, [*items, message(2, SECOND)]))
        assert text.replace("\n\n", "") == FIRST + SECOND
        assert (failed, pipeline.reader.mismatches) == (None, 0)

    def test_a_refusal_that_only_the_final_response_has_is_told(self, client: Api) -> None:
        refused = {**item_of("refusal", REPLACED), "id": "msg_9"}
        assert told(client, events_of([CALL], [CALL, refused]))[:2] == (REPLACED, None)

    def test_one_that_comes_before_what_was_told_has_no_place(self, client: Api) -> None:
        told_first, missed = message(0, SECOND), message(9, FIRST)
        _, failed, pipeline = told(client, events_of([told_first], [missed, told_first]))
        assert (failed, pipeline.reader.mismatches) == (TEXT_CHANGED.message, 1)

    def test_the_rest_of_the_last_is_told_behind_a_call(self, client: Api) -> None:
        items = [message(0, FIRST), CALL]
        text, failed, _ = told(client, events_of(items, [message(0, FIRST + " So."), CALL]))
        assert (text, failed) == (FIRST + " So.", None)

    def test_the_rest_of_another_has_no_place(self, client: Api) -> None:
        items = [message(0, FIRST), message(1, SECOND)]
        output = [message(0, FIRST + " So."), items[1]]
        _, failed, pipeline = told(client, events_of(items, output))
        assert (failed, pipeline.reader.mismatches) == (TEXT_CHANGED.message, 1)

    def test_nor_has_it_where_the_item_ends_late(self, client: Api) -> None:
        items = [message(0, FIRST), message(1, SECOND)]
        stream = events_of(items, items)
        late = stream.pop(3)
        late["item"] = message(0, FIRST + " So.")
        stream[-1]["response"]["output"][0] = late["item"]
        assert told(client, [*stream[:-1], late, stream[-1]])[1] == TEXT_CHANGED.message

    def test_texts_that_only_ends_have_are_told_in_order(self, client: Api) -> None:
        items = [message(0, FIRST), message(1, SECOND)]
        stream = [event for event in events_of(items, items) if "delta" not in event]
        added = [event for event in stream if event["type"].endswith("added")]
        rest = [event for event in stream[1:] if event not in added]
        text, failed, _ = told(client, [stream[0], *added, *rest])
        assert (text.replace("\n\n", ""), failed) == (FIRST + SECOND, None)

    def test_texts_of_items_that_only_begin_are_told_by_the_final_response(
        self, client: Api
    ) -> None:
        items = [message(0, FIRST), message(1, SECOND)]
        begun = [event for event in events_of(items, items) if "item_id" not in event]
        stream = [event for event in begun if not event["type"].endswith("done")]
        text, failed, _ = told(client, stream)
        assert (text.replace("\n\n", ""), failed) == (FIRST + SECOND, None)

    def test_an_answer_of_nothing_but_its_end_is_told(self, client: Api) -> None:
        items = [message(0, FIRST), CALL, message(2, SECOND)]
        text, failed, _ = told(client, events_of([], items))
        assert (text.replace("\n\n", ""), failed) == (FIRST + SECOND, None)

    def test_a_whole_answer_has_no_other(self, client: Api) -> None:
        items = [message(0, FIRST), CALL, message(2, SECOND)]
        pipeline = translating("responses", client)
        pipeline.whole(json.dumps(response(items)).encode())
        assert pipeline.end.ok


@CLIENTS
@pytest.mark.parametrize("arguments", ['{"city":"Rome"}', PARIS + " ", '{"city": "Paris"}', ""])
def test_a_call_that_the_final_response_has_otherwise_fails(client: Api, arguments: str) -> None:
    """Unless it is the same call."""
    _, failed, _ = told(client, events_of([CALL], [{**CALL, "arguments": arguments}]))
    assert failed == (CALL_CHANGED.message if "Rome" in arguments else None)


@CLIENTS
def test_arguments_that_its_end_has_beyond_its_text_are_told(client: Api) -> None:
    stream = streamed("function_call", ['{"city"'], '{"city"', None, PARIS)
    pipeline = translating("responses", client)
    out = pipeline.stream(b"".join(frame(event, event["type"]) for event in stream))
    if client is CHAT:
        assert check_chat(out).choices[0].calls[0]["arguments"] == PARIS
    else:
        assert check_messages(out).blocks[-1]["input"] == {"city": "Paris"}


@CLIENTS
@pytest.mark.parametrize("final", [PARIS, "{}", "", None])
def test_a_call_without_arguments_is_held_to_what_was_told_of_it(
    client: Api, final: str | None
) -> None:
    stream = streamed("function_call", [], None, None, None, final)
    assert told(client, stream)[1] == (CALL_CHANGED.message if final == PARIS else None)
    stream = streamed("function_call", ["{}"], None, None, PARIS, final)
    assert told(client, stream)[1] == (CALL_CHANGED.message if final == "{}" else None)


def test_a_call_lost_a_piece_is_unlike_any_text() -> None:
    assert told(CHAT, streamed("function_call", [*LOST], PARIS))[1] == CALL_CHANGED.message
