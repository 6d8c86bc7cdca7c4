"""Test that what is known of Responses holds no sentence but where texts are.

`test_hiding.py` shows that all of it survives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from abridge.apis.responses.shapes import ECHOED, MAX_ADDRESSES, ResponsesRebuilder
from abridge.providers.catalog import PROFILES
from tests.apis.responses.test_hiding import event_schemas, examples, merged
from tests.support.canaries import BLOCKS, CANARY, planted_everywhere
from tests.support.checker import check_responses
from tests.support.pipeline import responses
from tests.support.shared import needs_openapi
from tests.support.streams import message_item, responses_stream

Json = dict[str, Any]

TEXTS = frozenset(
    {
        *("text", "refusal", "arguments", "input", "code", "result", "query", "queries", "pattern"),
        *("title", "filename", "keys", "command", "commands", "path", "diff", "logs", "stdout"),
        *("stderr", "description", "reason", "message", "output", "delta", "working_directory"),
        *("content", "error"),
    }
)
"""Keys of texts that are shown."""


OTHERS_KEYS = frozenset({*ECHOED, "arguments", "attributes", "env"})
"""Keys of values whose own keys are the request's, a tool's or a file's."""


def planted_in(schema: str, **fixed: Any) -> Iterator[Any]:
    for value in examples({"$ref": f"#/components/schemas/{schema}"}):
        yield from planted_everywhere({**value, **fixed}, TEXTS, OTHERS_KEYS)


def as_shown(rebuilt: Json | None) -> str:
    """Return what was rebuilt, but for the blocks in texts that its reader takes out."""
    return json.dumps(rebuilt).replace(json.dumps(BLOCKS[0]), "")


@needs_openapi
@pytest.mark.parametrize("schema", event_schemas())
def test_no_value_of_an_event_can_be_a_sentence(schema: str) -> None:
    described = merged({"$ref": f"#/components/schemas/{schema}"})["properties"]
    whole = {"response", "item"} & described.keys()  # they have tests of their own
    for event in () if whole else planted_in(schema):
        assert CANARY not in as_shown(ResponsesRebuilder({}).rebuild(event))


@needs_openapi
def test_no_value_of_a_response_can_be_a_sentence() -> None:
    for planted in planted_in("Response", output=[]):
        assert CANARY not in as_shown(ResponsesRebuilder({}).rebuild_response(planted))


@needs_openapi
def test_no_value_of_an_item_can_be_a_sentence() -> None:
    for item in planted_in("OutputItem"):
        pipeline = responses(expose="none", profile=PROFILES["openai"])
        body = json.dumps({"object": "response", "output": [item]})
        assert CANARY.encode() not in pipeline.whole(body.encode())


@pytest.mark.parametrize("variables", [None, {}, {"A": "1", "B": None}])
def test_the_variables_of_a_shell_stay(variables: Json | None) -> None:
    action = {"type": "exec", "command": ["ls"], "env": variables}
    output = [{"id": "lsh_1", "type": "local_shell_call", "action": action}]
    assert ResponsesRebuilder({}).rebuild_response({"output": output}) == {"output": output}


@pytest.mark.parametrize("variables", [5, "A", [["A"]]])
def test_variables_that_are_no_object_are_left_out(variables: Any) -> None:
    item = {"id": "lsh_1", "type": "local_shell_call", "action": {"env": variables}}
    (rebuilt,) = (ResponsesRebuilder({}).rebuild_response({"output": [item]}))["output"]
    assert rebuilt["action"] == {}


PLACE = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
PART = {"type": "response.content_part.added", **PLACE}
SAID = {"type": "response.output_text.delta", **PLACE, "delta": CANARY}


@pytest.mark.parametrize(
    "event",
    [
        {"type": "response.output_text.annotation.added", "annotation": {"type": "musing"}},
        {"type": "response.output_text.delta", "delta": {"why": CANARY}},
        {"type": "response.content_part.added", "part": {"type": "musing"}},
        {"type": "response.output_item.added", "item": {"type": "musing"}},
    ],
    ids=lambda event: event["type"],
)
def test_an_event_without_what_it_brings_is_left_out(event: Json) -> None:
    assert ResponsesRebuilder({}).rebuild({**PLACE, **event}) is None


@pytest.mark.parametrize("kind", ["response.output_text.done", "response.refusal.delta"])
def test_every_text_of_a_closed_part_is_left_out(kind: str) -> None:
    rebuilder = ResponsesRebuilder({})
    rebuilder.rebuild({**PART, "part": {"type": "musing"}})
    assert rebuilder.rebuild({**SAID, "type": kind, "text": CANARY}) is None


def test_a_part_may_be_opened_again() -> None:
    rebuilder = ResponsesRebuilder({})
    rebuilder.rebuild({**PART, "part": {"type": "musing"}})
    rebuilder.rebuild({**PART, "part": {"type": "output_text", "text": ""}})
    assert rebuilder.rebuild(SAID) == SAID


def test_of_items_beyond_those_that_are_remembered_no_texts_are_shown() -> None:
    rebuilder = ResponsesRebuilder({})
    for number in range(MAX_ADDRESSES + 1):
        musing = {"type": "musing", "id": f"mu_{number}"}
        rebuilder.rebuild({"type": "response.output_item.added", "item": musing})
    assert rebuilder.rebuild({**SAID, "item_id": f"mu_{MAX_ADDRESSES}"}) is None
    item = {"type": "message", "id": "msg_0", "content": []}
    done = {"type": "response.output_item.done", "item": item}
    assert rebuilder.rebuild(done) == done


def test_of_parts_beyond_those_that_are_remembered_no_texts_are_shown() -> None:
    rebuilder = ResponsesRebuilder({})
    for number in range(MAX_ADDRESSES + 1):
        rebuilder.rebuild({**PART, "content_index": number, "part": {"type": "musing"}})
    assert rebuilder.rebuild({**SAID, "content_index": MAX_ADDRESSES}) is None


def test_an_end_is_written_anew() -> None:
    said = CANARY.encode()
    done = b"id: %b\ndata: [DONE]\n\n" % said
    out = responses(expose="none").stream(
        b"".join(responses_stream([message_item(0, "So.")])) + done
    )
    assert said not in out
    assert out.endswith(b"data: [DONE]\n\n")
    check_responses(out.removesuffix(b"data: [DONE]\n\n"))
