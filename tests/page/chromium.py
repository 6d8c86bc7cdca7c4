"""A real Chromium, where the machine has one, driven by its DevTools over a WebSocket."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from tests.servers import HANG, soon

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
NO_CHROMIUM = "no chromium on this machine"

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-port=0",
)
KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "ArrowDown": (40, ""),
}
CTRL = 2


class Tab:
    """One page. `requests` are the addresses it asked for, `complaints` what the console was told
    of errors, the policy's violations among them."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.session = ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._posts: dict[str, str] = {}

    async def listen(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if (answer := self._answers.pop(told.get("id", 0), None)) is not None:
                if not answer.done():
                    answer.set_result(told)
            else:
                self._note(told.get("method"), told.get("params", {}))

    def _note(self, method: str, told: Any) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
            if told["request"]["method"] == "POST":
                self._posts[told["request"]["url"]] = told["requestId"]
        elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(told["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(told["args"]))

    async def command(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        sent = {"id": number, "method": method, "params": params}
        await self._socket.send_json({**sent, "sessionId": self.session} if self.session else sent)
        told = await soon(answer)
        assert "error" not in told, f"{method}: {told['error']}"
        return told["result"]

    async def open(self, url: str) -> None:
        await self.command("Page.navigate", url=url)
        await self.until(
            f"location.href === {json.dumps(url)} && document.readyState === 'complete'"
        )

    async def get(self, script: str) -> Any:
        """What an expression, or the promise it is, comes to."""
        told = await self.command(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true; what it speaks of may not be there yet."""
        check = f"(() => {{ try {{ return !!({script}) }} catch {{ return false }} }})()"
        with suppress(TimeoutError):
            async with asyncio.timeout(HANG):
                while not await self.get(check):  # noqa: ASYNC110 -- it tells nobody
                    await asyncio.sleep(0.02)
                return
        shown = await self.get("document.body.innerText")
        raise AssertionError(f"never {script} in:\n{shown}\n{self.complaints}")

    async def text(self, selector: str) -> str:
        return str(await self.get(f"document.querySelector({json.dumps(selector)}).textContent"))

    async def press(self, key: str, modifiers: int = 0) -> None:
        code, text = KEYS[key]
        told = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        await self.command("Input.dispatchKeyEvent", type="keyDown", text=text, **told)
        await self.command("Input.dispatchKeyEvent", type="keyUp", **told)

    async def type(self, text: str) -> None:
        await self.command("Input.insertText", text=text)

    async def click(self, selector: str) -> None:
        await self.get(f"document.querySelector({json.dumps(selector)}).click()")

    async def posted(self, url: str) -> str:
        """The whole body that came in answer to what was last posted there."""
        told = await self.command("Network.getResponseBody", requestId=self._posts[url])
        body = str(told["body"])
        return base64.b64decode(body).decode() if told["base64Encoded"] else body

    async def size(self, width: int, height: int) -> None:
        await self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    async def prefer(self, **features: str) -> None:
        told = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()
        ]
        await self.command("Emulation.setEmulatedMedia", features=told)

    async def picture(self) -> bytes:
        told = await self.command("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(told["data"])


@asynccontextmanager
async def browser() -> AsyncIterator[Tab]:
    """A tab in a browser of its own, which knows nothing yet and is gone at the end."""
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            *(str(PROGRAM), *FLAGS, f"--user-data-dir={folder}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            address = await soon(_address(process.stderr))
            reading = asyncio.create_task(_read_away(process.stderr))
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(address, max_msg_size=0) as socket,
                _tab(socket) as tab,
            ):
                yield tab
            await soon(reading)
        finally:
            await _ended(process)


async def _address(said: asyncio.StreamReader) -> str:
    """Where it listens, as it says itself."""
    while line := (await said.readline()).decode(errors="replace"):
        if line.startswith("DevTools listening on "):
            return line.split()[-1]
    raise ChildProcessError(f"{PROGRAM} does not start")


async def _read_away(said: asyncio.StreamReader) -> None:
    while await said.read(1 << 16):
        pass


async def _ended(process: asyncio.subprocess.Process) -> None:
    with suppress(TimeoutError):
        await soon(process.wait())
    if process.returncode is None:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _tab(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[Tab]:
    tab = Tab(socket)
    listening = asyncio.create_task(tab.listen())
    try:
        target = await tab.command("Target.createTarget", url="about:blank")
        attached = await tab.command(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        tab.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await tab.command(f"{domain}.enable")
        yield tab
    finally:
        tab.session = ""
        with suppress(Exception):
            await tab.command("Browser.close")
        listening.cancel()
        await asyncio.wait([listening])
