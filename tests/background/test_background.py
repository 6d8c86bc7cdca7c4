"""Background responses: polled, streamed, resumed, cancelled, and what ends them."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.background import responses as background_responses
from abridge.background import run
from abridge.background.elsewhere import RunElsewhere
from abridge.memory.stores.memory import MemoryBackend, MemoryStore
from abridge.stored_responses import event_log
from abridge.stored_responses.event_log import EventLog, StoredEvents
from abridge.stored_responses.leases import CANCELLED
from abridge.stored_responses.repository import (
    NOT_STORED,
    LocalRecord,
    ResponseRepository,
    store_unavailable,
)
from abridge.work import LIGHT_BYTES
from tests.background.cases import (
    begin_response,
    ended,
    events,
    numbers,
    paused,
    running,
    streamed,
)
from tests.end_to_end.translation.test_translation import KEY, SUMMARY, bridge
from tests.end_to_end.translation.turn import WORDS, answer
from tests.memory.stores.cases import in_memory
from tests.stored_responses.conversations import (
    EXPOSES,
    NOT_FOUND,
    OTHER,
    PATH,
    STORE_DOWN,
    TRANSLATED_APIS,
    create_conversation,
    fail,
    fail_once,
    fetch,
    list_conversation,
    list_items,
    post,
    read_error,
)
from tests.stored_responses.test_repository import responses
from tests.support.asgi import begin
from tests.support.checker import check_responses
from tests.support.loop_turns import note_calls_beside
from tests.support.servers import HANG, until
from tests.support.streams import THOUGHT
from tests.support.upstream import Answer, ReceivedRequest, Upstream

Json = dict[str, Any]


@pytest.fixture
def gate() -> asyncio.Event:
    return asyncio.Event()


def body(**more: Any) -> Json:
    asked = {"model": "thinker-1", "input": "Hi", "background": True, **more}
    return {"reasoning": {"summary": "auto"}, **asked}


class TestPolling:
    @TRANSLATED_APIS
    async def test_the_client_is_told_of_the_response_before_upstream_says_anything(
        self, api: str, gate: asyncio.Event
    ) -> None:
        async with running(Upstream(paused(gate, api, after=0)), api) as app:
            begun = await begin_response(app, metadata={"job": "7"}, instructions="Be brief.")
            assert (begun["metadata"], begun["instructions"]) == ({"job": "7"}, "Be brief.")
            seen = (await fetch(app, begun["id"])).json
            assert seen == {**begun, "status": "in_progress"}
            gate.set()
            assert (await ended(app, begun["id"]))["status"] == "completed"

    @TRANSLATED_APIS
    async def test_the_answer_is_that_of_a_request_with_a_client(self, api: str) -> None:
        async with running(Upstream(answer(api, stream=True)), api) as app:
            begun = await begin_response(app)
            response = await ended(app, begun["id"])
            other = check_responses((await post(app, "Hi", stream=True)).data).response
        own = ("id", "background", "created_at", "completed_at", "output")
        assert {key: response[key] for key in response if key not in own} == {
            key: other[key] for key in other if key not in own
        }
        assert [_without_id(item) for item in response["output"]] == [
            _without_id(item) for item in other["output"]
        ]
        assert response["output"][0]["summary"][0]["text"] == SUMMARY
        assert [response[key] for key in ("id", "created_at", "background", "store")] == [
            *(begun["id"], begun["created_at"], True, True)
        ]

    async def test_upstream_is_asked_for_a_stream_of_an_ordinary_response(self) -> None:
        upstream = Upstream(answer("chat", stream=True))
        async with running(upstream) as app:
            await ended(app, (await begin_response(app, background_options={}))["id"])
        assert upstream.requests[0].json["stream"] is True
        assert not [key for key in upstream.requests[0].json if key.startswith("background")]

    async def test_its_input_is_listed_while_it_runs(self, gate: asyncio.Event) -> None:
        async with running(Upstream(paused(gate))) as app:
            begun = await begin_response(app)
            (item,) = await list_items(app, begun["id"])
            gate.set()
            await ended(app, begun["id"])
            assert await list_items(app, begun["id"]) == [item]

    async def test_it_can_be_continued_once_it_has_ended(self, gate: asyncio.Event) -> None:
        upstream = Upstream(paused(gate), answer("chat", stream=False))
        async with running(upstream) as app:
            begun = await begin_response(app)
            early = await post(app, "And?", previous_response_id=begun["id"])
            assert read_error(early)[:2] == (400, "previous_response_unfinished")
            gate.set()
            await ended(app, begun["id"])
            later = await post(app, "And?", previous_response_id=begun["id"])
        assert later.json["previous_response_id"] == begun["id"]
        assert WORDS in upstream.requests[-1].body.decode()

    async def test_it_continues_another(self) -> None:
        upstream = Upstream(answer("chat", stream=False, text="One."), answer("chat", stream=True))
        async with running(upstream) as app:
            first = (await post(app, "Hi")).json
            begun = await begin_response(app, "And?", previous_response_id=first["id"])
            response = await ended(app, begun["id"])
        assert begun["previous_response_id"] == response["previous_response_id"] == first["id"]
        assert "One." in upstream.requests[1].body.decode()


def _without_id(item: Json) -> Json:
    return {key: value for key, value in item.items() if key != "id"}


class TestStreams:
    async def test_it_streams_from_the_start(self) -> None:
        async with running(Upstream(answer("chat", stream=True))) as app:
            received = await post(app, "Hi", background=True, stream=True)
            whole = check_responses(received.data).response
            assert (await fetch(app, whole["id"])).json == whole
        assert numbers(received.data) == list(range(len(events(received.data))))
        first = events(received.data)[0]
        assert (first["type"], first["response"]["status"]) == ("response.created", "queued")

    async def test_it_resumes_after_any_event(self) -> None:
        async with running(Upstream(answer("chat", stream=True))) as app:
            received = await post(app, "Hi", background=True, stream=True)
            whole = events(received.data)
            response_id = whole[0]["response"]["id"]
            for after in (None, *range(len(whole))):
                rest = await streamed(app, response_id, after)
                assert events(rest.data) == whole[0 if after is None else after + 1 :]
                assert rest.headers["content-type"] == "text/event-stream"

    async def test_a_running_one_is_followed_to_its_end(self, gate: asyncio.Event) -> None:
        async with running(Upstream(paused(gate))) as app:
            begun = await begin_response(app)
            follower = begin(
                *(app, f"{PATH}/{begun['id']}", b"", KEY),
                method="GET",
                query_string=b"stream=true&starting_after=2",
            )
            await follower.until(b"reasoning_text.delta")
            assert numbers(follower.data)[0] == 3
            assert not follower.complete
            gate.set()
            await follower.finish()
            assert events(follower.data)[-1]["response"] == await ended(app, begun["id"])

    async def test_chunks_are_read_where_they_begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("abridge.stored_responses.event_log.CHUNK_BYTES", 700)
        async with running(Upstream(answer("chat", stream=True))) as app:
            received = await post(app, "Hi", background=True, stream=True)
            whole = events(received.data)
            for after in range(len(whole)):
                rest = await streamed(app, whole[0]["response"]["id"], after)
                assert events(rest.data) == whole[after + 1 :]

    async def test_a_follower_reads_each_event_once(
        self, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read: list[int] = []
        split = event_log._split

        def noted(chunk: bytes) -> list[tuple[int, bytes]]:
            found = split(chunk)
            read.extend(number for number, _ in found)
            return found

        monkeypatch.setattr(event_log, "_split", noted)
        async with running(Upstream(paused(gate))) as app:
            follower = begin(app, PATH, body(stream=True), KEY)
            await follower.until(b"reasoning_text.delta")
            gate.set()
            await follower.finish()
        assert read == numbers(follower.data)

    async def test_a_departed_client_does_not_stop_it(self, gate: asyncio.Event) -> None:
        upstream = Upstream(paused(gate))
        async with running(upstream) as app:
            client = begin(app, PATH, body(stream=True), KEY)
            await client.until(b"reasoning_text.delta")
            await client.leave()
            response_id = events(client.data)[0]["response"]["id"]
            gate.set()
            assert (await ended(app, response_id))["status"] == "completed"
            rest = await streamed(app, response_id, numbers(client.data)[-1])
            check_responses(client.data + rest.data)
        assert upstream.left == 0

    async def test_a_follower_gets_signs_of_life(
        self, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("abridge.pipeline.client.Client.KEEP_ALIVE_SECONDS", 0.02)
        async with running(Upstream(paused(gate))) as app:
            client = begin(app, PATH, body(stream=True), KEY)
            await client.until(b": keep-alive\n\n", 3)
            gate.set()
            await client.finish()
        check_responses(client.data)
        assert client.data.count(b"event: response.in_progress") == 1

    async def test_an_invalid_number_is_a_400(self) -> None:
        async with running(Upstream(answer("chat", stream=True))) as app:
            response_id = (await begin_response(app))["id"]
            await ended(app, response_id)
            refused = await fetch(app, f"{response_id}?stream=true&starting_after=x")
        assert read_error(refused) == (400, "invalid_value", "starting_after")

    async def test_an_ordinary_response_has_no_events(self) -> None:
        async with running(Upstream(answer("chat", stream=False))) as app:
            response = (await post(app, "Hi")).json
            refused = await fetch(app, f"{response['id']}?stream=true")
        assert read_error(refused) == (400, "stream_not_resumable", "stream")


@pytest.mark.parametrize("size", [1, LIGHT_BYTES + 1])
async def test_a_large_one_is_written_beside_the_event_loop(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("encode_event", "last_event")
    noted = note_calls_beside(
        monkeypatch, *((run, name) for name in names), (background_responses, "dumps")
    )
    async with running(Upstream(answer("chat", stream=True))) as app:
        begun = await begin_response(app, instructions="a" * size)
        whole = await ended(app, begun["id"])
    assert (begun["instructions"], whole["status"]) == ("a" * size, "completed")
    assert noted == {(name, size > LIGHT_BYTES) for name in (*names, "dumps")}


class TestCancelling:
    async def test_it_stops_upstream_and_keeps_what_is_done(self, gate: asyncio.Event) -> None:
        upstream = Upstream(paused(gate, after=-4))
        async with running(upstream) as app:
            client = begin(app, PATH, body(stream=True), KEY)
            await client.until(b"output_item.done")
            response_id = events(client.data)[0]["response"]["id"]
            cancelled = (await fetch(app, f"{response_id}/cancel", method="POST")).json
            await client.finish()
            again = (await fetch(app, f"{response_id}/cancel", method="POST")).json
            assert cancelled == again == (await fetch(app, response_id)).json
        assert (cancelled["status"], cancelled["error"]) == ("cancelled", None)
        assert [item["type"] for item in cancelled["output"]] == ["reasoning"]
        assert upstream.left == 1
        assert events(client.data)[-1]["response"] == cancelled

    async def test_one_that_has_ended_stays_as_it_is(self) -> None:
        async with running(Upstream(answer("chat", stream=True))) as app:
            response = await ended(app, (await begin_response(app))["id"])
            cancelled = await fetch(app, f"{response['id']}/cancel", method="POST")
        assert cancelled.json == response

    async def test_an_ordinary_response_cannot_be_cancelled(self) -> None:
        async with running(Upstream(answer("chat", stream=False))) as app:
            response = (await post(app, "Hi")).json
            refused = await fetch(app, f"{response['id']}/cancel", method="POST")
        assert "synchronous" in refused.json["error"]["message"]

    async def test_deleting_stops_it(self, gate: asyncio.Event) -> None:
        upstream = Upstream(paused(gate))
        async with running(upstream) as app:
            response_id = (await begin_response(app))["id"]
            await until(lambda: upstream.sent > 0)
            deleted = await fetch(app, response_id, method="DELETE")
            assert deleted.json["deleted"] is True
            assert read_error(await fetch(app, response_id)) == NOT_FOUND
        assert upstream.left == 1

    async def test_an_application_that_does_not_stop_is_cancelled(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run, "LEAVE_SECONDS", 0.01)
        stuck = asyncio.Event()

        async def application(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            stuck.set()
            await asyncio.Event().wait()

        async with running(application) as app:  # type: ignore[arg-type]
            response_id = (await begin_response(app))["id"]
            await stuck.wait()
            cancelled = await fetch(app, f"{response_id}/cancel", method="POST")
        assert cancelled.json["status"] == "cancelled"


@pytest.mark.parametrize(
    ("tail", "method"),
    [
        ("", "GET"),
        ("?stream=true", "GET"),
        ("/cancel", "POST"),
        ("", "DELETE"),
        ("/input_items", "GET"),
    ],
)
async def test_nobody_elses_response_is_there(tail: str, method: str, gate: asyncio.Event) -> None:
    async with running(Upstream(paused(gate))) as app:
        response_id = (await begin_response(app))["id"]
        refused = await fetch(app, response_id + tail, OTHER, method)
        assert read_error(refused) == NOT_FOUND
        gate.set()
        assert (await ended(app, response_id))["status"] == "completed"
        assert read_error(await fetch(app, response_id + tail, OTHER, method)) == NOT_FOUND


class TestRefusals:
    async def refusal(self, app: Any, key: Any = KEY, **more: Any) -> Json:
        received = await post(app, "Hi", key, background=True, **more)
        assert received.status >= 400
        error: Json = received.json["error"]
        return {**error, "status": received.status}

    async def test_it_must_be_stored(self) -> None:
        upstream = Upstream(answer("chat", stream=True))
        async with running(upstream) as app:
            error = await self.refusal(app, store=False)
        assert (error["status"], error["param"]) == (400, "store")
        assert not upstream.requests

    @pytest.mark.parametrize(
        ("settings", "key", "named"),
        [
            ({"history": {"store": "none"}}, KEY, "history.store"),
            ({"history": {"anonymous": False}}, None, "history.anonymous"),
            ({"background": {"responses": 0}}, KEY, "not available"),
        ],
    )
    async def test_where_none_can_run_the_error_says_why(
        self, settings: Any, key: Any, named: str
    ) -> None:
        upstream = Upstream(answer("chat", stream=True))
        async with running(upstream, **settings) as app:
            error = await self.refusal(app, key)
        assert (error["status"], error["param"]) == (400, "background")
        assert named in error["message"]
        assert not upstream.requests

    async def test_an_invalid_request_is_refused_at_once(self) -> None:
        async with running(Upstream(answer("chat", stream=True))) as app:
            assert (await self.refusal(app, temperature="hot"))["param"] == "temperature"
            loud = await self.refusal(app, reasoning={"summary": "auto", "summary_language": 7})
            assert loud["param"] == "reasoning.summary_language"
            missing = await self.refusal(app, previous_response_id="resp_1")
        assert missing["code"] == "previous_response_not_found"

    async def test_a_store_that_is_down_is_a_503(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def put(*_: Any) -> bool:
            return False

        monkeypatch.setattr(MemoryStore, "put", put)
        async with running(Upstream(answer("chat", stream=True))) as app:
            assert (await self.refusal(app))["status"] == 503


class TestCeilings:
    @pytest.mark.parametrize(
        ("limits", "other"), [({"per_tenant": 2}, 200), ({"responses": 2}, 429)]
    )
    async def test_so_many_run_at_once(self, limits: Json, other: int, gate: asyncio.Event) -> None:
        async with running(Upstream(paused(gate)), background=limits) as app:
            ids = [(await begin_response(app))["id"] for _ in range(2)]
            refused = await post(app, "Hi", background=True)
            assert (refused.status, refused.json["error"]["code"]) == (
                *(429, "too_many_background_responses"),
            )
            assert (await post(app, "Hi", OTHER, background=True)).status == other
            gate.set()
            for response_id in ids:
                await ended(app, response_id)
            await asyncio.sleep(0.1)
            assert (await post(app, "Hi", background=True)).status == 200

    async def test_one_that_takes_too_long_has_failed(self, gate: asyncio.Event) -> None:
        upstream = Upstream(paused(gate))
        async with running(upstream, background={"seconds": 0.2}) as app:
            response = await ended(app, (await begin_response(app))["id"])
        assert response["status"] == "failed"
        assert "background.seconds" in response["error"]["message"]
        assert upstream.left == 1

    async def test_one_that_is_too_large_has_failed(self) -> None:
        upstream = Upstream(answer("chat", stream=True))
        async with running(upstream, background={"bytes": 3000}) as app:
            response = await ended(app, (await begin_response(app))["id"])
            whole = await streamed(app, response["id"])
        assert "background.bytes" in response["error"]["message"]
        assert events(whole.data)[-1]["response"] == response
        assert len(whole.data) < 6000


class TestFailures:
    async def failed(self, *steps: Any, **more: Any) -> Json:
        async with running(Upstream(Answer(*steps, **more))) as app:
            response = await ended(app, (await begin_response(app))["id"])
            check = check_responses((await streamed(app, response["id"])).data)
        assert check.response == response
        assert response["status"] == "failed"
        return response

    async def test_upstreams_error_is_told(self) -> None:
        error = json.dumps({"error": {"message": "No such model: x.", "type": "not_found"}})
        headers = {"content-type": "application/json"}
        response = await self.failed([error.encode()], status=404, headers=headers)
        assert response["error"]["message"] == "No such model: x."

    async def test_a_stream_that_breaks_off_has_failed(self) -> None:
        steps = list(answer("chat", stream=True).steps)[:12]
        response = await self.failed([*steps, OSError("reset")])
        assert response["error"]["message"]

    async def test_a_stopping_server_ends_it_with_the_reason(self, gate: asyncio.Event) -> None:
        upstream = Upstream(paused(gate))
        app = bridge(upstream, "chat")
        client = begin(app, PATH, body(stream=True), KEY)
        await client.until(b"reasoning_text.delta")
        await app.aclose()  # type: ignore[attr-defined]
        await client.finish()
        response = events(client.data)[-1]["response"]
        assert response["status"] == "failed"
        assert "shut down" in response["error"]["message"]

    async def test_a_stopping_server_waits_for_it(self, gate: asyncio.Event) -> None:
        app = bridge(Upstream(paused(gate)), "chat")
        begun = await begin_response(app)
        finishing = asyncio.create_task(app.finish_background())  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        gate.set()
        await finishing
        assert (await ended(app, begun["id"]))["status"] == "completed"

    async def test_a_loop_that_ends_leaves_it_failed(self, gate: asyncio.Event) -> None:
        """As where a mounted middleware is told of no end, and the loop cancels all tasks."""
        app = bridge(Upstream(paused(gate)), "chat")
        begun = await begin_response(app)
        (task,) = app._generation.middleware._serving.background._tasks  # type: ignore[attr-defined]
        task.cancel()
        await asyncio.wait([task])
        assert "shut down" in (await ended(app, begun["id"]))["error"]["message"]


class TestHiding:
    @EXPOSES
    async def test_its_events_are_stored_as_they_are_shown(self, expose: str) -> None:
        async with running(Upstream(answer("chat", stream=True)), expose=expose) as app:
            received = await post(app, "Hi", background=True, stream=True)
            again = await streamed(app, events(received.data)[0]["response"]["id"])
            assert events(again.data) == events(received.data)
        output = events(again.data)[-1]["response"]["output"]
        (reasoning,) = (item for item in output if item["type"] == "reasoning")
        raw = [part["text"] for part in reasoning.get("content") or ()]
        summary = [part["text"] for part in reasoning["summary"]]
        assert raw == ([THOUGHT] if expose in ("auto", "both") else [])
        assert summary == ([SUMMARY] if expose != "none" else [])
        assert (b"odd numbers" in received.data) == bool(raw)

    async def test_an_upstream_that_keeps_its_own_is_read_where_reasoning_is_hidden(self) -> None:
        upstream = Upstream(
            answer("responses", stream=True), answer("responses", stream=False, text="Yes.")
        )
        entry = {"profile": "openai"}
        async with running(upstream, "responses", expose="none", entry=entry) as app:
            begun = await begin_response(app, "Hi", previous_response_id="resp_theirs")
            response = await ended(app, begun["id"])
            assert "odd" not in json.dumps(response)
            assert response["id"] == begun["id"]
            await post(app, "And?", previous_response_id=begun["id"])
        first, second = (request.json for request in upstream.requests)
        assert "background" not in first
        assert first["previous_response_id"] == second["previous_response_id"] == "resp_theirs"
        assert WORDS in json.dumps(second["input"])

    async def test_what_a_later_setting_hides_is_not_streamed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = MemoryStore(1 << 20, 3600.0)
        monkeypatch.setattr("abridge.memory.registry.MemoryStore", lambda *_, **__: store)
        monkeypatch.setenv("KEYS", f"key:{'A' * 43}=")
        settings: Json = {"history": {"seal_keys_env": "KEYS"}}
        async with running(Upstream(answer("chat", stream=True)), **settings) as app:
            response = await ended(app, (await begin_response(app))["id"])
        async with running(Upstream(), expose="none", **settings) as app:
            refused = await streamed(app, response["id"])
            assert read_error(refused) == (400, "stream_not_resumable", "stream")
            assert "odd" not in (await fetch(app, response["id"])).data.decode()


@pytest.mark.parametrize("api", ["auto", "responses"])
async def test_an_upstream_that_forgets_its_responses_needs_none_of_its_own(api: str) -> None:
    upstream = Upstream(answer("responses", stream=True))
    async with running(upstream, api, entry={"profile": "llamacpp"}) as app:
        response = await ended(app, (await begin_response(app))["id"])
    assert response["status"] == "completed"
    assert "background" not in upstream.requests[0].json


async def test_runs_are_counted() -> None:
    registry = CollectorRegistry()
    async with running(Upstream(answer("chat", stream=True)), registry=registry) as app:
        await ended(app, (await begin_response(app))["id"])
    name, labels = "abridge_background_responses_total", {"status": "completed"}
    assert registry.get_sample_value(name, labels) == 1
    assert registry.get_sample_value("abridge_background_running") == 0


async def test_a_conversation_is_extended_once_it_has_ended(gate: asyncio.Event) -> None:
    async with running(Upstream(paused(gate))) as app:
        conversation = await create_conversation(app)
        begun = await begin_response(app, conversation=conversation["id"])
        assert begun["conversation"] == {"id": conversation["id"]}
        assert not await list_conversation(app, conversation)
        gate.set()
        response = await ended(app, begun["id"])
        items = await list_conversation(app, conversation)
    assert [item["id"] for item in items[1:]] == [item["id"] for item in response["output"]]


async def test_it_finds_the_api_that_upstream_has() -> None:
    class ChatAlone(Upstream):
        def answer(self, request: ReceivedRequest) -> Answer:
            if request.path.endswith("/responses"):
                return Answer([b"Not Found"], 404, {"content-type": "text/plain"})
            return answer("chat", stream=True)

    async with running(ChatAlone(), "auto") as app:
        for _ in range(2):
            response = await ended(app, (await begin_response(app))["id"])
            assert response["status"] == "completed"


class TestStoreThatFailsOnce:
    """Nobody is told of what is not stored, and what is stored is told."""

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(run, "SAVE_SECONDS", 0.01)
        monkeypatch.setattr(event_log, "LOOK_SECONDS", 0.01)

    @pytest.mark.parametrize("number", range(4))
    async def test_at_the_beginning_the_request_is_refused(
        self, number: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fail_once(monkeypatch, "put", number)
        async with running(Upstream(answer("chat", stream=True))) as app:
            assert read_error(await post(app, "Hi", background=True)) == STORE_DOWN

    async def test_at_the_end_the_answer_is_stored_again(
        self, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with running(Upstream(paused(gate))) as app:
            response_id = (await begin_response(app))["id"]
            followed = begin(
                *(app, f"{PATH}/{response_id}", b"", KEY), method="GET", query_string=b"stream=true"
            )
            await followed.until(b"reasoning_text.delta")
            save, saves = ResponseRepository.save_local, itertools.count()

            async def save_later(self: ResponseRepository, *what: Any) -> None:
                if next(saves) < 2:
                    raise store_unavailable(NOT_STORED)
                await save(self, *what)

            monkeypatch.setattr(ResponseRepository, "save_local", save_later)
            gate.set()
            await followed.finish()
            told = check_responses(followed.data).response
            assert (await ended(app, response_id))["output"] == told["output"]

    async def test_at_the_end_the_events_are_stored_again(
        self, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with running(Upstream(paused(gate)), background={"lease": 5}) as app:
            response_id = (await begin_response(app))["id"]
            save, saves = EventLog.save, list[bool]()

            async def save_later(self: EventLog) -> bool:
                saves.append(self.has_ended)
                return (not self.has_ended or saves.count(True) > 2) and await save(self)

            monkeypatch.setattr(EventLog, "save", save_later)
            gate.set()
            await app.finish_background()  # type: ignore[attr-defined]
            told = check_responses((await streamed(app, response_id)).data)
        assert [item.done for item in told.items.values()] == told.response["output"]

    async def test_a_stopping_server_does_not_wait_for_the_store(
        self, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        failed = asyncio.Event()

        async def fail_to_save(*_: Any) -> None:
            failed.set()
            raise store_unavailable(NOT_STORED)

        app = bridge(Upstream(paused(gate)), "chat", background={"lease": 2 * HANG})
        await begin_response(app)
        monkeypatch.setattr(ResponseRepository, "save_local", fail_to_save)
        gate.set()
        await failed.wait()
        async with asyncio.timeout(HANG):
            await app.aclose()  # type: ignore[attr-defined]

    async def test_what_is_never_stored_is_told_as_failed(
        self, gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with running(Upstream(paused(gate)), background={"lease": 0.05}) as app:
            response_id = (await begin_response(app))["id"]
            followed = begin(
                *(app, f"{PATH}/{response_id}", b"", KEY), method="GET", query_string=b"stream=true"
            )
            await followed.until(b"reasoning_text.delta")
            monkeypatch.setattr(MemoryBackend, "put", fail)
            gate.set()
            await followed.finish()
            assert check_responses(followed.data).response["status"] == "failed"

    async def test_events_that_cannot_be_read_are_looked_for_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_log, "CHUNK_BYTES", 500)
        async with running(Upstream(answer("chat", stream=True))) as app:
            response_id = (await begin_response(app))["id"]
            whole = (await ended(app, response_id))["output"]
            for number in range(2, 7):
                with monkeypatch.context() as down:
                    fail_once(down, "get", number)
                    told = check_responses((await streamed(app, response_id)).data)
                assert told.response["output"] == whole

    async def test_events_that_are_not_all_there_yet_are_waited_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        find, looks = StoredEvents.chunk, itertools.count()

        async def find_some(self: StoredEvents, number: int) -> bytes | None:
            chunk = await find(self, number) or b""
            return chunk[: chunk.index(b"\n\n") + 2] if next(looks) < 2 else chunk

        async with running(Upstream(answer("chat", stream=True))) as app:
            response_id = (await begin_response(app))["id"]
            whole = (await ended(app, response_id))["output"]
            monkeypatch.setattr(StoredEvents, "chunk", find_some)
            told = check_responses((await streamed(app, response_id)).data)
        assert told.response["output"] == whole

    async def test_a_stream_whose_events_are_gone_is_broken_off(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def find_no_chunk(*_: Any) -> None:
            return None

        monkeypatch.setattr(event_log, "LOST_LOOKS", 3)
        async with running(Upstream(answer("chat", stream=True))) as app:
            response_id = (await begin_response(app))["id"]
            await ended(app, response_id)
            monkeypatch.setattr(StoredEvents, "chunk", find_no_chunk)
            assert not (await streamed(app, response_id)).complete

    async def test_a_response_that_cannot_be_looked_up_is_to_be_tried_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with running(Upstream(answer("chat", stream=True))) as app:
            response_id = (await begin_response(app))["id"]
            await ended(app, response_id)
            fail_once(monkeypatch, "get")
            assert read_error(await streamed(app, response_id)) == STORE_DOWN


async def test_a_running_one_is_not_forgotten_for_other_traffic(
    gate: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "SAVE_SECONDS", 0.01)
    upstream = Upstream(paused(gate), answer("chat", stream=False))
    settings = {"history": {"bytes": 30_000}, "background": {"lease": 0.1}}
    async with running(upstream, **settings) as app:
        response_id = (await begin_response(app))["id"]
        await until(lambda: bool(upstream.requests))
        for _ in range(30):
            assert (await post(app, "Hello " * 50, key=OTHER)).status == 200
            await asyncio.sleep(0.02)
        assert (await fetch(app, response_id)).json["status"] == "in_progress"


async def test_one_that_ends_while_it_is_cancelled_elsewhere_stays_as_it_is() -> None:
    case = in_memory()
    known = responses(case.store)
    running_one = LocalRecord("default", {"id": "resp_1", "status": "in_progress"}, [], [])
    done = replace(running_one, response={"id": "resp_1", "status": "completed"}, output=["msg_1"])
    await known.save_local("resp_1", done, {})
    assert await RunElsewhere(known, "resp_1").stop(running_one, CANCELLED) == done
    assert await known.find("resp_1") == [done]
