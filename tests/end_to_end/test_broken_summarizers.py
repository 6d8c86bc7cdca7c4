"""A user's summarizer or review may be as broken as it likes: the answer does not change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.errors import SummarizerError
from tests.end_to_end.translation.turn import PATHS
from tests.support.asgi import Call, begin
from tests.support.broken import CARELESS, REVIEWS, SUMMARIZERS, TEXT, Iterator, Summarizer
from tests.support.checker import check_chat, check_responses
from tests.support.counters import total
from tests.support.deployments import build_app
from tests.support.servers import until
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.upstream import Answer, Upstream

ITEMS = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
ANSWERS: dict[str, dict[bool, Answer]] = {
    "chat": {
        True: Answer(chat_stream(THOUGHT, "Hello.", field="reasoning")),
        False: Answer.json(completion({"content": "Hello.", "reasoning": THOUGHT})),
    },
    "responses": {
        True: Answer(responses_stream(ITEMS)),
        False: Answer.json(response(ITEMS)),
    },
}
PROMPTS: dict[str, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "Hi"}]},
    "responses": {"input": "Hi"},
}
ADDED = {"summary", "summary_error", "reasoning_summary", "reasoning_content", "sequence_number"}
"""Fields that a summary adds or changes, wherever they are; upstream thinks in `reasoning`."""


class Asking:
    """Asks for an answer, with a summarizer and a review, or without a summary."""

    def __init__(self, api: str, *, stream: bool) -> None:
        self._api = api
        self._stream = stream
        self.registry = CollectorRegistry()

    def begin(self, writer: Any = None, review: Any = None, **tables: Any) -> Call:
        app = build_app(
            "mounted",
            Upstream(ANSWERS[self._api][self._stream]),
            writer=Summarizer(lambda _: Iterator()) if writer is None else writer,
            review=review,
            registry=self.registry,
            **{"reasoning": {"expose": "both"}, **tables},
        )
        asked = {} if writer is None else {"reasoning": {"summary": "auto"}}
        return begin(
            app,
            PATHS[self._api],
            {"model": "m", "stream": self._stream, **asked, **PROMPTS[self._api]},
        )

    async def answer(self, writer: Any = None, review: Any = None, **tables: Any) -> Call:
        return await self.begin(writer, review, **tables).finish()

    def read(self, call: Call) -> list[Any]:
        """Return what of the answer is no summary: its events, or its body alone."""
        assert call.complete
        if not self._stream:
            return [without_summary(call.json)]
        check = check_chat if self._api == "chat" else check_responses
        check(call.data)
        lines = [line for line in call.data.splitlines() if line.startswith(b"data: {")]
        events = [without_summary(json.loads(line[len(b"data: ") :])) for line in lines]
        return [event for event in events if not is_of_summary(event)]

    def error_code(self, call: Call) -> Any:
        """Return the code of the summary's error."""
        if self._api == "responses":
            whole = check_responses(call.data).response if self._stream else call.json
            return whole["output"][0].get("summary_error", {}).get("code")
        if self._stream:
            error = check_chat(call.data).choices[0].summary_error
        else:
            error = call.json["choices"][0]["message"].get("summary_error")
        return error and error["code"]


