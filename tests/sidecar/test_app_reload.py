"""Test changes of the settings of a running app: new requests get the new ones, those under way end
as they began, and what the app knows of the world is kept."""

from __future__ import annotations

import asyncio
import gc
from base64 import b64encode
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from prometheus_client import CollectorRegistry

from abridge.config.client_key import ClientKey, digest, new_key
from abridge.config.effective import settings_hash
from abridge.config.settings import Settings
from abridge.errors import SettingsError
from abridge.sidecar.app import Abridge
from abridge.sidecar.client_keys.file import add_key
from tests.background.cases import begin_response, ended, paused
from tests.end_to_end.translation.test_translation import SUMMARY
from tests.end_to_end.translation.turn import WORDS, answer
from tests.stored_responses.conversations import fetch, get_response, post
from tests.support.asgi import begin, call
from tests.support.checker import check_responses
from tests.support.deployments import ORIGIN, transport_to
from tests.support.servers import until
from tests.support.streams import THOUGHT
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream
from tests.support.websockets import opened, serving

ASK = {"model": "m", "input": "Hi", "reasoning": {"summary": "auto"}, "stream": True}

MODERATED = {"kind": "moderations", "base_url": "http://m/v1", "api_key_env": "NOT_SET_KEY"}


def at(place: str, **more: Any) -> dict[str, Any]:
    """Return an upstream at an address of its own, by which its requests can be told."""
    return {"base_url": f"{ORIGIN}/{place}", "api": "chat", **more}


def settings(*upstreams: dict[str, Any], **tables: Any) -> Settings:
    given = {"upstreams": list(upstreams) or [at("one")], "summarizer": {"kind": "object"}}
    return Settings.model_validate({**given, **tables})


class Running:
    """An app before an upstream in this process."""

    def __init__(self, upstream: Upstream, first: Settings, writer: Scripted | None = None) -> None:
        self.upstream = upstream
        self.registry = CollectorRegistry()
        self.app = Abridge(
            first,
            transport=transport_to(upstream),
            summarizer=writer or Scripted(SUMMARY),
            registry=self.registry,
        )

    @property
    def places(self) -> list[str]:
        return [request.path.split("/")[1] for request in self.upstream.requests]

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"abridge_{name}", labels)


def is_sharing(task: asyncio.Task[Any]) -> bool:
    return "SharedFindings" in repr(task.get_coro())


def thinking(*answers: Answer) -> Upstream:
    return Upstream(*(answers or [answer("chat", stream=True)]))


class TestRequests:
    async def test_a_new_one_goes_where_the_new_settings_say(self) -> None:
        running = Running(thinking(), settings())
        await call(running.app, "/v1/responses", ASK)
        assert await running.app.reload(settings(at("two"))) == []
        await call(running.app, "/v1/responses", ASK)
        assert running.places == ["one", "two"]

    async def test_one_under_way_ends_under_the_settings_with_which_it_began(self) -> None:
        gate = asyncio.Event()
        running = Running(thinking(paused(gate)), settings(summary={"allow": ["auto"]}))
        begun = begin(running.app, "/v1/responses", ASK)
        await begun.until(b"response.created")
        other = settings(at("two"), reasoning={"expose": "none"}, summary={"allow": ["concise"]})
        await running.app.reload(other)
        running.upstream.answers = [answer("chat", stream=True)]
        refused = await call(running.app, "/v1/responses", ASK)
        assert refused.status == 400
        new = await call(running.app, "/v1/responses", {**ASK, "reasoning": {"summary": "concise"}})
        hidden = check_responses(new.data)
        gate.set()
        shown = check_responses((await begun.finish()).data)
        assert (shown.text, shown.summary, shown.raw) == (WORDS, [SUMMARY], THOUGHT)
        assert (hidden.text, hidden.summary, hidden.raw) == (WORDS, [], "")
        assert running.places == ["one", "two"]

    async def test_those_of_a_websocket_are_new_ones(self) -> None:
        first = settings()
        running = Running(thinking(), first)
        async with (
            serving(running.app, first, running.registry) as front,
            opened(front.url) as client,
        ):
            await client.ask()
            await running.app.reload(settings(at("two")))
            assert (await client.ask()).text == WORDS
        assert running.places == ["one", "two"]

    async def test_what_served_before_is_let_go_once_its_last_request_has_ended(self) -> None:
        gate = asyncio.Event()
        running = Running(thinking(paused(gate)), settings())
        first = ref(running.app._generation.middleware)
        begun = begin(running.app, "/v1/responses", ASK)
        await begun.until(b"response.created")
        for place in ("two", "three", "four"):
            await running.app.reload(settings(at(place)))
        await until(lambda: len(running.app._retiring) == 1)
        gate.set()
        await begun.finish()
        await until(lambda: not running.app._retiring)
        gc.collect()
        assert first() is None

    async def test_a_background_response_goes_on_and_is_found_and_cancelled(self) -> None:
        gate = asyncio.Event()
        running = Running(thinking(paused(gate)), settings())
        first, second = [await begin_response(running.app) for _ in range(2)]
        await until(lambda: running.upstream.running == 2)
        await running.app.reload(settings(at("two")))
        assert len(running.app._retiring) == 1
        cancelled = await fetch(running.app, f"{first['id']}/cancel", method="POST")
        assert cancelled.json["status"] == "cancelled"
        gate.set()
        assert (await ended(running.app, second["id"]))["status"] == "completed"
        await until(lambda: not running.app._retiring)
        await running.app.aclose()

    async def test_the_end_of_the_app_ends_what_served_before_too(self) -> None:
        gate = asyncio.Event()
        running = Running(thinking(paused(gate)), settings())
        begun = await begin_response(running.app)
        await until(lambda: running.upstream.running == 1)
        await running.app.reload(settings(at("two")))
        await running.app.aclose()
        assert (await fetch(running.app, begun["id"])).json["status"] == "failed"
        assert not running.app._retiring


