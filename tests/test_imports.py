"""What is imported, and when: nobody waits for the modules of what they do not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.sidecar import environment

EXTRAS = frozenset({"asyncpg", "cryptography", "opentelemetry", "redis"})

EXTRACTS = "abridge.summarizers.extractive.extract"

LATER = frozenset({*EXTRAS, EXTRACTS, "uvicorn", "uvloop"}) | {
    f"abridge.sidecar.{folder}" for folder in ("server", "check", "demo")
}
"""What an import of the package leaves for when it is used."""

SIDECAR = "abridge.sidecar"
WEBSOCKET_SESSION = "abridge.websocket.session"

MODEL = (
    "from abridge import AbridgeMiddleware, Settings; "
    "summarizer = {'kind': 'model', 'model': 'm', 'base_url': 'http://127.0.0.1:1/v1'}; "
    "AbridgeMiddleware(print, Settings(summarizer=summarizer, summary={'on_failure': '%s'}))"
)


REQUEST = """
import asyncio, json, sys
from abridge import AbridgeMiddleware, Settings

STREAM = [(b"content-type", b"text/event-stream")]
ASKED = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Which plan?"}]}

def frame(**delta):
    head = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\\n\\n"

async def app(scope, receive, send):
    thought = "The first plan takes two days. The second takes one. " * 9
    frames = frame(reasoning_content=thought) + frame(content="Two.") + b"data: [DONE]\\n\\n"
    await send({"type": "http.response.start", "status": 200, "headers": STREAM})
    await send({"type": "http.response.body", "body": frames, "more_body": False})

async def main():
    middleware = AbridgeMiddleware(app, Settings(summary={"default": "detailed"}))
    before, sent = set(sys.modules), []
    asked = [{"type": "http.request", "body": json.dumps(ASKED).encode()}]
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    async def receive():
        return asked.pop() if asked else await asyncio.Event().wait()
    async def send(message):
        sent.append(message.get("body", b""))
    await middleware(scope, receive, send)
    assert b"**" in b"".join(sent)  # a title, so there is a summary
    print(*set(sys.modules) - before)

asyncio.run(main())
"""
"""A request whose answer gets a summary; it prints the modules that were imported meanwhile."""


def modules_after(code: str) -> set[str]:
    """Return the names of the modules that a new process has after it ran `code`."""
    return words_printed(f"{code}; import sys; print(*sys.modules)")


def words_printed(code: str) -> set[str]:
    """Return the words that a new process prints which runs `code`."""
    ran = subprocess.run(  # noqa: S603 -- fixed command
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        text=True,
        env=environment(),
    )
    return set(ran.stdout.split())


def test_an_import_leaves_what_is_not_used_by_all() -> None:
    commands = modules_after("import abridge.sidecar.app, abridge.sidecar.cli.commands")
    assert commands & LATER == set()


@pytest.mark.parametrize("websockets", [False, True])
def test_what_is_mounted_loads_nothing_of_the_sidecar(*, websockets: bool) -> None:
    """Nor WebSockets, unless a setting asks for them."""
    modules = modules_after(
        "from abridge import AbridgeMiddleware, Settings; "
        f"AbridgeMiddleware(print, Settings(server={{'websockets': {websockets}}}))"
    )
    assert not {name for name in modules if name.startswith(SIDECAR)}
    assert (WEBSOCKET_SESSION in modules) is websockets


def test_the_sidecar_has_all_loaded_before_any_traffic_but_no_extras() -> None:
    upstreams = [{"base_url": "http://127.0.0.1:1/v1"}]
    modules = modules_after(
        "import abridge.sidecar.cli.serving; from abridge import create_app, Settings; "
        f"create_app(Settings(upstreams={upstreams}))"
    )
    assert WEBSOCKET_SESSION in modules
    assert modules & {*EXTRAS, "abridge.sidecar.check", "abridge.sidecar.demo"} == set()


def test_nothing_is_imported_in_the_middle_of_traffic() -> None:
    """Streams would wait for it."""
    assert words_printed(REQUEST) == set()


@pytest.mark.parametrize(("on_failure", "extracts"), [("omit", False), ("extract", True)])
def test_extracts_are_loaded_where_they_may_be_shown(on_failure: str, *, extracts: bool) -> None:
    assert (EXTRACTS in modules_after(MODEL % on_failure)) is extracts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gc.disable(); ", {"enabled=False", "frozen=0"}),
        ("gc.freeze(); ", {"enabled=True", "frozen=1"}),
    ],
)
def test_an_import_leaves_the_garbage_collector_as_it_was(before: str, after: set[str]) -> None:
    state = "print(f'enabled={gc.isenabled()} frozen={min(1, gc.get_freeze_count())}')"
    assert words_printed(f"import gc; {before}import abridge; {state}") == after
