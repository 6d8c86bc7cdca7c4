"""The official client's strict helpers, over servers that break the rules."""

from __future__ import annotations

import pytest

from tests.clients.test_openai import ASK, CHAT, connect
from tests.support.sloppy_streams import CALLS, SLOPPY, SLOPPY_CHAT, TEXT
from tests.support.upstream import Answer, Upstream


@pytest.mark.parametrize("expose", ["auto", "summary"])
@pytest.mark.parametrize("server", SLOPPY)
async def test_the_strict_helper(server: str, expose: str) -> None:
    upstream = Upstream(Answer(SLOPPY[server]()))
    async with (
        connect(upstream, reasoning={"expose": expose}) as client,
        client.responses.stream(**ASK) as stream,
    ):
        deltas = [event.delta async for event in stream if event.type.endswith("text.delta")]  # type: ignore[union-attr]
        final = await stream.get_final_response()
    assert final.output_text == ("" if "only calls" in server else TEXT)
    assert final.output_text in "".join(deltas)
    assert final.output[0].summary  # type: ignore[union-attr]
    calls = [(item.name, item.arguments) for item in final.output if item.type == "function_call"]
    assert calls in ([], [*CALLS])


@pytest.mark.parametrize("expose", ["auto", "both"])
@pytest.mark.parametrize("lacking", SLOPPY_CHAT)
async def test_the_strict_helper_of_chat(lacking: str, expose: str) -> None:
    upstream = Upstream(Answer(SLOPPY_CHAT[lacking]()))
    async with (
        connect(upstream, reasoning={"expose": expose}) as client,
        client.chat.completions.stream(**CHAT) as stream,
    ):
        async for _ in stream:
            pass
        message = (await stream.get_final_completion()).choices[0].message
    assert (message.role, message.content) == ("assistant", TEXT)
    calls = [made.function for made in message.tool_calls or ()]
    assert [(made.name, made.arguments) for made in calls] == [*CALLS]
