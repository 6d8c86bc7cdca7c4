"""Claude Code over any upstream: it shows summaries, runs its tools, ends, and takes a second turn.

`CLAUDE` names the binary, else it is searched on the path; npm's package @anthropic-ai/claude-code
has it. It speaks only Messages, and keeps its history itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.clients.turns import turn
from tests.support.servers import serve, unused_address
from tests.support.sidecar import sidecar
from tests.support.streams import THOUGHT
from tests.support.upstream import Answer, ReceivedRequest, Upstream

CLAUDE = os.environ.get("CLAUDE") or shutil.which("claude") or ""
if not CLAUDE:
    pytest.skip("no claude: neither $CLAUDE nor on the path", allow_module_level=True)

PATIENCE = 90.0  # seconds; it takes three to start
KEY = "sk-ant-anna-1234"
MODEL = "thinker-1"
COMMAND = {"command": "echo $((6 * 7)) | tee made", "description": "Multiply"}
AGAIN = "So it is. I have seen the file, and it says forty-two, as it should."
THIRD = "They ask for the double of it. Twice forty-two is eighty-four, so that is the answer."
SUMMARY = "sum of the first ten odd numbers"

APIS = pytest.mark.parametrize("api", ["chat", "responses", "messages", "gemini", "interactions"])


@dataclass
class Run:
    """The exit code, events and errors of a run."""

    code: int
    events: list[dict[str, Any]]
    errors: str

    def blocks(self, kind: str) -> list[dict[str, Any]]:
        """Return the content blocks of a kind that the model said."""
        said = (event["message"] for event in self.events if event["type"] == "assistant")
        blocks = [block for message in said for block in message["content"]]
        return [block for block in blocks if block["type"] == kind]

    @property
    def result(self) -> dict[str, Any]:
        (result,) = (event for event in self.events if event["type"] == "result")
        return result


class Model(Upstream):
    """Answers Claude Code's turns in order, and beside them its request for a session's title."""

    def __init__(self, api: str, *answers: Answer) -> None:
        super().__init__(*answers)
        self._title = turn(api, json.dumps({"title": "Multiply"}), thought="")

    def answer(self, request: ReceivedRequest) -> Answer:
        if request.method == "HEAD":  # a probe of the connection
            return Answer(status=404)
        return super().answer(request) if "tools" in request.json else self._title

    @property
    def turns(self) -> list[Any]:
        """The bodies of the requests for a turn."""
        bodies = [request.json for request in self.requests if request.method == "POST"]
        return [body for body in bodies if "tools" in body]


@dataclass
class ClaudeCode:
    """Claude Code using the sidecar at `address`, with its own home and folder."""

    address: str
    folder: Path

    @property
    def work(self) -> Path:
        return self.folder / "work"

    async def run(self, prompt: str, *options: str) -> Run:
        home = self.folder / "home"
        for folder in (home, self.work):
            folder.mkdir(exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *(CLAUDE, "-p", prompt, "--output-format", "stream-json", "--verbose", "--bare"),
            *("--include-partial-messages", "--allowedTools", "Bash", "--model", MODEL, *options),
            cwd=self.work,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "ANTHROPIC_BASE_URL": self.address,
                "ANTHROPIC_API_KEY": KEY,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_MAX_RETRIES": "0",
                "HTTPS_PROXY": unused_address(),  # other traffic fails
                "NO_PROXY": "127.0.0.1",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(PATIENCE):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        events = [json.loads(line) for line in out.decode().splitlines()]
        return Run(process.returncode or 0, events, err.decode())


@asynccontextmanager
async def claude_code(model: Model, api: str, folder: Path) -> AsyncIterator[ClaudeCode]:
    async with serve(model) as address:
        name = "same" if api == "messages" else api
        # A model whose thinking is raw, with upstreams of any API.
        entry = {"base_url": f"{address}/v1", "api": name}
        async with sidecar(ABRIDGE_UPSTREAMS=json.dumps([entry])) as running:
            yield ClaudeCode(running.url, folder)


@APIS
async def test_it_shows_summaries_runs_its_tool_and_takes_a_second_turn(
    api: str, tmp_path: Path
) -> None:
    """Upstream hears each reasoning again in its own field, word for word, and no summary."""
    model = Model(
        api,
        turn(api, "", ("Bash", COMMAND)),
        turn(api, "It is forty-two.", thought=AGAIN, first=1),
        turn(api, "It is eighty-four.", thought=THIRD, first=2),
    )
    async with claude_code(model, api, tmp_path) as client:
        ran = await client.run("What is six times seven?")
        assert ran.code == 0, ran.errors or ran.events
        assert (client.work / "made").read_text() == "42\n"
        resumed = await client.run("And twice that?", "--resume", ran.result["session_id"])
    first, second = (block["thinking"] for block in ran.blocks("thinking"))
    assert SUMMARY in first
    assert len(first) < len(THOUGHT)
    assert second
    assert [block["text"] for block in ran.blocks("text")] == ["It is forty-two."]
    assert ran.result["result"] == "It is forty-two."
    assert resumed.code == 0, resumed.errors
    assert resumed.result["result"] == "It is eighty-four."
    _, in_loop, in_second_turn = model.turns
    assert reasoning_in(api, in_loop) == [THOUGHT]
    assert "42\\n" in json.dumps(in_loop) or '"42"' in json.dumps(in_loop)
    assert reasoning_in(api, in_second_turn) == [THOUGHT, AGAIN]
    for body in model.turns:
        assert first not in json.dumps(body, ensure_ascii=False)


@APIS
async def test_the_summary_streams_to_it(api: str, tmp_path: Path) -> None:
    """In pieces, as thinking deltas, before the answer's first."""
    model = Model(api, turn(api, "It is forty-two."))
    async with claude_code(model, api, tmp_path) as client:
        ran = await client.run("What is six times seven?")
    assert ran.code == 0, ran.errors or ran.events
    streamed = [event["event"] for event in ran.events if event["type"] == "stream_event"]
    kinds = [event["delta"]["type"] for event in streamed if "delta" in event and "index" in event]
    assert kinds.index("thinking_delta") < kinds.index("text_delta")
    pieces = [event["delta"] for event in streamed if "delta" in event and "index" in event]
    summary = "".join(piece.get("thinking", "") for piece in pieces)
    assert [block["thinking"] for block in ran.blocks("thinking")] == [summary]


