"""Conversations that go on by reference: upstream is sent what it is by a client that sends all."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from abridge.apis.display import Exposure
from abridge.apis.openai import is_minted, mint_id
from tests.asgi import begin, call
from tests.bridges.play import WORDS, answer
from tests.bridges.test_bridges import BOTH, KEY, SUMMARY, bridge
from tests.scripts import (
    THOUGHT,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.servers import until
from tests.stored_responses.conversations import (
    AGAIN,
    EXPOSES,
    NO_PREVIOUS,
    NOT_FOUND,
    OTHER,
    OURS,
    OVER,
    PATH,
    USER,
    WAYS,
    Json,
    _as_returned,
    ask,
    converse,
    fetch,
    keeps,
    listed,
    refused,
    same,
    says,
    told,
    turns,
)
from tests.upstream import Answer, Upstream


class TestGoingOn:
    @pytest.mark.matrix(3)
    @BOTH
    @OVER
    @EXPOSES
    @pytest.mark.parametrize("times", [2, 5])
    @pytest.mark.parametrize("way", WAYS[1:])
    async def test_upstream_is_sent_what_it_is_by_who_keeps_it_all(
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
    async def test_what_is_sealed_in_them_is_opened(
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
    async def test_the_answer_says_what_it_goes_on_from(self, api: str, *, stream: bool) -> None:
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
    async def test_what_is_anothers_is_not_there(self, key: Any) -> None:
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

    async def test_what_there_was_no_room_for_is_not_there(self) -> None:
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
    async def test_a_conversation_is_no_longer_than_a_body_may_be(self) -> None:
        played = says("chat", "x" * 3000, "y")
        app = bridge(played, "chat", limits={"body": 4000})
        first = await told(app, "Hi")
        came = await ask(app, "Sure? " * 200, previous_response_id=first["id"])
        assert refused(came) == (413, "request_too_large", None)
        assert len(played.asked) == 1
        await told(app, "Sure?", previous_response_id=first["id"])

    async def test_nor_is_what_references_come_to(self) -> None:
        app = bridge(says("chat", "x" * 3000), "chat", limits={"body": 8000})
        first = await told(app, "Hi")
        item = {"id": first["output"][-1]["id"]}
        came = await ask(app, [item, item, item])
        assert refused(came) == (413, "request_too_large", None)

    async def test_nor_are_all_together_larger_than_bodies_may_be(self) -> None:
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
    async def test_a_conversation_goes_on_with_another_model(self, way: str) -> None:
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
