"""Test how requests skip upstreams that are down, and go through a list of fallbacks."""

from __future__ import annotations

import logging
from collections import Counter
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.config.settings import Settings
from abridge.config.upstreams import UpstreamSettings
from abridge.lasting import Lasting
from abridge.memory.registry import MemoryRegistry
from abridge.memory.stores.store import observe_nothing
from abridge.observability.metrics import metrics_for
from abridge.observability.metrics_sink import MetricsSink
from abridge.pipeline.failover import Failover
from abridge.pipeline.health import Attempt, UpstreamHealth
from tests.stored_responses.conversations import stored_upstream
from tests.support.asgi import Call, call
from tests.support.deployments import build_app
from tests.support.streams import THOUGHT, completion, message_item, reasoning_item
from tests.support.upstream import Answer, ReceivedRequest, Upstream

CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
BUSY, LIMITED = (Answer.json({"error": {"message": "busy"}}, status) for status in (503, 429))
HOUR, MOMENT = 3600.0, 1e-9


class Several(Upstream):
    """Upstreams by the first label of their host; those of `failing` answer so, all others say who
    they are."""

    def __init__(self, **failing: Answer) -> None:
        super().__init__(BUSY)
        self.failing = failing

    def answer(self, request: ReceivedRequest) -> Answer:
        super().answer(request)
        name = request.header("host").partition(".")[0]
        said = Answer.json(completion({"content": f"{name} said."}))
        return self.failing.get(name, said)

    @property
    def asked(self) -> str:
        """The names of those that were asked since the last time."""
        names = "".join(each.header("host").partition(".")[0] for each in self.requests)
        self.requests.clear()
        return names


def upstreams(*names: str, **settings: Any) -> list[dict[str, Any]]:
    """Return upstreams, of which the first falls back to the others."""
    fallback = settings.pop("fallback", list(names[1:]))
    entries = [{"name": name, "base_url": f"http://{name}.test/v1", **settings} for name in names]
    return [{**entries[0], "fallback": fallback}, *entries[1:]]


def app_for(upstream: Upstream, *names: str, registry: Any = None, **settings: Any) -> ASGIApp:
    settings = {"api": "chat", **settings}
    return build_app(
        "sidecar", upstream, upstreams=upstreams(*names, **settings), registry=registry
    )


async def ask(app: ASGIApp, **more: Any) -> Call:
    return await call(app, CHAT, {**BODY, **more})


def up(registry: CollectorRegistry, name: str) -> float | None:
    return registry.get_sample_value("abridge_upstream_up", {"upstream": name})


async def test_fallbacks_are_tried_in_order_until_one_answers() -> None:
    upstream = Several(a=BUSY, b=LIMITED)
    app = app_for(upstream, "a", "b", "c", "d")
    answer = await ask(app)
    assert (answer.status, upstream.asked) == (200, "abc")
    upstream.failing |= {"c": BUSY, "d": LIMITED}
    answer = await ask(app)
    assert (answer.status, upstream.asked) == (429, "abcd")


async def test_a_fallback_of_a_fallback_is_not_asked() -> None:
    upstream = Several(a=BUSY, b=BUSY)
    entries = upstreams("a", "b", "c", fallback="b")
    entries[1]["fallback"] = ["c", "a"]
    app = build_app("sidecar", upstream, upstreams=entries)
    assert (await ask(app)).status == 503
    assert upstream.asked == "ab"


async def test_a_fallback_that_cannot_take_a_request_is_passed_over() -> None:
    upstream = Several(a=BUSY)
    entries = upstreams("a", "b", "c", api="chat")
    entries[1]["api"] = "responses"
    app = build_app("sidecar", upstream, upstreams=entries)
    assert (await ask(app, stop=["x"])).status == 200
    assert upstream.asked == "ac"


async def test_an_upstream_that_failed_several_times_is_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    upstream, registry = Several(a=BUSY), CollectorRegistry()
    app = app_for(upstream, "a", "b", registry=registry, breaker_failures=2, breaker_seconds=HOUR)
    assert up(registry, "a") == 1
    for asked in ("ab", "ab", "b", "b"):
        assert (await ask(app)).status == 200
        assert upstream.asked == asked
    assert (up(registry, "a"), up(registry, "b")) == (0, 1)
    labels = {"upstream": "a", "fallback": "b", "cause": "down"}
    assert registry.get_sample_value("abridge_upstream_failovers_total", labels) == 2
    lines = [each.getMessage() for each in caplog.records if "down" in each.getMessage()]
    rule = "requests with a fallback skip it for 3600 seconds"
    assert lines == [f"upstream a: down after 2 failures in a row; {rule}"]


async def test_failures_count_in_a_row_and_a_clients_own_limit_is_none() -> None:
    upstream = Several(a=BUSY)
    app = app_for(upstream, "a", "b", breaker_failures=2, breaker_seconds=HOUR)
    for answer in (BUSY, LIMITED, BUSY, LIMITED, LIMITED):
        upstream.failing["a"] = answer
        await ask(app)
        assert upstream.asked == "ab"


async def test_the_first_is_asked_where_all_are_down() -> None:
    upstream = Several(a=BUSY, b=BUSY, c=BUSY)
    app = app_for(upstream, "a", "b", "c", breaker_failures=1, breaker_seconds=HOUR)
    await ask(app)
    assert upstream.asked == "abc"
    assert (await ask(app)).status == 503
    assert upstream.asked == "a"
    del upstream.failing["a"]
    assert (await ask(app)).status == 200
    upstream.failing["a"] = LIMITED
    await ask(app)
    assert upstream.asked == "aa"


