"""Test the log line of each request."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.config.tables import LogSettings
from abridge.errors import SummarizerError
from abridge.observability.logs import TEXT_FORMAT, JsonFormatter, _all_fields, set_up_logging
from abridge.observability.record import SHUTTING_DOWN, Record
from tests.support.asgi import begin, call
from tests.support.deployments import build_app
from tests.support.streams import THOUGHT, chat_stream, completion, thinking
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

PATH = "/v1/chat/completions"
CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "reasoning": {"summary": "auto"},
    "stream": True,
}


class Lines:
    """The log lines of requests."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def __iter__(self) -> Iterator[logging.LogRecord]:
        return (record for record in self._caplog.records if record.name == "abridge.requests")

    @property
    def last(self) -> logging.LogRecord:
        return list(self)[-1]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level(logging.INFO, "abridge.requests")
    return Lines(caplog)


def as_json(record: logging.LogRecord) -> dict[str, Any]:
    line = JsonFormatter().format(record)
    assert "\n" not in line
    fields: dict[str, Any] = json.loads(line)
    return fields


def app(answer: Answer, writer: Any = None, mode: str = "mounted", **tables: Any) -> Any:
    upstream, registry = Upstream(answer), CollectorRegistry()
    return build_app(mode, upstream, writer=writer or Scripted(), registry=registry, **tables)


async def test_a_summarized_stream(lines: Lines) -> None:
    await call(app(Answer(chat_stream(THOUGHT, "Hello."))), PATH, CHAT, {"x-request-id": "r-1"})
    (record,) = lines
    fields = as_json(record)
    times = {key for key in fields if key.endswith("seconds") or key == "time"}
    for key in times - {"time"}:
        assert 0 <= fields.pop(key) < 60
    assert times == {
        "time",
        "seconds",
        "overhead_seconds",
        "first_answer_seconds",
        "first_summary_seconds",
        "held_seconds",
    }
    del fields["time"]
    assert fields == {
        "level": "info",
        "logger": "abridge.requests",
        "pid": os.getpid(),
        "message": "request",
        "id": "r-1",
        "method": "POST",
        "path": PATH,
        "api": "chat",
        "upstream": "default",
        "model": "m",
        "status": 200,
        "outcome": "ok",
        "stream": True,
        "input_tokens": 11,
        "output_tokens": 70,
        "reasoning_tokens": 50,
        "reasoning_characters": len(THOUGHT),
        "style": "auto",
        "summarizer": "scripted",
        "summaries": {"ok": 1},
        "calls": 1,
        "parts": 1,
        "summary_input_tokens": 10,
        "summary_output_tokens": 5,
    }
    text = logging.Formatter(TEXT_FORMAT).format(record)
    assert "outcome=ok" in text
    assert 'summaries={"ok":1}' in text


async def test_a_request_that_passes_untouched(lines: Lines) -> None:
    body = {"model": "m", "messages": []}
    await call(app(Answer.json(completion({"content": "Hi"})), mode="sidecar"), PATH, body)
    await call(app(Answer.json({})), "/v1/models", b"", method="GET")
    first, second = map(as_json, lines)
    assert first["outcome"] == second["outcome"] == "untouched"
    assert (first["api"], first["upstream"], first["status"]) == ("chat", "default", 200)
    assert second["path"] == "/v1/models"
    assert "api" not in second
    assert len(first["id"]) == 32
    assert first["id"] != second["id"]


@pytest.mark.parametrize(
    ("answer", "status", "outcome", "cause"),
    [
        (Answer.json({"error": {"message": "no"}}, 429), 429, "error", None),
        (Answer(chat_stream(THOUGHT, "Hello.")[:-4]), 200, "failed", "upstream_error"),
    ],
    ids=["an error", "a cut"],
)
async def test_a_failure_is_logged_with_its_cause(
    lines: Lines, answer: Answer, status: int, outcome: str, cause: str | None
) -> None:
    await call(app(answer), PATH, CHAT)
    fields = as_json(lines.last)
    assert (fields["status"], fields["outcome"], fields.get("cause")) == (status, outcome, cause)


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
async def test_the_status_is_the_one_the_client_got(lines: Lines, kind: str) -> None:
    odd = Answer([b"<html>"], headers={"content-type": kind})
    answered = await call(app(odd, reasoning={"expose": "summary"}), PATH, CHAT)
    fields = as_json(lines.last)
    assert fields["status"] == answered.status == 502
    assert (fields["outcome"], fields["cause"]) == ("failed", "upstream_error")


@pytest.mark.parametrize("mode", ["mounted", "sidecar"])
@pytest.mark.parametrize("steps", [[], chat_stream(THOUGHT, "Hi")[:9]], ids=["before", "amid"])
async def test_a_request_the_server_ends_is_not_upstreams_failure(
    lines: Lines, steps: list[Any], mode: str
) -> None:
    reached = asyncio.Event()
    waits = [reached.set, asyncio.Event()]
    answer = Answer([*steps, *waits]) if steps else Answer(before=waits)
    request = begin(app(answer, mode=mode), PATH, CHAT)
    await reached.wait()
    if steps:
        await request.until(b"data:")
    await request.cancel(SHUTTING_DOWN)
    fields = as_json(lines.last)
    assert (fields["cause"], fields["status"]) == ("shutting_down", request.status)


