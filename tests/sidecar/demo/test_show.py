"""Test `abridge demo` as users see it: in a pipe, in a terminal and with --serve."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import httpx
import pytest

from abridge.config.settings import Settings
from abridge.config.tables import ServerSettings
from abridge.config.upstreams import UpstreamSettings
from abridge.errors import SettingsError
from abridge.sidecar.check.run import Check
from abridge.sidecar.demo.script import ANSWER, QUESTION, THINKING
from abridge.sidecar.demo.show import demo_server
from tests.support.checker import check_responses
from tests.support.messages_checker import check_messages
from tests.support.redis_server import free_port
from tests.support.servers import HANG, soon
from tests.support.sidecar import environment

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="a shell, and signals, of POSIX")
wide = partial(pytest.param, marks=pytest.mark.repeat)
"""A width of which the renderer's own tests are as well."""
needs_terminal = pytest.mark.skipif(
    not Path("/dev/ptmx").exists(), reason="no terminal can be made here"
)

DEMO = (sys.executable, "-m", "abridge", "demo")
NUMBER = r"([\d,]+)"


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, f"no {pattern} in:\n{text}"
    return int(found[1].replace(",", ""))


def texts(output: str, label: str) -> list[str]:
    """Return the texts of the lines that begin with a label."""
    lines = [line.split(" | ", 1) for line in output.splitlines() if line.startswith(label)]
    return [line[1] if len(line) > 1 else "" for line in lines]


