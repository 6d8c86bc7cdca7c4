"""Test what is known of Responses against the types of OpenAI's own client, where raw reasoning is
hidden: whatever those can say, a strict client finds where it looks for it, and of the type that it
expects."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from openai.types.responses import Response, ResponseOutputItem, ResponseStreamEvent
from pydantic import BaseModel

from abridge.apis.responses.shapes import ECHOED, ITEMS, ResponsesRebuilder
from abridge.apis.shapes import DropCount
from tests.apis.responses.test_hiding import ONLY_WHOLE, echo, expected
from tests.support.canaries import BLOCKS

Json = dict[str, Any]

PLAIN: dict[Any, Any] = {str: "QUJD", int: 7, float: 0.5, bool: True, object: {"a": 1}}

LEFT_OUT = {
    "error.message": "errors are told in other words",
    "error.misalignment": "it explains in upstream's words what the model was about to do",
    "error.moderation_details": "errors are told in other words",
    "moderation.input.message": "errors are told in other words",
    "moderation.output.message": "errors are told in other words",
    "image_generation_call.revised_prompt": "sentences of the model's, beside its answer",
    "error.content": "of parts of MCP errors, only texts are known",
}
"""Ends of the paths of values that are not shown, and why."""


def examples(kind: Any, above: tuple[type, ...] = (), name: str = "") -> list[Any]:
    """Return values of a type: together they have each alternative in each place."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is str and name == "arguments":
        return ["{}"]  # of a call, which are JSON
    if kind in PLAIN:
        return [PLAIN[kind]]
    if origin is Annotated:
        return examples(arguments[0], above)
    if origin is Literal:
        return [arguments[0]]
    if origin is list:
        return [examples(arguments[0], above)]
    if origin is dict:
        return [{"some/name": value} for value in examples(arguments[1], above)]
    if origin in (Union, types.UnionType):
        return [value for each in arguments for value in examples(each, above) if value is not None]
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)) or kind in above:
        return [None]
    values = {
        field.alias or name: examples(field.annotation, (*above, kind), name) or [None]
        for name, field in kind.model_fields.items()
    }
    count = max(map(len, values.values()))
    return [
        {name: each[place % len(each)] for name, each in values.items()} for place in range(count)
    ]


def differences(sent: Any, shown: Any, path: str) -> Iterator[str]:
    """Yield the paths of values that are not as they were sent, but for those left out."""
    if path.endswith(tuple(LEFT_OUT)):
        return
    if isinstance(sent, dict) and isinstance(shown, dict):
        for key in sent.keys() | shown.keys():
            yield from differences(sent.get(key), shown.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(shown, list) and len(sent) == len(shown):
        for one, other in zip(sent, shown, strict=True):
            yield from differences(one, other, path)
    elif (sent, type(sent)) != (shown, type(shown)):
        yield f"{path}: {sent} became {shown}"


OUTPUT_ITEMS = [item for item in examples(ResponseOutputItem) if item["type"] != "reasoning"]

EVENTS = [
    event
    for event in examples(ResponseStreamEvent)
    if not {"item", "response"} & event.keys() and event["type"] not in ONLY_WHOLE
]


@pytest.mark.parametrize("item", OUTPUT_ITEMS, ids=lambda item: item["type"])
def test_every_item_is_shown_whole(item: Json) -> None:
    shown = ITEMS[item["type"]](item, DropCount())
    assert [*differences(expected(item), shown, item["type"])] == []


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event["type"])
def test_every_event_is_shown_whole(event: Json) -> None:
    shown = ResponsesRebuilder({}).rebuild(event)
    sent = {**expected(event), "sequence_number": 0}  # the writer numbers events anew
    assert [*differences(sent, shown, event["type"])] == []


def test_every_response_is_shown_whole() -> None:
    for response in examples(Response):
        sent = {**response, "output": []}
        shown = ResponsesRebuilder(echo(sent)).rebuild_response(sent)
        sent |= {key: value for key, value in shown.items() if key in ECHOED}
        assert [*differences(expected(sent), shown, "response")] == []


def searched(arguments: Any) -> Any:
    item = {"id": "tsc_1", "type": "tool_search_call", "arguments": arguments}
    return ResponsesRebuilder({}).rebuild_response({"output": [item]})["output"][0].get("arguments")


@pytest.mark.parametrize(
    "arguments",
    [{"queries": ["a"]}, {}, ["a"], [], "a", '"a"', '{"queries":[]}', 7, 0.5, True, None],
)
def test_what_a_tool_search_looks_for_stays_the_json_that_it_was(arguments: Any) -> None:
    assert (searched(arguments), type(searched(arguments))) == (arguments, type(arguments))


@pytest.mark.parametrize("block", BLOCKS)
def test_but_thinking_in_it_does_not(block: str) -> None:
    listed: list[Any] = [f"{block}weather"]
    for arguments in ({"queries": [*listed, 1e300]}, listed, f"{block}weather", json.dumps(listed)):
        shown = searched(arguments)
        assert block not in str(shown)
        assert "weather" in str(shown)
        assert type(shown) is type(arguments)


@pytest.mark.parametrize(
    "source", [{"type": "url", "url": "https://a.example/"}, {"type": "api", "name": "oai-weather"}]
)
def test_a_source_of_a_search_is_a_page_or_has_a_name(source: Json) -> None:
    """As in answers about the weather, the markets and sports."""
    action = {"type": "search", "query": "weather", "sources": [source]}
    item = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": action}
    assert ResponsesRebuilder({}).rebuild_response({"output": [item]}) == {"output": [item]}


def test_the_diff_of_a_patch_is_told_whole() -> None:
    event = {"type": "response.apply_patch_call_operation_diff.done", "diff": "@@\n-a\n+b"}
    assert ResponsesRebuilder({}).rebuild(event) == event
    piece = {"type": "response.apply_patch_call_operation_diff.delta", "delta": "@@"}
    assert ResponsesRebuilder({}).rebuild(piece) is None
