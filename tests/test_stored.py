"""Stored responses, through the whole of it: for upstreams that have no such thing, and for those
that do."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from starlette.types import ASGIApp

from abridge.apis.display import Exposure
from abridge.apis.openai import is_minted, mint_id
from abridge.errors import UpstreamBroken
from abridge.memory.stores.memory import MemoryStore
from tests import openapi
from tests.asgi import Call, begin, call
from tests.checker import check_responses
from tests.end_to_end.translation.test_translation import BOTH, KEY, SUMMARY, TOOLS, bridge
from tests.end_to_end.translation.tool_loops import play, results
from tests.end_to_end.translation.turn import WORDS, answer
from tests.forms import FORMS, PREFIX, Form, abridged
from tests.scripts import (
    DONE,
    THOUGHT,
    call_item,
    chunk,
    message_item,
    pieces,
    reasoning_item,
    responses_stream,
)
from tests.scripts import response as whole_response
from tests.servers import until
from tests.upstream import Answer, Upstream
from tests.writers import Scripted

Json = dict[str, Any]
PATH = "/v1/responses"
OTHER = {"authorization": "Bearer sk-bert-5678"}
OVER = pytest.mark.parametrize("api", ["chat", "messages"])
EXPOSES = pytest.mark.parametrize("expose", ["auto", "both", "summary", "none"])
USER: Json = {"role": "user", "content": "Where is it?"}
AGAIN: Json = {"role": "user", "content": "Sure?"}


async def ask(app: ASGIApp, said: Any, key: Any = KEY, prefix: str = "", **more: Any) -> Call:
    asking = {"model": "claude-opus-4-5", "reasoning": {"summary": "auto"}, "input": said}
    return await call(app, prefix + PATH, {**asking, **more}, key)


async def told(app: ASGIApp, said: Any, key: Any = KEY, **more: Any) -> Json:
    """The response, as the client has it at its end."""
    came = await ask(app, said, key, **more)
    assert came.status == 200, came.data
    whole: Json = check_responses(came.data).response if more.get("stream") else came.json
    return whole


async def fetch(
    app: ASGIApp, tail: str, key: Any = KEY, method: str = "GET", prefix: str = ""
) -> Call:
    path, _, query = tail.partition("?")
    at = {"method": method, "query_string": query.encode()}
    return await call(app, f"{prefix}{PATH}/{path}", b"", key, **at)


async def listed(app: ASGIApp, identity: str, **query: Any) -> list[Json]:
    """The items of a response in order, all pages of them."""
    items: list[Json] = []
    more = True
    while more:
        after = {"after": items[-1]["id"]} if items else {}
        said = "&".join(f"{key}={value}" for key, value in {**query, **after}.items())
        page = (await fetch(app, f"{identity}/input_items?order=asc&{said}")).json
        openapi.check("ResponseItemList", page)
        items += page["data"]
        more = page["has_more"]
    return items


def refused(came: Call) -> tuple[int, str | None, str | None]:
    error = came.json["error"]
    assert error["type"] == "invalid_request_error"
    openapi.check("ErrorResponse", came.json)
    return came.status, error["code"], error["param"]


NOT_FOUND = (404, None, None)
NO_PREVIOUS = (400, "previous_response_not_found", "previous_response_id")


def turns(api: str, times: int, *, stream: bool) -> Upstream:
    """An upstream that thinks and calls, and at times only answers."""
    said = [
        play(api, number, "text and calls", stream=stream)
        if number % 3 < 2
        else answer(api, stream=stream, thought=f"Thought {number}.", text=f"So, {number}.")
        for number in range(times)
    ]
    return Upstream(*said)


def says(api: str, *texts: str, stream: bool = False) -> Upstream:
    return Upstream(*(answer(api, stream=stream, text=text) for text in texts or (WORDS,)))


WAYS = ("everything", "previous", "references", "bare references", "by turns")


async def converse(
    app: ASGIApp, times: int, way: str, *, stream: bool, **fields: Any
) -> list[Json]:
    """A client that sends all of a conversation, or what is new of it; what it was told."""
    history: list[Json] = []
    new: list[Json] = [USER]
    responses: list[Json] = []
    for number in range(times):
        goes_on = way == "previous" or (way == "by turns" and number % 2)
        previous = {"previous_response_id": responses[-1]["id"]} if goes_on and responses else {}
        history += new
        more = {"tools": TOOLS["responses"], "stream": stream, **previous, **fields}
        store = {"store": False} if way == "everything" else {}
        response = await told(app, new if previous else history, **store, **more)
        responses.append(response)
        history += [_as_returned(item, way) for item in response["output"]]
        new = [*results(response["output"]), {"role": "user", "content": f"And {number}?"}]
    return responses


def _as_returned(item: Json, way: str) -> Json:
    kind = {"type": "item_reference"} if way == "references" else {}
    return {**kind, "id": item["id"]} if "references" in way else item


class TestGoingOn:
    @pytest.mark.matrix(3)
    @BOTH
    @OVER
    @EXPOSES
    @pytest.mark.parametrize("times", [2, 5])
    @pytest.mark.parametrize("way", WAYS[1:])
    async def test_ogx_11_upstream_is_sent_what_it_is_by_who_keeps_it_all(
        self, api: str, way: str, times: int, expose: Exposure, *, stream: bool
    ) -> None:
        sent = []
        for each in (way, "everything"):
            played = turns(api, times, stream=stream)
            await converse(bridge(played, api, expose=expose), times, each, stream=stream)
            sent.append([asked.body for asked in played.asked])
        assert sent[0] == sent[1]
        assert len(sent[0]) == times
        assert SUMMARY.encode() not in sent[0][-1]
        assert all(b"At %d0 I look" % number in sent[0][-1] for number in range(min(times - 1, 2)))

    @BOTH
    @OVER
    @pytest.mark.parametrize("way", ["previous", "references"])
    async def test_new_02_what_is_sealed_in_them_is_opened(
        self, api: str, way: str, monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
        sealing: Json = {"history": {"seal_keys_env": "KEYS", "restore": "never"}}
        sent = []
        for each in (way, "everything"):
            played = turns(api, 3, stream=stream)
            app = bridge(played, api, expose="summary", **sealing)
            await converse(app, 3, each, stream=stream, include=["reasoning.encrypted_content"])
            sent.append([asked.body for asked in played.asked])
        assert sent[0] == sent[1]
        assert b"At 10 I look" in sent[0][-1]
        assert b"abr1." not in sent[0][-1]

    @BOTH
    @OVER
    async def test_llm_trap_the_answer_says_what_it_goes_on_from(
        self, api: str, *, stream: bool
    ) -> None:
        first, second = await converse(
            bridge(turns(api, 2, stream=stream), api), 2, "previous", stream=stream
        )
        assert first["previous_response_id"] is None
        assert second["previous_response_id"] == first["id"]
        assert first["store"] is second["store"] is True

    @BOTH
    async def test_so_it_does_if_it_is_not_to_be_stored(self, *, stream: bool) -> None:
        app = bridge(says("chat", WORDS, "Yes.", stream=stream), "chat")
        first = await told(app, "Hi", stream=stream)
        more = {"previous_response_id": first["id"], "store": False}
        second = await told(app, "Sure?", stream=stream, **more)
        assert (second["previous_response_id"], second["store"]) == (first["id"], False)

    @OVER
    async def test_instructions_are_not_carried_over(self, api: str) -> None:
        played = says(api, WORDS, "Yes.")
        app = bridge(played, api)
        first = await told(app, "Hi", instructions="Rhyme.")
        await told(app, "Sure?", previous_response_id=first["id"])
        assert b"Rhyme" in played.asked[0].body
        assert b"Rhyme" not in played.asked[1].body
        assert WORDS.encode() in played.asked[1].body

    @OVER
    async def test_a_text_alone_goes_on_too(self, api: str) -> None:
        played = says(api, WORDS, "Yes.", "No.")
        app = bridge(played, api)
        first = await told(app, "Hi")
        second = await told(app, "Sure?", previous_response_id=first["id"])
        await told(app, None, previous_response_id=second["id"])
        texts = [message["role"] for message in played.asked[2].json["messages"]]
        assert texts == ["user", "assistant", "user", "assistant"]

    async def test_a_conversation_may_fork(self) -> None:
        played = says("chat", WORDS, "Yes.", "No.")
        app = bridge(played, "chat")
        first = await told(app, "Hi")
        for text in ("This way?", "That way?"):
            await told(app, text, previous_response_id=first["id"])
        assert b"This way?" not in played.asked[2].body
        assert len(played.asked[1].json["messages"]) == len(played.asked[2].json["messages"]) == 3

    async def test_an_item_may_be_referred_to_alone_and_more_than_once(self) -> None:
        played = says("chat", WORDS, "Yes.")
        app = bridge(played, "chat")
        first = await told(app, "Hi")
        message = {"type": "item_reference", "id": first["output"][-1]["id"]}
        second = await told(app, [USER, message, AGAIN, message, USER])
        said = [each["content"] for each in played.asked[1].json["messages"]]
        assert said == ["Where is it?", WORDS, "Sure?", WORDS, "Where is it?"]
        items = await listed(app, second["id"], limit=1)
        assert len({item["id"] for item in items}) == len(items) == 5


OURS = pytest.param(mint_id("resp_"), id="ours")


class TestWhatIsNotThere:
    @OVER
    @pytest.mark.parametrize("identity", ["resp_1", OURS, "é", "x" * 5000])
    async def test_a_response_that_is_unknown(self, api: str, identity: str) -> None:
        played = says(api)
        app = bridge(played, api)
        came = await ask(app, "Hi", previous_response_id=identity)
        assert refused(came) == NO_PREVIOUS
        message = f"Previous response with id '{identity}' not found."
        assert came.json["error"]["message"] == message
        assert not played.asked

    @OVER
    @pytest.mark.parametrize("typed", [True, False])
    async def test_an_item_that_is_unknown(self, api: str, typed: bool) -> None:  # noqa: FBT001
        played = says(api)
        kind = {"type": "item_reference"} if typed else {}
        came = await ask(bridge(played, api), [USER, {**kind, "id": "msg_1"}])
        assert refused(came) == (400, None, "input[1].id")
        assert came.json["error"]["message"] == "Item with id 'msg_1' not found."
        assert not played.asked

    @pytest.mark.parametrize("key", [OTHER, {"authorization": "Bearer none"}, {}])
    async def test_promise_10_what_is_anothers_is_not_there(self, key: Any) -> None:
        played = says("chat")
        app = bridge(played, "chat")
        first = await told(app, "Hi")
        item = {"type": "item_reference", "id": first["output"][0]["id"]}
        assert refused(await ask(app, "Hi", key, previous_response_id=first["id"])) == NO_PREVIOUS
        assert refused(await ask(app, [item], key)) == (400, None, "input[0].id")
        assert refused(await fetch(app, first["id"], key)) == NOT_FOUND
        assert refused(await fetch(app, f"{first['id']}/input_items", key)) == NOT_FOUND
        assert refused(await fetch(app, f"{first['id']}/cancel", key, "POST")) == NOT_FOUND
        assert refused(await fetch(app, first["id"], key, "DELETE")) == NOT_FOUND
        assert len(played.asked) == 1
        assert (await fetch(app, first["id"])).status == 200

    @BOTH
    @pytest.mark.parametrize("store", [False, 0, "false"])
    async def test_what_was_not_to_be_stored(self, store: Any, *, stream: bool) -> None:
        app = bridge(says("chat", stream=stream), "chat")
        first = await told(app, "Hi", store=store, stream=stream)
        assert first["store"] is False
        assert refused(await fetch(app, first["id"])) == NOT_FOUND
        assert refused(await ask(app, "Hi", previous_response_id=first["id"])) == NO_PREVIOUS

    @pytest.mark.parametrize("store", [None, True])
    async def test_all_else_is(self, store: bool | None) -> None:  # noqa: FBT001
        app = bridge(says("chat"), "chat")
        first = await told(app, "Hi", store=store)
        assert first["store"] is True
        assert (await fetch(app, first["id"])).json == first

    async def test_what_was_deleted(self) -> None:
        app = bridge(says("chat"), "chat")
        first = await told(app, "Hi")
        gone = await fetch(app, first["id"], method="DELETE")
        assert gone.json == {"id": first["id"], "object": "response", "deleted": True}
        assert refused(await fetch(app, first["id"], method="DELETE")) == NOT_FOUND
        assert refused(await fetch(app, first["id"])) == NOT_FOUND
        assert refused(await ask(app, "Hi", previous_response_id=first["id"])) == NO_PREVIOUS

    async def test_but_what_was_said_after_it_goes_on(self) -> None:
        played = says("chat", WORDS, "Yes.", "No.")
        app = bridge(played, "chat")
        first = await told(app, "Hi")
        second = await told(app, "Sure?", previous_response_id=first["id"])
        await fetch(app, first["id"], method="DELETE")
        await told(app, "Really?", previous_response_id=second["id"])
        assert WORDS.encode() in played.asked[2].body

    async def test_mlx_10_what_there_was_no_room_for(self) -> None:
        app = bridge(says("chat"), "chat", history={"bytes": 3000})
        first = await told(app, "Hi", instructions="Be brief. " * 300)
        assert refused(await fetch(app, first["id"])) == NOT_FOUND

    @pytest.mark.parametrize("table", [{"store": "none"}, {"anonymous": False}])
    async def test_where_nothing_is_stored_the_client_is_told_what_to_do(self, table: Json) -> None:
        played = says("chat")
        app = bridge(played, "chat", history=table)
        key: Any = KEY if "store" in table else {}
        first = await told(app, "Hi", key)
        assert first["store"] is False
        came = await ask(app, "Hi", key, previous_response_id=first["id"])
        assert refused(came) == (400, "unsupported_parameter", "previous_response_id")
        came = await ask(app, [{"type": "item_reference", "id": "msg_1"}], key)
        assert "store: false" in came.json["error"]["message"]
        assert (await fetch(app, first["id"], key)).status == 404

    @pytest.mark.parametrize("said", [5, {"role": "user"}, ["Hi"]])
    async def test_input_that_is_none(self, said: Any) -> None:
        app = bridge(says("chat"), "chat")
        first = await told(app, "Hi")
        status, _, param = refused(await ask(app, said, previous_response_id=first["id"]))
        assert (status, param) == (400, "input[0]" if said == ["Hi"] else "input")

    async def test_what_is_wrong_is_told_by_the_clients_own_places(self) -> None:
        app = bridge(says("chat"), "chat")
        first = await told(app, [USER, AGAIN])
        items = [USER, {"type": "compaction", "encrypted_content": "x"}]
        came = await ask(app, items, previous_response_id=first["id"])
        assert refused(came) == (400, "unsupported_parameter", "input[1]")
        output = {"type": "function_call_output", "output": "42"}
        came = await ask(app, [output], previous_response_id=first["id"])
        assert refused(came)[2] == "input[0].call_id"
        assert "'input[0].call_id'" in came.json["error"]["message"]

    async def test_or_by_what_they_go_on_from(self) -> None:
        """Another model may not take what the one before took."""
        places = [
            {"name": "old", "models": ["old"], "api": "messages", "unsupported": "drop"},
            {"name": "new", "models": ["*"], "api": "messages"},
        ]
        entries = [{**place, "base_url": "http://upstream.test/v1"} for place in places]
        app = same(says("messages"), upstreams=entries)
        item = {"type": "compaction", "encrypted_content": "x"}
        first = await told(app, [USER, item], model="old")
        came = await ask(app, "Sure?", model="new", previous_response_id=first["id"])
        assert refused(came) == (400, "unsupported_parameter", "previous_response_id")

    @pytest.mark.parametrize("name", ["conversation", "prompt"])
    async def test_what_else_may_be_kept_elsewhere_is_refused(self, name: str) -> None:
        app = bridge(says("chat"), "chat")
        came = await ask(app, "Hi", **{name: {"id": "x"}})
        assert refused(came) == (400, "unsupported_parameter", name)


class TestBounds:
    async def test_promise_9_a_conversation_is_no_longer_than_a_body_may_be(self) -> None:
        played = says("chat", "x" * 3000, "y")
        app = bridge(played, "chat", limits={"body": 4000})
        first = await told(app, "Hi")
        came = await ask(app, "Sure? " * 200, previous_response_id=first["id"])
        assert refused(came) == (413, "request_too_large", None)
        assert len(played.asked) == 1
        await told(app, "Sure?", previous_response_id=first["id"])

    async def test_promise_9_nor_is_what_references_come_to(self) -> None:
        app = bridge(says("chat", "x" * 3000), "chat", limits={"body": 8000})
        first = await told(app, "Hi")
        item = {"id": first["output"][-1]["id"]}
        came = await ask(app, [item, item, item])
        assert refused(came) == (413, "request_too_large", None)

    async def test_promise_9_nor_are_all_together_larger_than_bodies_may_be(self) -> None:
        gate = asyncio.Event()
        (long,), (short,) = says("chat", "x" * 6000).answers, says("chat").answers
        upstream = Upstream(long, Answer([gate, *short.steps], headers=short.headers), short)
        app = bridge(upstream, "chat", limits={"body": 8000, "bodies": 8000})
        first = await told(app, "Hi")
        body = {"model": "m", "input": [{"id": first["output"][-1]["id"]}]}
        running = begin(app, PATH, body, KEY)
        await until(lambda: upstream.running == 1)
        refusal = await call(app, PATH, body, KEY)
        assert (refusal.status, refusal.json["error"]["code"]) == (503, "overloaded")
        gate.set()
        assert (await running.finish()).status == 200
        assert (await call(app, PATH, body, KEY)).status == 200


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
        monkeypatch.setattr("abridge.memory.registry.Memory", kind)
        app = bridge(says("chat", stream=stream), "chat")
        first = await told(app, "Hi", stream=stream)
        assert first["status"] == "completed"
        assert refused(await fetch(app, first["id"])) == NOT_FOUND
        assert refused(await ask(app, "Hi", previous_response_id=first["id"])) == NO_PREVIOUS

    @BOTH
    async def test_an_answer_is_stored_before_its_end_is_heard(
        self, monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        monkeypatch.setattr("abridge.memory.registry.Memory", Waiting)
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
        monkeypatch.setattr("abridge.memory.registry.Memory", lambda *_, **__: kept)
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

    async def test_new_03_what_is_hidden_by_now_is_not_shown_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kept = MemoryStore(1 << 20, 3600.0)
        monkeypatch.setattr("abridge.memory.registry.Memory", lambda *_, **__: kept)
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
    async def test_att_11_its_calls_are_attributed_again(
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

    async def test_promise_7_a_failed_answer_can_be_seen_too(self) -> None:
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
        monkeypatch.setattr("abridge.memory.registry.Memory", lambda *_, **__: kept)
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

    async def test_promise_9_who_sends_everything_again_stores_what_is_new(self) -> None:
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


RAW = "odd numbers"
KEPT = (reasoning_item(0, THOUGHT), call_item(1, "f", "{}"), message_item(2, "So."))


def keeps(output: Sequence[Json] = KEPT, **more: Any) -> Json:
    return whole_response(list(output), store=True, **more)


def same(upstream: Upstream, *, expose: Exposure = "auto", **tables: Any) -> ASGIApp:
    """Abridge before an upstream that speaks Responses itself."""
    writer = None if tables.get("summarizer") else Scripted(SUMMARY)
    form: Form = tables.pop("form", "sidecar")
    return abridged(form, upstream, writer=writer, reasoning={"expose": expose}, **tables)


class TestIdsOfOurs:
    """No upstream can know them."""

    OURS = ({**reasoning_item(0, THOUGHT), "id": mint_id("rs_")}, {**AGAIN, "id": mint_id("msg_")})

    @pytest.mark.parametrize("summary", ["auto", None])
    async def test_they_are_taken_out_and_all_else_is_kept(self, summary: str | None) -> None:
        upstream = Upstream(Answer.json(keeps()))
        other = message_item(1, "Hi")
        body = {"input": [USER, *self.OURS, other], "reasoning": {"summary": summary}}
        await told(same(upstream), **{**body, "said": body.pop("input")})
        bare = [{key: item[key] for key in item if key != "id"} for item in self.OURS]
        assert upstream.asked[0].json["input"] == [USER, *bare, other]

    async def test_those_that_stood_in_for_missing_ones_too(self) -> None:
        """An upstream that gives its items no ids gets none back."""
        item = {key: value for key, value in message_item(1, "So.").items() if key != "id"}
        frames = responses_stream([message_item(1, "So.")])
        frames = [frame.replace(b'"id": "msg_1", ', b"") for frame in frames]
        frames = [frame.replace(b'"item_id": "msg_1"', b'"item_id": ""') for frame in frames]
        upstream = Upstream(Answer(frames))
        app = same(upstream)
        first = await told(app, "Hi", stream=True)
        assert is_minted(first["output"][0]["id"])
        await ask(app, [USER, *first["output"], AGAIN])
        assert upstream.asked[1].json["input"] == [USER, item, AGAIN]

    async def test_a_reference_to_one_is_refused_where_it_is_unknown(self) -> None:
        upstream = Upstream(Answer.json(keeps()))
        item = {"type": "item_reference", "id": mint_id("msg_")}
        assert refused(await ask(same(upstream), [USER, item])) == (400, None, "input[1].id")
        came = await ask(same(upstream), [item], {}, previous_response_id=mint_id("resp_"))
        assert refused(came) == NO_PREVIOUS
        assert not upstream.asked

    async def test_they_are_seen_where_nothing_else_is_to_be_done(self) -> None:
        upstream = Upstream(Answer.json(keeps()))
        app = same(upstream)
        item = {"role": "user", "content": "Hi", "id": mint_id("msg_")}
        await call(app, PATH, {"model": "m", "input": [item]}, KEY)
        assert upstream.asked[0].json["input"] == [{"role": "user", "content": "Hi"}]
        body = {"model": "m", "input": "Hi", "previous_response_id": mint_id("resp_")}
        assert refused(await call(app, PATH, body, KEY)) == NO_PREVIOUS

    async def test_upstreams_own_go_through(self) -> None:
        upstream = Upstream(Answer.json(keeps()))
        body = {
            "model": "m",
            "input": [{"type": "item_reference", "id": "msg_1"}, message_item(0, "So."), USER],
            "previous_response_id": "resp_67cb71b351908190a308f3859487620d06981a8637e6bc44",
        }
        data = json.dumps(body, indent=1).encode()
        await call(same(upstream), PATH, data, KEY)
        assert upstream.asked[0].body == data

    MODELS = (
        {"name": "old", "models": ["old"], "api": "chat", "base_url": "http://upstream.test/v1"},
        {"name": "new", "models": ["*"], "base_url": "http://upstream.test/v1"},
    )

    @pytest.mark.parametrize("way", ["previous", "references", "everything"])
    async def test_new_05_a_conversation_goes_on_with_another_model(self, way: str) -> None:
        """One whose upstream keeps responses itself, and cannot know those of the other's."""
        upstream = Upstream(answer("chat", stream=False), Answer.json(keeps()))
        app = same(upstream, upstreams=list(self.MODELS), history={"restore": "never"})
        first = await told(app, [USER], model="old")
        more: Json = {"previous_response_id": first["id"]} if way == "previous" else {}
        before = [] if more else [USER, *(_as_returned(item, way) for item in first["output"])]
        await told(app, [*before, AGAIN], model="new", **more)
        sent = upstream.asked[1].json
        message = {key: value for key, value in first["output"][1].items() if key != "id"}
        thought = {key: first["output"][0][key] for key in ("type", "status", "content")}
        assert sent["input"] == [USER, {**thought, "summary": []}, message, AGAIN]
        assert "previous_response_id" not in sent

    async def test_ways_that_are_found_out_lead_to_the_same(self) -> None:
        missing = Answer.json({"detail": "Not Found"}, 404)
        upstream = Upstream(missing, *[answer("chat", stream=False)] * 2)
        app = bridge(upstream, "auto")
        first = await told(app, [USER])
        second = await told(app, [AGAIN], previous_response_id=first["id"])
        assert second["previous_response_id"] == first["id"]
        assert len(upstream.asked[-1].json["messages"]) == 3