class TestMemory:
    async def test_stored_responses_and_hidden_reasoning_are_still_there(self) -> None:
        hiding = {"reasoning": {"expose": "none"}}
        running = Running(thinking(answer("chat", stream=False)), settings(**hiding))
        first = await get_response(running.app, "Where?")
        await running.app.reload(settings(summary={"grace": 1}, **hiding))
        assert (await fetch(running.app, first["id"])).json["id"] == first["id"]
        await get_response(running.app, "Sure?", previous_response_id=first["id"])
        turns = running.upstream.requests[-1].json["messages"]
        assert turns[1]["reasoning_content"] == THOUGHT

    async def test_a_summary_shown_before_is_not_sent_upstream_as_reasoning(self) -> None:
        running = Running(thinking(answer("chat", stream=False)), settings())
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        asked = {**body, "reasoning": {"summary": "auto"}}
        said = (await call(running.app, "/v1/chat/completions", asked)).json
        message = said["choices"][0]["message"]
        assert SUMMARY in message.values()
        await running.app.reload(settings(summary={"grace": 1}))
        again = [*asked["messages"], message, {"role": "user", "content": "Sure?"}]
        await call(running.app, "/v1/chat/completions", {**asked, "messages": again})
        sent = running.upstream.requests[-1].json["messages"]
        assert SUMMARY not in sent[1].values()

    async def test_what_an_upstream_lacks_is_not_found_out_again_unless_it_moved(self) -> None:
        missing = Answer.json({"error": {"message": "Not Found"}}, 404)
        auto = {"name": "x", "api": "auto"}
        running = Running(
            thinking(missing, answer("chat", stream=True)), settings(at("one", **auto))
        )
        await call(running.app, "/v1/responses", ASK)
        assert len(running.places) == 2
        await running.app.reload(settings(at("one", **auto), summary={"grace": 1}))
        await call(running.app, "/v1/responses", ASK)
        assert len(running.places) == 3
        running.upstream.answers = [missing, answer("chat", stream=True)]
        await running.app.reload(settings(at("two", **auto)))
        await call(running.app, "/v1/responses", ASK)
        assert running.places[3:] == ["two", "two"]

    async def test_a_summarizer_that_failed_too_often_stays_uncalled(self) -> None:
        writer = Scripted(error=RuntimeError("broken"))
        table = {"summarizer": {"kind": "object", "breaker_failures": 1}}
        running = Running(thinking(), settings(**table), writer)
        await call(running.app, "/v1/responses", ASK)
        assert running.value("breaker_open") == 1
        await running.app.reload(settings(at("two"), **table))
        await call(running.app, "/v1/responses", ASK)
        assert len(writer.requests) == 1
        assert running.value("breaker_open") == 1
        await running.app.reload(settings())
        await until(lambda: not running.app._retiring)
        await call(running.app, "/v1/responses", ASK)
        assert len(writer.requests) == 2
        assert running.value("breaker_open") == 0

    async def test_what_replicas_share_is_read_by_one_task(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SEAL", f"a:{b64encode(bytes(32)).decode()}")
        history = {"store": "redis://127.0.0.1:9/0", "seal_keys_env": "SEAL"}
        running, tasks = Running(thinking(), settings(history=history)), set[int]()
        for place in ("two", "three"):
            await call(running.app, "/v1/responses", ASK)
            await running.app.reload(settings(at(place), history=history))
            await call(running.app, "/v1/responses", ASK)
            await until(lambda: not running.app._retiring)
            (task,) = (each for each in asyncio.all_tasks() if is_sharing(each))
            tasks.add(id(task))
        assert len(tasks) == 1
        await running.app.aclose()
        assert not any(map(is_sharing, asyncio.all_tasks()))


class TestLedger:
    async def test_it_is_the_same_one_and_its_address_needs_a_restart(self) -> None:
        tables = {"ledger": {"url": "redis://127.0.0.1:9/0"}}
        running = Running(thinking(), settings(**tables))
        ledger = running.app._generation.middleware._metrics_sink.ledger
        assert ledger is not None
        other = settings(at("two"), ledger={"url": "redis://127.0.0.1:9/1"})
        assert await running.app.reload(other) == ["ledger.url"]
        assert running.app._generation.middleware._metrics_sink.ledger is ledger
        await running.app.aclose()


class TestLimits:
    async def test_they_hold_for_old_and_new_requests_together(self) -> None:
        gate = asyncio.Event()
        running = Running(thinking(paused(gate)), settings(limits={"in_flight": 3}))
        begun = [begin(running.app, "/v1/responses", ASK) for _ in range(2)]
        await until(lambda: running.upstream.running == 2)
        await running.app.reload(settings(limits={"in_flight": 2}))
        assert (await call(running.app, "/v1/responses", ASK)).status == 503
        await running.app.reload(settings(limits={"in_flight": 20}))
        begun.append(begin(running.app, "/v1/responses", ASK))
        await until(lambda: running.upstream.running == 3)
        gate.set()
        for each in begun:
            assert (await each.finish()).status == 200
        assert running.value("requests_in_flight_limit") == 20

    async def test_the_metrics_show_what_is_in_force_alone(self) -> None:
        tables = {"summarizer": {"kind": "object", "max_in_flight": 7}}
        running = Running(thinking(), settings(at("one", name="x", profile="vllm")))
        new = settings(at("one", name="x", profile="deepseek"), at("two", name="y"), **tables)
        await running.app.reload(new)
        await until(lambda: not running.app._retiring)
        assert running.value("summarizer_in_flight_limit") == 7
        assert running.value("settings_hash") == settings_hash(new)
        info = {
            (sample.labels["upstream"], sample.labels["profile"]): sample.value
            for family in running.registry.collect()
            for sample in family.samples
            if sample.name == "abridge_upstream_info"
        }
        assert info == {("x", "vllm"): 0, ("x", "deepseek"): 1, ("y", "auto"): 1}


class TestKeys:
    async def test_what_a_key_used_is_priced_by_the_prices_in_force_and_counts_on(
        self, tmp_path: Path
    ) -> None:
        path, key = tmp_path / "keys", new_key()
        add_key(path, ClientKey(name="anna", sha256=digest(key), tokens_per_day=150))
        server = {"keys_file": str(path)}

        def priced(price: float) -> Settings:
            prices = {"currency": "EUR", "models": [{"glob": "*", "output": price}]}
            return settings(at("one", credential="none"), server=server, prices=prices)

        running = Running(thinking(), priced(1e6))
        headers = {"authorization": f"Bearer {key}"}
        unsummarized = {**ASK, "reasoning": {}}
        assert (await call(running.app, "/v1/responses", unsummarized, headers)).status == 200
        await running.app.reload(priced(2e6))
        assert (await call(running.app, "/v1/responses", unsummarized, headers)).status == 200
        refused = await call(running.app, "/v1/responses", unsummarized, headers)
        assert refused.status == 429
        assert running.value("key_cost_total", key="anna", currency="EUR") == 70 + 2 * 70
        await running.app.aclose()

    async def test_settings_that_would_send_clients_keys_upstream_are_refused(
        self, tmp_path: Path
    ) -> None:
        path = tmp_path / "keys"
        add_key(path, ClientKey(name="anna", sha256=digest(new_key())))
        tables = {"server": {"keys_file": str(path)}}
        running = Running(thinking(), settings(at("one", credential="none"), **tables))
        with pytest.raises(SettingsError, match="credential"):
            await running.app.reload(settings(at("one", credential="client"), **tables))
        await running.app.aclose()


class TestMistakes:
    @pytest.mark.parametrize(
        ("more", "named"),
        [
            ({"upstreams": [at("two", api_key_env="NOT_SET_KEY")]}, "NOT_SET_KEY"),
            ({"upstreams": []}, "base_url"),
            ({"summarizer": {"kind": "object"}, "review": MODERATED}, "review.api_key_env"),
        ],
    )
    async def test_settings_that_cannot_be_used_change_nothing(
        self, more: dict[str, Any], named: str
    ) -> None:
        running = Running(thinking(), settings(limits={"in_flight": 5}))
        before = running.app.settings
        with pytest.raises(SettingsError, match=named):
            await running.app.reload(settings(limits={"in_flight": 9}, **more))
        assert running.app.settings is before
        assert running.value("requests_in_flight_limit") == 5
        assert running.value("settings_hash") == settings_hash(before)
        await post(running.app, "Hi")
        assert running.places == ["one"]

    async def test_what_needs_a_restart_is_named_and_stays(self) -> None:
        running = Running(thinking(), settings())
        kept = await running.app.reload(
            settings(at("two"), server={"port": 1}, history={"ttl": 1.0})
        )
        assert kept == ["server.port", "history.ttl"]
        assert running.app.settings.server.port == 8400
        await post(running.app, "Hi")
        assert running.places == ["two"]
