"""Vercel's AI SDK through translation: steps stream without errors and show their summaries.

`AI_SDK` names a folder in which `npm install ai @ai-sdk/openai` was run.
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
from tests.end_to_end.translation.turn import ARGUMENTS, BRIDGES, TOOL, WORDS
from tests.support.streams import THOUGHT
from tests.support.upstream import Answer, Upstream

FOLDER, NODE = os.environ.get("AI_SDK"), shutil.which("node")
if FOLDER is None or NODE is None:
    pytest.skip("no AI SDK: $AI_SDK names no folder, or there is no node", allow_module_level=True)

SCRIPT = Path(__file__).with_name("ai_sdk.mjs").read_text()
SUMMARY = "**Adding up**\n\nI add the numbers."
EACH = pytest.mark.parametrize(("client", "api"), BRIDGES)
RESPONSES = pytest.mark.parametrize("api", ["chat", "messages"])
LOOK = (TOOL, ARGUMENTS)


async def ask(
    upstream: Upstream, client: str, api: str, *, store: str = "own", **tables: Any
) -> list[dict[str, Any]]:
    """Return the parts of the answer's stream."""
    async with serve_abridge(upstream, entry={"api": api}, **tables) as address:
        process = await asyncio.create_subprocess_exec(
            *(NODE or "", "--input-type=module", "--eval", SCRIPT, address, client, store),
            cwd=FOLDER,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    lines = [line for line in out.decode().splitlines() if line.startswith("{")]
    return [json.loads(line) for line in lines]


def of(kind: str, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for part in parts if part["type"] == kind]


@EACH
async def test_a_tool_loop(client: str, api: str) -> None:
    """With two calls at once. On Chat Completions this client shows no reasoning."""
    upstream = Upstream(turn(api, "", LOOK, LOOK), turn(api, WORDS, thought="So it is.", first=2))
    parts = await ask(upstream, client, api)
    assert not of("error", parts)
    assert [part["input"] for part in of("tool-call", parts)] == [ARGUMENTS] * 2
    assert "".join(part["text"] for part in of("text-delta", parts)) == WORDS
    shown = "".join(part["text"] for part in of("reasoning-delta", parts))
    assert shown == (SUMMARY * 2 if client == "responses" else "")
    assert [part["finishReason"] for part in of("finish-step", parts)] == ["tool-calls", "stop"]
    again = json.dumps(upstream.requests[1].json, ensure_ascii=False)
    assert json.dumps(SUMMARY) not in again
    assert again.count(json.dumps(THOUGHT)) == 1


@RESPONSES
async def test_a_tool_loop_with_stored_items(api: str) -> None:
    """By default it relies on stored items and sends only their ids."""
    upstream = Upstream(turn(api, "", LOOK, LOOK), turn(api, WORDS, thought="So it is.", first=2))
    parts = await ask(upstream, "responses", api, store="stored")
    assert not of("error", parts)
    assert "".join(part["text"] for part in of("text-delta", parts)) == WORDS
    assert "".join(part["text"] for part in of("reasoning-delta", parts)) == SUMMARY * 2
    again = json.dumps(upstream.requests[1].json, ensure_ascii=False)
    assert json.dumps(SUMMARY) not in again
    assert again.count(json.dumps(THOUGHT)) == 1


@RESPONSES
async def test_a_missing_item_is_an_error(api: str) -> None:
    upstream = Upstream(turn(api, "", LOOK), turn(api, WORDS, first=1))
    nowhere = {"history": {"store": "none"}}
    parts = await ask(upstream, "responses", api, store="stored", **nowhere)
    (error,) = of("error", parts)
    assert "store: false" in error["error"]
    assert len(upstream.requests) == 1


@EACH
async def test_a_broken_upstream_looks_broken(client: str, api: str) -> None:
    frames = list(turn(api, WORDS).steps)
    upstream = Upstream(Answer([*frames[:-5], ConnectionError("gone")]))
    parts = await ask(upstream, client, api)
    assert of("error", parts)
    assert of("finish", parts)[-1]["finishReason"] == "error"