class TestKeptByUpstream:
    """What it keeps is as it said it; its client saw something else."""

    @BOTH
    @pytest.mark.parametrize("expose", ["auto", "both", "summary"])
    @pytest.mark.parametrize("form", FORMS)
    async def test_summaries_come_back(self, form: Form, expose: Exposure, *, stream: bool) -> None:
        first = Answer(responses_stream(list(KEPT), store=True)) if stream else Answer.json(keeps())
        upstream = Upstream(first, Answer.json(keeps()))
        app = same(upstream, expose=expose, form=form)
        shown = await told(app, "Hi", stream=stream, prefix=PREFIX[form])
        came = await fetch(app, f"{shown['id']}?include[]=x", prefix=PREFIX[form])
        assert came.json == shown
        assert came.json["output"][0]["summary"] == [{"type": "summary_text", "text": SUMMARY}]
        assert (RAW in came.data.decode()) is (expose != "summary")
        assert came.json["usage"]["reasoning_summary"]["parts"] == 1
        openapi.check("Response", came.json)
        asked = upstream.asked[1]
        assert (asked.method, asked.path, asked.query) == ("GET", f"{PATH}/resp_1", b"include[]=x")

    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_att_11_so_do_attributions(self, expose: Exposure) -> None:
        upstream = Upstream(Answer.json(keeps()))
        app = same(upstream, expose=expose, attribution={"enabled": True})
        shown = await told(app, "Hi")
        assert "reasoning" in shown["output"][1]
        assert (await fetch(app, "resp_1")).json == shown

    async def test_a_summary_that_failed_is_told_again(self) -> None:
        upstream = Upstream(Answer.json(keeps()))
        app = abridged("sidecar", upstream, writer=Scripted(error=ValueError()))
        shown = await told(app, "Hi")
        assert "summary_error" in shown["output"][0]
        assert (await fetch(app, "resp_1")).json == shown

    async def test_upstreams_own_summary_stays_its_own(self) -> None:
        item = reasoning_item(0, THOUGHT, summary=[{"type": "summary_text", "text": "Native."}])
        upstream = Upstream(Answer.json(keeps([item])))
        app = same(upstream, expose="both")
        shown = await told(app, "Hi")
        assert (await fetch(app, "resp_1")).json["output"] == shown["output"] == [item]

    @pytest.mark.parametrize(
        ("asked", "answered"),
        [
            ({"reasoning": {"summary": None}}, {}),
            ({"store": False}, {}),
            ({}, {"store": False}),
        ],
    )
    async def test_what_is_not_known_passes_as_it_is(self, asked: Json, answered: Json) -> None:
        upstream = Upstream(Answer.json({**keeps(), **answered}))
        app = same(upstream)
        await told(app, "Hi", **asked)
        for tail in ("resp_1", "resp_1/input_items", "resp_1?stream=true"):
            came = await fetch(app, tail)
            assert came.data == b"".join(upstream.answers[0].steps)  # type: ignore[arg-type]

    async def test_promise_10_another_tenant_sees_what_upstream_shows_it(self) -> None:
        upstream = Upstream(Answer.json(keeps()))
        app = same(upstream)
        await told(app, "Hi")
        assert (await fetch(app, "resp_1", OTHER)).json == keeps()

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("expose", ["summary", "none"])
    async def test_new_03_raw_is_taken_out_known_or_not(
        self,
        expose: Exposure,
        known: bool,  # noqa: FBT001
    ) -> None:
        upstream = Upstream(Answer.json(keeps()))
        app = same(upstream, expose=expose)
        shown = await told(app, "Hi") if known else None
        for key in (KEY, {}):
            came = await fetch(app, "resp_1", key)
            assert came.status == 200
            assert RAW not in came.data.decode()
            openapi.check("Response", came.json)
        assert shown is None or (await fetch(app, "resp_1")).json == shown

    async def test_new_03_nor_does_another_abridge_say_it_of_calls(self) -> None:
        parts = [{"type": "reasoning_text", "text": THOUGHT}]
        output = [*KEPT, {**call_item(3, "f", "{}"), "reasoning": parts}]
        page = {"object": "list", "data": output, "has_more": False}
        upstream = Upstream(Answer.json(keeps(output)), Answer.json(page))
        app = same(upstream, expose="summary")
        for tail in ("resp_1", "resp_1/input_items"):
            came = await fetch(app, tail)
            assert came.status == 200
            assert RAW not in came.data.decode()

    @pytest.mark.parametrize("tail", ["resp_1?stream=true", "resp_1?starting_after=2"])
    @pytest.mark.parametrize("known", [True, False])
    async def test_a_stream_is_not_resumed(self, tail: str, known: bool) -> None:  # noqa: FBT001
        upstream = Upstream(Answer.json(keeps()))
        app = same(upstream, expose="auto" if known else "none")
        if known:
            await told(app, "Hi")
        assert refused(await fetch(app, tail))[:2] == (400, "stream_not_resumable")
        assert len(upstream.asked) == known

    async def test_a_list_of_items_is_said_anew(self) -> None:
        """With what was shown in earlier responses."""
        mine = {"id": "msg_9", "type": "message", "status": "completed", **USER}
        page = {"object": "list", "data": [mine, *KEPT], "has_more": False}
        upstream = Upstream(
            Answer.json(keeps()),
            Answer.json(keeps([message_item(5, "Yes.")], id="resp_2")),
            Answer.json(page),
        )
        app = same(upstream, expose="summary")
        shown = await told(app, "Hi")
        await told(app, "Sure?", previous_response_id="resp_1")
        assert upstream.asked[1].json["previous_response_id"] == "resp_1"
        came = await fetch(app, "resp_2/input_items")
        assert came.json == {**page, "data": [mine, *shown["output"]]}
        came = await fetch(app, "resp_2/input_items", OTHER)
        assert RAW not in came.data.decode()
        assert SUMMARY not in came.json["data"][1]["summary"]

    async def test_promise_3_no_item_is_listed_with_the_summary_of_another(self) -> None:
        """Where upstream gives ids again."""
        first, again = (reasoning_item(0, text) for text in ("First.", "Again."))
        other = reasoning_item(5, "Else.")
        page = {"object": "list", "data": [first, other], "has_more": False}
        upstream = Upstream(
            Answer.json(keeps([first, other], id="resp_0")),
            Answer.json(keeps([again])),
            Answer.json(page),
        )
        app = same(upstream)
        await told(app, "Hi")
        await told(app, "Sure?", previous_response_id="resp_0")
        data = (await fetch(app, "resp_1/input_items")).json["data"]
        assert data == [first, {**other, "summary": [{"type": "summary_text", "text": SUMMARY}]}]

    async def test_deleting_and_cancelling_are_upstreams_affair(self) -> None:
        gone = {"id": "resp_1", "object": "response", "deleted": True}
        upstream = Upstream(
            Answer.json(keeps()),
            Answer.json(keeps(status="cancelled")),
            Answer.json(gone),
            Answer.json({"error": {"message": "No."}}, 404),
        )
        app = same(upstream, expose="summary")
        await told(app, "Hi")
        came = await fetch(app, "resp_1/cancel", method="POST")
        assert came.json["status"] == "cancelled"
        assert RAW not in came.data.decode()
        assert (await fetch(app, "resp_1", method="DELETE")).json == gone
        missing = await fetch(app, "resp_1")
        assert (missing.status, missing.json) == (404, {"error": {"message": "No."}})
        assert [asked.method for asked in upstream.asked] == ["POST", "POST", "DELETE", "GET"]

    async def test_an_id_may_be_base64(self) -> None:
        identity = "resp_bGl0ZWxsbTo+Og=="
        upstream = Upstream(Answer.json(keeps(id=identity)))
        app = same(upstream, expose="summary")
        shown = await told(app, "Hi")
        assert (await fetch(app, identity)).json == shown

    async def test_a_response_may_be_deleted_without_a_word(self) -> None:
        upstream = Upstream(Answer.json(keeps()), Answer([], 204, {}))
        app = same(upstream, expose="summary")
        await told(app, "Hi")
        came = await fetch(app, "resp_1", method="DELETE")
        assert (came.status, came.data) == (204, b"")

    async def test_a_response_is_asked_for_where_it_is(self) -> None:
        places = [
            {"name": "first", "models": ["a"], "base_url": "http://first.test/v1"},
            {"name": "second", "models": ["b"], "base_url": "http://second.test/v1"},
        ]
        upstream = Upstream(Answer.json(keeps()))
        app = same(upstream, upstreams=places)
        await told(app, "Hi", model="b")
        await fetch(app, "resp_1")
        await fetch(app, "resp_2")
        hosts = [asked.header("host") for asked in upstream.asked]
        assert hosts == ["second.test", "second.test", "first.test"]

    ODD: tuple[tuple[str, Answer], ...] = (
        ("no JSON", Answer([THOUGHT.encode()], headers={"content-type": "text/plain"})),
        ("a stream", Answer(responses_stream(list(KEPT)))),
        (
            "malformed",
            Answer(
                [b'{"output": ', THOUGHT.encode()], headers={"content-type": "application/json"}
            ),
        ),
        ("no response", Answer.json({"said": THOUGHT})),
        ("a list", Answer.json([THOUGHT])),
        (
            "encoded",
            Answer(
                [THOUGHT.encode()],
                headers={"content-type": "application/json", "content-encoding": "br"},
            ),
        ),
        (
            "badly encoded",
            Answer(
                [THOUGHT.encode()],
                headers={"content-type": "application/json", "content-encoding": "gzip"},
            ),
        ),
        ("too long", Answer.json(keeps([*KEPT, message_item(9, "x" * 70_000)]))),
    )

    @pytest.mark.parametrize("name", [name for name, _ in ODD])
    @pytest.mark.parametrize("hidden", [True, False])
    async def test_what_cannot_be_read(self, name: str, hidden: bool) -> None:  # noqa: FBT001
        odd = dict(self.ODD)[name]
        upstream = Upstream(Answer.json(keeps()), odd)
        app = same(upstream, expose="summary" if hidden else "both", limits={"event": 65_536})
        await told(app, "Hi")
        came = await fetch(app, "resp_1")
        if hidden:
            assert (came.status, came.json["error"]["code"]) == (502, "upstream_error")
            assert RAW not in came.data.decode()
        else:
            assert came.status == 200
            assert came.data == b"".join(odd.steps)  # type: ignore[arg-type]

    async def test_an_encoded_answer_is_decoded(self) -> None:
        data = gzip.compress(json.dumps(keeps()).encode())
        headers = {"content-type": "application/json", "content-encoding": "gzip", "etag": "x"}
        upstream = Upstream(Answer.json(keeps()), Answer([data[:50], data[50:]], headers=headers))
        app = same(upstream, expose="summary", form="mounted")
        shown = await told(app, "Hi")
        came = await call(
            app, f"{PATH}/resp_1", b"", {**KEY, "accept-encoding": "gzip"}, method="GET"
        )
        assert came.json == shown
        assert came.headers["content-length"] == str(len(came.data))
        assert {"etag", "content-encoding"}.isdisjoint(came.headers)
        assert upstream.asked[1].header("accept-encoding") is None

    @pytest.mark.parametrize("hidden", [True, False])
    async def test_promise_7_an_answer_that_breaks_off(self, hidden: bool) -> None:  # noqa: FBT001
        broken = UpstreamBroken("It fell silent.", code="upstream_timeout")
        cut = Answer([b'{"output": [', broken], headers={"content-type": "application/json"})
        upstream = Upstream(Answer.json(keeps()), cut)
        app = same(upstream, expose="summary" if hidden else "both", form="mounted")
        await told(app, "Hi")
        came = await fetch(app, "resp_1")
        assert (came.status, came.json["error"]["code"]) == (504, "upstream_timeout")
