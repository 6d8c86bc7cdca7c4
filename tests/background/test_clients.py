"""The official client, over real sockets: it polls, resumes and cancels."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pytest
from openai import AsyncOpenAI, NotFoundError

from tests.background.cases import paused
from tests.clients.front import connect, serve_abridge
from tests.clients.test_bridges import SUMMARY, upstream_settings
from tests.docs.pages import texts_of
from tests.end_to_end.translation.turn import WORDS, answer
from tests.support.servers import HANG
from tests.support.upstream import Upstream

ASK: dict[str, Any] = {
    "model": "thinker-1",
    "input": "Where is it?",
    "reasoning": {"summary": "auto"},
    "background": True,
}
APIS = pytest.mark.parametrize("api", ["chat", "messages"])


async def poll(client: AsyncOpenAI, response_id: str) -> Any:
    async with asyncio.timeout(HANG):
        while True:
            response = await client.responses.retrieve(response_id)
            if response.status not in ("queued", "in_progress"):
                return response
            await asyncio.sleep(0.02)


@APIS
async def test_it_polls(api: str) -> None:
    upstream = Upstream(answer(api, stream=True))
    async with connect(upstream, **upstream_settings(api)) as client:
        begun = await client.responses.create(**ASK)
        assert (begun.status, begun.background) == ("queued", True)
        response = await poll(client, begun.id)
    assert (response.status, response.output_text) == ("completed", WORDS)
    assert response.output[0].summary[0].text == SUMMARY


@APIS
async def test_it_resumes_a_stream_that_was_cut(api: str) -> None:
    gate = asyncio.Event()
    async with connect(Upstream(paused(gate, api)), **upstream_settings(api)) as client:
        seen: list[Any] = []
        stream = await client.responses.create(**ASK, stream=True)
        async for event in stream:
            seen.append(event)
            if event.type == "response.reasoning_text.delta":
                break
        await stream.close()
        response_id, last = seen[0].response.id, seen[-1].sequence_number
        resumed = await client.responses.retrieve(response_id, stream=True, starting_after=last)
        gate.set()
        seen += [event async for event in resumed]
        again = [event async for event in await client.responses.retrieve(response_id, stream=True)]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert seen[-1].response.output_text == WORDS
    assert again == seen


@APIS
async def test_the_helper_of_the_client_resumes(api: str) -> None:
    async with connect(Upstream(answer(api, stream=True)), **upstream_settings(api)) as client:
        begun = await client.responses.create(**ASK)
        async with client.responses.stream(response_id=begun.id) as events:
            async for _ in events:
                pass
            response = await events.get_final_response()
    assert response.output_text == WORDS


@APIS
async def test_it_cancels_and_deletes(api: str) -> None:
    upstream = Upstream(paused(asyncio.Event(), api))
    async with connect(upstream, **upstream_settings(api)) as client:
        begun = await client.responses.create(**ASK)
        cancelled = await client.responses.cancel(begun.id)
        assert (await client.responses.cancel(begun.id)).status == "cancelled"
        assert (await client.responses.retrieve(begun.id)).status == "cancelled"
        await client.responses.delete(begun.id)
        with pytest.raises(NotFoundError):
            await client.responses.retrieve(begun.id)
    assert (cancelled.id, cancelled.status) == (begun.id, "cancelled")


@pytest.mark.parametrize("number", [0, 1])
async def test_the_programs_of_the_documentation_do_what_they_say(number: int) -> None:
    program = texts_of("docs/background.md", "python")[number]
    upstream = Upstream(answer("chat", stream=True))
    async with serve_abridge(upstream, **upstream_settings("chat")) as address:
        script = program.replace("http://127.0.0.1:8400/v1", address)
        assert script != program
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", script),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "NO_PROXY": "*"},
        )
        printed, _ = await process.communicate()
    assert process.returncode == 0
    lines = printed.decode().splitlines()
    if number == 0:
        assert lines == [f"completed {WORDS}"]
    else:
        assert lines[0] == "0 response.created"
        assert lines[-1] == f"{len(lines) - 1} response.completed"