async def test_the_first_is_the_last_resort_where_it_is_down_and_its_fallback_fails() -> None:
    upstream = Several(a=BUSY)
    app = app_for(upstream, "a", "b", breaker_failures=1, breaker_seconds=HOUR)
    await ask(app)
    upstream.failing["b"] = LIMITED
    assert (await ask(app)).status == 503
    assert upstream.asked == "abba"


async def test_an_answer_shows_that_an_upstream_is_up_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    upstream, registry = Several(a=BUSY), CollectorRegistry()
    app = app_for(upstream, "a", "b", registry=registry, breaker_failures=1, breaker_seconds=MOMENT)
    await ask(app)
    assert up(registry, "a") == 0
    del upstream.failing["a"]
    await ask(app)
    assert up(registry, "a") == 1
    assert upstream.asked == "aba"
    assert "upstream a: up again" in [each.getMessage() for each in caplog.records]


async def test_what_an_upstream_stores_is_asked_of_it_though_it_is_down() -> None:
    upstream = Several(a=BUSY)
    app = app_for(upstream, "a", "b", api="responses", breaker_failures=1, breaker_seconds=HOUR)
    await ask(app)
    assert upstream.asked == "ab"
    body = {"model": "m", "input": "Hi", "previous_response_id": "resp_1"}
    assert (await call(app, "/v1/responses", body)).status == 503
    assert upstream.asked == "a"


def test_one_request_at_a_time_tries_an_upstream_that_was_down() -> None:
    now = 0.0
    health = UpstreamHealth(metrics_for(CollectorRegistry()), lambda: now)
    settings = Settings(upstreams=upstreams("a", "b", breaker_failures=1, breaker_seconds=30))
    health.watch(settings.upstreams)
    route = settings.routes[0]
    breaker = health.breaker(route.upstream)
    health.note(route.upstream, is_up=False)
    now = 29.0
    assert not breaker.admits
    now = 30.0
    with Attempt(health, route, moves_on=True):
        assert not breaker.admits
    assert breaker.admits
    with Attempt(health, route, moves_on=True) as attempt:
        attempt.note(is_up=True)
        assert breaker.admits


def test_an_upstream_that_settings_no_longer_have_is_forgotten() -> None:
    registry = CollectorRegistry()
    health, told = UpstreamHealth(metrics_for(registry)), list[str]()
    health.listener = lambda upstream: told.append(upstream.name)
    a, b = Settings(upstreams=upstreams("a", "b", breaker_failures=1)).upstreams
    health.watch([a, b])
    health.note(a, is_up=False)
    assert (up(registry, "a"), up(registry, "b"), told) == (0, 1, ["a"])
    health.watch([b])
    health.note(a, is_up=False)  # a request that began before
    assert (up(registry, "a"), up(registry, "b"), told) == (1, 1, ["a"])
    health.watch([a, b])
    assert not health.breaker(a).is_open


def test_neighbours_with_weights_share_requests_and_others_keep_their_place() -> None:
    heavy, light = ({"upstream": name, "weight": weight} for name, weight in (("b", 3), ("c", 1)))
    settings = Settings(
        upstreams=upstreams("a", "b", "c", "d", "e", fallback=["d", heavy, light, "e"])
    )
    metrics = metrics_for(CollectorRegistry())
    sink = MetricsSink(metrics, settings, (), Lasting())
    memory = MemoryRegistry(settings, observe_nothing, None)
    failover = Failover(settings, UpstreamHealth(metrics), memory, sink, Random(1))
    drawn: Counter[str] = Counter(
        "".join(each.upstream.name for each in failover.draw("a")) for _ in range(4000)
    )
    assert set(drawn) == {"dbce", "dcbe"}
    assert drawn["dbce"] / 4000 == pytest.approx(0.75, abs=0.02)


def test_a_name_alone_is_a_list_of_one() -> None:
    one = UpstreamSettings(name="a", base_url="http://a.test/v1", fallback="b")
    assert [each.upstream for each in one.fallbacks] == ["b"]


class Accounts(Several):
    """Upstreams that store responses, each its own."""

    def answer(self, request: ReceivedRequest) -> Answer:
        name = request.header("host").partition(".")[0]
        if (failed := super().answer(request)).status != 200:
            return failed
        previous = request.json.get("previous_response_id")
        if previous not in (None, f"resp_{name}"):
            return Answer.json({"error": {"message": "not found"}}, 400)
        output = [reasoning_item(0, THOUGHT), message_item(1, "Yes.")]
        return Answer.json(stored_upstream(output, id=f"resp_{name}"))


@pytest.mark.parametrize("shared_key", [True, False])
async def test_what_continues_a_fallbacks_response_goes_to_that_fallback(
    monkeypatch: pytest.MonkeyPatch, *, shared_key: bool
) -> None:
    monkeypatch.setenv("OWN", "sk-own")
    upstream = Accounts(a=BUSY, b=BUSY)
    access = {"api_key_env": "OWN"} if shared_key else {"credential": "client"}
    app = app_for(upstream, "a", "b", "c", api="responses", **access)

    async def go_on(key: str = "k", **more: Any) -> int:
        body = {"model": "m", "input": "Hi", "store": True, **more}
        headers = {"authorization": f"Bearer {key}", "x-abridge-summary": "auto"}
        return (await call(app, "/v1/responses", body, headers)).status

    assert (await go_on(), upstream.asked) == (200, "abc")
    upstream.failing.clear()
    assert (await go_on(previous_response_id="resp_c"), upstream.asked) == (200, "c")
    assert (await go_on("another", previous_response_id="resp_c")) == 400
    assert upstream.asked == ("" if shared_key else "a")
    upstream.failing["c"] = BUSY
    assert (await go_on(previous_response_id="resp_c"), upstream.asked) == (503, "c")
    assert (await go_on(), upstream.asked) == (200, "a")
