"""The official client's strict helpers, given the output of translating writers."""

from __future__ import annotations

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.protocols import RequestEcho
from abridge.apis.registry import APIS
from abridge.apis.responses.api import RESPONSES
from abridge.core.plan import SummaryPlan
from tests.clients.canned import complete, converse, respond
from tests.end_to_end.recordings.recordings import Recording, answered_streams
from tests.support.pipeline import translating
from tests.support.streams import (
    CHAT_USAGE,
    call,
    call_item,
    chat_stream,
    chunk,
    message_item,
    reasoning_item,
    responses_stream,
    thinking,
)
from tests.support.translated import read_turn

ANSWER = "One hundred."
ECHO = RequestEcho({"stream_options": {"include_usage": True}})


async def test_a_response_of_a_chat_upstream() -> None:
    stream = [
        *chat_stream(thinking(4000), ANSWER, calls=[call("add", '{"a": 1}')], usage=None)[:-2],
        chunk({"reasoning_content": thinking(1000)}),
        chunk({"tool_calls": [call("add", "{}", 1)]}),
        chunk({}, finish="tool_calls"),
        chunk(usage=CHAT_USAGE),
    ]
    response = await respond(translating("chat", RESPONSES).stream(b"".join(stream)))
    kinds = [item.type for item in response.output]
    assert kinds == ["reasoning", "message", "function_call", "reasoning", "function_call"]
    assert response.output_text == ANSWER
    assert len(response.output[0].summary) > 1
    assert response.usage.total_tokens > 81


async def test_a_completion_of_a_responses_upstream() -> None:
    native = reasoning_item(3, "", encrypted_content="opaque")
    native["summary"] = [{"type": "summary_text", "text": text} for text in ("One.", "Two.")]
    output = [
        reasoning_item(0, thinking(4000), encrypted_content="sealed"),
        message_item(1, ANSWER),
        call_item(2, "add", '{"a": 1}'),
        native,
        call_item(4, "add", "{}"),
    ]
    pipeline = translating("responses", CHAT, echo=ECHO, details=True)
    completion = await complete(pipeline.stream(b"".join(responses_stream(output))))
    (choice,) = completion.choices
    assert choice.message.content == ANSWER
    assert choice.message.reasoning_content.endswith("\n\nOne.\n\nTwo.")
    assert [block["type"] for block in choice.message.thinking_blocks] == [
        "redacted_thinking",
        "thinking",
        "redacted_thinking",
    ]
    assert choice.message.thinking_blocks[1]["thinking"] == "One.\n\nTwo."
    assert [call.function.arguments for call in choice.message.tool_calls] == ['{"a": 1}', "{}"]
    assert choice.finish_reason == "tool_calls"
    assert completion.usage.total_tokens > 81


@pytest.mark.parametrize("recording", answered_streams(), ids=lambda recording: recording.name)
@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
async def test_every_recording(recording: Recording, api: Api) -> None:
    turn = read_turn(str(recording.api), recording.data)
    pipeline = translating(str(recording.api), api, echo=ECHO, plan=SummaryPlan(part_chars=400))
    stream = pipeline.stream(recording.data)
    text = "\n\n".join(turn.answer.messages.values())
    if api is CHAT:
        assert (await complete(stream)).choices[0].message.content == text
    elif api is MESSAGES:
        content = (await converse(stream)).content
        assert "".join(block.text for block in content if block.type == "text") == text
    else:
        assert (await respond(stream)).output_text == turn.answer.text
