"""Responses stored by Abridge, for upstreams that store none: retrieved, listed and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from abridge.apis.display import Exposure
from abridge.apis.openai import is_minted
from abridge.memory.stores.memory import MemoryStore
from tests import openapi
from tests.asgi import begin, call
from tests.bridges.loops import play
from tests.bridges.play import WORDS, answer
from tests.bridges.test_bridges import BOTH, KEY, TOOLS, bridge
from tests.checker import check_responses
from tests.forms import FORMS, PREFIX, Form
from tests.scripts import (
    DONE,
    chunk,
    pieces,
)
from tests.stored_responses.conversations import (
    AGAIN,
    EXPOSES,
    NO_PREVIOUS,
    NOT_FOUND,
    OURS,
    OVER,
    PATH,
    USER,
    Json,
    ask,
    converse,
    fetch,
    listed,
    refused,
    says,
    told,
    turns,
)
from tests.upstream import Answer, Upstream
from tests.writers import Scripted


class Down(MemoryStore):
    """A store that cannot be reached."""

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [None for _ in keys]

    async def put(self, values: Mapping[bytes, bytes]) -> None:
        """Lost."""


class Failing(MemoryStore):
    async def put(self, values: Mapping[bytes, bytes]) -> None:
        raise KeyError(values)


class Waiting(MemoryStore):
    """Keeps nothing before it may."""

    gate: asyncio.Event
    asked: asyncio.Event

    async def put(self, values: Mapping[bytes, bytes]) -> None:
        self.asked.set()
        await self.gate.wait()
        await super().put(values)


class TestTheStore:
    @BOTH
    @pytest.mark.parametrize("kind", [Down, Failing])
    async def test_one_that_is_down_costs_nobody_an_answer(
        self, kind: type[MemoryStore], monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", kind)
        app = bridge(says("chat", stream=stream), "chat")
        first = await told(app, "Hi", stream=stream)
        assert first["status"] == "completed"
        assert refused(await fetch(app, first["id"])) == NOT_FOUND
        assert refused(await ask(app, "Hi", previous_response_id=first["id"])) == NO_PREVIOUS

    @BOTH
    async def test_an_answer_is_stored_before_its_end_is_heard(
        self, monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", Waiting)
        monkeypatch.setattr(Waiting, "gate", gate := asyncio.Event(), raising=False)
        monkeypatch.setattr(Waiting, "asked", asked := asyncio.Event(), raising=False)
        app = bridge(says("chat", stream=stream), "chat")
        running = begin(app, PATH, {"model": "m", "input": "Hi", "stream": stream}, KEY)
        await asked.wait()
        assert b"response.completed" not in running.data
        assert not running.complete
        gate.set()
        await running.finish()
        first = check_responses(running.data).response if stream else running.json
        assert (await fetch(app, first["id"])).json == first

    async def test_keys_are_rotated_and_a_process_ended(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is shared between processes is found by each that has a key of it."""
        old, new = f"old:{'A' * 43}=", f"new:{'B' * 42}A="
        kept = MemoryStore(1 << 20, 3600.0)
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", lambda *_, **__: kept)
        played = says("chat", WORDS, "Yes.")
        history = {"seal_keys_env": "KEYS"}
        monkeypatch.setenv("KEYS", old)
        first = await told(bridge(played, "chat", history=history), "Hi")
        monkeypatch.setenv("KEYS", f"{new},{old}")
        app = bridge(played, "chat", history=history)
        second = await told(app, "Sure?", previous_response_id=first["id"])
        assert WORDS.encode() in played.asked[1].body
        monkeypatch.setenv("KEYS", new)
        app = bridge(played, "chat", history=history)
        await told(app, "Really?", previous_response_id=second["id"])
        assert WORDS.encode() in played.asked[2].body

    async def test_what_is_hidden_by_now_is_not_shown_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = MemoryStore(1 << 20, 3600.0)
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", lambda *_, **__: kept)
        monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
        history = {"seal_keys_env": "KEYS"}
        calls = answer("chat", stream=False, calls=True)
        played = Upstream(calls, answer("chat", stream=False))
        both: Json = {"history": history, "attribution": {"enabled": True}}
        app = bridge(played, "chat", expose="both", **both)
        first = await told(app, "Hi", tools=TOOLS["responses"])
        second = await told(app, "Sure?", previous_response_id=first["id"])
        assert (await fetch(app, first["id"])).data.count(b"odd numbers") > 2
        app = bridge(played, "chat", expose="summary", history=history)
        for tail in (first["id"], f"{second['id']}/input_items"):
            came = await fetch(app, tail)
            assert came.status == 200
            assert b"odd numbers" not in came.data
            assert b"I add the numbers" in came.data


