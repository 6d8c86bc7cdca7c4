"""Ask on the page in a real browser: of a sidecar before a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.sidecar.app import Abridge, create_app
from tests.sidecar.page.chromium import Tab, new_tab
from tests.support.deployments import settings_for
from tests.support.servers import serve
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, ReceivedRequest, Upstream

OVER = "['done', 'incomplete', 'failed', 'stopped'].includes(document.body.dataset.state)"
RECORDED = f"{OVER} && document.querySelector('#exchanges li')"


class Model(Upstream):
    """A scripted upstream that has models to list, `names`, and may lack one of the paths."""

    names = ("thinker-1",)
    missing = "/none"

    def answer(self, request: ReceivedRequest) -> Answer:
        if request.path.endswith("/models"):
            return Answer.json({"object": "list", "data": [{"id": name} for name in self.names]})
        if request.path.endswith(self.missing):
            return Answer.json({"error": {"message": "No such path."}}, 404)
        return super().answer(request)


Open = Callable[..., AbstractAsyncContextManager[Tab]]


@pytest.fixture
def page(chromium: str) -> Open:
    """The page of a sidecar before a model, or before an address; with a writer, and settings."""

    @asynccontextmanager
    async def opened(
        model: ASGIApp | str, writer: Scripted | None = None, **tables: Any
    ) -> AsyncIterator[Tab]:
        async with AsyncExitStack() as stack:
            at = model if isinstance(model, str) else await stack.enter_async_context(serve(model))
            app = sidecar(at, writer, tables)
            await stack.enter_async_context(aclosing(app))
            url = await stack.enter_async_context(serve(app))
            tab = await stack.enter_async_context(new_tab(chromium))
            await tab.open(f"{url}/abridge")
            await tab.until("document.querySelector('#curl').textContent")
            yield tab

    return opened


def sidecar(model: str, writer: Scripted | None, tables: dict[str, Any]) -> Abridge:
    upstream = {"base_url": f"{model}/v1", **tables.pop("upstream", {})}
    tables = {"upstreams": [upstream], "server": {"page": True}, **tables}
    if writer is not None:
        tables["summarizer"] = {"kind": "object"}
    return create_app(settings_for(**tables), summarizer=writer, registry=CollectorRegistry())


async def ask_question(tab: Tab, question: str = "How many?") -> None:
    await tab.get(f"document.getElementById('question').value = {json.dumps(question)}")
    await tab.click("#go")


async def figures(tab: Tab) -> dict[str, str]:
    values = "(dd) => [dd.dataset.figure, dd.textContent]"
    return dict(await tab.get(f"Array.from(document.querySelectorAll('.bill dd'), {values})"))


def tokens(count: int) -> str:
    return f"{count:,} tokens"


def seconds(time: float) -> str:
    return f"{time:.{2 if time < 1 else 1}f} s"


def gated(gate: asyncio.Event, *, thought: str = THOUGHT, answer: str = "Hello.") -> list[Any]:
    """A stream that stands still between its thinking and its answer."""
    frames = responses_stream([reasoning_item(0, thought), message_item(1, answer)])
    place = next(n for n, one in enumerate(frames) if b"reasoning_text.done" in one)
    return [*frames[:place], gate, *frames[place:]]