async def test_an_untouched_one_that_the_server_ends(lines: Lines) -> None:
    reached = asyncio.Event()
    stuck = Answer(before=[reached.set, asyncio.Event()])
    request = begin(app(stuck, mode="sidecar"), PATH, {"model": "m", "messages": []})
    await reached.wait()
    await request.cancel(SHUTTING_DOWN)
    fields = as_json(lines.last)
    assert (fields["cause"], fields["status"]) == ("shutting_down", 503)


async def test_a_stored_response(lines: Lines) -> None:
    one = app(Answer.json(completion({"content": "Hi"})), upstreams=[{"api": "chat"}])
    who = {"authorization": "Bearer whoever"}
    made = await call(one, "/v1/responses", {"model": "m", "input": "Hi"}, who)
    await call(one, f"/v1/responses/{made.json['id']}", b"", who, method="GET")
    fields = as_json(lines.last)
    assert (fields["outcome"], fields["status"]) == ("stored", 200)


async def test_a_refusal(lines: Lines) -> None:
    await call(app(Answer()), PATH, {**CHAT, "reasoning": {"summary": "short"}})
    fields = as_json(lines.last)
    assert (fields["status"], fields["outcome"], fields["cause"]) == (
        400,
        "refused",
        "invalid_value",
    )
    assert "calls" not in fields


async def test_a_summary_that_failed(lines: Lines) -> None:
    writer = Scripted("", error=SummarizerError("timeout", "too slow"))
    await call(app(Answer(chat_stream(THOUGHT, "Hi")), writer), PATH, CHAT)
    fields = as_json(lines.last)
    assert (fields["summaries"], fields["summary_error"]) == ({"timeout": 1}, "timeout")
    assert (fields["calls"], fields["parts"], fields["outcome"]) == (1, 0, "ok")


async def test_parts_that_a_review_withholds(lines: Lines) -> None:
    async def review(_: str) -> None:
        return None

    answer = Answer(chat_stream(thinking(4000), "Hi"))
    await call(app(answer, review=review), PATH, CHAT)
    fields = as_json(lines.last)
    assert fields["summaries"] == {"withheld": 1}
    assert fields["withheld"] == fields["calls"] > 1
    await call(app(answer), PATH, CHAT)
    assert not {"withheld", "summary_error"} & as_json(lines.last).keys()


async def test_a_client_that_disconnects(lines: Lines) -> None:
    reached = asyncio.Event()
    steps = [*chat_stream(THOUGHT, "Hi")[:9], reached.set, asyncio.Event()]
    request = begin(app(Answer(steps)), PATH, CHAT)
    await reached.wait()
    await request.leave()
    assert as_json(lines.last)["outcome"] == "left"


@pytest.mark.parametrize("requested", ["a b", "x" * 200, 'a"\n{}', "ä"])
async def test_an_invalid_request_id_is_replaced(lines: Lines, requested: str) -> None:
    await call(app(Answer.json({})), PATH, {"model": "m"}, {"x-request-id": requested})
    assert as_json(lines.last)["id"].isalnum()


async def test_a_path_takes_no_second_line(lines: Lines) -> None:
    await call(app(Answer.json({})), "/v1/a\nERROR b: c", b"", method="GET")
    assert "\n" not in logging.Formatter(TEXT_FORMAT).format(lines.last)
    assert as_json(lines.last)["path"] == "/v1/a\nERROR b: c"


async def test_a_line_has_a_bound(lines: Lines) -> None:
    long = "x" * 100_000
    await call(app(Answer(chat_stream(THOUGHT, "Hello."))), PATH, {**CHAT, "model": long})
    await call(app(Answer.json({})), f"/v1/{long}", b"", method="GET")
    assert all(len(JsonFormatter().format(line)) < 2_000 for line in lines)


async def test_nothing_is_logged_if_the_level_is_off(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "abridge.requests")
    await call(app(Answer(chat_stream(THOUGHT, "Hello."))), PATH, CHAT)
    assert not caplog.records


class TestSetUp:
    @pytest.fixture(autouse=True)
    def _restored(self) -> Iterator[None]:
        names = ("", "abridge", "abridge.requests")
        levels = [logging.getLogger(name).level for name in names]
        handlers = logging.root.handlers[:]
        yield
        logging.root.handlers[:] = handlers
        for name, level in zip(names, levels, strict=True):
            logging.getLogger(name).setLevel(level)

    @pytest.mark.parametrize("requested", [True, False])
    def test_request_lines_are_logged_only_on_request(self, *, requested: bool) -> None:
        set_up_logging(LogSettings(requests=requested))
        assert logging.getLogger("abridge.requests").isEnabledFor(logging.INFO) is requested

    def test_json_says_everything_in_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        set_up_logging(LogSettings(format="json"))
        broken = ValueError("broken")
        logging.getLogger("of.somebody").error("it\nfailed", exc_info=broken)
        fields = json.loads(capsys.readouterr().err)
        assert fields["message"] == "it\nfailed"
        assert fields["level"] == "error"
        assert fields["exception"].endswith("ValueError: broken")


def test_the_documentation_lists_every_field_in_its_order() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "logs.md").read_text()
    tables = page.partition("### A request's line")[2].partition("\n### ")[0]
    record = Record(
        "id", at=0, began=0, websocket=True, engaged=True, style="auto", hidden=Counter(tag=1)
    )
    fields = [name for name, _ in _all_fields(record)]
    assert re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE) == fields
