"""Every recording, with its calls attributed: nothing else of it changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.attribution import attribute
from tests.end_to_end.recordings.recordings import Recording, recordings, said_in
from tests.end_to_end.recordings.test_replay import replay
from tests.support.attribution import attribution_texts, without_attributions
from tests.support.checker import attribution_of, check_attributions, check_chat, check_responses
from tests.support.shared import needs_recordings
from tests.support.summarizers import Scripted

pytestmark = needs_recordings

ON: dict[str, Any] = {"attribution": {"enabled": True}}
RECORDED = recordings()


CALLING = [one for one in RECORDED if (said := said_in(one, one.data)).calls and said.raw.strip()]
WHOLE = [one for one in recordings("messages") if not one.streamed]


def each(recorded: list[Recording]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recording", recorded, ids=lambda recording: recording.name)


@each(RECORDED)
async def test_the_rest_of_an_answer_stays_as_it_is(recording: Recording) -> None:
    answer = await replay(recording, "frames", Scripted(), ask=False, **ON)
    before, after = said_in(recording, recording.data), said_in(recording, answer.data)
    assert (after.text, after.calls) == (before.text, before.calls)
    assert after.raw.strip() == before.raw.strip()
    if recording.streamed:
        check = check_chat if recording.api == "chat" else check_responses
        check(answer.data)  # type: ignore[operator]
    elif b"<think>" not in recording.data:
        assert without_attributions(answer.json) == json.loads(recording.data)


@each(CALLING)
async def test_a_call_has_the_reasoning_before_it(recording: Recording) -> None:
    said = said_in(recording, recording.data)
    answer = await replay(recording, "random", Scripted(), ask=False, **ON)
    led = _led(recording, answer.data)
    assert len(led) == len(said.calls)
    assert attribution_texts(led)[0] == [said.raw]
    assert all(isinstance(one, str) for one in led[1:])


def test_a_search_of_the_servers_that_shows_nothing_of_its_reasoning() -> None:
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
def test_messages_of_anthropics(recording: Recording) -> None:
    said, body = said_in(recording, recording.data), json.loads(recording.data)
    content = attribute(body)["content"]
    assert without_attributions(content) == body["content"]
    led = [attribution_of(block) for block in content if block["type"] == "tool_use"]
    assert attribution_texts(led) == [[said.raw]] * bool(led)


def _led(recording: Recording, data: bytes) -> list[Any]:
    if recording.api == "chat":
        if recording.streamed:
            return list(check_chat(data).choices[0].attributions)
        calls = json.loads(data)["choices"][0]["message"]["tool_calls"]
    else:
        final = check_responses(data).response if recording.streamed else json.loads(data)
        calls = [item for item in final["output"] if item["type"] == "function_call"]
    led = [attribution_of(call) for call in calls]
    check_attributions([call.get("call_id") or call["id"] for call in calls], led)
    return led