class TestRetrieving:
    @BOTH
    @OVER
    @EXPOSES
    @pytest.mark.parametrize("form", FORMS)
    async def test_a_response_is_what_its_client_was_shown(
        self, form: Form, api: str, expose: Exposure, *, stream: bool
    ) -> None:
        played = Upstream(play(api, 0, "text and calls", stream=stream))
        app = bridge(played, api, form, expose=expose)
        shown = await told(
            app, [USER], prefix=PREFIX[form], stream=stream, tools=TOOLS["responses"]
        )
        came = await fetch(app, shown["id"], prefix=PREFIX[form])
        assert came.headers["content-type"] == "application/json"
        assert list(came.json.items()) == list(shown.items())
        openapi.check("Response", came.json)
        assert (b"I look in two more" in came.data) is (expose in ("auto", "both"))
        assert (b"I add the numbers" in came.data) is (expose != "none")
        assert len(played.asked) == 1

    @BOTH
    @OVER
    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_its_calls_are_attributed_again(
        self, api: str, expose: Exposure, *, stream: bool
    ) -> None:
        played = Upstream(*(play(api, number, "calls", stream=stream) for number in range(2)))
        app = bridge(played, api, expose=expose, attribution={"enabled": True})
        first, second = await converse(app, 2, "previous", stream=stream)
        assert [set(item) & {"reasoning", "reasoning_ref"} for item in first["output"][1:]] == [
            {"reasoning"},
            {"reasoning_ref"},
        ]
        for shown in (first, second):
            assert (await fetch(app, shown["id"])).json == shown
        assert b"reasoning_ref" not in played.asked[1].body

    @BOTH
    async def test_it_says_from_the_start_that_it_is_stored(self, *, stream: bool) -> None:
        app = bridge(says("chat", stream=stream), "chat")
        came = await ask(app, "Hi", stream=stream)
        assert came.data.count(b'"store":true') == (3 if stream else 1)

    @BOTH
    async def test_an_incomplete_answer_is_stored_and_goes_on(self, *, stream: bool) -> None:
        finish = {"finish_reason": "length"}
        frames = [
            chunk({"role": "assistant"}),
            chunk({"content": "So"}),
            chunk({}, finish="length"),
        ]
        message = {"index": 0, "message": {"role": "assistant", "content": "So"}, **finish}
        said = {"id": "x", "object": "chat.completion", "model": "m", "choices": [message]}
        cut = Answer([*frames, DONE]) if stream else Answer.json(said)
        played = Upstream(cut, answer("chat", stream=False))
        app = bridge(played, "chat")
        first = await told(app, "Hi", stream=stream)
        assert first["status"] == "incomplete"
        assert (await fetch(app, first["id"])).json == first
        await told(app, "Go on.", previous_response_id=first["id"])
        assert [each["content"] for each in played.asked[1].json["messages"]] == [
            "Hi",
            "So",
            "Go on.",
        ]

    async def test_a_failed_answer_can_be_seen_too(self) -> None:
        frames = [
            chunk({"role": "assistant"}),
            *(chunk({"content": each}) for each in pieces(WORDS)),
        ]
        app = bridge(Upstream(Answer([*frames, ConnectionError("gone")])), "chat")
        came = await ask(app, "Hi", stream=True)
        shown = check_responses(came.data).response
        kept = await fetch(app, shown["id"])
        assert kept.json["status"] == "failed"
        assert kept.json == shown
        openapi.check("Response", kept.json)

    async def test_a_summary_that_failed_may_fail_the_answer(self) -> None:
        writer = Scripted(error=ValueError())
        app = bridge(says("chat"), "chat", writer=writer, summary={"on_failure": "fail"})
        came = await ask(app, "Hi")
        assert came.status == 502
        shown = came.json["error"]["response"]
        assert (await fetch(app, shown["id"])).json == shown

    @EXPOSES
    async def test_a_summary_that_failed_is_told_again(self, expose: Exposure) -> None:
        played = says("chat", WORDS, "Yes.")
        app = bridge(played, "chat", expose=expose, writer=Scripted(error=ValueError()))
        first = await told(app, "Hi")
        assert ("summary_error" in first["output"][0]) is (expose != "none")
        assert (await fetch(app, first["id"])).json == first
        second = await told(app, "Sure?", previous_response_id=first["id"])
        thought = (await listed(app, second["id"]))[1]
        assert thought.get("summary_error") == first["output"][0].get("summary_error")

    async def test_an_error_is_no_response(self) -> None:
        error = Answer.json({"error": {"message": "Slow down.", "type": "x"}}, 429)
        app = bridge(Upstream(error, answer("chat", stream=False)), "chat", history={"bytes": 900})
        assert (await ask(app, "Hi")).status == 429

    @pytest.mark.parametrize(
        ("query", "param"),
        [
            ("stream=true", "stream"),
            ("stream=True", "stream"),
            ("stream", "stream"),
            ("starting_after=3", "starting_after"),
            ("stream=true&starting_after=3", "stream"),
        ],
    )
    async def test_a_stream_is_not_resumed(self, query: str, param: str) -> None:
        app = bridge(says("chat"), "chat")
        first = await told(app, "Hi")
        came = await fetch(app, f"{first['id']}?{query}")
        assert refused(came) == (400, "stream_not_resumable", param)

    @pytest.mark.parametrize("query", ["stream=false", "include[]=reasoning.encrypted_content"])
    async def test_what_else_is_asked_changes_nothing(self, query: str) -> None:
        app = bridge(says("chat"), "chat")
        first = await told(app, "Hi")
        assert (await fetch(app, f"{first['id']}?{query}")).json == first

    async def test_it_is_not_in_the_background(self) -> None:
        app = bridge(says("chat"), "chat")
        first = await told(app, "Hi")
        came = await fetch(app, f"{first['id']}/cancel", method="POST")
        assert refused(came) == (400, None, None)
        assert came.json["error"]["message"] == "Cannot cancel a synchronous response."

    @pytest.mark.parametrize("tail", ["resp_1", "resp_1/input_items", OURS])
    async def test_what_is_not_there_is_told_in_openais_shape(self, tail: str) -> None:
        played = says("chat")
        came = await fetch(bridge(played, "chat"), tail)
        assert refused(came) == NOT_FOUND
        identity = tail.partition("/")[0]
        assert came.json["error"]["message"] == f"Response with id '{identity}' not found."
        assert not played.asked

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    async def test_what_an_application_calls_so_is_its_own(self, method: str) -> None:
        upstream = Upstream(Answer.json({"name": "Anna", "likes": "tea"}))
        came = await call(
            bridge(upstream, "chat", "mounted"), "/surveys/responses/7", b"", KEY, method=method
        )
        assert (came.status, came.json) == (200, {"name": "Anna", "likes": "tea"})


