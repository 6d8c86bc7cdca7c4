"""The Codex CLI through translation: it reasons, runs a command, gets its output, and ends.

`CODEX` names the binary, else it is searched on the path; npm's package @openai/codex has it. It
speaks only Responses, and keeps its history itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.clients.turns import turn
from tests.support.servers import serve, until, unused_address
from tests.support.sidecar import sidecar
from tests.support.streams import THOUGHT, completion
from tests.support.upstream import Answer, Upstream

CODEX = os.environ.get("CODEX") or shutil.which("codex") or ""
if not CODEX:
    pytest.skip("no codex: neither $CODEX nor on the path", allow_module_level=True)

PATIENCE = 60.0  # seconds; it takes two to start

TRANSLATED = pytest.mark.parametrize("api", ["chat", "messages", "gemini", "interactions"])
SHELL = "exec_command"
SEVEN = "What is six times seven?"
MODEL = "thinker-1"
CATALOGED = "gpt-5.5"  # in its own catalog: patches with a custom tool, can search for tools
SCRIPTING = "gpt-5.6-sol"  # in its own catalog: its tools come in the input, called from scripts
PATCH = "*** Begin Patch\n*** Add File: made\n+forty-two\n*** End Patch\n"
CONFIG = """
model = "{model}"
model_provider = "abridge"
{more}
check_for_update_on_startup = false

