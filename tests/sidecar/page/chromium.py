"""Drive a real Chromium, if installed, by its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect

from tests.support.servers import HANG, soon

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")

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
    "--in-process-gpu",  # and all else in as few processes as it can
    "--renderer-process-limit=1",
    "--disable-site-isolation-trials",
    "--disable-features=SpareRendererForSitePerProcess,BackForwardCache",
    "--enable-features=NetworkServiceInProcess2",
    "--remote-debugging-port=0",
)
KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "ArrowDown": (40, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
}
CTRL = 2


class Tab:
    """One page: `requests` are the addresses it requested, `complaints` the errors on its console,
    including violations of the content security policy."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self.session = ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._posts: dict[str, str] = {}

    async def listen(self) -> None:
        async for message in self._socket:
            reply = json.loads(message)
            if (answer := self._answers.pop(reply.get("id", 0), None)) is not None:
                if not answer.done():
                    answer.set_result(reply)
            else:
                self._note(reply.get("method"), reply.get("params", {}))

    def _note(self, method: str, reply: Any) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(reply["request"]["url"])
            if reply["request"]["method"] == "POST":
                self._posts[reply["request"]["url"]] = reply["requestId"]
        elif method == "Log.entryAdded" and reply["entry"]["level"] == "error":
            self.complaints.append(reply["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(reply["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and reply["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(reply["args"]))

    async def command(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        sent = {"id": number, "method": method, "params": params}
        sent |= {"sessionId": self.session} if self.session else {}
        await self._socket.send(json.dumps(sent))
        reply = await soon(answer)
        assert "error" not in reply, f"{method}: {reply['error']}"
        return reply["result"]

    async def open(self, url: str) -> None:
        await self.command("Page.navigate", url=url)
        await self.until(
            f"location.href === {json.dumps(url)} && document.readyState === 'complete'"
        )

    async def get(self, script: str) -> Any:
        """Return the value of an expression, or of the promise it returns."""
        reply = await self.command(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in reply, reply["exceptionDetails"]
        return reply["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true; it may raise until then."""
        check = f"(() => {{ try {{ return !!({script}) }} catch {{ return false }} }})()"
        with suppress(TimeoutError):
            async with asyncio.timeout(HANG):
                while not await self.get(check):  # noqa: ASYNC110 -- there is no event to wait for
                    await asyncio.sleep(0.02)
                return
        page_text = await self.get("document.body.innerText")
        raise AssertionError(f"never {script} in:\n{page_text}\n{self.complaints}")

    async def text(self, selector: str) -> str:
        return str(await self.get(f"document.querySelector({json.dumps(selector)}).textContent"))

    async def words(self, selector: str) -> str:
        """Return an element's text as it is laid out, with the lines of its blocks."""
        return str(await self.get(f"document.querySelector({json.dumps(selector)}).innerText"))

    async def press(self, key: str, modifiers: int = 0) -> None:
        code, text = KEYS[key]
        reply = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        await self.command("Input.dispatchKeyEvent", type="keyDown", text=text, **reply)
        await self.command("Input.dispatchKeyEvent", type="keyUp", **reply)

    async def type(self, text: str) -> None:
        await self.command("Input.insertText", text=text)

    async def click(self, selector: str) -> None:
        await self.get(f"document.querySelector({json.dumps(selector)}).click()")

    async def posted(self, url: str) -> str:
        """Return the whole response body of the last POST to this address."""
        reply = await self.command("Network.getResponseBody", requestId=self._posts[url])
        body = str(reply["body"])
        return base64.b64decode(body).decode() if reply["base64Encoded"] else body

    async def size(self, width: int, height: int) -> None:
        await self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    async def prefer(self, **features: str) -> None:
        reply = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value}
            for name, value in features.items()
        ]
        await self.command("Emulation.setEmulatedMedia", features=reply)

    async def picture(self, width: int = 0, height: int = 0) -> bytes:
        """Return a picture of the page, or of so much of it, as PNG."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        more = {"clip": clip} if width else {}
        reply = await self.command("Page.captureScreenshot", captureBeyondViewport=True, **more)
        return base64.b64decode(reply["data"])


class Chromium:
    """The browser's process, with an empty profile."""

    def __init__(self, folder: str) -> None:
        self._port = Path(folder) / "DevToolsActivePort"
        self._process = subprocess.Popen(  # noqa: S603 -- found on this machine's own path
            (str(PROGRAM), *FLAGS, f"--user-data-dir={folder}", "about:blank"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def address(self) -> str:
        """Return the address of its DevTools once it is ready."""
        for _ in range(int(HANG / 0.05)):
            reply = self._port.read_text() if self._port.exists() else ""
            if "\n" in reply:
                port, path = reply.split("\n")[:2]
                return f"ws://127.0.0.1:{port}{path}"
            assert self._process.poll() is None, f"{PROGRAM} does not start"
            time.sleep(0.05)
        raise TimeoutError(f"{PROGRAM} does not start")

    def end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(HANG)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture(scope="session")
def chromium() -> Iterator[str]:
    """Run a browser for all tests of a worker; return its address."""
    if PROGRAM is None:
        pytest.skip("no chromium on this machine")
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        browser = Chromium(folder)
        try:
            yield browser.address()
        finally:
            browser.end()


@asynccontextmanager
async def new_tab(address: str) -> AsyncIterator[Tab]:
    """Open the browser's one tab, as empty as a new one: to start a process for another costs more
    than most of what is done in it."""
    async with connect(address, max_size=None) as socket:
        tab = Tab(socket)
        listening = asyncio.create_task(tab.listen())
        try:
            async with _emptied(tab):
                yield tab
        finally:
            listening.cancel()
            await asyncio.wait([listening])


@asynccontextmanager
async def _emptied(tab: Tab) -> AsyncIterator[None]:
    """What is emulated ends with the connection, and what a page stores is of its port alone."""
    target = await _only_page(tab)
    attached = await tab.command("Target.attachToTarget", targetId=target, flatten=True)
    tab.session = attached["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        await tab.command(f"{domain}.enable")
    try:
        yield
    finally:
        await tab.open("about:blank")
        for kept in ("Cookies", "Cache"):
            await tab.command(f"Network.clearBrowser{kept}")
        await tab.command("Page.resetNavigationHistory")


async def _only_page(tab: Tab) -> str:
    async with asyncio.timeout(HANG):
        while True:  # it is there soon after the browser answers
            targets = (await tab.command("Target.getTargets"))["targetInfos"]
            for target in targets:
                if target["type"] == "page":
                    return str(target["targetId"])
            await asyncio.sleep(0.02)
