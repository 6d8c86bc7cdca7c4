"""The sidecar has each part checked at a moderation endpoint before a word of it is shown."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from abridge.config.loading import load_settings
from abridge.sidecar.app import create_app
from tests.end_to_end.translation.turn import PATHS, answer
from tests.support.checker import check_chat, check_responses
from tests.support.log_watch import PLANTED
from tests.support.metrics_text import Metrics, scrape_until
from tests.support.servers import HANG, serve, soon, stalled, until, unused_address
from tests.support.streams import THOUGHT, chat_stream, thinking
from tests.support.upstream import Answer, ReceivedRequest, Upstream

HELLO = "Hello there."
REVIEWS = "review_seconds_count"
WORD = re.compile(rf"{PLANTED}-\d+")
"""A word that stands in no text but the one part that the writer gave it."""

FORMS = [(api, stream) for api in ("chat", "responses") for stream in (True, False)]


class Model(Upstream):
    """A model that thinks for as many characters as its name says, and streams the second half of
    its answer once `gate` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    def answer(self, request: ReceivedRequest) -> Answer:
        body = request.json
        size = int(body["model"].rpartition("-")[2])
        api = "chat" if request.path == PATHS["chat"] else "responses"
        thought = thinking(size) if size else THOUGHT
        whole = answer(api, stream=body["stream"], thought=thought, text=HELLO)
        steps = list(whole.steps)
        half = len(steps) // 2
        return Answer([*steps[:half], self.gate, *steps[half:]], headers=whole.headers)


class Writer(Upstream):
    """A summarizer model: a word of its own in each part."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = count()

    def answer(self, request: ReceivedRequest) -> Answer:
        word = f"{PLANTED}-{next(self.numbers)}"
        return Answer(chat_stream("", f"**Adding up**\n\nI add {word}."))


class Endpoint(Upstream):
    """A moderation endpoint. `words` are those it was asked about, `flags` those it flags; it gives
    no verdict while `gate` is cleared, but for what it flags if it `flags_at_once`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.words: list[str] = []
        self.inputs: list[str] = []
        self.flags = re.compile("(?!)")  # none
        self.flags_at_once = False
        self.status = 200

    def answer(self, request: ReceivedRequest) -> Answer:
        assert request.path == "/v1/moderations"
        assert request.header("authorization") == f"Bearer sk-{PLANTED}-guard"
        body = request.json
        assert body["model"] == "omni"
        self.inputs.append(body["input"])
        self.words += WORD.findall(body["input"])
        flagged = bool(self.flags.search(body["input"]))
        verdict = {"id": "modr-1", "results": [{"flagged": flagged, "categories": {}}]}
        return Answer(
            [json.dumps(verdict).encode()],
            self.status,
            {"content-type": "application/json"},
            before=[] if flagged and self.flags_at_once else [self.gate],
        )


@dataclass
class Reply:
    """A client's request: `data` is what has come of its response so far."""

    api: str
    stream: bool
    data: bytes = b""
    task: asyncio.Task[None] | None = None

    @property
    def words(self) -> set[str]:
        return set(WORD.findall(self.data.decode()))

    @property
    def text(self) -> str:
        """The answer's text, and so a check that the response is whole and legal."""
        if self.api == "chat":
            if self.stream:
                return check_chat(self.data).choices[0].fields["content"]
            return str(json.loads(self.data)["choices"][0]["message"]["content"])
        whole = check_responses(self.data).response if self.stream else json.loads(self.data)
        return str(whole["output"][-1]["content"][0]["text"])

    @property
    def error(self) -> Any:
        """The summary's error."""
        if self.api == "responses":
            whole = check_responses(self.data).response if self.stream else json.loads(self.data)
            return whole["output"][0].get("summary_error")
        if self.stream:
            return check_chat(self.data).choices[0].summary_error
        return json.loads(self.data)["choices"][0]["message"].get("summary_error")


@dataclass
class Stage:
    model: Model
    endpoint: Endpoint
    writer: Writer
    url: str
    client: httpx.AsyncClient

    def begin(self, api: str, *, stream: bool, size: int = 0) -> Reply:
        reply = Reply(api, stream)
        reply.task = asyncio.create_task(self._read(reply, size))
        return reply

    async def ask(self, api: str, *, stream: bool, size: int = 0) -> Reply:
        return await self.end(self.begin(api, stream=stream, size=size))

    async def end(self, reply: Reply) -> Reply:
        assert reply.task is not None
        await soon(reply.task)
        assert reply.text == HELLO
        return reply

    async def metrics(self, requests: int) -> Metrics:
        """Return the metrics once so many requests are counted."""
        return await scrape_until(
            self.client,
            f"{self.url}/abridge/metrics",
            lambda metrics: metrics.total("requests_total") >= requests,
        )

    async def _read(self, reply: Reply, size: int) -> None:
        question: dict[str, Any] = {"input": "Hi"}
        if reply.api == "chat":
            question = {"messages": [{"role": "user", "content": "Hi"}]}
        body = {"model": f"m-{size}", "stream": reply.stream, "reasoning": {"summary": "auto"}}
        url = f"{self.url}{PATHS[reply.api]}"
        async with self.client.stream("POST", url, json={**body, **question}) as response:
            async for piece in response.aiter_bytes():
                reply.data += piece


