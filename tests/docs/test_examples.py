"""Run each example and each client's snippet as a reader would, with the scripted model.

What is run is the file of docs/examples, or the block of docs/clients.md, with the address and the
model's name put in; what it prints has to hold what the page shows. Programs that need packages of
their own run where these are: `pip install --group examples`, and for JavaScript a folder with
`npm install openai ai @ai-sdk/openai`, named by `AI_SDK`. Codex and Claude Code are searched for as
in tests/clients.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from abridge.sidecar.demo.model import scripted_model
from abridge.sidecar.demo.script import ANSWER, LATER_ANSWER, NOTE
from tests.docs.pages import ROOT, Block, assert_printed, blocks_of, with_readers_own
from tests.sidecar.page.chromium import Tab, chromium, new_tab
from tests.support.servers import HANG, serve, unused_address
from tests.support.sidecar import environment, sidecar
from tests.support.streams import message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, Upstream

__all__ = ["chromium"]

EXAMPLES = ROOT / "docs" / "examples"
CLIENTS = [*blocks_of(ROOT / "docs" / "clients.md")]
SNIPPETS = [block for block in CLIENTS if block.language in ("python", "js")]
CURL = [block for block in CLIENTS if block.text.startswith("$ curl")]

CODEX = os.environ.get("CODEX") or shutil.which("codex") or ""
CLAUDE = os.environ.get("CLAUDE") or shutil.which("claude") or ""
NODE, AI_SDK = shutil.which("node"), os.environ.get("AI_SDK")

QUESTION = "How many primes are below 100?"
TITLES = (
    "**Serving roast chicken, gratin, beans and a tart to six people**",
    "**Noting that the gratin should stand for 10 minutes**",
    "**Concluding that the first job of the day is the pastry**",
)
END = ANSWER.splitlines()[-1]
FOR_THIS_TEST = {"NO_PROXY": "127.0.0.1", "HTTPS_PROXY": unused_address()}  # other traffic fails


def run(
    *command: str, folder: Path, given: str | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder and return what it printed; it has to succeed."""
    ran = subprocess.run(  # noqa: S603 -- the documentation's own
        command,
        cwd=folder,
        env=environment({**FOR_THIS_TEST, "HOME": str(folder), **environ}),
        stdin=subprocess.DEVNULL if given is None else None,
        input=given,
        capture_output=True,
        text=True,
        timeout=HANG * 2,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran


def example(name: str, folder: Path, address: str) -> Path:
    """Copy an example into a folder, with a reader's own address in it."""
    copy = folder / name
    copy.write_text(with_readers_own((EXAMPLES / name).read_text(), address))
    return copy


def needed(block: Block) -> None:
    """Skip where a package that a program needs is missing."""
    installer, packages = block.needs or ("pip", "")
    for package in packages.split():
        if installer == "npm":
            if NODE is None or AI_SDK is None or not Path(AI_SDK, "node_modules", package).exists():
                pytest.skip(f"no AI SDK, nor node's {package}: $AI_SDK names no folder with it")
        else:
            pytest.importorskip(
                {"openai-agents": "agents"}.get(package, package.replace("-", "_")),
                reason=f"{package} is not installed",
            )


@pytest.mark.parametrize("block", SNIPPETS, ids=str)
def test_each_clients_snippet_prints_what_its_page_shows(
    block: Block, demo: str, tmp_path: Path
) -> None:
    needed(block)
    program = with_readers_own(block.text, demo)
    if block.language == "js":
        ran = run(str(NODE), "--input-type=module", "--eval", program, folder=Path(AI_SDK or ""))
    else:
        ran = run(sys.executable, "-c", program, folder=tmp_path)
    assert block.output
    assert_printed(block.output, ran.stdout)


@pytest.mark.parametrize("block", CURL, ids=str)
def test_the_command_with_curl_prints_what_its_page_shows(
    block: Block, demo: str, tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    command = with_readers_own(block.text.removeprefix("$ "), demo)
    assert_printed(block.output, run("sh", "-c", command, folder=tmp_path).stdout)


def test_the_terminal_chat_answers_and_continues(demo: str, tmp_path: Path) -> None:
    program = example("terminal_chat.py", tmp_path, demo)
    printed = run(
        sys.executable, str(program), folder=tmp_path, given=f"{QUESTION}\nGo on.\n"
    ).stdout
    assert_printed("\n".join([*TITLES, NOTE, END, LATER_ANSWER]), printed)
    assert "\033" not in printed  # colours are for terminals
    assert len(program.read_text().splitlines()) <= 40


@pytest.mark.parametrize(
    ("name", "package"), [("langchain_chat.py", "langchain_openai"), ("agents_sdk.py", "agents")]
)
def test_an_example_with_a_framework_prints_summary_and_answer(
    name: str, package: str, demo: str, tmp_path: Path
) -> None:
    wanted = {"agents": "openai-agents", "langchain_openai": "langchain-openai"}[package]
    pytest.importorskip(package, reason=f"{wanted} is not installed")
    program = example(name, tmp_path, demo)
    printed = run(sys.executable, str(program), folder=tmp_path).stdout
    assert_printed("\n".join([*TITLES, NOTE, END]), printed)
    starts = [line for line in printed.splitlines() if line.startswith("**")]
    assert [line for line in starts if line in TITLES] == list(TITLES)  # each on a line of its own


@contextmanager
def uvicorn(folder: Path, app: str) -> Iterator[str]:
    """Run an app as its example says; yield its address."""
    running = subprocess.Popen(  # noqa: S603 -- fixed command
        (sys.executable, "-m", "uvicorn", app, "--port", "0"),
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert running.stderr is not None
    try:
        lines = iter(running.stderr.readline, "")
        yield next(found[1] for line in lines if (found := re.search(r"(http://[\d.:]+)", line)))
    finally:
        running.terminate()
        running.communicate(timeout=HANG)


async def test_the_fastapi_app_summarizes_for_users_it_knows(tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    body = {"model": "scripted", "messages": [{"role": "user", "content": QUESTION}]}
    async with serve(scripted_model(0)) as model:
        program = (EXAMPLES / "fastapi_app.py").read_text()
        copy = tmp_path / "fastapi_app.py"
        copy.write_text(program.replace("http://127.0.0.1:8000", model))
        with uvicorn(tmp_path, "fastapi_app:app") as address:
            url = f"{address}/v1/chat/completions"
            async with httpx.AsyncClient(trust_env=False, timeout=HANG) as client:
                refused = await client.post(url, json=body)
                anna = {"authorization": "Bearer token-of-anna"}
                answered = await client.post(url, json=body, headers=anna)
                streamed = await client.post(url, json={**body, "stream": True}, headers=anna)
    assert refused.status_code == 401
    assert refused.json() == {"error": {"message": "This token is not known."}}
    message = answered.json()["choices"][0]["message"]
    assert message["content"].endswith(ANSWER)
    assert message["reasoning_content"].startswith("**Coming to a decision**\n\nSo this is")
    assert "Therefore the chicken sets the pace" in message["reasoning_content"]
    assert "Let me put down how long" not in message["reasoning_content"]
    chunks = [line[6:] for line in streamed.text.splitlines() if line.startswith("data: {")]
    deltas = [json.loads(chunk)["choices"][0]["delta"] for chunk in chunks]
    summary = "".join(delta.get("reasoning_content") or "" for delta in deltas)
    assert "Therefore the chicken sets the pace" in summary


def test_codex_with_its_example_shows_what_its_page_shows(demo: str, tmp_path: Path) -> None:
    if not CODEX:
        pytest.skip("no codex: neither $CODEX nor on the path")
    (tmp_path / "work").mkdir()
    example("codex.toml", tmp_path, demo).rename(tmp_path / "config.toml")
    (block,) = [block for block in CLIENTS if block.text.startswith("$ codex exec")]
    words = block.text.removeprefix("$ codex exec").strip().strip("'")
    ran = run(
        *(CODEX, "exec", "--skip-git-repo-check", words),
        folder=tmp_path / "work",
        CODEX_HOME=str(tmp_path),
    )
    assert_printed(block.output, ran.stderr + ran.stdout)
    assert "WebSocket" not in ran.stderr  # nothing is wrong with the one that the file asks for


def test_claude_code_with_its_example_shows_what_its_page_shows(demo: str, tmp_path: Path) -> None:
    if not CLAUDE:
        pytest.skip("no claude: neither $CLAUDE nor on the path")
    settings = example("claude-code.json", tmp_path, demo)
    (block,) = [block for block in CLIENTS if block.text.startswith("$ claude")]
    printed = run(
        *(CLAUDE, "--settings", str(settings), "-p", QUESTION),
        *("--output-format", "stream-json", "--verbose", "--bare"),
        folder=tmp_path,
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    ).stdout
    assert_printed(block.output, printed)


@asynccontextmanager
async def chat_page(model: Any, folder: Path) -> AsyncIterator[str]:
    """Serve the page and the sidecar as docs/examples/README.md says; yield the page's address."""
    files = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"),
        *("--directory", str(folder)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert files.stdout is not None
    try:
        port = (await files.stdout.readline()).split()[5].decode()
        site = f"http://127.0.0.1:{port}"
        async with serve(model) as upstream:
            flags = ("--upstream", f"{upstream}/v1")
            origins = json.dumps([site])
            async with sidecar(*flags, ABRIDGE_SERVER__ALLOWED_ORIGINS=origins) as running:
                example("chat.html", folder, running.url)
                yield f"{site}/chat.html"
    finally:
        files.kill()
        await files.wait()


WATCH = """
window.seen = [];
new MutationObserver(() => window.seen.push(document.querySelector(".status")?.textContent))
  .observe(document.querySelector("main"), {subtree: true, childList: true, characterData: true});
"""


async def ask(tab: Tab, question: str, turn: int) -> None:
    """Ask on the page, and wait for the end of the turn."""
    await tab.until("document.activeElement.name === 'question'")
    await tab.type(question)
    await tab.press("Enter")
    await tab.until(f"document.querySelectorAll('.turn').length === {turn}")
    await tab.until("!document.querySelector('button').disabled")


async def test_the_chat_page_shows_summary_and_answer(chromium: str, tmp_path: Path) -> None:
    async with chat_page(scripted_model(0.001), tmp_path) as address, new_tab(chromium) as tab:
        await tab.open(address)
        await tab.get(WATCH)
        await ask(tab, QUESTION, 1)
        assert (await tab.text(".status")).startswith("Thought for ")
        titles = await tab.get("[...document.querySelectorAll('.title')].map(e => e.textContent)")
        assert titles[:3] == [title.strip("*") for title in TITLES]
        assert set(titles) & set(await tab.get("window.seen"))
        assert (await tab.text(".body")).startswith("The user wants to serve")
        assert await tab.text(".answer") == f"{NOTE}\n\n{ANSWER}"
        await ask(tab, "Go on.", 2)
        assert (await tab.text(".turn:last-child .answer")) == LATER_ANSWER
        assert not tab.complaints


async def test_the_chat_page_shows_markup_as_text_and_errors_in_words(
    chromium: str, tmp_path: Path
) -> None:
    markup = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    error = Answer.json({"error": {"message": "Not <b>today</b>."}}, 429)
    thinking = responses_stream([reasoning_item(0, "I think."), message_item(1, markup)])
    model = Upstream(Answer(thinking), error)
    async with chat_page(model, tmp_path) as address, new_tab(chromium) as tab:
        await tab.open(address)
        await ask(tab, "Hi", 1)
        await ask(tab, "Hi", 2)
        assert await tab.text(".answer") == markup
        assert "Not <b>today</b>." in await tab.text(".error")
        assert await tab.get("document.title") == "Chat"
        assert (
            await tab.get("document.querySelectorAll('main img, main script, main b').length") == 0
        )