def without_summary(value: Any) -> Any:
    if isinstance(value, list):
        return [without_summary(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {key: without_summary(entry) for key, entry in value.items() if key not in ADDED}


def is_of_summary(event: dict[str, Any]) -> bool:
    """Return whether an event says something of the summary only."""
    if event.get("object") == "chat.completion.chunk":
        return bool(event["choices"]) and event["choices"][0] == {
            "index": 0,
            "delta": {},
            "finish_reason": None,
        }
    return "reasoning_summary" in event.get("type", "")


@pytest.fixture(params=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[True, False], ids=["streamed", "whole"])
def asking(api: str, request: pytest.FixtureRequest) -> Asking:
    return Asking(api, stream=request.param)


@pytest.mark.parametrize(
    ("broken", "cause"),
    [entry for name, entry in SUMMARIZERS.items() if "iterated on" not in name],
    ids=[name for name in SUMMARIZERS if "iterated on" not in name],
)
async def test_a_broken_summarizer_costs_its_summary_alone(
    asking: Asking, broken: Any, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    plain, answer = await asking.answer(), await asking.answer(broken)
    assert answer.status == plain.status
    assert asking.read(answer) == asking.read(plain)
    assert asking.error_code(answer) in ("upstream_error", "timeout")
    check_reported(asking, caplog, f"failed: {cause}")


@pytest.mark.parametrize(("broken", "cause"), REVIEWS.values(), ids=REVIEWS)
async def test_a_broken_review_costs_the_summary_alone(
    asking: Asking, broken: Any, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    plain = await asking.answer()
    answer = await asking.answer(Summarizer(lambda _: Iterator(TEXT)), broken)
    assert asking.read(answer) == asking.read(plain)
    assert TEXT[:9].encode() not in answer.data
    assert asking.error_code(answer) == "withheld"
    check_reported(asking, caplog, f"review failed: {cause}")


def check_reported(asking: Asking, caplog: pytest.LogCaptureFixture, cause: str) -> None:
    """Check that the failure is counted, and logged in one line."""
    counted = {
        outcome: total(asking.registry, "summaries_total", outcome=outcome)
        for outcome in ("ok", "partial", "failed", "timeout", "withheld")
    }
    assert counted["ok"] == counted["partial"] == 0
    assert sum(counted.values()) == 1
    lines = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(lines) == 1
    assert cause in lines[0]


@pytest.mark.parametrize("careless", [entry[0] for entry in CARELESS.values()], ids=CARELESS)
async def test_a_careless_summarizer_has_its_summary_shown(asking: Asking, careless: Any) -> None:
    plain, answer = await asking.answer(), await asking.answer(careless)
    assert asking.read(answer) == asking.read(plain)
    assert json.dumps(TEXT)[1:-1].encode() in answer.data
    assert asking.error_code(answer) is None


async def test_a_text_that_is_cut_short_stays(asking: Asking) -> None:
    broken = Summarizer(lambda _: Iterator(TEXT, asyncio.CancelledError()))
    plain, answer = await asking.answer(), await asking.answer(broken)
    assert b"Adding up" in answer.data
    assert asking.read(answer) == asking.read(plain)
    assert asking.error_code(answer) == "upstream_error"


@pytest.mark.parametrize(
    ("code", "told", "counted"),
    [
        ("quota_used_up", "quota_used_up", "other"),
        ("loop", "loop", "loop"),
        ("Quota 1", "upstream_error", "upstream_error"),
        ("a" * 33, "upstream_error", "upstream_error"),
    ],
)
async def test_a_code_of_a_users_own_is_told_and_counted_as_other(
    asking: Asking, code: str, told: str, counted: str
) -> None:
    broken = Summarizer(lambda _: Iterator(TEXT, SummarizerError(code, "No.")))
    answer = await asking.answer(broken)
    assert b"Adding up" in answer.data
    assert asking.error_code(answer) == told
    assert total(asking.registry, "summarizer_seconds_count", outcome=counted) == 1


async def test_without_a_name_it_has_its_classs(
    asking: Asking, caplog: pytest.LogCaptureFixture
) -> None:
    class Nameless:
        async def summarize(self, _: Any) -> AsyncIterator[str]:
            yield TEXT
            raise ValueError

    plain, answer = await asking.answer(), await asking.answer(Nameless())
    assert asking.read(answer) == asking.read(plain)
    assert total(asking.registry, "summaries_total", summarizer="Nameless") == 1
    assert "summarizer Nameless failed: ValueError" in caplog.text


async def test_one_that_ignores_being_cancelled_keeps_no_request_open(
    asking: Asking, caplog: pytest.LogCaptureFixture
) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    async def summarize(_: Any) -> AsyncIterator[str]:
        begun.set()
        while not gate.is_set():
            with suppress(asyncio.CancelledError):
                await gate.wait()
        yield TEXT

    try:
        plain = await asking.answer()
        answer = await asking.answer(Summarizer(summarize), summary={"grace": 0.01})
        assert asking.read(answer) == asking.read(plain)
        assert asking.error_code(answer) == "deadline"
        left_behind = "summarizer broken does not stop and is abandoned" in caplog.text
        assert left_behind == begun.is_set()
    finally:
        gate.set()
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})


async def test_a_client_that_leaves_is_not_kept_by_one_that_never_closes(api: str) -> None:
    begun = asyncio.Event()
    closing = asyncio.Event()

    async def summarize(_: Any) -> AsyncIterator[str]:
        try:
            begun.set()
            yield await asyncio.Event().wait()  # type: ignore[misc]
        finally:
            closing.set()
            await asyncio.Event().wait()

    request = Asking(api, stream=True).begin(
        Summarizer(summarize), summary={"grace": 60, "first_token": 60}
    )
    await begun.wait()
    await request.leave()
    assert closing.is_set()
