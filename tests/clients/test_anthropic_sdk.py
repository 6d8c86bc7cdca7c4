"""Anthropic's TypeScript SDK over any upstream: its strict helper accepts every stream, and what
it returns word for word brings upstream's reasoning back.

`ANTHROPIC_SDK` names a folder in which `npm install @anthropic-ai/sdk` was run.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.clients.front import serve_abridge
from tests.clients.turns import turn
from tests.end_to_end.translation.turn import ARGUMENTS, TOOL, WORDS, answer
from tests.support.streams import THOUGHT
from tests.support.upstream import Answer, Upstream

FOLDER, NODE = os.environ.get("ANTHROPIC_SDK"), shutil.which("node")
if FOLDER is None or NODE is None:
    reason = "no Anthropic SDK: $ANTHROPIC_SDK names no folder, or there is no node"
    pytest.skip(reason, allow_module_level=True)

SCRIPT = Path(__file__).with_name("anthropic_sdk.mjs").read_text()
SUMMARY = "**Adding up**\n\nI add the numbers."
APIS = pytest.mark.parametrize("api", ["chat", "responses", "messages", "gemini", "interactions"])
LOOK = (TOOL, ARGUMENTS)


async def ask(upstream: Upstream, api: str, *, stream: bool = True) -> list[dict[str, Any]]:
    """Return the messages of the loop."""
    entry = {"api": "same" if api == "messages" else api}
    async with serve_abridge(upstream, entry=entry) as address:
        process = await asyncio.create_subprocess_exec(
            *(NODE or "", "--input-type=module", "--eval", SCRIPT),
            *(address.removesuffix("/v1"), "stream" if stream else "whole"),
            cwd=FOLDER,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")]


def of(kind: str, message: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in message["content"] if block["type"] == kind]


def assert_loop(api: str, upstream: Upstream, messages: list[dict[str, Any]]) -> None:
    """Assert that the loop went as scripted, and that upstream heard its reasoning once."""
    first, last = messages
    assert [block["thinking"] for block in of("thinking", first)] == [SUMMARY]
    assert [block["input"] for block in of("tool_use", first)] == [ARGUMENTS] * 2
    assert (first["stop_reason"], last["stop_reason"]) == ("tool_use", "end_turn")
    assert [block["text"] for block in of("text", last)] == [WORDS]
    again = json.dumps(upstream.requests[1].json, ensure_ascii=False)
    assert json.dumps(SUMMARY) not in again, api
    assert again.count(json.dumps(THOUGHT)) == 1, api


@APIS
async def test_a_streamed_tool_loop(api: str) -> None:
    upstream = Upstream(turn(api, "", LOOK, LOOK), turn(api, WORDS, thought="So it is.", first=2))
    messages = await ask(upstream, api)
    assert messages[0]["deltas"] > 0
    assert_loop(api, upstream, messages)


@APIS
async def test_a_whole_answer(api: str) -> None:
    (message,) = await ask(Upstream(answer(api, stream=False)), api, stream=False)
    assert [block["thinking"] for block in of("thinking", message)] == [SUMMARY]
    assert [block["text"] for block in of("text", message)] == [WORDS]


@APIS
async def test_a_broken_upstream_looks_broken(api: str) -> None:
    frames = list(turn(api, WORDS).steps)
    (told,) = await ask(Upstream(Answer([*frames[:-5], ConnectionError("gone")])), api)
    assert "error" in told
