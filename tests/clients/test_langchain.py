"""LangChain's client over providers that demand their reasoning back.

On Chat Completions it keeps none of it. Needs `pip install langchain-openai`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.front import KEY, serve_abridge
from tests.clients.rounds import (
    ANSWER,
    BOTH,
    FOUND,
    FUNCTION,
    LOOPS,
    MOST,
    QUESTION,
    assert_all_reasoning_returned,
)
from tests.clients.rounds import entry as entry_of
from tests.end_to_end.histories.chat_dialects import DeepSeek
from tests.end_to_end.histories.messages_provider import Anthropic
from tests.end_to_end.histories.provider import Provider

langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

SUMMARY_REQUESTS: dict[str, Any] = {
    "chat": {"extra_body": {"reasoning": {"summary": "auto"}}},
    "responses": {"use_responses_api": True, "reasoning": {"summary": "auto"}, "store": False},
}


@BOTH
@LOOPS
async def test_three_rounds(client: str, kind: type[Provider], *, stream: bool) -> None:
    await check_rounds(client, kind(), stream=stream)


@BOTH
@pytest.mark.parametrize("kind", [DeepSeek, Anthropic])
@pytest.mark.parametrize("version", ["v0", "v1"])
async def test_three_rounds_in_other_output_versions(
    kind: type[Provider], version: str, *, stream: bool
) -> None:
    """In these its messages hold a response's items."""
    await check_rounds("responses", kind(), stream=stream, output_version=version)


async def check_rounds(client: str, provider: Provider, *, stream: bool, **options: str) -> None:
    kind = type(provider)
    async with serve_abridge(provider, entry=entry_of(kind)) as address:
        model = langchain.ChatOpenAI(
            model=kind.model,
            base_url=address,
            api_key=KEY,
            max_retries=0,
            **SUMMARY_REQUESTS[client],
            **options,
        ).bind_tools([{"type": "function", "function": FUNCTION}])
        message: Any = None
        history: list[Any] = [("user", QUESTION)]
        for _ in range(MOST):
            message = await _invoke(model, history, stream=stream)
            history += [message, *(_result(called) for called in message.tool_calls)]
            if not message.tool_calls:
                break
    assert message.text == ANSWER
    assert_all_reasoning_returned(provider)


async def _invoke(model: Any, history: list[Any], *, stream: bool) -> Any:
    if not stream:
        return await model.ainvoke(history)
    message: Any = None
    async for piece in model.astream(history):
        message = piece if message is None else message + piece
    return message


def _result(called: Any) -> Any:
    from langchain_core.messages import ToolMessage

    return ToolMessage(FOUND, tool_call_id=called["id"])
