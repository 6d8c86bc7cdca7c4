"""Test what is known of Responses, against OpenAI's description."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, ClassVar

import pytest

from abridge.apis.errors import UPSTREAM_FAILED
from abridge.apis.responses import shapes
from abridge.apis.responses.shapes import ECHOED, ITEM_LIST, ResponsesRebuilder
from abridge.apis.shapes import DropCount
from tests.support.shared import OPENAPI, needs_openapi
from tests.support.streams import message_item

Json = dict[str, Any]
STRINGS = {"message": UPSTREAM_FAILED, "arguments": "{}"}
"""Texts that are replaced by others."""


@cache
def schemas() -> Json:
    described: Json = json.loads(OPENAPI.read_text())["components"]["schemas"]
    return described


def merged(schema: Json) -> Json:
    """Return a schema with what it refers to and consists of."""
    if "$ref" in schema:
        return merged(schemas()[schema["$ref"].rsplit("/", 1)[1]])
    whole = dict(schema)
    for part in map(merged, schema.get("allOf", ())):
        whole["properties"] = {**whole.get("properties", {}), **part.get("properties", {})}
    return whole


def examples(schema: Json, key: str = "", above: tuple[str, ...] = ()) -> list[Any]:
    """Return complete values of a schema: together they have each alternative in each place."""
    if (ref := schema.get("$ref", "")) in above:
        return [None]
    above, schema = (*above, *filter(None, [ref])), merged(schema)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        found = [value for choice in choices for value in examples(choice, key, above)]
        return [value for value in found if value is not None] or [None]
    if properties := schema.get("properties"):
        values = {name: examples(inner, name, above) for name, inner in properties.items()}
        count = max(map(len, values.values()))
        return [
            {name: each[place % len(each)] for name, each in values.items()}
            for place in range(count)
        ]
    if schema.get("type") == "array":
        return [examples(schema["items"], key, above)]
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        values = examples(inner) if isinstance(inner, dict) else [{"b": 1}]
        return [{"some/name": value} for value in values]
    default = {"integer": 7, "number": 0.5, "boolean": True, "null": None}.get(
        schema.get("type", ""), STRINGS.get(key, "QUJD")
    )
    return [schema.get("enum", [default])[0]]


def expected(value: Any, key: str = "") -> Any:
    """Return a value without what is known but not shown."""
    if isinstance(value, list):
        if key == "bytes":
            return list(b"QUJD")  # of the token, whatever upstream says
        return [expected(part, key) for part in value]
    if isinstance(value, dict):
        return {
            name: inner if name in ECHOED else expected(inner, name)
            for name, inner in value.items()
            if name not in ("obfuscation", "output_text")
        }
    return value


def echo(answer: Json) -> Json:
    """Return the fields in which a response, or that of an event, repeats the request."""
    response = answer.get("response") or answer
    return {key: response[key] for key in ECHOED if key in response}


def event_schemas() -> list[str]:
    if not OPENAPI.is_file():
        return []
    entries = schemas()["ResponseStreamEvent"]["anyOf"]
    return [entry["$ref"].rsplit("/", 1)[1] for entry in entries]


ONLY_WHOLE = {
    "response.audio.transcript.delta",
    "response.code_interpreter_call_code.delta",
    "response.mcp_call_arguments.delta",
    "response.shell_call_command.delta",
    "response.shell_call_output_content.delta",
}
"""Texts of hosted tools: a piece is left out, since only the whole is looked through."""


@needs_openapi
@pytest.mark.parametrize("schema", event_schemas())
def test_every_event_that_is_described_passes_but_pieces_of_hosted_tools(schema: str) -> None:
    for event in examples({"$ref": f"#/components/schemas/{schema}"}):
        rebuilt = ResponsesRebuilder(echo(event)).rebuild(event)
        shown = {**expected(event), "sequence_number": 0}  # the writer numbers events anew
        assert rebuilt == (None if event["type"] in ONLY_WHOLE else shown)


@needs_openapi
def test_every_response_that_is_described_passes() -> None:
    for response in examples({"$ref": "#/components/schemas/Response"}):
        rebuilt = ResponsesRebuilder(echo(response)).rebuild_response(response)
        assert rebuilt == expected(response)


def test_what_a_response_repeats_is_the_requests_own() -> None:
    sent = {"tools": [{"type": "function", "name": "f"}], "text": {"verbosity": "low"}}
    odd = {"tools": [{"type": "musing"}], "text": {"why": "x"}, "metadata": {"a": "b"}, "id": "r"}
    assert ResponsesRebuilder(sent).rebuild_response(odd) == {
        "tools": sent["tools"],
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "metadata": {},
        "id": "r",
    }


@needs_openapi
def test_every_item_of_a_response_s_input_that_is_described_passes() -> None:
    (body,) = examples({"$ref": "#/components/schemas/ResponseItemList"})
    assert len({item["type"] for item in body["data"]}) > 20
    assert ITEM_LIST(body, DropCount()) == expected(body)


class TestEventsOfAnItemOfUnknownType:
    """They are left out with it, however they name it."""

    MUSING: ClassVar[Json] = {"type": "musing", "id": "mu_1"}
    KNOWN: ClassVar[Json] = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}

    def rebuilt(self, *events: Json) -> list[bool]:
        rebuilder = ResponsesRebuilder({})
        return [rebuilder.rebuild(event) is not None for event in events]

    def added(self, item: Json, **address: Any) -> Json:
        return {"type": "response.output_item.added", "item": item, **address}

    def delta(self, **address: Any) -> Json:
        return {"type": "response.output_text.delta", "delta": "Hm", **address}

    @pytest.mark.parametrize(
        "address",
        [
            {"item_id": "mu_1", "output_index": 3},
            {"item_id": "mu_1"},
            {"output_index": 3},
            {"item_id": "another", "output_index": 3},
            {},
        ],
    )
    def test_by_id_index_or_place(self, address: Json) -> None:
        assert self.rebuilt(self.added(self.MUSING, output_index=3), self.delta(**address)) == [
            False,
            False,
        ]

    def test_those_of_another_item_are_not(self) -> None:
        assert self.rebuilt(
            self.added(self.KNOWN, output_index=0),
            self.added(self.MUSING, output_index=0),
            self.delta(item_id="msg_1", output_index=0),
            self.delta(output_index=1),
            self.added(self.KNOWN, output_index=0),
            self.delta(output_index=0),
        ) == [True, False, True, True, True, True]

    def test_no_more_items_are_remembered_than_a_ceiling_allows(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(shapes, "MAX_ADDRESSES", 3)
        first, *_, last = items = [{**self.KNOWN, "id": f"msg_{number}"} for number in range(4)]
        events = [self.added(item, output_index=place) for place, item in enumerate(items)]
        assert self.rebuilt(
            *events,
            self.delta(item_id=first["id"], output_index=0),
            self.delta(item_id=last["id"], output_index=3),
            self.added(self.MUSING, output_index=4),
            self.delta(item_id="mu_1", output_index=4),
        ) == [*[True] * 5, False, False, False]

    def test_events_of_the_response_are_not(self) -> None:
        failed = {"type": "response.failed", "response": {}}
        assert self.rebuilt(self.added(self.MUSING), failed, {"type": "error"}) == [
            False,
            True,
            True,
        ]


@pytest.mark.parametrize(
    ("item_type", "passes"),
    [("message", True), ("reasoning", True), ("function_call", False), ("web_search_call", False)],
)
def test_a_new_event_that_names_no_item_is_about_what_a_model_says(
    monkeypatch: pytest.MonkeyPatch, item_type: str, *, passes: bool
) -> None:
    """One that begins with a type of item is about such an item."""
    kind = "response.output_video.done"
    monkeypatch.setattr(shapes, "ITEM_EVENTS", {**shapes.ITEM_EVENTS, **shapes._events(kind[9:])})
    item = {"type": item_type, "id": "x_1", "role": "assistant", "content": []}
    rebuilder = ResponsesRebuilder({})
    added = {"type": "response.output_item.added", "item": item, "output_index": 0}
    assert rebuilder.rebuild(added) is not None
    event = {"type": kind, "item_id": "x_1", "output_index": 0}
    assert (rebuilder.rebuild(event) is not None) is passes


@pytest.mark.parametrize("part", [{"type": "musing"}, {"type": "reasoning_text", "text": ""}])
def test_text_of_a_part_that_is_no_text_is_left_out(part: Json) -> None:
    rebuilder = ResponsesRebuilder({})
    place = {"item_id": "msg_0", "output_index": 0}
    rebuilder.rebuild(
        {"type": "response.content_part.added", **place, "content_index": 0} | {"part": part}
    )
    delta = {"type": "response.output_text.delta", **place, "delta": "odd"}
    assert rebuilder.rebuild({**delta, "content_index": 0}) is None
    assert rebuilder.rebuild({**delta, "content_index": 1}) is not None


@pytest.mark.parametrize("phase", [None, "commentary", "final_answer", "analysis"])
def test_a_message_of_an_unknown_phase_is_left_out(phase: str | None) -> None:
    message = {**message_item(0, "So."), "phase": phase}
    rebuilt = ResponsesRebuilder({}).rebuild_response({"output": [message]})
    assert rebuilt["output"] == ([] if phase == "analysis" else [message])
