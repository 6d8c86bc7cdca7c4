"""LangChain's client over providers that demand what was thought, of which it keeps what it knows:
on Chat Completions nothing.

For who has it installed: `pip install langchain-openai`.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.front import KEY, front
from tests.clients.rounds import (
    ANSWER,
    BOTH,
    FOUND,
    FUNCTION,
    LOOPS,
    MOST,
    QUESTION,
    assert_heard,
)
from tests.clients.rounds import entry as entry_of
from tests.end_to_end.histories.chat_dialects import DeepSeek
from tests.end_to_end.histories.messages_provider import Anthropic
from tests.end_to_end.histories.provider import Provider

langchain = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

WISHES: dict[str, Any] = {
    "chat": {"extra_body": {"reasoning": {"summary": "auto"}}},
    "responses": {"use_responses_api": True, "reasoning": {"summary": "auto"}, "store": False},
}


@BOTH
@LOOPS
async def test_mlx_11_three_rounds(client: str, kind: type[Provider], *, stream: bool) -> None:
    await loop(client, kind(), stream=stream)


@BOTH
@pytest.mark.parametrize("kind", [DeepSeek, Anthropic])
@pytest.mark.parametrize("version", ["v0", "v1"])
async def test_mlx_11_three_rounds_in_its_other_spellings(
    kind: type[Provider], version: str, *, stream: bool
) -> None:
    """In which its messages hold a response's items."""
    await loop("responses", kind(), stream=stream, output_version=version)


async def loop(client: str, provider: Provider, *, stream: bool, **options: str) -> None:
    kind = type(provider)
    async with front(provider, entry=entry_of(kind)) as address:
        model = langchain.ChatOpenAI(
            model=kind.model,
            base_url=address,
            api_key=KEY,
            max_retries=0,
            **WISHES[client],
            **options,
        ).bind_tools([{"type": "function", "function": FUNCTION}])
        said: Any = None
        history: list[Any] = [("user", QUESTION)]
        for _ in range(MOST):
            said = await _say(model, history, stream=stream)
            history += [said, *(_result(called) for called in said.tool_calls)]
            if not said.tool_calls:
                break
    assert said.text == ANSWER
    assert_heard(provider)


async def _say(model: Any, history: list[Any], *, stream: bool) -> Any:
    if not stream:
        return await model.ainvoke(history)
    said: Any = None
    async for piece in model.astream(history):
        said = piece if said is None else said + piece
    return said


def _result(called: Any) -> Any:
    from langchain_core.messages import ToolMessage

    return ToolMessage(FOUND, tool_call_id=called["id"])
