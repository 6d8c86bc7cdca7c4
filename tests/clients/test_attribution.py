"""What led to a call, as the official client has it: its strict helpers take it for what it is.

Run with the newest release and with the newest of the major before it, as the other tests of it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.front import connect
from tests.clients.test_bridges import CHAT
from tests.clients.turns import turn
from tests.end_to_end.translation.turn import ARGUMENTS, TOOL, UPSTREAMS, WORDS
from tests.support.attribution import MARKS, attribution_texts
from tests.support.checker import attribution_of, check_attributions
from tests.support.streams import THOUGHT
from tests.support.upstream import Upstream

ASK: dict[str, Any] = {"model": "thinker-1", "reasoning": {"summary": "auto"}}
FUNCTION = CHAT["tools"][0]["function"]
TOOLS = [{"type": "function", **FUNCTION}]
SUMMARY = "**Adding up**\n\nI add the numbers."
LOOK = (TOOL, ARGUMENTS)
USER = {"role": "user", "content": "Hi"}
EACH = pytest.mark.parametrize("api", UPSTREAMS)
EXPOSED = pytest.mark.parametrize(("expose", "shown"), [("both", THOUGHT), ("summary", SUMMARY)])


def played(api: str) -> Upstream:
    """Two calls at once, then the answer."""
    return Upstream(turn(api, "", LOOK, LOOK), turn(api, WORDS, thought="So it is.", first=2))


def on(api: str, expose: str) -> dict[str, Any]:
    return {
        "entry": {"api": api},
        "attribution": {"enabled": True},
        "reasoning": {"expose": expose},
    }


def assert_taken_out(upstream: Upstream) -> None:
    """Upstream was sent both calls again, and nothing that was said of them."""
    sent = upstream.requests[1].body
    assert sent.count(f'"{TOOL}"'.encode()) >= 2
    assert b'"reasoning_ref"' not in sent
    assert b'"reasoning":[' not in sent


@EACH
@EXPOSED
async def test_responses_stream(api: str, expose: str, shown: str) -> None:
    upstream, history = played(api), list[Any]([USER])
    async with connect(upstream, **on(api, expose)) as client:
        for _ in range(2):
            async with client.responses.stream(**ASK, input=history, tools=TOOLS) as stream:
                events = [event async for event in stream]
                final = await stream.get_final_response()
            if len(upstream.requests) == 1:
                done = [event.item for event in events if event.type.endswith("output_item.done")]
                for output in (done, final.output):
                    calls = [item.to_dict() for item in output if item.type == "function_call"]  # type: ignore[union-attr]
                    led = [attribution_of(call) for call in calls]
                    check_attributions([str(call["call_id"]) for call in calls], led)
                    assert attribution_texts(led) == [[shown], True]
                    assert [json.loads(str(call["arguments"])) for call in calls] == [ARGUMENTS] * 2
            history += [item.to_dict() for item in final.output]
            history += [
                {"type": "function_call_output", "call_id": item.call_id, "output": "2"}
                for item in final.output
                if item.type == "function_call"
            ]
    assert final.output_text == WORDS
    assert_taken_out(upstream)


@EACH
@EXPOSED
async def test_chat_stream(api: str, expose: str, shown: str) -> None:
    upstream, history = played(api), list[Any]([USER])
    async with connect(upstream, **on(api, expose)) as client:
        for _ in range(2):
            async with client.chat.completions.stream(**{**CHAT, "messages": history}) as stream:
                async for _ in stream:
                    pass
                final = await stream.get_final_completion()
            message = final.choices[0].message.to_dict()
            calls: Any = message.get("tool_calls") or []
            if len(upstream.requests) == 1:
                led = [attribution_of(call) for call in calls]
                check_attributions([call["id"] for call in calls], led)
                assert attribution_texts(led) == [[shown], True]
                given = [call["function"]["arguments"] for call in calls]
                assert [json.loads(one) for one in given] == [ARGUMENTS] * 2
            history.append(message)
            history += [
                {"role": "tool", "tool_call_id": call["id"], "content": "2"} for call in calls
            ]
    assert message["content"] == WORDS
    assert_taken_out(upstream)


def test_the_marks_are_no_fields_of_the_clients_own() -> None:
    from openai.types.chat import ChatCompletionMessageFunctionToolCall
    from openai.types.responses import ResponseFunctionToolCall

    for model in (ChatCompletionMessageFunctionToolCall, ResponseFunctionToolCall):
        assert not set(MARKS) & set(model.model_fields)