@APIS
async def test_a_refusal_reaches_it(api: str, tmp_path: Path) -> None:
    error = {"type": "authentication_error", "message": "Who are you?"}
    own = {"type": "error", "error": error} if api == "messages" else {"error": error}
    async with claude_code(Model(api, Answer.json(own, 401)), api, tmp_path) as client:
        ran = await client.run("What is six times seven?")
    assert ran.code == 1
    assert ran.result["is_error"]
    assert ran.result["api_error_status"] == 401


@APIS
async def test_a_broken_upstream_looks_broken(api: str, tmp_path: Path) -> None:
    frames = list(turn(api, "It is forty-two.").steps)
    broken = Answer([*frames[:-5], ConnectionError("gone")])
    async with claude_code(Model(api, broken), api, tmp_path) as client:
        ran = await client.run("What is six times seven?")
    assert ran.code == 1 or ran.result["is_error"]


def reasoning_in(api: str, body: dict[str, Any]) -> list[str]:
    """Return the reasoning in the history that upstream hears, in its own field."""
    if api == "responses":
        items = [item for item in body["input"] if item["type"] == "reasoning"]
        return ["".join(part["text"] for part in item["content"]) for item in items]
    if api == "gemini":
        parts = [part for content in body["contents"] for part in content["parts"]]
        return [part["text"] for part in parts if part.get("thought")]
    if api == "interactions":
        thoughts = [step for step in body["input"] if step["type"] == "thought"]
        return ["".join(part["text"] for part in step["summary"]) for step in thoughts]
    said = [message for message in body["messages"] if message["role"] == "assistant"]
    if api == "chat":
        return [message["reasoning_content"] for message in said if "reasoning_content" in message]
    blocks = [block for message in said for block in message["content"]]
    return [block["thinking"] for block in blocks if block["type"] == "thinking"]
