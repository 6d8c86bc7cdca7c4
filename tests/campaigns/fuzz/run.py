"""Run a case, and tell what is wrong."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from tests.campaigns.fuzz import turns
from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.world import World, Worlds
from tests.campaigns.reader import Reading, events, parse, read
from tests.campaigns.secret import leaks
from tests.support.asgi import Call, scope_for
from tests.support.canaries import CANARY
from tests.support.checker import check_chat, check_responses

PATIENCE = 20.0
"""Seconds after which a request is said never to end."""

SLOW = 0.5
"""Seconds of CPU that no request of these sizes may take."""

PROMPT = "prompt-7131"
"""A word of the prompts, which no log may hold."""

MODEL = re.compile(r"""\bmodel=(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\S+)""")

OWN = ("abridge", "asyncio", "uvicorn")
"""The loggers that must report no error."""


class Watch(logging.Handler):
    """`caught` are log records, unraisable errors and lost exceptions of tasks."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.caught: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += "".join(traceback.format_exception(record.exc_info[1]))
        if record.levelno >= logging.ERROR or record.exc_info:
            self.caught.append(f"log: {text}")
        told = MODEL.sub("", text)  # the client's own word for its model may be any
        if leaks(told.encode(errors="replace")) or CANARY in told or PROMPT in told:
            self.caught.append(f"log leak: {text}")

    def take(self) -> list[str]:
        caught, self.caught = self.caught, []
        return caught


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch the logs of this process, and what Python would only print."""
    watch, hook = Watch(), sys.unraisablehook
    levels = {name: logging.getLogger(name).level for name in OWN}
    for name in OWN:
        logging.getLogger(name).addHandler(watch)
        logging.getLogger(name).setLevel(logging.INFO)
    sys.unraisablehook = lambda it: watch.caught.append(f"unraisable: {it.exc_value!r}")
    try:
        yield watch
    finally:
        gc.collect()  # what a failed case left may complain now
        sys.unraisablehook = hook
        for name in OWN:
            logging.getLogger(name).removeHandler(watch)
            logging.getLogger(name).setLevel(levels[name])


async def run(case: Case, worlds: Worlds, watch: Watch) -> list[str]:
    """Run a case. Return what is wrong, each beginning with the name of its invariant."""
    world = worlds.get(case.world)
    body = await turns.begin(case, world)
    world.upstream.play(case)
    call = Call(world.app, scope_for(case.path, body, case.headers), body)
    began, wrong = time.thread_time(), []
    try:
        async with asyncio.timeout(PATIENCE):
            await call.start().task  # type: ignore[misc]
    except TimeoutError:
        wrong.append("unending: the request does not end")
    except Exception as error:  # noqa: BLE001 -- whatever escapes is a finding
        wrong.append("exception: " + "".join(traceback.format_exception(error)))
    spent = time.thread_time() - began
    if spent > SLOW:
        wrong.append(f"slow: {spent:.2f} s of CPU")
    wrong += await _left_behind(world)
    wrong += watch.take()
    if not wrong and not call.complete:
        wrong.append("incomplete: the response has no end")
    return wrong or list(_judge(case, world, call))


async def _left_behind(world: World) -> list[str]:
    """Return what is still busy a moment later."""
    for _ in range(200):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        busy = world.busy()
        if not busy and not tasks:
            return []
        await asyncio.sleep(0.005)
    return [f"left behind: {busy or ''} {[task.get_coro() for task in tasks] or ''}"]


def _judge(case: Case, world: World, call: Call) -> Iterator[str]:
    """Yield what is wrong with a response."""
    upstream = b"".join(request.body for request in world.upstream.requests)
    yield from _judge_request(case, call.body, upstream)
    out, api = call.data, case.world["client"]
    if call.status >= 400 or not world.upstream.requests:
        yield from _judge_error(case, call)
    source = api if case.world["upstream"] == "same" else case.world["upstream"]
    stream = world.upstream.streamed
    told = read(source, world.upstream.sent_body, stream=stream)
    shown = f"{told.text}{told.streamed}{told.calls}".encode(errors="replace")
    planted = CANARY.encode() in out
    if source == "messages" and CANARY in str(told.calls):
        planted = False  # a call's arguments are an object there, and any key of it is its own
    if world.hides and (planted or (leaks(out) and not leaks(shown))):
        yield f"leak: {_excerpt(out)}"
    if call.status != 200 or not world.upstream.requests:
        return
    heard = read(api, out, stream=stream)
    if case.harm == "none":
        yield from _judge_legality(api, out, stream=stream)
        if heard.ended != "well" and case.world["summarizer"] not in FAILING:
            yield f"failed: a good answer ended {heard.ended}: {heard.errors}"
        if case.kind == "streams" and told.usage and not heard.usage and heard.ended == "well":
            yield "usage: upstream's is missing"
    if case.harm in ("none", "odd", "order"):
        wrong = _judge_text(told, heard, reordered=case.harm == "order")
        yield from (f"altered ({source} to {api}): {each}" for each in wrong)


FAILING = ("fails", "breaks off", "empty", "hangs", "odd")
"""Summarizers for which an answer may end failed, if the settings say so."""


def _judge_request(case: Case, body: bytes, upstream: bytes) -> Iterator[str]:
    good = parse(body.decode(errors="replace")) is not None
    if good and upstream and parse(upstream.decode(errors="replace")) is None:
        yield f"request: what was JSON is none any more: {upstream[:300]!r}"
    if b"abr1." in upstream and case.kind == "blobs":
        yield "upstream got a blob of Abridge's"
    if case.restores is False and leaks(upstream):
        yield "foreign: upstream got reasoning that does not belong there"
    if case.restores and upstream and not leaks(upstream):
        yield "forgotten: reasoning was not restored"


def _judge_error(case: Case, call: Call) -> Iterator[str]:
    """Yield what is wrong with an error: ours has OpenAI's shape and blames whom it should."""
    passed = call.status == case.status >= 400
    if passed:
        return
    failed = case.world["summarizer"] in FAILING and call.status == 502
    if call.status >= 500 and case.harm == "none" and not failed:
        yield f"refused: {call.status} {_excerpt(call.data)}"
    if call.status < 500 and not case.refusable:
        yield f"refused: {call.status} {_excerpt(call.data)}"
    try:
        error = json.loads(call.data)["error"]
        said = isinstance(error["message"], str) and {"type", "param", "code"} <= error.keys()
    except (ValueError, KeyError, TypeError):
        said = False
    if not said and call.status < 500:
        yield f"shape: {call.status} {_excerpt(call.data)}"