@asynccontextmanager
async def demo(
    *flags: str, out: int = asyncio.subprocess.PIPE, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *DEMO,
        *flags,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=out,
        stderr=asyncio.subprocess.PIPE,
        env=environment({"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "", **variables}),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def shell(script: str) -> bytes:
    """Return what a shell script prints, with this Python first on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    process = await asyncio.create_subprocess_exec(
        *("sh", "-e", "-c", script),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment({"PATH": path}),
    )
    printed, errors = await soon(process.communicate())
    assert process.returncode == 0, errors.decode()
    return printed


@pytest.fixture(scope="module")
def output() -> str:
    """Return what the demo prints into a pipe."""
    unset = environment({"COLUMNS": ""})
    done = subprocess.run(DEMO, capture_output=True, check=True, env=unset, timeout=60)  # noqa: S603 -- our own
    assert done.stderr == b""
    return done.stdout.decode()


class TestPipe:
    def test_the_first_line_says_that_the_model_is_scripted(self, output: str) -> None:
        assert "A scripted model, no AI" in output.splitlines()[0]

    def test_there_are_no_escapes_and_no_long_lines(self, output: str) -> None:
        assert "\x1b" not in output
        assert max(map(len, output.splitlines())) <= 100

    def test_titled_parts_appear_while_it_still_thinks(self, output: str) -> None:
        lines = output.splitlines()
        thought = max(n for n, line in enumerate(lines) if line.startswith("thinking"))
        titles = [n for n, line in enumerate(lines) if re.match(r"summary  \| \*\*.+\*\*$", line)]
        assert sum(title < thought for title in titles) >= 2

    def test_the_answer_comes_whole_and_last(self, output: str) -> None:
        assert texts(output, "answer") == ANSWER.splitlines()
        answer = output.index("answer   |")
        assert output.rindex("summary  |") < answer
        assert output.rindex("thinking |") < answer

    def test_the_tokens_in_the_bill_add_up(self, output: str) -> None:
        bill = output[output.index("The bill") :]
        model = number(rf"model +{NUMBER} tokens", bill)
        parts = [number(rf"{NUMBER} {label}", bill) for label in ("input", "reasoning", "answer")]
        summary = number(rf"summary +{NUMBER} tokens", bill)
        assert sum(parts) == model > 0
        assert number(rf"total +{NUMBER} tokens", bill) == model + summary
        titles = [line for line in texts(output, "summary") if line.startswith("**")]
        assert number(rf"{NUMBER} parts", bill) == len(titles)

    def test_the_first_summary_text_precedes_the_end_of_thinking(self, output: str) -> None:
        found = re.search(r"text after ([\d.]+) s, thinking ended after ([\d.]+) s", output)
        assert found is not None
        assert float(found[1]) < float(found[2])
        assert re.search(r"the answer waited [\d.]+ s", output)

    def test_it_prints_the_next_commands(self, output: str) -> None:
        assert "abridge serve --upstream http://127.0.0.1:8000/v1\n" in output
        assert "abridge demo --serve --port 8400\n" in output


async def check_thinking(address: str, model: str) -> None:
    """Ask as Claude Code does, and check that thinking is shown and the answer whole."""
    request = {
        "model": model,
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "messages": [{"role": "user", "content": QUESTION}],
        "stream": True,
    }
    async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=HANG) as client:
        answer = await client.post("/v1/messages", json=request)
    seen = check_messages(answer.content)
    assert [block["type"] for block in seen.blocks] == ["thinking", "text"]
    assert "**" in seen.blocks[0]["thinking"]
    assert seen.blocks[1]["text"] == ANSWER


async def check_background(address: str) -> None:
    """Begin an answer that nobody waits for, and follow it, as on the page of those."""
    request = {"model": "your-model", "input": QUESTION, "background": True}
    async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=HANG) as client:
        begun = (await client.post("/v1/responses", json=request)).json()
        path = f"/v1/responses/{begun['id']}?stream=true"
        assert check_responses((await client.get(path)).content).text == ANSWER


async def check_model_alone(address: str) -> None:
    """To another Abridge it is a model's server, which has Chat Completions and no summaries."""
    chat = {"model": "your-model", "messages": [{"role": "user", "content": QUESTION}]}
    asked = {"reasoning": {"summary": "auto"}}
    via = {"x-abridge-via": "0123456789abcdef"}
    async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=HANG) as client:
        answer = await client.post("/v1/chat/completions", json=chat | asked, headers=via)
        assert answer.json()["choices"][0]["message"]["reasoning_content"] == THINKING
        missing = await client.post("/v1/responses", json={"input": QUESTION}, headers=via)
        assert missing.status_code == 404


async def check_findings(address: str) -> None:
    """A check finds what Abridge will: that server, and not the Abridge in front of it."""
    upstream = UpstreamSettings(base_url=f"{address}/v1")
    checking = Check(Settings(upstreams=(upstream,)), probing=True)
    texts = [finding.text async for finding in checking.findings()]
    assert any(text.startswith("streams; reasoning in a separate field") for text in texts)
    assert not any("is Abridge, too" in text or "separate items" in text for text in texts)


@needs_posix
class TestServing:
    async def test_the_printed_commands_work_and_a_signal_ends_the_server(self) -> None:
        port = free_port()
        async with demo("--serve", "--port", str(port)) as process:
            assert process.stdout is not None
            printed = (await soon(process.stdout.readuntil(b"\n# Anthropic("))).decode()
            assert f"until ctrl-C, at http://127.0.0.1:{port}\n" in printed
            curl = re.search(r"^curl .*?^}'$", printed, re.MULTILINE | re.DOTALL)
            openai = re.search(r"^python3 .*?^END$", printed, re.MULTILINE | re.DOTALL)
            assert curl is not None
            assert openai is not None
            if shutil.which("curl") is not None:
                seen = check_responses(await shell(curl[0]))
                assert seen.text == ANSWER
                assert len(seen.summary) > 1
            page = re.search(r"in a browser, at (http://\S+/abridge)$", printed, re.MULTILINE)
            assert page is not None
            async with httpx.AsyncClient(trust_env=False) as client:
                assert "<title>Abridge</title>" in (await client.get(page[1])).text
            claude = re.search(
                r"^ANTHROPIC_BASE_URL=(\S+) .*claude --model (\S+)$", printed, re.MULTILINE
            )
            assert claude is not None
            await check_thinking(*claude.groups())
            await check_background(f"http://127.0.0.1:{port}")
            await check_findings(f"http://127.0.0.1:{port}")
            await check_model_alone(f"http://127.0.0.1:{port}")
            reported = (await shell(openai[0])).decode()
            titles = [line for line in texts(printed, "summary") if line.startswith("**")]
            assert [line for line in reported.splitlines() if line.startswith("**")] == titles
            assert reported.endswith(ANSWER)
            process.send_signal(signal.SIGINT)
            _, errors = await soon(process.communicate())
            assert (process.returncode, errors) == (0, b"")


class Terminal:
    """A pseudo-terminal of 30 lines."""

    def __init__(self, columns: int = 100) -> None:
        import pty

        self.user, self.program = pty.openpty()
        self.resize(columns)
        self.written = bytearray()

    def resize(self, columns: int) -> None:
        import fcntl
        import termios

        fcntl.ioctl(self.program, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))

    async def until(self, words: str) -> None:
        while words not in self.screen_text:
            assert await self._read(), f"it ended, and showed:\n{self.screen_text[-2000:]}"

    async def end(self) -> None:
        os.close(self.program)
        while await self._read():
            pass

    async def _read(self) -> bool:
        loop = asyncio.get_running_loop()
        data = b""
        with suppress(OSError):  # how a terminal reports that the other end is closed
            async with asyncio.timeout(HANG):
                data = await loop.run_in_executor(None, os.read, self.user, 1 << 16)
        self.written += data
        return bool(data)

    @property
    def screen_text(self) -> str:
        """Return what was written: a read may end within a character or a line's end."""
        return self.written.decode(errors="replace").replace("\r\n", "\n")

    @property
    def left_behind(self) -> str:
        """Return what stays in the terminal, without its escape sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.screen_text.partition("\x1b[?1049l")[2])

    @property
    def frames(self) -> list[str]:
        """Return the frames without their escape sequences."""
        painted = self.screen_text.partition("\x1b[?1049l")[0].split("\x1b[H")[1:]
        return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame) for frame in painted]


async def played(columns: int, **variables: str) -> Terminal:
    """Return a terminal of so many columns in which the demo has run."""
    terminal = Terminal(columns)
    async with demo("--fast", out=terminal.program, **variables) as process:
        await terminal.until("END")
        await soon(process.wait())
    await terminal.end()
    assert process.returncode == 0
    return terminal


@needs_posix
@needs_terminal
class TestTerminal:
    async def test_thinking_scrolls_on_the_left_and_the_summary_grows_on_the_right(self) -> None:
        terminal = await played(100)
        assert all(len(frame.split("\n")) <= 30 for frame in terminal.frames)
        assert all(len(line) <= 100 for frame in terminal.frames for line in frame.split("\n"))
        reported = [int(re.findall(r"summary, (\d+) part", frame)[0]) for frame in terminal.frames]
        assert reported == sorted(reported)
        assert reported[0] == 0
        assert re.search(r"\x1b\[\d*m", terminal.screen_text)  # titles are bold
        midst = terminal.frames[reported.index(1)].split("\n")
        assert QUESTION in midst[0]
        assert all(" |" in line for line in midst[3:])
        assert ANSWER in terminal.left_behind
        assert "The bill" in terminal.left_behind
        assert "\x1b[?25h" in terminal.screen_text  # the cursor is back

    @pytest.mark.parametrize("columns", [40, *map(wide, (80, 200))])
    async def test_no_character_is_lost_at_any_width_nor_without_colour(self, columns: int) -> None:
        terminal = await played(columns, NO_COLOR="1")
        assert not re.search(r"\x1b\[\d*m", terminal.screen_text)
        erased = re.findall(r"(\n|\x1b\[H)?\x1b\[[0-2]?K", terminal.screen_text)
        assert all(erased)  # at the beginning of a line, never behind its text
        lines = [line for frame in terminal.frames for line in frame.split("\n")]
        assert max(map(len, lines)) <= columns
        assert " ".join(ANSWER.split()) in " ".join(terminal.left_behind.split())
        assert max(map(len, terminal.left_behind.partition("# To try")[0].split("\n"))) <= columns

    async def test_it_follows_a_window_that_is_resized_and_ctrl_c_restores_the_screen(self) -> None:
        terminal = Terminal(120)
        async with demo(out=terminal.program) as process:
            await terminal.until("summary, 0 parts")
            terminal.resize(50)
            await terminal.until("summary, 1 part\n")
            terminal.resize(120)
            await terminal.until("summary, 2 parts")
            process.send_signal(signal.SIGINT)
            _, errors = await soon(process.communicate())
        await terminal.end()
        widths = [max(map(len, frame.split("\n"))) for frame in terminal.frames]
        assert min(widths[5:]) <= 50 < max(widths)
        assert terminal.screen_text.rstrip().endswith("\x1b[?25h\x1b[?1049l")
        assert "Traceback" not in errors.decode()

    async def test_a_dumb_terminal_gets_lines_as_wide_as_it_is(self) -> None:
        terminal = await played(60, TERM="dumb")
        assert "\x1b" not in terminal.screen_text
        assert max(map(len, terminal.screen_text.partition("# To try")[0].split("\n"))) <= 60
        assert " ".join(texts(terminal.screen_text, "answer")).split() == ANSWER.split()


def test_of_the_environment_only_the_origins_of_pages_count() -> None:
    origins = "ABRIDGE_SERVER__ALLOWED_ORIGINS"
    environ = {origins: '["http://127.0.0.1:8500"]', "ABRIDGE_SERVER__PORT": "1"}
    server = demo_server(environ, page=True)
    assert server == ServerSettings(page=True, allowed_origins=["http://127.0.0.1:8500"])
    with pytest.raises(SettingsError, match=r"server\.allowed_origins: got 'x'; must"):
        demo_server({origins: "x"}, page=True)
