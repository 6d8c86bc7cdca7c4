"""Every recording, with its calls attributed: nothing else of it changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.attribution import attribute
from tests.end_to_end.recordings.recordings import Recording, content_of, recordings
from tests.end_to_end.recordings.test_replay import replay
from tests.support.attribution import attribution_texts, without_attributions
from tests.support.checker import attribution_of, check_attributions, check_chat, check_responses
from tests.support.shared import needs_recordings

pytestmark = needs_recordings

ON: dict[str, Any] = {"attribution": {"enabled": True}}
RECORDED = recordings()


CALLING = [one for one in RECORDED if one.content.calls and one.content.raw.strip()]
WHOLE = [one for one in recordings("messages") if not one.streamed]


def each(recorded: list[Recording]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recording", recorded, ids=lambda recording: recording.name)


@each(RECORDED)
async def test_the_rest_of_an_answer_is_unchanged(recording: Recording) -> None:
    answer = await replay(recording, str(recording.api), how="frames", **ON)
    before, after = recording.content, content_of(recording, answer.data)
    assert (after.text, after.calls) == (before.text, before.calls)
    assert after.raw.strip() == before.raw.strip()
    if recording.streamed:
        check = check_chat if recording.api == "chat" else check_responses
        check(answer.data)  # type: ignore[operator]
    elif b"<think>" not in recording.data:
        assert without_attributions(answer.json) == json.loads(recording.data)


@each(CALLING)
async def test_a_call_has_the_reasoning_before_it(recording: Recording) -> None:
    expected = recording.content
    answer = await replay(recording, str(recording.api), how="random", **ON)
    attributions = _attributions(recording, answer.data)
    assert len(attributions) == len(expected.calls)
    assert attribution_texts(attributions)[0] == [expected.raw]
    assert all(isinstance(one, str) for one in attributions[1:])


def test_server_side_searches_are_attributed_to_redacted_reasoning() -> None:
    (found,) = [one for one in RECORDED if one.name == "openai-web-search-tool.1.response.json"]
    output = attribute(json.loads(found.data))["output"]
    calls = [item for item in output if item["type"] == "web_search_call"]
    assert list(map(attribution_of, calls)) == [None] * 3
    for item in (item for item in output if item["type"] == "reasoning"):
        item["encrypted_content"] = "gAAAA"
    output = attribute({"output": output})["output"]
    calls = [item for item in output if item["type"] == "web_search_call"]
    assert attribution_texts(list(map(attribution_of, calls))) == [["[redacted]"]] * 3


@each(WHOLE)
def test_calls_of_anthropic_messages_are_attributed(recording: Recording) -> None:
    expected, body = recording.content, json.loads(recording.data)
    content = attribute(body)["content"]
    assert without_attributions(content) == body["content"]
    attributions = [attribution_of(block) for block in content if block["type"] == "tool_use"]
    assert attribution_texts(attributions) == [[expected.raw]] * bool(attributions)


def _attributions(recording: Recording, data: bytes) -> list[Any]:
    if recording.api == "chat":
        if recording.streamed:
            return list(check_chat(data).choices[0].attributions)
        calls = json.loads(data)["choices"][0]["message"]["tool_calls"]
    else:
        final = check_responses(data).response if recording.streamed else json.loads(data)
        calls = [item for item in final["output"] if item["type"] == "function_call"]
    attributions = [attribution_of(call) for call in calls]
    check_attributions([call.get("call_id") or call["id"] for call in calls], attributions)
    return attributions
