"""Conversations kept by Abridge, for upstreams that keep none."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from starlette.types import ASGIApp

from abridge.apis.display import Exposure
from abridge.apis.openai import is_minted, mint_id
from abridge.memory.stores.memory import MemoryBackend, MemoryStore
from abridge.pipeline import conversation_endpoints
from abridge.stored_responses import conversations
from tests.end_to_end.translation.test_translation import BOTH, KEY, bridge
from tests.stored_responses.conversations import (
    EXPOSES,
    FOLLOW_UP,
    OTHER,
    RAW,
    STORE_DOWN,
    STORED_OUTPUT,
    TRANSLATED_APIS,
    USER,
    Json,
    answering,
    ask_conversations,
    create_conversation,
    fail,
    fetch,
    get_response,
    list_conversation,
    native_app,
    post,
    read_error,
    stored_upstream,
)
from tests.support.asgi import call
from tests.support.deployments import FORMS, ORIGIN, PREFIX, Form, build_app
from tests.support.loop_turns import note_calls_beside
from tests.support.streams import chat_stream, message_item, responses_stream
from tests.support.upstream import Answer, Upstream

CONVERSATION = "conversation"
CHANGES: dict[str, tuple[str, str, Json]] = {
    "metadata": ("POST", "", {"metadata": {"a": "b"}}),
    "an item more": ("POST", "/items", {"items": [FOLLOW_UP]}),
    "an item less": ("DELETE", "/items/{}", {}),
}
GONE = pytest.param("conv_1", id="upstreams"), pytest.param(mint_id("conv_"), id="ours")
EVERY_ENDPOINT = (
    *(("GET", ""), ("POST", ""), ("DELETE", ""), ("GET", "/items"), ("POST", "/items")),
    *(("GET", "/items/msg_1"), ("DELETE", "/items/msg_1")),
)


def texts(items: list[Json]) -> list[str]:
    return [part["text"] for item in items for part in item.get("content") or ()]


class Keeper(Upstream):
    """Answers Responses, and keeps conversations itself or has no such endpoint."""

    def __init__(self, *, keeps: bool, stream: bool = False) -> None:
        super().__init__(Answer(b""))
        self._keeps = keeps
        self._stream = stream

    def answer(self, request: Any) -> Answer:
        if "/conversations" in request.path:
            kept = {"id": "conv_1", "object": "conversation", "created_at": 1, "metadata": {}}
            missing = {"error": {"message": "Not Found", "type": "NotFoundError", "code": 404}}
            return Answer.json(kept) if self._keeps else Answer.json(missing, status=404)
        if self._stream:
            return Answer(responses_stream(list(STORED_OUTPUT), store=True))
        return Answer.json(stored_upstream())


def body_of(method: str) -> Json:
    return {"metadata": {}, "items": [USER]} if method == "POST" else {}


class TestResponses:
    @BOTH
    @TRANSLATED_APIS
    async def test_a_response_reads_the_items_and_adds_its_own(
        self, api: str, *, stream: bool
    ) -> None:
        upstream = answering(api, "There.", "Yes.", stream=stream)
        app = bridge(upstream, api)
        conversation = await create_conversation(app, items=[USER])
        first = await get_response(app, [FOLLOW_UP], stream=stream, conversation=conversation["id"])
        assert first[CONVERSATION] == {"id": conversation["id"]}
        held = {"id": conversation["id"]}
        second = await get_response(app, "Really?", stream=stream, conversation=held)
        sent = upstream.requests[1].body.decode()
        places = [sent.index(text) for text in ("Where is it?", "Sure?", "There.", "Really?")]
        assert places == sorted(places)
        items = await list_conversation(app, conversation)
        own = [item["id"] for item in items if item["type"] != "reasoning"]
        assert own[2] == first["output"][-1]["id"]
        assert own[-1] == second["output"][-1]["id"]
        assert texts([item for item in items if item["type"] == "message"]) == [
            *("Where is it?", "Sure?", "There.", "Really?", "Yes.")
        ]
        assert (await fetch(app, second["id"])).json[CONVERSATION] == held

    async def test_the_same_words_may_be_said_again(self) -> None:
        app = bridge(answering("chat", "Yes."), "chat")
        conversation = await create_conversation(app)
        for _ in range(3):
            await get_response(app, "Go on.", conversation=conversation["id"])
        items = await list_conversation(app, conversation)
        assert texts(items).count("Go on.") == 3
        assert len({item["id"] for item in items}) == len(items)

    @EXPOSES
    async def test_what_is_listed_is_what_was_shown(self, expose: Exposure) -> None:
        upstream = answering("chat", "There.", "Yes.")
        app = bridge(upstream, "chat", expose=expose)
        conversation = await create_conversation(app)
        shown = await get_response(app, [USER], conversation=conversation["id"])
        await get_response(app, [FOLLOW_UP], conversation=conversation["id"])
        items = await list_conversation(app, conversation)
        kept = [{**item, "status": "completed"} for item in items[1 : 1 + len(shown["output"])]]
        assert kept == [{**item, "status": "completed"} for item in shown["output"]]
        assert (RAW in str(items)) is (expose in ("auto", "both"))

    async def test_nothing_is_added_of_what_is_not_to_be_stored(self) -> None:
        app = bridge(answering("chat"), "chat")
        conversation = await create_conversation(app, items=[USER])
        await get_response(app, "Sure?", conversation=conversation["id"], store=False)
        assert len(await list_conversation(app, conversation)) == 1

    async def test_nothing_is_added_of_an_answer_that_failed(self) -> None:
        upstream = Upstream(Answer(chat_stream("Hm.", "Yes.")[:3]))
        app = bridge(upstream, "chat")
        conversation = await create_conversation(app, items=[USER])
        received = await post(app, "Sure?", conversation=conversation["id"], stream=True)
        assert b"response.failed" in received.data
        assert len(await list_conversation(app, conversation)) == 1

    async def test_an_item_of_another_response_may_be_referred_to(self) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        conversation = await create_conversation(app)
        reference = {"type": "item_reference", "id": first["output"][-1]["id"]}
        await get_response(app, [reference, USER], conversation=conversation["id"])
        assert (await list_conversation(app, conversation))[0]["id"] == reference["id"]

    async def test_it_cannot_stand_beside_a_previous_response(self) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        conversation = await create_conversation(app)
        more = {"conversation": conversation["id"], "previous_response_id": first["id"]}
        error = read_error(await post(app, "Hi", **more))
        assert error == (400, "mutually_exclusive_parameters", "previous_response_id")

    @pytest.mark.parametrize("name", GONE)
    async def test_one_that_is_not_there_is_an_error(self, name: str) -> None:
        upstream = answering("chat")
        app = bridge(upstream, "chat")
        received = await post(app, "Hi", conversation=name)
        assert read_error(received) == (404, None, "conversation")
        assert not upstream.requests

    async def test_errors_in_earlier_items_name_the_conversation(self) -> None:
        app = bridge(answering("chat"), "chat")
        compaction = {"type": "compaction", "encrypted_content": "x"}
        conversation = await create_conversation(app, items=[compaction])
        received = await post(app, "Sure?", conversation=conversation["id"])
        assert read_error(received) == (400, "unsupported_parameter", "conversation")


class TestEndpoints:
    async def test_metadata_is_kept_and_replaced(self) -> None:
        app = bridge(answering("chat"), "chat")
        created = await create_conversation(app, metadata={"topic": "demo"})
        assert is_minted(created["id"])
        assert created["metadata"] == {"topic": "demo"}
        path = f"/{created['id']}"
        updated = await ask_conversations(app, path, {"metadata": {"topic": "more"}})
        assert updated.json == {**created, "metadata": {"topic": "more"}}
        assert (await ask_conversations(app, path, method="GET")).json == updated.json
        assert (await ask_conversations(app, path, {"metadata": None})).json["metadata"] == {}

    async def test_items_are_added_retrieved_and_deleted(self) -> None:
        app = bridge(answering("chat"), "chat")
        conversation = await create_conversation(app, items=[USER])
        path = f"/{conversation['id']}/items"
        added = (await ask_conversations(app, path, {"items": [FOLLOW_UP, FOLLOW_UP]})).json
        assert texts(added["data"]) == ["Sure?", "Sure?"]
        assert (added["first_id"], added["has_more"]) == (added["data"][0]["id"], False)
        item_path = f"{path}/{added['last_id']}"
        assert (await ask_conversations(app, item_path, method="GET")).json == added["data"][1]
        left = await ask_conversations(app, item_path, method="DELETE")
        assert left.json == conversation
        assert texts(await list_conversation(app, conversation)) == ["Where is it?", "Sure?"]
        for method in ("GET", "DELETE"):
            gone = await ask_conversations(app, item_path, method=method)
            assert read_error(gone) == (404, None, None)

    async def test_items_are_listed_by_pages(self) -> None:
        app = bridge(answering("chat"), "chat")
        items = [{"role": "user", "content": f"{number}"} for number in range(5)]
        conversation = await create_conversation(app, items=items)
        path = f"/{conversation['id']}/items"
        page = (await ask_conversations(app, f"{path}?limit=2", method="GET")).json
        assert (texts(page["data"]), page["has_more"]) == (["4", "3"], True)
        after = f"{path}?limit=4&after={page['last_id']}"
        page = (await ask_conversations(app, after, method="GET")).json
        assert (texts(page["data"]), page["has_more"]) == (["2", "1", "0"], False)
        error = read_error(await ask_conversations(app, f"{path}?limit=0", method="GET"))
        assert error == (400, "integer_below_min_value", "limit")

    async def test_a_deleted_one_is_gone(self) -> None:
        app = bridge(answering("chat"), "chat")
        conversation = await create_conversation(app)
        deleted = await ask_conversations(app, f"/{conversation['id']}", method="DELETE")
        expected = {"id": conversation["id"], "object": "conversation.deleted", "deleted": True}
        assert deleted.json == expected
        for method, tail in EVERY_ENDPOINT:
            path = f"/{conversation['id']}{tail}"
            gone = await ask_conversations(app, path, body_of(method), method=method)
            assert read_error(gone) == (404, None, None), (method, tail)

    async def test_tenants_are_apart(self) -> None:
        upstream = answering("chat")
        app = bridge(upstream, "chat")
        conversation = await create_conversation(app, items=[USER])
        item = (await list_conversation(app, conversation))[0]["id"]
        for method, tail in EVERY_ENDPOINT:
            path = f"/{conversation['id']}{tail.replace('msg_1', item)}"
            gone = await ask_conversations(app, path, body_of(method), method=method, key=OTHER)
            assert read_error(gone) == (404, None, None), (method, tail)
        received = await post(app, "Hi", OTHER, conversation=conversation["id"])
        assert read_error(received) == (404, None, "conversation")
        assert not upstream.requests
        assert texts(await list_conversation(app, conversation)) == ["Where is it?"]

    async def test_a_conversation_lives_as_long_as_it_is_used(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = [0.0]
        store = MemoryStore(1 << 20, 100.0, lambda: now[0])
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", lambda *_, **__: store)
        app = bridge(answering("chat"), "chat")
        conversation = await create_conversation(app, items=[USER])
        path = f"/{conversation['id']}"
        for change in (
            partial(ask_conversations, app, path, {"metadata": {"a": "b"}}),
            partial(ask_conversations, app, f"{path}/items", {"items": [FOLLOW_UP]}),
            partial(post, app, "Hi", conversation=conversation["id"]),
        ):
            now[0] += 90.0
            assert (await change()).status == 200
        assert texts(await list_conversation(app, conversation))[:2] == ["Where is it?", "Sure?"]
        now[0] += 110.0
        gone = await ask_conversations(app, path, method="GET")
        assert read_error(gone) == (404, None, None)

    @pytest.mark.parametrize("form", FORMS)
    async def test_every_deployment_has_them(self, form: Form) -> None:
        app = build_app(form, Keeper(keeps=False))
        created = await call(app, f"{PREFIX[form]}/v1/conversations", b"", KEY)
        path = f"{PREFIX[form]}/v1/conversations/{created.json['id']}"
        assert (await call(app, path, b"", KEY, method="GET")).json == created.json


class TestBounds:
    @pytest.mark.parametrize(
        ("body", "code", "param"),
        [
            ({"items": [USER] * 21}, "array_above_max_length", "items"),
            ({"items": "Hi"}, "invalid_type", "items"),
            ({"items": ["Hi"]}, "invalid_type", "items[0]"),
            ({"items": [{"type": "item_reference", "id": "x"}]}, None, "items[0].id"),
            ({"metadata": []}, "invalid_type", "metadata"),
            ({"metadata": {"a": 1}}, "invalid_type", "metadata.a"),
            ({"metadata": {"a": "x" * 513}}, "string_above_max_length", "metadata.a"),
            (
                {"metadata": {"a" * 65: "x"}},
                "property_name_above_max_length",
                f"metadata.{'a' * 64}",
            ),
            (
                {"metadata": {f"{number}": "" for number in range(17)}},
                "object_above_max_properties",
                "metadata",
            ),
        ],
    )
    async def test_what_the_api_does_not_allow_is_refused(
        self, body: Json, code: str | None, param: str
    ) -> None:
        app = bridge(answering("chat"), "chat")
        assert read_error(await ask_conversations(app, body=body)) == (400, code, param)
        conversation = await create_conversation(app, items=[USER])
        tail = "/items" if "items" in body else ""
        received = await ask_conversations(app, f"/{conversation['id']}{tail}", body)
        assert read_error(received) == (400, code, param)
        assert len(await list_conversation(app, conversation)) == 1

    @pytest.mark.parametrize(("tail", "field"), [("", "metadata"), ("/items", "items")])
    async def test_what_is_to_change_must_be_there(self, tail: str, field: str) -> None:
        app = bridge(answering("chat"), "chat")
        conversation = await create_conversation(app)
        received = await ask_conversations(app, f"/{conversation['id']}{tail}", {})
        assert read_error(received) == (400, "missing_required_parameter", field)

    async def test_a_body_must_be_an_object_within_the_limit(self) -> None:
        app = bridge(answering("chat"), "chat", limits={"body": 3000})
        for body in (b"[]", b"{"):
            received = await call(app, "/v1/conversations", body, KEY)
            assert read_error(received) == (400, "invalid_json", None)
        received = await ask_conversations(app, body={"metadata": {"a": "x" * 3000}})
        assert read_error(received) == (413, "request_too_large", None)

    async def test_it_grows_no_larger_than_a_request_may_be(self) -> None:
        app = bridge(answering("chat"), "chat", limits={"body": 3000})
        item = {"role": "user", "content": "x" * 1000}
        conversation = await create_conversation(app, items=[item, item])
        path = f"/{conversation['id']}/items"
        received = await ask_conversations(app, path, {"items": [item]})
        assert read_error(received) == (413, "request_too_large", None)
        received = await post(app, "y" * 1000, conversation=conversation["id"])
        assert read_error(received) == (413, "request_too_large", None)
        assert len(await list_conversation(app, conversation)) == 2

    async def test_it_has_no_more_items_than_a_request_may_have(self) -> None:
        app = bridge(answering("chat"), "chat", limits={"items": 3})
        conversation = await create_conversation(app, items=[USER] * 3)
        path = f"/{conversation['id']}/items"
        received = await ask_conversations(app, path, {"items": [USER]})
        assert read_error(received) == (400, "array_above_max_length", "items")
        received = await post(app, [USER], conversation=conversation["id"])
        assert read_error(received) == (400, "array_above_max_length", "input")


class TestUpstreams:
    async def test_an_upstream_that_keeps_its_own_is_not_interfered_with(self) -> None:
        upstream = Keeper(keeps=True)
        app = native_app(upstream)
        created = await ask_conversations(app, body={"metadata": {}})
        assert created.json["id"] == "conv_1"
        assert upstream.requests[0].json == {"metadata": {}}
        for method, tail in EVERY_ENDPOINT:
            await ask_conversations(app, f"/conv_1{tail}", {"x": 1}, method=method)
            request = upstream.requests[-1]
            assert (request.method, request.path) == (method, f"/v1/conversations/conv_1{tail}")
        await post(app, "Hi", conversation="conv_1")
        assert upstream.requests[-1].json[CONVERSATION] == "conv_1"

    @BOTH
    async def test_one_that_speaks_responses_without_them_hears_the_items(
        self, *, stream: bool
    ) -> None:
        upstream = Keeper(keeps=False, stream=stream)
        app = native_app(upstream)
        conversation = await create_conversation(app, items=[USER])
        assert is_minted(conversation["id"])
        await get_response(app, [FOLLOW_UP], conversation=conversation["id"], stream=stream)
        items = await list_conversation(app, conversation)
        assert [item["id"] for item in items[2:]] == [item["id"] for item in STORED_OUTPUT]
        await post(app, "Go on.", conversation=conversation["id"], stream=stream)
        sent = upstream.requests[-1].json
        assert CONVERSATION not in sent
        kinds = [item.get("role") or item["type"] for item in sent["input"]]
        assert kinds == ["user", "user", "reasoning", "function_call", "assistant", "user"]

    async def test_one_that_speaks_another_api_is_not_asked(self) -> None:
        upstream = answering("chat")
        app = bridge(upstream, "chat")
        await create_conversation(app)
        unknown = await ask_conversations(app, "/conv_1", method="GET")
        assert read_error(unknown) == (404, None, None)
        assert not upstream.requests

    async def test_where_reasoning_is_hidden_all_are_kept_here(self) -> None:
        """What upstream would list is not read."""
        upstream = Keeper(keeps=True)
        app = native_app(upstream, expose="summary")
        conversation = await create_conversation(app, items=[USER])
        assert not upstream.requests
        await get_response(app, [FOLLOW_UP], conversation=conversation["id"])
        assert RAW not in str(await list_conversation(app, conversation))
        await post(app, "Go on.", conversation=conversation["id"])
        assert RAW in upstream.requests[-1].body.decode()
        closed = await ask_conversations(app, "/conv_1/items", method="GET")
        assert read_error(closed) == (404, "not_found", None)

    @pytest.mark.parametrize("api", ["chat", "responses"])
    async def test_where_clients_share_a_key_all_are_kept_here(
        self, api: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OWN", "sk-own")
        entry = {"base_url": f"{ORIGIN}/v1", "api_key_env": "OWN", "api": api}
        upstream = answering("chat") if api == "chat" else Keeper(keeps=True)
        app = build_app("sidecar", upstream, upstreams=[entry])
        conversation = await create_conversation(app, items=[USER])
        assert not upstream.requests
        for held in (conversation["id"], {"id": conversation["id"]}):
            assert (await post(app, [FOLLOW_UP], conversation=held)).status == 200
        closed = await ask_conversations(app, "/conv_1", method="GET")
        assert closed.status == 404
        assert (await post(app, "Hi", conversation="conv_1")).status == 400

    @pytest.mark.parametrize(
        ("history", "reason"),
        [({"store": "none"}, "history.store"), ({"anonymous": False}, "history.anonymous")],
    )
    async def test_where_nothing_is_stored_the_error_names_the_setting(
        self, history: Json, reason: str
    ) -> None:
        app = bridge(answering("chat"), "chat", history=history)
        name = mint_id("conv_")
        for received in (
            await ask_conversations(app, key={}),
            await ask_conversations(app, f"/{name}", method="GET", key={}),
            await post(app, "Hi", {}, conversation=name),
        ):
            assert received.status in (400, 404)
            assert reason in received.json["error"]["message"]

    async def test_without_a_store_an_upstream_that_may_keep_some_is_asked(self) -> None:
        app = native_app(upstream := Keeper(keeps=True), history={"store": "none"})
        assert (await ask_conversations(app)).json["id"] == "conv_1"
        assert len(upstream.requests) == 1


async def test_an_answer_is_added_where_nothing_else_is_due() -> None:
    """Whether the answer is read does not depend on a summary."""
    upstream = Keeper(keeps=False)
    app: ASGIApp = build_app("sidecar", upstream)
    conversation = await create_conversation(app)
    body = {"model": "m", "input": [USER], "conversation": conversation["id"]}
    assert (await call(app, "/v1/responses", body, KEY)).json == stored_upstream()
    assert message_item(2, "So.")["id"] in str(await list_conversation(app, conversation))


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_that_cannot_be_stored_is_refused(
    change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = bridge(answering("chat"), "chat")
    conversation = await create_conversation(app, items=[USER])
    before = await list_conversation(app, conversation)
    method, tail, body = CHANGES[change]
    tail = f"/{conversation['id']}{tail.format(before[0]['id'])}"
    monkeypatch.setattr(MemoryBackend, "put", fail)
    assert read_error(await ask_conversations(app, tail, body, method)) == STORE_DOWN
    monkeypatch.undo()
    assert await list_conversation(app, conversation) == before
    found = await ask_conversations(app, f"/{conversation['id']}", method="GET")
    assert found.json == conversation


async def test_a_conversation_that_cannot_be_stored_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = bridge(answering("chat"), "chat")
    monkeypatch.setattr(MemoryBackend, "put", fail)
    assert read_error(await ask_conversations(app, body={"items": [USER]})) == STORE_DOWN


async def test_items_are_listed_and_written_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = bridge(answering("chat", "Hi."), "chat")
    conversation = await create_conversation(app, items=[USER])
    noted = note_calls_beside(
        monkeypatch, (conversations, "list_page"), (conversation_endpoints, "dumps")
    )
    assert texts(await list_conversation(app, conversation)) == [USER["content"]]
    assert noted == {("list_page", True), ("dumps", True)}
