"""Conversations continued by reference: upstream gets the same as if the client sent everything."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from abridge.apis.display import Exposure
from abridge.apis.openai import is_minted, mint_id
from tests.end_to_end.translation.test_translation import BOTH, KEY, SUMMARY, bridge
from tests.end_to_end.translation.turn import WORDS, answer
from tests.stored_responses.conversations import (
    CONTINUATIONS,
    EXPOSES,
    FOLLOW_UP,
    MINTED_ID,
    NO_PREVIOUS,
    NOT_FOUND,
    OTHER,
    PATH,
    REPEATS,
    TRANSLATED_APIS,
    USER,
    Json,
    _as_returned,
    answering,
    converse,
    fetch,
    get_response,
    list_items,
    native_app,
    post,
    read_error,
    stored_upstream,
    thinking_and_calling,
)
from tests.support.asgi import begin, call
from tests.support.servers import until
from tests.support.streams import (
    THOUGHT,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.support.upstream import Answer, Upstream


class TestContinuing:
    @pytest.mark.matrix(2)
    @BOTH
    @TRANSLATED_APIS
    @EXPOSES
    @pytest.mark.parametrize("times", [2, 5])
    @pytest.mark.parametrize("continuation", [*CONTINUATIONS[1:], *REPEATS])
    async def test_upstream_is_sent_what_a_client_without_references_sends(
        self, api: str, continuation: str, times: int, expose: Exposure, *, stream: bool
    ) -> None:
        sent = []
        for each in (continuation, "everything"):
            upstream_app = thinking_and_calling(api, times, stream=stream)
            await converse(bridge(upstream_app, api, expose=expose), times, each, stream=stream)
            sent.append([request.body for request in upstream_app.requests])
        assert sent[0] == sent[1]
        assert len(sent[0]) == times
        assert SUMMARY.encode() not in sent[0][-1]
        assert all(b"At %d0 I look" % number in sent[0][-1] for number in range(min(times - 1, 2)))

    @BOTH
    @TRANSLATED_APIS
    @pytest.mark.parametrize("continuation", ["previous", "references"])
    async def test_envelopes_in_referenced_items_are_opened(
        self, api: str, continuation: str, monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
        sealing: Json = {"history": {"seal_keys_env": "KEYS", "restore": "never"}}
        sent = []
        for each in (continuation, "everything"):
            upstream_app = thinking_and_calling(api, 3, stream=stream)
            app = bridge(upstream_app, api, expose="summary", **sealing)
            await converse(app, 3, each, stream=stream, include=["reasoning.encrypted_content"])
            sent.append([request.body for request in upstream_app.requests])
        assert sent[0] == sent[1]
        assert b"At 10 I look" in sent[0][-1]
        assert b"abr1." not in sent[0][-1]

    @BOTH
    @TRANSLATED_APIS
    async def test_the_answer_names_the_previous_response(self, api: str, *, stream: bool) -> None:
        first, second = await converse(
            bridge(thinking_and_calling(api, 2, stream=stream), api), 2, "previous", stream=stream
        )
        assert first["previous_response_id"] is None
        assert second["previous_response_id"] == first["id"]
        assert first["store"] is second["store"] is True

    @BOTH
    async def test_an_unstored_answer_names_the_previous_response_too(
        self, *, stream: bool
    ) -> None:
        app = bridge(answering("chat", WORDS, "Yes.", stream=stream), "chat")
        first = await get_response(app, "Hi", stream=stream)
        more = {"previous_response_id": first["id"], "store": False}
        second = await get_response(app, "Sure?", stream=stream, **more)
        assert (second["previous_response_id"], second["store"]) == (first["id"], False)

    @TRANSLATED_APIS
    async def test_instructions_are_not_carried_over(self, api: str) -> None:
        upstream_app = answering(api, WORDS, "Yes.")
        app = bridge(upstream_app, api)
        first = await get_response(app, "Hi", instructions="Rhyme.")
        await get_response(app, "Sure?", previous_response_id=first["id"])
        assert b"Rhyme" in upstream_app.requests[0].body
        assert b"Rhyme" not in upstream_app.requests[1].body
        assert WORDS.encode() in upstream_app.requests[1].body

    @TRANSLATED_APIS
    async def test_a_string_continues_a_conversation(self, api: str) -> None:
        upstream_app = answering(api, WORDS, "Yes.", "No.")
        app = bridge(upstream_app, api)
        first = await get_response(app, "Hi")
        second = await get_response(app, "Sure?", previous_response_id=first["id"])
        await get_response(app, None, previous_response_id=second["id"])
        texts = [message["role"] for message in upstream_app.requests[2].json["messages"]]
        assert texts == ["user", "assistant", "user", "assistant"]

    async def test_a_conversation_may_fork(self) -> None:
        upstream_app = answering("chat", WORDS, "Yes.", "No.")
        app = bridge(upstream_app, "chat")
        first = await get_response(app, "Hi")
        for text in ("This way?", "That way?"):
            await get_response(app, text, previous_response_id=first["id"])
        assert b"This way?" not in upstream_app.requests[2].body
        assert (
            len(upstream_app.requests[1].json["messages"])
            == len(upstream_app.requests[2].json["messages"])
            == 3
        )

    async def test_an_item_may_be_referred_to_alone_and_more_than_once(self) -> None:
        upstream_app = answering("chat", WORDS, "Yes.")
        app = bridge(upstream_app, "chat")
        first = await get_response(app, "Hi")
        message = {"type": "item_reference", "id": first["output"][-1]["id"]}
        second = await get_response(app, [USER, message, FOLLOW_UP, message, USER])
        content = [each["content"] for each in upstream_app.requests[1].json["messages"]]
        assert content == ["Where is it?", WORDS, "Sure?", WORDS, "Where is it?"]
        items = await list_items(app, second["id"], limit=1)
        assert len({item["id"] for item in items}) == len(items) == 5


class TestMissing:
    @TRANSLATED_APIS
    @pytest.mark.parametrize("response_id", ["resp_1", MINTED_ID, "é", "x" * 5000])
    async def test_an_unknown_previous_response_is_refused(
        self, api: str, response_id: str
    ) -> None:
        upstream_app = answering(api)
        app = bridge(upstream_app, api)
        received = await post(app, "Hi", previous_response_id=response_id)
        assert read_error(received) == NO_PREVIOUS
        message = f"Previous response with id '{response_id}' not found."
        assert received.json["error"]["message"] == message
        assert not upstream_app.requests

    @TRANSLATED_APIS
    @pytest.mark.parametrize("typed", [True, False])
    async def test_a_reference_to_an_unknown_item_is_refused(
        self, api: str, *, typed: bool
    ) -> None:
        upstream_app = answering(api)
        kind = {"type": "item_reference"} if typed else {}
        received = await post(bridge(upstream_app, api), [USER, {**kind, "id": "msg_1"}])
        assert read_error(received) == (400, None, "input[1].id")
        assert received.json["error"]["message"] == "Item with id 'msg_1' not found."
        assert not upstream_app.requests

    @pytest.mark.parametrize("key", [OTHER, {"authorization": "Bearer none"}, {}])
    async def test_another_tenants_responses_are_not_found(self, key: Any) -> None:
        upstream_app = answering("chat")
        app = bridge(upstream_app, "chat")
        first = await get_response(app, "Hi")
        item = {"type": "item_reference", "id": first["output"][0]["id"]}
        assert (
            read_error(await post(app, "Hi", key, previous_response_id=first["id"])) == NO_PREVIOUS
        )
        assert read_error(await post(app, [item], key)) == (400, None, "input[0].id")
        assert read_error(await fetch(app, first["id"], key)) == NOT_FOUND
        assert read_error(await fetch(app, f"{first['id']}/input_items", key)) == NOT_FOUND
        assert read_error(await fetch(app, f"{first['id']}/cancel", key, "POST")) == NOT_FOUND
        assert read_error(await fetch(app, first["id"], key, "DELETE")) == NOT_FOUND
        assert len(upstream_app.requests) == 1
        assert (await fetch(app, first["id"])).status == 200

    @BOTH
    @pytest.mark.parametrize("store", [False, 0, "false"])
    async def test_a_response_with_store_false_is_not_found(
        self, store: Any, *, stream: bool
    ) -> None:
        app = bridge(answering("chat", stream=stream), "chat")
        first = await get_response(app, "Hi", store=store, stream=stream)
        assert first["store"] is False
        assert read_error(await fetch(app, first["id"])) == NOT_FOUND
        assert read_error(await post(app, "Hi", previous_response_id=first["id"])) == NO_PREVIOUS

    @pytest.mark.parametrize("store", [None, True])
    async def test_a_response_is_stored_by_default(self, *, store: bool | None) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi", store=store)
        assert first["store"] is True
        assert (await fetch(app, first["id"])).json == first

    async def test_a_deleted_response_is_not_found(self) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        gone = await fetch(app, first["id"], method="DELETE")
        assert gone.json == {"id": first["id"], "object": "response", "deleted": True}
        assert read_error(await fetch(app, first["id"], method="DELETE")) == NOT_FOUND
        assert read_error(await fetch(app, first["id"])) == NOT_FOUND
        assert read_error(await post(app, "Hi", previous_response_id=first["id"])) == NO_PREVIOUS

    async def test_a_response_survives_the_deletion_of_the_one_before(self) -> None:
        upstream_app = answering("chat", WORDS, "Yes.", "No.")
        app = bridge(upstream_app, "chat")
        first = await get_response(app, "Hi")
        second = await get_response(app, "Sure?", previous_response_id=first["id"])
        await fetch(app, first["id"], method="DELETE")
        await get_response(app, "Really?", previous_response_id=second["id"])
        assert WORDS.encode() in upstream_app.requests[2].body

    async def test_a_response_too_large_for_the_store_is_not_found(self) -> None:
        app = bridge(answering("chat"), "chat", history={"bytes": 3000})
        first = await get_response(app, "Hi", instructions="Be brief. " * 300)
        assert read_error(await fetch(app, first["id"])) == NOT_FOUND

    @pytest.mark.parametrize(
        ("table", "setting"),
        [({"store": "none"}, "history.store"), ({"anonymous": False}, "history.anonymous")],
    )
    async def test_without_a_store_the_error_names_the_remedy(
        self, table: Json, setting: str
    ) -> None:
        upstream_app = answering("chat")
        app = bridge(upstream_app, "chat", history=table)
        key: Any = KEY if "store" in table else {}
        first = await get_response(app, "Hi", key)
        assert first["store"] is False
        received = await post(app, "Hi", key, previous_response_id=first["id"])
        assert read_error(received) == (
            400,
            "previous_response_not_found",
            "previous_response_id",
        )
        assert setting in received.json["error"]["message"]
        received = await post(app, [{"type": "item_reference", "id": "msg_1"}], key)
        assert "store: false" in received.json["error"]["message"]
        assert (await fetch(app, first["id"], key)).status == 404

    @pytest.mark.parametrize("content", [5, {"role": "user"}, ["Hi"]])
    async def test_invalid_input_is_refused(self, content: Any) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, "Hi")
        status, _, param = read_error(await post(app, content, previous_response_id=first["id"]))
        assert (status, param) == (400, "input[0]" if content == ["Hi"] else "input")

    async def test_errors_use_the_clients_own_indexes(self) -> None:
        app = bridge(answering("chat"), "chat")
        first = await get_response(app, [USER, FOLLOW_UP])
        items = [USER, {"type": "compaction", "encrypted_content": "x"}]
        received = await post(app, items, previous_response_id=first["id"])
        assert read_error(received) == (400, "unsupported_parameter", "input[1]")
        output = {"type": "function_call_output", "output": "42"}
        received = await post(app, [output], previous_response_id=first["id"])
        assert read_error(received)[2] == "input[0].call_id"
        assert "'input[0].call_id'" in received.json["error"]["message"]

    async def test_errors_in_earlier_items_name_the_previous_response(self) -> None:
        """Another model may not accept what an earlier one did."""
        places = [
            {"name": "old", "models": ["old"], "api": "messages", "unsupported": "drop"},
            {"name": "new", "models": ["*"], "api": "messages"},
        ]
        entries = [{**place, "base_url": "http://upstream.test/v1"} for place in places]
        app = native_app(answering("messages"), upstreams=entries)
        item = {"type": "compaction", "encrypted_content": "x"}
        first = await get_response(app, [USER, item], model="old")
        received = await post(app, "Sure?", model="new", previous_response_id=first["id"])
        assert read_error(received) == (400, "unsupported_parameter", "previous_response_id")

    async def test_references_to_other_stored_objects_are_refused(self) -> None:
        app = bridge(answering("chat"), "chat")
        received = await post(app, "Hi", prompt={"id": "x"})
        assert read_error(received) == (400, "unsupported_parameter", "prompt")


class TestBounds:
    async def test_a_resolved_conversation_is_bounded_like_a_body(self) -> None:
        upstream_app = answering("chat", "x" * 3000, "y")
        app = bridge(upstream_app, "chat", limits={"body": 4000})
        first = await get_response(app, "Hi")
        received = await post(app, "Sure? " * 200, previous_response_id=first["id"])
        assert read_error(received) == (413, "request_too_large", None)
        assert len(upstream_app.requests) == 1
        await get_response(app, "Sure?", previous_response_id=first["id"])

    async def test_resolved_item_references_are_bounded_like_a_body(self) -> None:
        app = bridge(answering("chat", "x" * 3000), "chat", limits={"body": 8000})
        first = await get_response(app, "Hi")
        item = {"id": first["output"][-1]["id"]}
        received = await post(app, [item, item, item])
        assert read_error(received) == (413, "request_too_large", None)

    async def test_resolved_conversations_together_are_bounded(self) -> None:
        gate = asyncio.Event()
        (long,), (short,) = answering("chat", "x" * 6000).answers, answering("chat").answers
        upstream = Upstream(long, Answer([gate, *short.steps], headers=short.headers), short)
        app = bridge(upstream, "chat", limits={"body": 8000, "bodies": 8000})
        first = await get_response(app, "Hi")
        body = {"model": "m", "input": [{"id": first["output"][-1]["id"]}]}
        running = begin(app, PATH, body, KEY)
        await until(lambda: upstream.running == 1)
        refusal = await call(app, PATH, body, KEY)
        assert (refusal.status, refusal.json["error"]["code"]) == (503, "overloaded")
        gate.set()
        assert (await running.finish()).status == 200
        assert (await call(app, PATH, body, KEY)).status == 200


class TestMintedIds:
    """No upstream knows them."""

    MINTED_ID = (
        {**reasoning_item(0, THOUGHT), "id": mint_id("rs_")},
        {**FOLLOW_UP, "id": mint_id("msg_")},
    )

    @pytest.mark.parametrize("summary", ["auto", None])
    async def test_minted_ids_are_removed_and_all_else_is_unchanged(
        self, summary: str | None
    ) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        other = message_item(1, "Hi")
        body = {"input": [USER, *self.MINTED_ID, other], "reasoning": {"summary": summary}}
        await get_response(native_app(upstream), **{**body, "content": body.pop("input")})
        bare = [{key: item[key] for key in item if key != "id"} for item in self.MINTED_ID]
        assert upstream.requests[0].json["input"] == [USER, *bare, other]

    async def test_ids_minted_in_place_of_missing_ones_are_removed(self) -> None:
        """An upstream that gives its items no ids gets none back."""
        item = {key: value for key, value in message_item(1, "So.").items() if key != "id"}
        frames = responses_stream([message_item(1, "So.")])
        frames = [frame.replace(b'"id": "msg_1", ', b"") for frame in frames]
        frames = [frame.replace(b'"item_id": "msg_1"', b'"item_id": ""') for frame in frames]
        upstream = Upstream(Answer(frames))
        app = native_app(upstream)
        first = await get_response(app, "Hi", stream=True)
        assert is_minted(first["output"][0]["id"])
        await post(app, [USER, *first["output"], FOLLOW_UP])
        assert upstream.requests[1].json["input"] == [USER, item, FOLLOW_UP]

    async def test_a_reference_to_an_unknown_minted_id_is_refused(self) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        item = {"type": "item_reference", "id": mint_id("msg_")}
        assert read_error(await post(native_app(upstream), [USER, item])) == (
            400,
            None,
            "input[1].id",
        )
        received = await post(
            native_app(upstream), [item], {}, previous_response_id=mint_id("resp_")
        )
        assert read_error(received) == NO_PREVIOUS
        assert not upstream.requests

    async def test_minted_ids_are_removed_from_unengaged_requests(self) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        app = native_app(upstream)
        item = {"role": "user", "content": "Hi", "id": mint_id("msg_")}
        await call(app, PATH, {"model": "m", "input": [item]}, KEY)
        assert upstream.requests[0].json["input"] == [{"role": "user", "content": "Hi"}]
        body = {"model": "m", "input": "Hi", "previous_response_id": mint_id("resp_")}
        assert read_error(await call(app, PATH, body, KEY)) == NO_PREVIOUS

    async def test_upstreams_own_ids_pass(self) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        body = {
            "model": "m",
            "input": [{"type": "item_reference", "id": "msg_1"}, message_item(0, "So."), USER],
            "previous_response_id": "resp_67cb71b351908190a308f3859487620d06981a8637e6bc44",
        }
        data = json.dumps(body, indent=1).encode()
        await call(native_app(upstream), PATH, data, KEY)
        assert upstream.requests[0].body == data

    MODELS = (
        {"name": "old", "models": ["old"], "api": "chat", "base_url": "http://upstream.test/v1"},
        {"name": "new", "models": ["*"], "base_url": "http://upstream.test/v1"},
    )

    @pytest.mark.parametrize("continuation", ["previous", "references", "everything"])
    async def test_a_conversation_continues_with_another_model(self, continuation: str) -> None:
        """Its upstream stores responses itself and does not know the other's."""
        upstream = Upstream(answer("chat", stream=False), Answer.json(stored_upstream()))
        app = native_app(upstream, upstreams=list(self.MODELS), history={"restore": "never"})
        first = await get_response(app, [USER], model="old")
        more: Json = {"previous_response_id": first["id"]} if continuation == "previous" else {}
        before = (
            [] if more else [USER, *(_as_returned(item, continuation) for item in first["output"])]
        )
        await get_response(app, [*before, FOLLOW_UP], model="new", **more)
        sent = upstream.requests[1].json
        message = {key: value for key, value in first["output"][1].items() if key != "id"}
        thought = {key: first["output"][0][key] for key in ("type", "status", "content")}
        assert sent["input"] == [USER, {**thought, "summary": []}, message, FOLLOW_UP]
        assert "previous_response_id" not in sent

    async def test_references_are_resolved_on_a_discovered_api(self) -> None:
        missing = Answer.json({"detail": "Not Found"}, 404)
        upstream = Upstream(missing, *[answer("chat", stream=False)] * 2)
        app = bridge(upstream, "auto")
        first = await get_response(app, [USER])
        second = await get_response(app, [FOLLOW_UP], previous_response_id=first["id"])
        assert second["previous_response_id"] == first["id"]
        assert len(upstream.requests[-1].json["messages"]) == 3