@asynccontextmanager
async def stage(
    *, dead: bool = False, embedded: bool = False, grace: float = 60.0, **review: str
) -> AsyncIterator[Stage]:
    """Serve a sidecar's app whose settings are all in an environment; `dead`: nothing is at the
    endpoint's address."""
    thinker, endpoint, writer = Model(), Endpoint(), Writer()
    async with (
        serve(thinker) as model,
        serve(writer) as small,
        serve(endpoint) as guard,
        httpx.AsyncClient(trust_env=False, timeout=HANG) as client,
    ):
        environ = {
            "ABRIDGE_UPSTREAMS": json.dumps([{"base_url": f"{model}/v1"}]),
            "ABRIDGE_REVIEW__KIND": "moderations",
            "ABRIDGE_REVIEW__BASE_URL": f"{unused_address() if dead else guard}/v1",
            "ABRIDGE_REVIEW__MODEL": "omni",
            "ABRIDGE_REVIEW__API_KEY_ENV": "GUARD_KEY",
            "ABRIDGE_REVIEW__TIMEOUT": "60",
            **{f"ABRIDGE_REVIEW__{key.upper()}": value for key, value in review.items()},
            "ABRIDGE_SUMMARY__GRACE": str(grace),
            "ABRIDGE_LOG__REQUESTS": "true",
        }
        if not embedded:
            environ |= {
                "ABRIDGE_SUMMARIZER__KIND": "model",
                "ABRIDGE_SUMMARIZER__BASE_URL": f"{small}/v1",
                "ABRIDGE_SUMMARIZER__MODEL": "small",
            }
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GUARD_KEY", f"sk-{PLANTED}-guard")
            app = create_app(load_settings(environ=environ), registry=CollectorRegistry())
        async with serve(app, lifespan="on") as url:
            yield Stage(thinker, endpoint, writer, url, client)


async def test_not_a_word_of_a_part_leaves_before_its_verdict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with stage() as played:
        endpoint = played.endpoint
        for api, stream in FORMS:
            for flagged in (True, False):
                endpoint.gate.clear()
                endpoint.words.clear()
                endpoint.flags = re.compile(PLANTED if flagged else "(?!)")
                reply = played.begin(api, stream=stream)
                await until(lambda: bool(endpoint.words))
                await stalled(lambda: len(reply.data))  # noqa: B023 -- it ends before the next one
                assert not reply.words
                assert b"Adding up" not in reply.data
                endpoint.gate.set()
                await played.end(reply)
                assert reply.words == (set() if flagged else set(endpoint.words))
                assert (b"Adding up" in reply.data) is not flagged
                withheld = {"code": "withheld", "message": "The summary was withheld."}
                assert reply.error == (withheld if flagged else None)
        metrics = await played.metrics(8)
    assert metrics.total(REVIEWS, outcome="withheld") == 4
    assert metrics.total(REVIEWS, outcome="passed") == 4
    assert metrics.total("summaries_total", outcome="withheld") == 4
    assert metrics.total("summaries_total", outcome="ok") == 4
    assert metrics.total("summarizer_seconds_count", outcome="withheld") == 4
    assert metrics.total("breaker_open") == 0
    assert caplog.text.count(" withheld=1 ") == 4


async def test_only_the_parts_that_are_flagged_are_withheld() -> None:
    async with stage() as played:
        for round_number, (api, stream) in enumerate(FORMS, 1):
            endpoint = played.endpoint
            endpoint.words.clear()
            endpoint.flags = re.compile(rf"{PLANTED}-\d*[02468]\b")
            reply = await played.ask(api, stream=stream, size=6000)
            passed = {word for word in endpoint.words if not endpoint.flags.search(word)}
            assert reply.words == passed
            assert 0 < len(passed) < len(endpoint.words)
            assert reply.error["code"] == "withheld"
            metrics = await played.metrics(round_number)
            assert metrics.total("summaries_total", outcome="partial") == round_number


