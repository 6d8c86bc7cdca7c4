"""Responses stored by Abridge, for upstreams that store none: retrieved, listed and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from abridge.apis.display import Exposure
from abridge.apis.openai import is_minted
from abridge.memory.stores.memory import MemoryBackend, MemoryStore
from abridge.stored_responses import endpoints, repository, views
from abridge.work import LIGHT_BYTES
from tests.end_to_end.translation.test_translation import BOTH, KEY, TOOLS, bridge
from tests.end_to_end.translation.tool_loops import play
from tests.end_to_end.translation.turn import WORDS, answer
from tests.stored_responses.conversations import (
    EXPOSES,
    FOLLOW_UP,
    MINTED_ID,
    NO_PREVIOUS,
    NOT_FOUND,
    PATH,
    STORE_DOWN,
    TRANSLATED_APIS,
    USER,
    Json,
    answering,
    ask_conversations,
    converse,
    create_conversation,
    fail,
    fetch,
    get_response,
    list_items,
    post,
    read_error,
    thinking_and_calling,
)
from tests.support import openapi
from tests.support.asgi import begin, call
from tests.support.checker import check_responses
from tests.support.deployments import FORMS, PREFIX, Form
from tests.support.loop_turns import note_calls_beside
from tests.support.streams import (
    DONE,
    chunk,
    pieces,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream


class Failing(MemoryStore):
    async def put(self, values: Mapping[bytes, bytes], ttl: float | None = None) -> bool:
        raise KeyError(values)


class Waiting(MemoryStore):
    """A store whose writes wait for `gate`."""

    gate: asyncio.Event
    reached: asyncio.Event

    async def put(self, values: Mapping[bytes, bytes], ttl: float | None = None) -> bool:
        self.reached.set()
        await self.gate.wait()
        return await super().put(values, ttl)


class TestStore:
    @BOTH
    async def test_a_store_that_is_down_costs_no_answer(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, stream: bool
    ) -> None:
        for operation in ("get", "put"):
            monkeypatch.setattr(MemoryBackend, operation, fail)
        app = bridge(answering("chat", stream=stream), "chat")
        first = await get_response(app, "Hi", stream=stream)
        assert first["status"] == "completed"
        assert "answer not stored: store_unavailable" in caplog.text
        assert read_error(await fetch(app, first["id"])) == STORE_DOWN
        monkeypatch.undo()
        assert read_error(await fetch(app, first["id"])) == NOT_FOUND

    @BOTH
    async def test_a_store_that_is_broken_costs_no_answer(
        self, monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", Failing)
        app = bridge(answering("chat", stream=stream), "chat")
        first = await get_response(app, "Hi", stream=stream)
        assert first["status"] == "completed"
        assert read_error(await fetch(app, first["id"])) == NOT_FOUND
        assert read_error(await post(app, "Hi", previous_response_id=first["id"])) == NO_PREVIOUS

    async def test_a_client_is_to_try_again_to_get_what_a_store_that_is_down_may_hold(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        conversation = await create_conversation(app)
        item = {"type": "item_reference", "id": first["output"][0]["id"]}
        monkeypatch.setattr(MemoryBackend, "get", fail)
        path = f"/{conversation['id']}"
        for received in (
            await fetch(app, first["id"]),
            await fetch(app, f"{first['id']}/input_items"),
            await fetch(app, first["id"], method="DELETE"),
            await post(app, "Hi", previous_response_id=first["id"]),
            await post(app, "Hi", conversation=conversation["id"]),
            await post(app, [item]),
            await ask_conversations(app, path, method="GET"),
            await ask_conversations(app, f"{path}/items", method="GET"),
        ):
            assert read_error(received) == STORE_DOWN
        monkeypatch.undo()
        assert (await fetch(app, first["id"])).json == first

    async def test_nothing_is_said_to_be_deleted_that_a_store_still_holds(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        conversation = f"/{(await create_conversation(app))['id']}"
        monkeypatch.setattr(MemoryBackend, "delete", fail)
        assert read_error(await fetch(app, first["id"], method="DELETE")) == STORE_DOWN
        assert read_error(await ask_conversations(app, conversation, method="DELETE")) == STORE_DOWN
        monkeypatch.undo()
        assert (await fetch(app, first["id"])).json == first
        assert (await fetch(app, first["id"], method="DELETE")).json["deleted"] is True
        assert read_error(await fetch(app, first["id"])) == NOT_FOUND

    @BOTH
    async def test_an_answer_is_stored_before_its_end_is_sent(
        self, monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", Waiting)
        monkeypatch.setattr(Waiting, "gate", gate := asyncio.Event(), raising=False)
        monkeypatch.setattr(Waiting, "reached", reached := asyncio.Event(), raising=False)
        app = bridge(answering("chat", stream=stream), "chat")
        running = begin(app, PATH, {"model": "m", "input": "Hi", "stream": stream}, KEY)
        await reached.wait()
        assert b"response.completed" not in running.data
        assert not running.complete
        gate.set()
        await running.finish()
        first = check_responses(running.data).response if stream else running.json
        assert (await fetch(app, first["id"])).json == first

    async def test_responses_survive_key_rotation_and_restart(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Every process that has a key finds what is shared."""
        old, new = f"old:{'A' * 43}=", f"new:{'B' * 42}A="
        store = MemoryStore(1 << 20, 3600.0)
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", lambda *_, **__: store)
        upstream_app = answering("chat", WORDS, "Yes.")
        history = {"seal_keys_env": "KEYS"}
        monkeypatch.setenv("KEYS", old)
        first = await get_response(bridge(upstream_app, "chat", history=history), "Hi")
        monkeypatch.setenv("KEYS", f"{new},{old}")
        app = bridge(upstream_app, "chat", history=history)
        second = await get_response(app, "Sure?", previous_response_id=first["id"])
        assert WORDS.encode() in upstream_app.requests[1].body
        monkeypatch.setenv("KEYS", new)
        app = bridge(upstream_app, "chat", history=history)
        await get_response(app, "Really?", previous_response_id=second["id"])
        assert WORDS.encode() in upstream_app.requests[2].body

    async def test_reasoning_hidden_by_a_later_setting_is_not_shown(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = MemoryStore(1 << 20, 3600.0)
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", lambda *_, **__: store)
        monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
        history = {"seal_keys_env": "KEYS"}
        calls = answer("chat", stream=False, calls=True)
        upstream_app = Upstream(calls, answer("chat", stream=False))
        both: Json = {"history": history, "attribution": {"enabled": True}}
        app = bridge(upstream_app, "chat", expose="both", **both)
        first = await get_response(app, "Hi", tools=TOOLS["responses"])
        second = await get_response(app, "Sure?", previous_response_id=first["id"])
        assert (await fetch(app, first["id"])).data.count(b"odd numbers") > 2
        app = bridge(upstream_app, "chat", expose="summary", history=history)
        for tail in (first["id"], f"{second['id']}/input_items"):
            received = await fetch(app, tail)
            assert received.status == 200
            assert b"odd numbers" not in received.data
            assert b"I add the numbers" in received.data

    @BOTH
    @TRANSLATED_APIS
    @pytest.mark.parametrize("expose", ["summary", "none"])
    async def test_reasoning_that_was_restored_for_upstream_is_not_listed(
        self, expose: Exposure, api: str, *, stream: bool
    ) -> None:
        upstream_app = thinking_and_calling(api, 3, stream=stream)
        app = bridge(upstream_app, api, expose=expose)
        responses = await converse(app, 3, "previous", stream=stream)
        thought = b"I look in two more places"
        assert thought in upstream_app.requests[-1].body
        received = await fetch(app, f"{responses[-1]['id']}/input_items?limit=100")
        assert received.json["data"]
        assert thought not in received.data


class TestRetrieval:
    @BOTH
    @TRANSLATED_APIS
    @EXPOSES
    @pytest.mark.parametrize("form", FORMS)
    async def test_a_retrieved_response_is_the_one_that_was_sent(
        self, form: Form, api: str, expose: Exposure, *, stream: bool
    ) -> None:
        upstream_app = Upstream(play(api, 0, "text and calls", stream=stream))
        app = bridge(upstream_app, api, form, expose=expose)
        shown = await get_response(
            app, [USER], prefix=PREFIX[form], stream=stream, tools=TOOLS["responses"]
        )
        received = await fetch(app, shown["id"], prefix=PREFIX[form])
        assert received.headers["content-type"] == "application/json"
        assert list(received.json.items()) == list(shown.items())
        openapi.check("Response", received.json)
        assert (b"I look in two more" in received.data) is (expose in ("auto", "both"))
        assert (b"I add the numbers" in received.data) is (expose != "none")
        assert len(upstream_app.requests) == 1

    @BOTH
    @TRANSLATED_APIS
    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_calls_of_a_retrieved_response_are_attributed(
        self, api: str, expose: Exposure, *, stream: bool
    ) -> None:
        upstream_app = Upstream(*(play(api, number, "calls", stream=stream) for number in range(2)))
        app = bridge(upstream_app, api, expose=expose, attribution={"enabled": True})
        first, second = await converse(app, 2, "previous", stream=stream)
        assert [set(item) & {"reasoning", "reasoning_ref"} for item in first["output"][1:]] == [
            {"reasoning"},
            {"reasoning_ref"},
        ]
        for shown in (first, second):
            assert (await fetch(app, shown["id"])).json == shown
        assert b"reasoning_ref" not in upstream_app.requests[1].body

    @BOTH
    async def test_a_stored_response_says_so_from_its_first_event(self, *, stream: bool) -> None:
        app = bridge(answering("chat", stream=stream), "chat")
        received = await post(app, "Hi", stream=stream)
        assert received.data.count(b'"store":true') == (3 if stream else 1)

    @BOTH
    async def test_an_incomplete_answer_is_stored_and_can_be_continued(
        self, *, stream: bool
    ) -> None:
        finish = {"finish_reason": "length"}
        frames = [
            chunk({"role": "assistant"}),
            chunk({"content": "So"}),
            chunk({}, finish="length"),
        ]
        message = {"index": 0, "message": {"role": "assistant", "content": "So"}, **finish}
        content = {"id": "x", "object": "chat.completion", "model": "m", "choices": [message]}
        cut = Answer([*frames, DONE]) if stream else Answer.json(content)
        upstream_app = Upstream(cut, answer("chat", stream=False))
        app = bridge(upstream_app, "chat")
        first = await get_response(app, "Hi", stream=stream)
        assert first["status"] == "incomplete"
        assert (await fetch(app, first["id"])).json == first
        await get_response(app, "Go on.", previous_response_id=first["id"])
        assert [each["content"] for each in upstream_app.requests[1].json["messages"]] == [
            "Hi",
            "So",
            "Go on.",
        ]

    async def test_a_failed_answer_can_be_retrieved(self) -> None:
        frames = [
            chunk({"role": "assistant"}),
            *(chunk({"content": each}) for each in pieces(WORDS)),
        ]
        app = bridge(Upstream(Answer([*frames, ConnectionError("gone")])), "chat")
        received = await post(app, "Hi", stream=True)
        shown = check_responses(received.data).response
        kept = await fetch(app, shown["id"])
        assert kept.json["status"] == "failed"
        assert kept.json == shown
        openapi.check("Response", kept.json)

    async def test_a_summary_that_failed_may_fail_the_answer(self) -> None:
        writer = Scripted(error=ValueError())
        app = bridge(answering("chat"), "chat", writer=writer, summary={"on_failure": "fail"})
        received = await post(app, "Hi")
        assert received.status == 502
        shown = received.json["error"]["response"]
        assert (await fetch(app, shown["id"])).json == shown

    @EXPOSES
    async def test_a_retrieved_response_has_its_summary_error(self, expose: Exposure) -> None:
        upstream_app = answering("chat", WORDS, "Yes.")
        app = bridge(upstream_app, "chat", expose=expose, writer=Scripted(error=ValueError()))
        first = await get_response(app, "Hi")
        assert ("summary_error" in first["output"][0]) is (expose != "none")
        assert (await fetch(app, first["id"])).json == first
        second = await get_response(app, "Sure?", previous_response_id=first["id"])
        thought = (await list_items(app, second["id"]))[1]
        assert thought.get("summary_error") == first["output"][0].get("summary_error")

    async def test_an_error_is_not_stored_as_a_response(self) -> None:
        error = Answer.json({"error": {"message": "Slow down.", "type": "x"}}, 429)
        app = bridge(Upstream(error, answer("chat", stream=False)), "chat", history={"bytes": 900})
        assert (await post(app, "Hi")).status == 429

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
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        received = await fetch(app, f"{first['id']}?{query}")
        assert read_error(received) == (400, "stream_not_resumable", param)

    @pytest.mark.parametrize("query", ["stream=false", "include[]=reasoning.encrypted_content"])
    async def test_other_query_parameters_change_nothing(self, query: str) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        assert (await fetch(app, f"{first['id']}?{query}")).json == first

    async def test_a_stored_response_cannot_be_cancelled(self) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        received = await fetch(app, f"{first['id']}/cancel", method="POST")
        assert read_error(received) == (400, None, None)
        assert received.json["error"]["message"] == "Cannot cancel a synchronous response."

    @pytest.mark.parametrize("tail", ["resp_1", "resp_1/input_items", MINTED_ID])
    async def test_an_unknown_response_is_an_error_in_openais_shape(self, tail: str) -> None:
        upstream_app = answering("chat")
        received = await fetch(bridge(upstream_app, "chat"), tail)
        assert read_error(received) == NOT_FOUND
        response_id = tail.partition("/")[0]
        assert received.json["error"]["message"] == f"Response with id '{response_id}' not found."
        assert not upstream_app.requests

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    async def test_other_responses_paths_belong_to_the_application(self, method: str) -> None:
        upstream = Upstream(Answer.json({"name": "Anna", "likes": "tea"}))
        received = await call(
            bridge(upstream, "chat", "mounted"), "/surveys/responses/7", b"", KEY, method=method
        )
        assert (received.status, received.json) == (200, {"name": "Anna", "likes": "tea"})


class TestListing:
    @TRANSLATED_APIS
    async def test_all_input_items_are_listed(self, api: str) -> None:
        app = bridge(thinking_and_calling(api, 5, stream=False), api)
        responses = await converse(app, 5, "previous", stream=False)
        items = await list_items(app, responses[-1]["id"], limit=3)
        assert len(items) == len({item["id"] for item in items})
        shown = [item for response in responses[:-1] for item in response["output"]]
        assert [item for item in items if item in shown] == shown
        content = [item for item in items if item not in shown]
        assert content[0]["content"] == [{"type": "input_text", "text": "Where is it?"}]
        assert all(is_minted(item["id"]) for item in items)

    async def test_the_newest_item_comes_first(self) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, [{"role": "user", "content": str(n)} for n in range(25)])
        page = (await fetch(app, f"{first['id']}/input_items")).json
        texts = [item["content"][0]["text"] for item in page["data"]]
        assert texts == [str(number) for number in range(24, 4, -1)]
        assert page["has_more"] is True
        assert page["first_id"] == page["data"][0]["id"]
        assert page["last_id"] == page["data"][-1]["id"]

    async def test_each_listed_item_can_be_referred_to(self) -> None:
        upstream_app = answering("chat", WORDS, "Yes.")
        app = bridge(upstream_app, "chat")
        first = await get_response(app, [USER, FOLLOW_UP])
        (_, item) = await list_items(app, first["id"])
        await get_response(app, [{"id": item["id"]}])
        assert upstream_app.requests[1].json["messages"] == [FOLLOW_UP]

    @pytest.mark.parametrize("query", ["limit=0", "limit=101", "order=up", "after=x"])
    async def test_an_invalid_page_is_refused(self, query: str) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        status, _, param = read_error(await fetch(app, f"{first['id']}/input_items?{query}"))
        assert (status, param) == (400, query.partition("=")[0])

    async def test_a_missing_item_fails_the_list(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Reasoning may have expired; anything else may not be missing."""
        store = MemoryStore(1 << 20, 3600.0)
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", lambda *_, **__: store)
        upstream_app = answering("chat", WORDS, "Yes.", "No.")
        app = bridge(upstream_app, "chat")
        first = await get_response(app, "Hi")
        second = await get_response(app, "Sure?", previous_response_id=first["id"])
        for words, status in ((b"I add the numbers", 200), (b'"Hi"', 404)):
            values = store._backend._values  # type: ignore[attr-defined]
            lost = [key for key, found in values.items() if _is_item(found[0].data, words)]
            assert lost
            await store.delete([key for _, key in lost])
            received = await fetch(app, f"{second['id']}/input_items")
            assert received.status == status
            received = await post(app, "Really?", previous_response_id=second["id"])
            assert received.status == (200 if status == 200 else 400)

    async def test_resending_a_conversation_stores_only_what_is_new(self) -> None:
        sizes = []
        for continuation in ("sends it all", "previous"):
            app = bridge(thinking_and_calling("chat", 6, stream=False), "chat")
            responses = await converse(app, 6, continuation, stream=False)
            items = await list_items(app, responses[-1]["id"])
            sizes.append(len(items))
            again = [item["id"] for item in await list_items(app, responses[-2]["id"])]
            assert [item["id"] for item in items][: len(again)] == again
        assert sizes[0] == sizes[1]


def _is_item(data: bytes, words: bytes) -> bool:
    return words in data and b'"basis"' not in data


@pytest.mark.parametrize("size", [1, LIGHT_BYTES + 1])
async def test_what_is_large_is_stored_and_read_beside_the_event_loop(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = note_calls_beside(
        monkeypatch,
        *((repository, "_packed"), (repository, "loads_exact")),
        *((views, name) for name in ("list_page", "_item_as_shown", "snapshot")),
        (endpoints, "dumps"),
    )
    app = bridge(Upstream(answer("chat", stream=False)), "chat")
    text = "a" * size
    whole = await get_response(app, [{"role": "user", "content": text}], instructions=text)
    (item,) = await list_items(app, whole["id"])
    assert item["content"] == [{"type": "input_text", "text": text}]
    assert (await fetch(app, whole["id"])).json == whole
    is_large = size > LIGHT_BYTES
    assert {beside for name, beside in noted if name == "_packed"} == {is_large}
    assert (("loads_exact", True) in noted) is is_large
    of_answers = {beside for name, beside in noted if name not in ("_packed", "loads_exact")}
    assert of_answers == {True}