class TestListing:
    @OVER
    async def test_all_items_that_an_answer_was_made_from(self, api: str) -> None:
        app = bridge(turns(api, 5, stream=False), api)
        responses = await converse(app, 5, "previous", stream=False)
        items = await listed(app, responses[-1]["id"], limit=3)
        assert len(items) == len({item["id"] for item in items})
        shown = [item for response in responses[:-1] for item in response["output"]]
        assert [item for item in items if item in shown] == shown
        said = [item for item in items if item not in shown]
        assert said[0]["content"] == [{"type": "input_text", "text": "Where is it?"}]
        assert all(is_minted(item["id"]) for item in items)

    async def test_the_newest_come_first(self) -> None:
        app = bridge(says("chat"), "chat")
        first = await told(app, [{"role": "user", "content": str(n)} for n in range(25)])
        page = (await fetch(app, f"{first['id']}/input_items")).json
        texts = [item["content"][0]["text"] for item in page["data"]]
        assert texts == [str(number) for number in range(24, 4, -1)]
        assert page["has_more"] is True
        assert page["first_id"] == page["data"][0]["id"]
        assert page["last_id"] == page["data"][-1]["id"]

    async def test_each_item_can_be_referred_to(self) -> None:
        played = says("chat", WORDS, "Yes.")
        app = bridge(played, "chat")
        first = await told(app, [USER, AGAIN])
        (_, item) = await listed(app, first["id"])
        await told(app, [{"id": item["id"]}])
        assert played.asked[1].json["messages"] == [AGAIN]

    @pytest.mark.parametrize("query", ["limit=0", "limit=101", "order=up", "after=x"])
    async def test_what_is_no_page_is_refused(self, query: str) -> None:
        app = bridge(says("chat"), "chat")
        first = await told(app, "Hi")
        status, _, param = refused(await fetch(app, f"{first['id']}/input_items?{query}"))
        assert (status, param) == (400, query.partition("=")[0])

    async def test_none_is_left_out_quietly(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """But for reasoning whose time is up."""
        kept = MemoryStore(1 << 20, 3600.0)
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", lambda *_, **__: kept)
        played = says("chat", WORDS, "Yes.", "No.")
        app = bridge(played, "chat")
        first = await told(app, "Hi")
        second = await told(app, "Sure?", previous_response_id=first["id"])
        for words, status in ((b"I add the numbers", 200), (b'"Hi"', 404)):
            lost = [at for at, values in kept._values.items() if _is_item(values[0].data, words)]
            assert lost
            await kept.delete([key for _, key in lost])
            came = await fetch(app, f"{second['id']}/input_items")
            assert came.status == status
            came = await ask(app, "Really?", previous_response_id=second["id"])
            assert came.status == (200 if status == 200 else 400)

    async def test_who_sends_everything_again_stores_what_is_new(self) -> None:
        sizes = []
        for way in ("sends it all", "previous"):
            app = bridge(turns("chat", 6, stream=False), "chat")
            responses = await converse(app, 6, way, stream=False)
            items = await listed(app, responses[-1]["id"])
            sizes.append(len(items))
            again = [item["id"] for item in await listed(app, responses[-2]["id"])]
            assert [item["id"] for item in items][: len(again)] == again
        assert sizes[0] == sizes[1]


def _is_item(data: bytes, words: bytes) -> bool:
    return words in data and b'"basis"' not in data
