"""Attributions in the official client: its strict helpers pass them on.

Run with the newest release and the newest of the previous major.
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
    """Return an upstream that makes two calls at once, then answers."""
    return Upstream(turn(api, "", LOOK, LOOK), turn(api, WORDS, thought="So it is.", first=2))


def on(api: str, expose: str) -> dict[str, Any]:
    return {
        "entry": {"api": api},
        "attribution": {"enabled": True},
        "reasoning": {"expose": expose},
    }


def assert_attributions_removed(upstream: Upstream) -> None:
    """Assert that upstream got both calls back without attributions."""
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
                    attributions = [attribution_of(call) for call in calls]
                    check_attributions([str(call["call_id"]) for call in calls], attributions)
                    assert attribution_texts(attributions) == [[shown], True]
                    assert [json.loads(str(call["arguments"])) for call in calls] == [ARGUMENTS] * 2
            history += [item.to_dict() for item in final.output]
            history += [
                {"type": "function_call_output", "call_id": item.call_id, "output": "2"}
                for item in final.output
                if item.type == "function_call"
            ]
    assert final.output_text == WORDS
    assert_attributions_removed(upstream)


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
                attributions = [attribution_of(call) for call in calls]
                check_attributions([call["id"] for call in calls], attributions)
                assert attribution_texts(attributions) == [[shown], True]
                given = [call["function"]["arguments"] for call in calls]
                assert [json.loads(one) for one in given] == [ARGUMENTS] * 2
            history.append(message)
            history += [
                {"role": "tool", "tool_call_id": call["id"], "content": "2"} for call in calls
            ]
    assert message["content"] == WORDS
    assert_attributions_removed(upstream)


def test_the_attribution_fields_are_unknown_to_the_client() -> None:
    from openai.types.chat import ChatCompletionMessageFunctionToolCall
    from openai.types.responses import ResponseFunctionToolCall

    for model in (ChatCompletionMessageFunctionToolCall, ResponseFunctionToolCall):
        assert not set(MARKS) & set(model.model_fields)