async def test_after_a_flag_what_is_still_being_checked_is_not_shown() -> None:
    async with stage(on_flag="stop") as played:
        endpoint = played.endpoint
        endpoint.gate.clear()
        endpoint.flags_at_once = True
        for api, stream in FORMS:
            endpoint.flags = re.compile(rf"{PLANTED}-{len(played.writer.requests)}\b")
            reply = await played.ask(api, stream=stream, size=6000)
            assert not reply.words
            assert reply.error == {"code": "withheld", "message": "The summary was withheld."}
        metrics = await played.metrics(4)
    assert metrics.total(REVIEWS, outcome="withheld") == 4
    assert metrics.total(REVIEWS, outcome="passed") == 0
    assert metrics.total("summaries_total", outcome="withheld") == 4
    assert metrics.total("summarizer_in_flight") == 0


@pytest.mark.parametrize("on_flag", ["withhold", "stop"])
async def test_after_a_flag_no_further_part_is_made(on_flag: str) -> None:
    async with stage(on_flag=on_flag) as played:
        played.endpoint.flags, withheld = re.compile(PLANTED), 0.0
        for number, api in enumerate(("chat", "responses"), 1):
            played.model.gate.clear()
            reply = played.begin(api, stream=True, size=12_000)
            await scrape_until(
                played.client,
                f"{played.url}/abridge/metrics",
                lambda metrics: metrics.total(REVIEWS, outcome="withheld") > withheld,  # noqa: B023 -- it ends before the next one
            )
            calls = await stalled(lambda: len(played.writer.requests))
            played.model.gate.set()
            await played.end(reply)
            assert not reply.words
            assert (len(played.writer.requests) == calls) == (on_flag == "stop")
            withheld = (await played.metrics(number)).total(REVIEWS, outcome="withheld")


@pytest.mark.parametrize("on_failure", ["withhold", "show"])
async def test_what_becomes_of_a_part_that_cannot_be_checked(
    on_failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(on_failure=on_failure) as played:
        for status in (500, 401, 302):
            played.endpoint.status = status
            for api, stream in FORMS:
                reply = await played.ask(api, stream=stream)
                check_unreviewed(reply, on_failure)
        metrics = await played.metrics(12)
    assert metrics.total(REVIEWS, outcome="failed") >= 5
    assert metrics.total(REVIEWS, outcome="passed") == 0
    outcome = "ok" if on_failure == "show" else "withheld"
    assert metrics.total("summaries_total", outcome=outcome) >= 5
    assert "review failed: The moderation endpoint answered with status 500." in caplog.text
    assert metrics.total("breaker_open") == (on_failure == "withhold")


@pytest.mark.parametrize("on_failure", ["withhold", "show"])
async def test_an_endpoint_that_hangs_costs_its_time_alone(on_failure: str) -> None:
    async with stage(on_failure=on_failure, timeout="0.2") as played:
        played.endpoint.gate.clear()
        for api, stream in FORMS:
            check_unreviewed(await played.ask(api, stream=stream), on_failure)
        metrics = await played.metrics(4)
    assert metrics.total(REVIEWS, outcome="timeout") == 4


@pytest.mark.parametrize("on_failure", ["withhold", "show"])
async def test_an_endpoint_that_is_gone(on_failure: str) -> None:
    async with stage(on_failure=on_failure, dead=True) as played:
        for api, stream in FORMS:
            check_unreviewed(await played.ask(api, stream=stream), on_failure)


def check_unreviewed(reply: Reply, on_failure: str) -> None:
    if on_failure == "show":
        assert reply.words
        assert reply.error is None
    else:
        assert not reply.words
        assert reply.error["code"] in ("withheld", "breaker_open")


async def test_an_extract_is_checked_too() -> None:
    async with stage(embedded=True) as played:
        endpoint = played.endpoint
        for flagged in (False, True):
            endpoint.gate.clear()
            endpoint.inputs.clear()
            endpoint.flags = re.compile("" if flagged else "(?!)")
            reply = played.begin("chat", stream=True)
            await until(lambda: bool(endpoint.inputs))
            await stalled(lambda: len(reply.data))  # noqa: B023 -- it ends before the next one
            assert b"reasoning_content" not in reply.data
            endpoint.gate.set()
            await played.end(reply)
            shown = check_chat(reply.data).choices[0].fields.get("reasoning_content", "")
            assert shown == ("" if flagged else endpoint.inputs[0])


async def test_no_extract_steps_in_at_the_deadline() -> None:
    async with stage(embedded=True, grace=0.2) as played:
        played.endpoint.gate.clear()
        for stream in (True, False):
            reply = await played.ask("chat", stream=stream)
            assert b"reasoning_content" not in reply.data
            assert reply.error["code"] == "deadline"
