"""How much there is to read: `python -m tests.benchmarks.size [CHECKOUT]`.

It prints lines, files of each API, and how many Python calls one frame takes from upstream's bytes
to the client's: in how many functions of how many files. Only calls of Abridge's own code count.
They are counted twice: where both ends hand pieces over at once, as Abridge's own transport and
server do, and where each piece is awaited, as in front of any other application and server.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import tokenize
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from abridge.http.asgi import find_write_at_once
from tests.end_to_end.translation.turn import PATHS, request_body
from tests.support.asgi import Call, scope_for
from tests.support.deployments import ORIGIN, build_app
from tests.support.streams import frame
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Step, Upstream

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("middleware", "middleware/abridge/apis", "middleware/abridge/stages", "tests")
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def main(checkout: Path) -> None:
    for folder in FOLDERS:
        files = sorted((checkout / folder).rglob("*.py"))
        if files:
            lines = sum(len(file.read_bytes().splitlines()) for file in files)
            code = sum(map(_count_code, files))
            print(f"{folder}: {lines:,} lines ({code:,} of code) in {len(files)} files")
    for api in ("chat", "responses", "messages", "gemini", "interactions"):
        print(
            f"apis/{api}: {len(list((checkout / f'middleware/abridge/apis/{api}').glob('*.py')))}"
        )
    path = os.pathsep.join([str(checkout / "middleware"), str(ROOT)])
    command = [sys.executable, "-m", "tests.benchmarks.size", "--calls"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, check=True)


def _count_code(file: Path) -> int:
    """Count the lines that hold code: no blank ones, comments or docstrings."""
    found: set[int] = set()
    with file.open("rb") as source:
        begins = True
        for token in tokenize.tokenize(source.readline):
            is_docstring = begins and token.type == tokenize.STRING
            if token.type not in LAYOUT | {tokenize.ENCODING, tokenize.ENDMARKER}:
                if not is_docstring:
                    found.update(range(token.start[0], token.end[0] + 1))
                begins = False
            elif token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                begins = True
    return len(found)


@dataclass
class Profile:
    """The calls of Abridge's code while it is on."""

    calls: int = 0
    functions: set[tuple[str, int]] = field(default_factory=set)

    def start(self) -> None:
        sys.setprofile(self._note)

    def stop(self) -> None:
        sys.setprofile(None)

    def _note(self, stack: FrameType, event: str, _: Any) -> None:
        code = stack.f_code
        if event == "call" and "/abridge/" in code.co_filename:
            self.calls += 1
            self.functions.add((code.co_filename, code.co_firstlineno))

    def __str__(self) -> str:
        files = {file for file, _ in self.functions}
        return f"{self.calls} calls, {len(self.functions)} functions, {len(files)} files"


def _chunk(**delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    header = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return frame({**header, "choices": [choice]})


SETTLED = 0.02  # seconds after which what came has been written
CALL = {"index": 0, "id": "call_1", "type": "function"}
OPENING: list[Step] = [
    _chunk(role="assistant"),
    *(_chunk(reasoning_content=f"I think {n}.") for n in range(4)),
]
FRAMES = {
    "the start of a call": (
        [*OPENING, SETTLED, _chunk(content="I look."), _chunk(content=" So.")],
        _chunk(tool_calls=[{**CALL, "function": {"name": "look", "arguments": ""}}]),
    ),
    "a frame like the one before": (OPENING, _chunk(reasoning_content="I think on.")),
}


def print_calls() -> None:
    logging.disable(logging.CRITICAL)
    for name, (before, measured) in FRAMES.items():
        for client in PATHS:
            for expose in ("both", "summary"):
                shown = "hidden" if expose == "summary" else "shown"
                for at_once in (True, False):
                    profile = Profile()
                    asyncio.run(_play(client, expose, before, measured, profile, at_once=at_once))
                    way = "at once" if at_once else "awaited"
                    print(f"{name}, chat to {client}, {shown}, {way}: {profile}")


class _CallAtOnce(Call):
    """A request whose server takes pieces without being awaited."""

    def write_at_once(self, body: bytes) -> bool:
        self.sent.append({"type": "http.response.body", "body": body, "more_body": True})
        return True


class _UpstreamAtOnce(Upstream):
    """An upstream whose pieces are handed over without awaiting, where they are taken so."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        write_at_once: Callable[[bytes], bool] | None = None

        async def send_at_once(message: Message) -> None:
            nonlocal write_at_once
            body = message.get("body")
            if not (body and write_at_once is not None and write_at_once(body)):
                await send(message)
            if message["type"] == "http.response.start":
                write_at_once = find_write_at_once(send)

        await super().__call__(scope, receive, send_at_once)


async def _play(
    client: str,
    expose: str,
    before: list[Step],
    measured: bytes,
    profile: Profile,
    *,
    at_once: bool,
) -> None:
    rest = [_chunk(content="So."), b"data: [DONE]\n\n"]
    settled = [] if at_once else [SETTLED]
    steps: list[Step] = [*before, SETTLED, profile.start, measured, *settled, profile.stop, *rest]
    app = build_app(
        "mounted" if at_once else "sidecar",
        (_UpstreamAtOnce if at_once else Upstream)(Answer(steps)),
        writer=Scripted(),
        upstreams=[{"api": "chat", "base_url": f"{ORIGIN}/v1"}],
        reasoning={"expose": expose},
    )
    wish: dict[str, Any] = {"thinking": {"type": "adaptive"}} if client == "messages" else {}
    body = json.dumps(request_body(client, stream=True, **wish)).encode()
    request = (_CallAtOnce if at_once else Call)(app, scope_for(PATHS[client], body), body)
    await request.start().finish()


if __name__ == "__main__":
    if sys.argv[1:] == ["--calls"]:
        print_calls()
    else:
        main(Path(*sys.argv[1:]).resolve() if sys.argv[1:] else ROOT)
