"""The official clients' strict helpers, given a finished stream."""

from __future__ import annotations

from typing import Any

import httpx
import httpx2
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

STREAMED = {"content-type": "text/event-stream"}


def client_of(stream: bytes) -> AsyncOpenAI:
    """Return a client whose every request is answered with this stream."""

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=STREAMED, content=stream)

    transport = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return AsyncOpenAI(api_key="sk-anna-1234", http_client=transport, max_retries=0)


async def respond(stream: bytes) -> Any:
    async with (
        client_of(stream) as client,
        client.responses.stream(model="m", input="Hi") as events,
    ):
        async for _ in events:
            pass
        return await events.get_final_response()


async def complete(stream: bytes) -> Any:
    async with (
        client_of(stream) as client,
        client.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "Hi"}]
        ) as events,
    ):
        async for _ in events:
            pass
        return await events.get_final_completion()


async def converse(stream: bytes) -> Any:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=STREAMED, content=stream)

    transport = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    client = AsyncAnthropic(api_key="sk-anna-1234", http_client=transport, max_retries=0)
    said = [{"role": "user", "content": "Hi"}]
    async with client, client.messages.stream(model="m", max_tokens=9, messages=said) as events:
        async for _ in events:
            pass
        return await events.get_final_message()