[model_providers.abridge]
name = "{provider}"
base_url = "{address}/v1"
wire_api = "responses"
supports_websockets = {websockets}
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false
"""


COMPACTING = "model_auto_compact_token_limit = 50"

REQUESTS_LOGGED = {"ABRIDGE_LOG__REQUESTS": "true"}
SWITCHED_OFF = {"ABRIDGE_SERVER__WEBSOCKETS": "false"}


@dataclass
class Run:
    """The exit code, events and errors of a run."""

    code: int
    events: list[dict[str, Any]] = field(default_factory=list)
    errors: str = ""

    def items(self, kind: str) -> list[dict[str, Any]]:
        """Return the completed items of a kind."""
        done = [event["item"] for event in self.events if event["type"] == "item.completed"]
        return [item for item in done if item["type"] == kind]


@dataclass
class Codex:
    """Codex using the sidecar at `address`, with its own home and folder."""

    address: str
    folder: Path
    model: str
    websockets: bool = False
    compacts: bool = False  # its conversation, at the server, once it has some tokens

    @property
    def work(self) -> Path:
        return self.folder / "work"

    async def run(self, prompt: str = SEVEN) -> Run:
        return await self.end(await self.start(prompt))

    async def start(self, prompt: str = SEVEN) -> asyncio.subprocess.Process:
        home = self.folder / "home"
        for folder in (home, self.work):
            folder.mkdir()
        websockets = str(self.websockets).lower()
        config = CONFIG.format(
            address=self.address,
            model=self.model,
            websockets=websockets,
            provider="OpenAI" if self.compacts else "Abridge",  # it asks no other server
            more=COMPACTING if self.compacts else "",
        )
        (home / "config.toml").write_text(config)
        return await asyncio.create_subprocess_exec(
            *(CODEX, "exec", "--json", "--skip-git-repo-check"),
            *("--sandbox", "danger-full-access", prompt),
            cwd=self.work,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "CODEX_HOME": str(home),
                "HTTPS_PROXY": unused_address(),  # other traffic fails
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def end(self, process: asyncio.subprocess.Process) -> Run:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
        events = [json.loads(line) for line in out.decode().splitlines()]
        return Run(process.returncode or 0, events, err.decode())


@asynccontextmanager
async def codex(
    upstream: Upstream,
    api: str,
    folder: Path,
    *,
    model: str = MODEL,
    websockets: bool = False,
    compacts: bool = False,
    **environ: str,
) -> AsyncIterator[Codex]:
    async with serve(upstream) as address:
        entry = {"base_url": f"{address}/v1", "api": api}
        async with sidecar(ABRIDGE_UPSTREAMS=json.dumps([entry]), **environ) as running:
            yield Codex(running.url, folder, model, websockets, compacts)
            running.signal()
            await running.end()
            serves = websockets and "ABRIDGE_SERVER__WEBSOCKETS" not in environ
            assert "ABRIDGE_LOG__REQUESTS" not in environ or (
                serves == ("websocket=true" in running.output)
            )


@pytest.mark.parametrize("transport", ["http", "websocket", "switched off"])
@pytest.mark.parametrize("api", ["chat", "messages", "same"])
async def test_it_shows_the_summary_runs_the_command_and_ends(
    api: str, transport: str, tmp_path: Path
) -> None:
    """The first turn's reasoning returns to upstream unchanged, beside its call, also where a
    message on a WebSocket has only what is new, and where it has to do without."""
    environ = SWITCHED_OFF if transport == "switched off" else {}
    upstream_api = "responses" if api == "same" else api
    upstream = Upstream(
        turn(upstream_api, "", (SHELL, {"cmd": "echo $((6 * 7)) | tee made"})),
        turn(upstream_api, "It is forty-two.", thought="So it is. I have seen it.", first=1),
    )
    async with codex(
        upstream, api, tmp_path, websockets=transport != "http", **REQUESTS_LOGGED, **environ
    ) as client:
        ran = await client.run()
        assert (client.work / "made").read_text() == "42\n"
    assert ran.code == 0, ran.errors
    first, second = (item["text"] for item in ran.items("reasoning"))
    assert "sum of the first ten odd numbers" in first
    assert len(first) < len(THOUGHT)
    assert second
    (command,) = ran.items("command_execution")
    assert (command["aggregated_output"], command["exit_code"]) == ("42\n", 0)
    assert [item["text"] for item in ran.items("agent_message")] == ["It is forty-two."]
    assert ran.events[-1]["type"] == "turn.completed"
    assert ran.events[-1]["usage"]["reasoning_output_tokens"] == 100
    _, again = upstream.requests
    assert json.dumps(THOUGHT) in again.body.decode()
    assert "42\\n" in again.body.decode()
    if api == "messages":
        assert _blocks(again.json)["thinking"]["signature"] == "c2ln0000"


@pytest.mark.parametrize("websockets", [False, True], ids=["http", "websocket"])
async def test_it_has_its_conversation_compacted(tmp_path: Path, *, websockets: bool) -> None:
    """Within its turn, once a command has run: with `compaction_trigger`, and then goes on."""
    summary = completion({"content": "The user asked for six times seven. The command said 42."})
    upstream = Upstream(
        turn("chat", "", (SHELL, {"cmd": "echo $((6 * 7)) | tee made"})),
        Answer.json(summary),
        turn("chat", "It is forty-two.", thought="I have seen it.", first=1),
    )
    async with codex(upstream, "chat", tmp_path, websockets=websockets, compacts=True) as client:
        ran = await client.run()
    assert ran.code == 0, ran.errors
    assert [item["text"] for item in ran.items("agent_message")] == ["It is forty-two."]
    _, asked, last = (request.json["messages"] for request in upstream.requests)
    assert "about to be compacted" in asked[-1]["content"]
    said = json.dumps(last)
    assert "The command said 42." in said
    assert SEVEN in said
    assert THOUGHT not in said


def _blocks(body: dict[str, Any]) -> dict[str, Any]:
    (message,) = [each for each in body["messages"] if each["role"] == "assistant"]
    return {block["type"]: block for block in message["content"]}


def offered_in(body: dict[str, Any]) -> list[str]:
    """Return the names of the tools that a request offers."""
    tools = [each for tool in body["tools"] for each in tool.get("functionDeclarations", [tool])]
    return [tool.get("function", tool)["name"] for tool in tools]


def said_in(body: dict[str, Any]) -> list[Any]:
    """Return the messages of a request."""
    messages: list[Any] = body["contents"] if "contents" in body else body["messages"]
    return messages


@TRANSLATED
async def test_every_function_tool_is_offered_and_called(api: str, tmp_path: Path) -> None:
    """In one turn, including namespaced ones; server-side search is not offered."""
    close = "multi_agent_v1__close_agent"
    calls = [(close, {"target": "nobody"}), (SHELL, {"cmd": "echo a"}), (SHELL, {"cmd": "echo b"})]
    upstream = Upstream(turn(api, "", *calls), turn(api, "Done.", first=3))
    async with codex(upstream, api, tmp_path) as client:
        ran = await client.run("Do three things.")
    assert ran.code == 0, ran.errors
    first, second = (request.json for request in upstream.requests)
    offered = offered_in(first)
    assert {SHELL, "write_stdin", close} <= set(offered)
    assert not any("web_search" in name for name in offered)
    outputs = [item["aggregated_output"] for item in ran.items("command_execution")]
    assert sorted(outputs) == ["a\n", "b\n"]
    assert "invalid agent id nobody" in json.dumps(said_in(second))


@TRANSLATED
async def test_it_patches_with_its_custom_tool(api: str, tmp_path: Path) -> None:
    """It is offered to upstream as a function."""
    upstream = Upstream(
        turn(api, "", ("apply_patch", {"input": PATCH})), turn(api, "Done.", first=1)
    )
    async with codex(upstream, api, tmp_path, model=CATALOGED) as client:
        ran = await client.run("Make a file.")
        assert (client.work / "made").read_text() == "forty-two\n"
    assert ran.code == 0, ran.errors
    assert ran.items("file_change")[0]["status"] == "completed"
    again = json.dumps(said_in(upstream.requests[1].json)[-2:])
    assert all(words in again for words in ("apply_patch", "Success. Updated the following files"))


@TRANSLATED
async def test_it_runs_scripts_of_a_model_that_calls_tools_from_them(
    api: str, tmp_path: Path
) -> None:
    script = "text((await tools.exec_command({cmd: 'echo $((6 * 7))'})).output)"
    upstream = Upstream(
        turn(api, "", ("functions__exec", {"input": script})), turn(api, "Done.", first=1)
    )
    async with codex(upstream, api, tmp_path, model=SCRIPTING) as client:
        ran = await client.run()
    assert ran.code == 0, ran.errors
    assert ran.items("command_execution")[0]["aggregated_output"] == "42\n"
    assert "42\\n" in json.dumps(said_in(upstream.requests[1].json)[-1])


@TRANSLATED
async def test_it_searches_for_tools_and_offers_those_found(api: str, tmp_path: Path) -> None:
    close = "multi_agent_v1__close_agent"
    upstream = Upstream(
        turn(api, "", ("tool_search", {"query": "close an agent"})),
        turn(api, "", (close, {"target": "nobody"}), first=1),
        turn(api, "Done.", first=2),
    )
    async with codex(upstream, api, tmp_path, model=CATALOGED) as client:
        ran = await client.run("Close the agent.")
    assert ran.code == 0, ran.errors
    offered = [offered_in(request.json) for request in upstream.requests]
    assert [close in names for names in offered] == [False, True, True]
    assert close in json.dumps(said_in(upstream.requests[1].json)[-1])
    assert "invalid agent id nobody" in json.dumps(said_in(upstream.requests[2].json)[-1])


@TRANSLATED
async def test_a_broken_upstream_looks_broken(api: str, tmp_path: Path) -> None:
    frames = list(turn(api, "It is forty-two.").steps)
    upstream = Upstream(Answer([*frames[:-5], ConnectionError("gone")]))
    async with codex(upstream, api, tmp_path) as client:
        ran = await client.run()
    assert ran.code == 1
    assert "The upstream broke off its response." in ran.events[-1]["error"]["message"]


@TRANSLATED
async def test_a_refusal_reaches_it(api: str, tmp_path: Path) -> None:
    error = {"type": "authentication_error", "message": "Who are you?"}
    own = {"type": "error", "error": error} if api == "messages" else {"error": error}
    async with codex(Upstream(Answer.json(own, 401)), api, tmp_path) as client:
        ran = await client.run()
    assert ran.code == 1
    assert "401 Unauthorized: Who are you?" in ran.events[-1]["error"]["message"]


@TRANSLATED
async def test_when_it_is_interrupted_upstream_stops(api: str, tmp_path: Path) -> None:
    frames = list(turn(api, "It is forty-two.").steps)
    upstream = Upstream(Answer([*frames[:-5], asyncio.Event()]))
    async with codex(upstream, api, tmp_path) as client:
        process = await client.start()
        try:
            await until(lambda: upstream.sent > 0)
            process.send_signal(signal.SIGINT)
            await client.end(process)
            await until(lambda: upstream.left == 1)
            assert upstream.left == 1
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
