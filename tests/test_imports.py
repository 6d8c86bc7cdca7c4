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

GARBAGE = "print(f'enabled={gc.isenabled()} frozen={min(1, gc.get_freeze_count())}')"

MOUNT = "AbridgeMiddleware(print, Settings(server={'websockets': %s})); print(*sys.modules)"
MODEL = (
    "summarizer = {'kind': 'model', 'model': 'm', 'base_url': 'http://127.0.0.1:1/v1'}; "
    "AbridgeMiddleware(print, Settings(summarizer=summarizer, summary={'on_failure': '%s'})); "
    "print(*sys.modules)"
)
LIBRARY = {
    "collector": f"import gc, sys; gc.disable(); import abridge; {GARBAGE}",
    "fails without extracts": f"from abridge import AbridgeMiddleware, Settings; {MODEL % 'omit'}",
    "fails with extracts": MODEL % "extract",
    "without WebSockets": MOUNT % False,
    "with WebSockets": MOUNT % True,
}
"""What a process does one after the other that mounts the middleware; each step prints a line."""

UPSTREAMS = "[{'base_url': 'http://127.0.0.1:1/v1'}]"
COMMAND = {
    "collector": f"import gc, sys; gc.freeze(); import abridge; {GARBAGE}",
    "imported": "import abridge.sidecar.app, abridge.sidecar.cli.commands; print(*sys.modules)",
    "serving": "import abridge.sidecar.cli.serving; from abridge import create_app, Settings; "
    f"create_app(Settings(upstreams={UPSTREAMS})); print(*sys.modules)",
}
"""The same of one that serves."""


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


Printed = dict[str, set[str]]


def printed_by(steps: dict[str, str]) -> Printed:
    """Return the words that a new process prints after each of its steps."""
    ran = subprocess.run(  # noqa: S603 -- fixed command
        [sys.executable, "-c", "\n".join(steps.values())],
        capture_output=True,
        check=True,
        text=True,
        env=environment(),
    )
    lines = ran.stdout.splitlines()
    return {step: set(line.split()) for step, line in zip(steps, lines, strict=True)}


@pytest.fixture(scope="module")
def library() -> Printed:
    return printed_by(LIBRARY)


@pytest.fixture(scope="module")
def command() -> Printed:
    return printed_by(COMMAND)


def test_an_import_leaves_what_is_not_used_by_all(command: Printed) -> None:
    assert command["imported"] & LATER == set()


@pytest.mark.parametrize("with_or_without", ["with", "without"])
def test_what_is_mounted_loads_nothing_of_the_sidecar(
    library: Printed, with_or_without: str
) -> None:
    """Nor WebSockets, unless a setting asks for them."""
    modules = library[f"{with_or_without} WebSockets"]
    assert not {name for name in modules if name.startswith(SIDECAR)}
    assert (WEBSOCKET_SESSION in modules) is (with_or_without == "with")


def test_the_sidecar_has_all_loaded_before_any_traffic_but_no_extras(command: Printed) -> None:
    assert WEBSOCKET_SESSION in command["serving"]
    others = {*EXTRAS, "abridge.sidecar.check", "abridge.sidecar.demo"}
    assert command["serving"] & others == set()


def test_nothing_is_imported_in_the_middle_of_traffic() -> None:
    """Streams would wait for it."""
    assert printed_by({"traffic": REQUEST}) == {"traffic": set()}


def test_extracts_are_loaded_where_they_may_be_shown(library: Printed) -> None:
    assert EXTRACTS not in library["fails without extracts"]
    assert EXTRACTS in library["fails with extracts"]


def test_an_import_leaves_the_garbage_collector_as_it_was(
    library: Printed, command: Printed
) -> None:
    assert library["collector"] == {"enabled=False", "frozen=0"}
    assert command["collector"] == {"enabled=True", "frozen=1"}