def _judge_legality(api: str, out: bytes, *, stream: bool) -> Iterator[str]:
    if not stream:
        return
    try:
        assert out.endswith((b"\n\n", b"\r\r", b"\r\n\r\n")), f"unterminated: {out[-80:]!r}"
        if api == "chat":
            check_chat(_plainly(out))
        else:
            check_responses(_plainly(out), texts_agree=False)
    except (AssertionError, KeyError, TypeError, ValueError, AttributeError) as error:
        yield f"illegal: {error!r}"


def _plainly(out: bytes) -> bytes:
    """Write a stream as the checker wants it; upstream's own line ends and layout may pass."""
    plain = ""
    for name, data in events(out):
        one_line = data.replace("\n", " ")
        plain += f"event: {name}\n" if name else ""
        plain += f"data: {one_line}\n\n"
    return plain.encode()


def _judge_text(told: Reading, heard: Reading, *, reordered: bool) -> Iterator[str]:
    """Yield what of the answer was lost, altered or made up.

    Where upstream's deltas and last event differ, either is its answer. Where its events were put
    into another order, what comes too late may be missing, but nothing is there twice.
    """
    shown = f"{told.text}{told.streamed}"
    if told.broken or told.ended != "well" or heard.ended != "well" or "think" in shown:
        return
    expected = {told.text, told.streamed, told.first, *told.wholes}
    if reordered:
        if max(map(len, (heard.text, heard.streamed))) > max(map(len, expected)):
            yield f"text is longer: {heard.streamed!r} or {heard.text!r}, not {sorted(expected)}"
        return
    for text in (heard.text, heard.streamed):
        if text not in expected:
            yield f"text: {text!r}, not {sorted(expected)}"
            return
    if heard.calls not in (told.calls, told.streamed_calls):
        yield f"calls: {heard.calls}, not {told.calls}"


def _excerpt(data: bytes) -> str:
    found = leaks(data)
    at = data.find(found[0]) if found else 0
    return repr(data[max(0, at - 150) : at + 150].decode(errors="replace"))
