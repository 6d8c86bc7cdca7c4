"""Responses stored upstream: retrieved as their client first received them."""

from __future__ import annotations

import gzip
import json

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from abridge.apis.display import Exposure
from abridge.errors import UpstreamBroken
from abridge.memory.stores.memory import MemoryBackend
from tests.end_to_end.translation.test_translation import BOTH, KEY, SUMMARY
from tests.stored_responses.conversations import (
    OTHER,
    PATH,
    RAW,
    STORE_DOWN,
    STORED_OUTPUT,
    USER,
    Json,
    fail,
    fetch,
    get_response,
    native_app,
    read_error,
    stored_upstream,
)
from tests.support import openapi
from tests.support.asgi import call
from tests.support.counters import total
from tests.support.deployments import FORMS, ORIGIN, PREFIX, Form, build_app
from tests.support.nesting import nested_json
from tests.support.streams import (
    THOUGHT,
    call_item,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream


class TestUpstreamResponses:
    """Upstream stores its own answer, not the rewritten one."""

    @BOTH
    @pytest.mark.parametrize("expose", ["auto", "both", "summary"])
    @pytest.mark.parametrize("form", FORMS)
    async def test_a_retrieved_response_has_its_summaries(
        self, form: Form, expose: Exposure, *, stream: bool
    ) -> None:
        first = (
            Answer(responses_stream(list(STORED_OUTPUT), store=True))
            if stream
            else Answer.json(stored_upstream())
        )
        upstream = Upstream(first, Answer.json(stored_upstream()))
        app = native_app(upstream, expose=expose, form=form)
        shown = await get_response(app, "Hi", stream=stream, prefix=PREFIX[form])
        received = await fetch(app, f"{shown['id']}?include[]=x", prefix=PREFIX[form])
        assert received.json == shown
        assert received.json["output"][0]["summary"] == [{"type": "summary_text", "text": SUMMARY}]
        assert (RAW in received.data.decode()) is (expose != "summary")
        assert received.json["usage"]["reasoning_summary"]["parts"] == 1
        openapi.check("Response", received.json)
        request = upstream.requests[1]
        assert (request.method, request.path, request.query) == (
            "GET",
            f"{PATH}/resp_1",
            b"include[]=x" if expose != "summary" else b"",
        )

    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_a_retrieved_response_has_its_attributions(self, expose: Exposure) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        app = native_app(upstream, expose=expose, attribution={"enabled": True})
        shown = await get_response(app, "Hi")
        assert "reasoning" in shown["output"][1]
        assert (await fetch(app, "resp_1")).json == shown

    async def test_a_retrieved_response_has_its_summary_error(self) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        app = build_app("sidecar", upstream, writer=Scripted(error=ValueError()))
        shown = await get_response(app, "Hi")
        assert "summary_error" in shown["output"][0]
        assert (await fetch(app, "resp_1")).json == shown

    async def test_a_native_summary_is_unchanged(self) -> None:
        item = reasoning_item(0, THOUGHT, summary=[{"type": "summary_text", "text": "Native."}])
        upstream = Upstream(Answer.json(stored_upstream([item])))
        app = native_app(upstream, expose="both")
        shown = await get_response(app, "Hi")
        assert (await fetch(app, "resp_1")).json["output"] == shown["output"] == [item]

    @pytest.mark.parametrize(
        ("fields", "answered"),
        [
            ({"reasoning": {"summary": None}}, {}),
            ({"store": False}, {}),
            ({}, {"store": False}),
        ],
    )
    async def test_a_response_without_a_record_passes_unchanged(
        self, fields: Json, answered: Json
    ) -> None:
        upstream = Upstream(Answer.json({**stored_upstream(), **answered}))
        app = native_app(upstream)
        await get_response(app, "Hi", **fields)
        for tail in ("resp_1", "resp_1/input_items", "resp_1?stream=true"):
            received = await fetch(app, tail)
            assert received.data == b"".join(upstream.answers[0].steps)  # type: ignore[arg-type]

    async def test_another_tenant_gets_upstreams_own_view(self) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        app = native_app(upstream)
        await get_response(app, "Hi")
        assert (await fetch(app, "resp_1", OTHER)).json == stored_upstream()

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("expose", ["summary", "none"])
    async def test_hidden_reasoning_is_removed_with_or_without_a_record(
        self, expose: Exposure, *, known: bool
    ) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        app = native_app(upstream, expose=expose)
        shown = await get_response(app, "Hi") if known else None
        for key in (KEY, {}):
            received = await fetch(app, "resp_1", key)
            assert received.status == 200
            assert RAW not in received.data.decode()
            openapi.check("Response", received.json)
        assert shown is None or (await fetch(app, "resp_1")).json == shown

    @pytest.mark.parametrize("tail", ["resp_1", "resp_1/input_items"])
    async def test_what_is_hidden_is_counted_by_what_told_of_it(
        self, tail: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        output = [message_item(0, f"<think>{RAW}</think>Hello.")]
        page = {"object": "list", "data": output, "has_more": False}
        stored = stored_upstream(output) if tail == "resp_1" else page
        registry = CollectorRegistry()
        app = native_app(Upstream(Answer.json(stored)), expose="none", registry=registry)
        with caplog.at_level("INFO", "abridge.requests"):
            received = await fetch(app, tail)
        assert RAW not in received.data.decode()
        assert total(registry, "hidden_total", profile="auto", kind="tag") == 1
        (record,) = caplog.records
        assert record.abridge["hidden"] == {"tag": 1}  # type: ignore[attr-defined]

    async def test_state_that_nobody_vouches_for_is_not_shown(self) -> None:
        state = "8JKjTx0r7OQ9n1uVdW3kZp5yH2sLbXcEaMgRfYtB4wI="
        stored = stored_upstream([{**reasoning_item(0, ""), "encrypted_content": state}])
        upstreams = [{"api": "responses", "base_url": f"{ORIGIN}/v1", "profile": "vllm"}]
        app = native_app(Upstream(Answer.json(stored)), expose="none", upstreams=upstreams)
        received = await fetch(app, "resp_1")
        assert received.status == 200
        assert state not in received.data.decode()

    async def test_hidden_reasoning_is_removed_from_attributions(self) -> None:
        parts = [{"type": "reasoning_text", "text": THOUGHT}]
        output = [*STORED_OUTPUT, {**call_item(3, "f", "{}"), "reasoning": parts}]
        page = {"object": "list", "data": output, "has_more": False}
        upstream = Upstream(Answer.json(stored_upstream(output)), Answer.json(page))
        app = native_app(upstream, expose="summary")
        for tail in ("resp_1", "resp_1/input_items"):
            received = await fetch(app, tail)
            assert received.status == 200
            assert RAW not in received.data.decode()

    @pytest.mark.parametrize("tail", ["resp_1?stream=true", "resp_1?starting_after=2"])
    @pytest.mark.parametrize("known", [True, False])
    async def test_a_stream_is_not_resumed(self, tail: str, *, known: bool) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        app = native_app(upstream, expose="auto" if known else "none")
        if known:
            await get_response(app, "Hi")
        assert read_error(await fetch(app, tail))[:2] == (400, "stream_not_resumable")
        assert len(upstream.requests) == known

    async def test_listed_items_have_their_summaries(self) -> None:
        """Including those of earlier responses."""
        mine = {"id": "msg_9", "type": "message", "status": "completed", **USER}
        page = {"object": "list", "data": [mine, *STORED_OUTPUT], "has_more": False}
        upstream = Upstream(
            Answer.json(stored_upstream()),
            Answer.json(stored_upstream([message_item(5, "Yes.")], id="resp_2")),
            Answer.json(page),
        )
        app = native_app(upstream, expose="summary")
        shown = await get_response(app, "Hi")
        await get_response(app, "Sure?", previous_response_id="resp_1")
        assert upstream.requests[1].json["previous_response_id"] == "resp_1"
        received = await fetch(app, "resp_2/input_items")
        assert received.json == {**page, "data": [mine, *shown["output"]]}
        received = await fetch(app, "resp_2/input_items", OTHER)
        assert RAW not in received.data.decode()
        assert SUMMARY not in received.json["data"][1]["summary"]

    async def test_no_item_is_listed_with_the_summary_of_another(self) -> None:
        """Even where upstream reuses ids."""
        first, again = (reasoning_item(0, text) for text in ("First.", "Again."))
        other = reasoning_item(5, "Else.")
        page = {"object": "list", "data": [first, other], "has_more": False}
        upstream = Upstream(
            Answer.json(stored_upstream([first, other], id="resp_0")),
            Answer.json(stored_upstream([again])),
            Answer.json(page),
        )
        app = native_app(upstream)
        await get_response(app, "Hi")
        await get_response(app, "Sure?", previous_response_id="resp_0")
        data = (await fetch(app, "resp_1/input_items")).json["data"]
        assert data == [first, {**other, "summary": [{"type": "summary_text", "text": SUMMARY}]}]

    async def test_deleting_and_cancelling_are_left_to_upstream(self) -> None:
        gone = {"id": "resp_1", "object": "response", "deleted": True}
        upstream = Upstream(
            Answer.json(stored_upstream()),
            Answer.json(stored_upstream(status="cancelled")),
            Answer.json(gone),
            Answer.json({"error": {"message": "No."}}, 404),
        )
        app = native_app(upstream, expose="summary")
        await get_response(app, "Hi")
        received = await fetch(app, "resp_1/cancel", method="POST")
        assert received.json["status"] == "cancelled"
        assert RAW not in received.data.decode()
        assert (await fetch(app, "resp_1", method="DELETE")).json == gone
        missing = await fetch(app, "resp_1")
        assert missing.status == 404
        assert missing.json["error"]["message"] != "No."
        assert [request.method for request in upstream.requests] == [
            "POST",
            "POST",
            "DELETE",
            "GET",
        ]

    async def test_an_id_may_be_base64(self) -> None:
        response_id = "resp_bGl0ZWxsbTo+Og=="
        upstream = Upstream(Answer.json(stored_upstream(id=response_id)))
        app = native_app(upstream, expose="summary")
        shown = await get_response(app, "Hi")
        assert (await fetch(app, response_id)).json == shown

    async def test_nothing_is_deleted_upstream_while_the_store_still_holds_its_summary(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        upstream = Upstream(Answer.json(stored_upstream()), Answer([], 204, {}))
        app = native_app(upstream, expose="summary")
        await get_response(app, "Hi")
        monkeypatch.setattr(MemoryBackend, "delete", fail)
        assert read_error(await fetch(app, "resp_1", method="DELETE")) == STORE_DOWN
        assert len(upstream.requests) == 1
        monkeypatch.undo()
        assert (await fetch(app, "resp_1", method="DELETE")).status == 204

    async def test_a_deletion_may_be_answered_without_content(self) -> None:
        upstream = Upstream(Answer.json(stored_upstream()), Answer([], 204, {}))
        app = native_app(upstream, expose="summary")
        await get_response(app, "Hi")
        received = await fetch(app, "resp_1", method="DELETE")
        assert (received.status, received.data) == (204, b"")

    async def test_a_response_is_retrieved_from_its_own_upstream(self) -> None:
        places = [
            {"name": "first", "models": ["a"], "base_url": "http://first.test/v1"},
            {"name": "second", "models": ["b"], "base_url": "http://second.test/v1"},
        ]
        upstream = Upstream(Answer.json(stored_upstream()))
        app = native_app(upstream, upstreams=places)
        await get_response(app, "Hi", model="b")
        await fetch(app, "resp_1")
        await fetch(app, "resp_2")
        hosts = [request.header("host") for request in upstream.requests]
        assert hosts == ["second.test", "second.test", "first.test"]

    ODD: tuple[tuple[str, Answer], ...] = (
        ("no JSON", Answer([THOUGHT.encode()], headers={"content-type": "text/plain"})),
        ("a stream", Answer(responses_stream(list(STORED_OUTPUT)))),
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
        ("too long", Answer.json(stored_upstream([*STORED_OUTPUT, message_item(9, "x" * 70_000)]))),
    )

    @pytest.mark.parametrize("name", [name for name, _ in ODD])
    @pytest.mark.parametrize("hidden", [True, False])
    async def test_an_unreadable_answer_passes_unless_reasoning_is_hidden(
        self, name: str, *, hidden: bool
    ) -> None:
        odd = dict(self.ODD)[name]
        upstream = Upstream(Answer.json(stored_upstream()), odd)
        app = native_app(upstream, expose="summary" if hidden else "both", limits={"event": 65_536})
        await get_response(app, "Hi")
        received = await fetch(app, "resp_1")
        if hidden:
            assert (received.status, received.json["error"]["code"]) == (502, "upstream_error")
            assert RAW not in received.data.decode()
        else:
            assert received.status == 200
            assert received.data == b"".join(odd.steps)  # type: ignore[arg-type]

    async def test_what_is_nested_too_deep_to_be_written_anew_passes(self) -> None:
        stored = nested_json({**stored_upstream(), "metadata": "nested here"}, 600)
        nested = Answer([stored], headers={"content-type": "application/json"})
        app = native_app(Upstream(Answer.json(stored_upstream()), nested), expose="both")
        await get_response(app, "Hi")
        assert (await fetch(app, "resp_1")).data == stored

    @pytest.mark.parametrize(
        ("query", "sent"),
        [
            (
                "include[]=message.output_text.logprobs&include=x&after=y&include[0]=x",
                b"include[]=message.output_text.logprobs&after=y",
            ),
            ("include[]=web_search_call.results&b=%20", b"include[]=web_search_call.results&b=%20"),
            ("in%63lude%5B%5D=x&q=%FF%e4&&e", b"q=%FF%e4&&e"),
        ],
    )
    async def test_nothing_revealing_is_included(self, query: str, sent: bytes) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        await fetch(native_app(upstream, expose="summary"), f"resp_1?{query}")
        assert upstream.requests[0].query == sent

    async def test_the_rest_of_a_query_that_is_not_ascii_stays(self) -> None:
        upstream = Upstream(Answer.json(stored_upstream()))
        app = native_app(upstream, expose="summary")
        path, query = "/v1/responses/resp_1", b"q=\xff\xe4&include=\xff"
        await call(app, path, b"", KEY, method="GET", query_string=query)
        assert upstream.requests[0].query == b"q=%FF%E4"  # as httpx writes it

    UNSUCCESSFUL: tuple[tuple[str, Answer, int], ...] = (
        ("an error", Answer.json({"error": {"message": RAW, "code": "gone"}, "x": RAW}, 404), 404),
        ("a stored answer", Answer.json(stored_upstream(), 500), 500),
        ("text", Answer([THOUGHT.encode()], 503, {"content-type": "text/plain"}), 503),
        ("badly encoded", Answer([THOUGHT.encode()], 400, {"content-encoding": "gzip"}), 400),
        ("too long", Answer([THOUGHT.encode() * 1000], 400, {}), 502),
        ("a redirect", Answer([THOUGHT.encode()], 307, {"location": f"/{RAW}"}), 502),
        ("not modified", Answer([THOUGHT.encode()], 304, {"etag": RAW}), 502),
    )

    @pytest.mark.parametrize(
        ("answer", "status"),
        [pytest.param(answer, status, id=name) for name, answer, status in UNSUCCESSFUL],
    )
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("tail", ["resp_1", "resp_1/input_items"])
    async def test_an_error_is_told_in_abridges_own_words_where_reasoning_is_hidden(
        self, tail: str, form: Form, answer: Answer, status: int
    ) -> None:
        app = native_app(Upstream(answer), expose="summary", form=form, limits={"event": 65_536})
        received = await fetch(app, tail, prefix=PREFIX[form])
        assert received.status == status
        assert RAW not in f"{received.data!r} {received.headers}"
        openapi.check("ErrorResponse", received.json)
        native = native_app(Upstream(answer), expose="both", form=form)
        received = await fetch(native, tail, prefix=PREFIX[form])
        assert received.data == b"".join(answer.steps)  # type: ignore[arg-type]

    @pytest.mark.parametrize("headers", [{"x-mine": "1"}, None])
    @pytest.mark.parametrize("kind", ["application/json", "text/plain"])
    async def test_headers_may_be_any_iterable_and_trailers_do_not_pass(
        self, headers: dict[str, str] | None, kind: str
    ) -> None:
        given = None if headers is None else {**headers, "content-type": kind}
        model = Upstream(Answer.json(stored_upstream()))

        async def stored(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "POST":
                await model(scope, receive, send)
                return
            lines = given and ((key.encode(), value.encode()) for key, value in given.items())
            start = {"status": 200, "headers": lines, "trailers": True}
            await send({"type": "http.response.start", **start})
            body = json.dumps(stored_upstream()).encode()
            await send({"type": "http.response.body", "body": body})
            await send({"type": "http.response.trailers", "headers": []})

        app = native_app(stored, form="mounted")  # type: ignore[arg-type]
        await get_response(app, "Hi")
        received = await fetch(app, "resp_1")
        assert received.json["id"] == "resp_1"
        assert [message["type"] for message in received.sent[1:]] == ["http.response.body"]
        assert "trailers" not in received.sent[0]
        assert {name: received.headers[name] for name in given or ()} == (given or {})

    async def test_no_content_has_none_where_reasoning_is_hidden(self) -> None:
        odd = Answer([THOUGHT.encode()], 204, {"x-said": RAW})
        app = native_app(Upstream(odd), expose="summary", form="mounted")
        received = await fetch(app, "resp_1", method="DELETE")
        assert (received.status, received.data, received.headers) == (204, b"", {})

    async def test_a_list_has_known_fields_alone_where_reasoning_is_hidden(self) -> None:
        page = {"object": "list", "data": [], "has_more": False, "said": RAW}
        app = native_app(Upstream(Answer.json(page)), expose="summary")
        del page["said"]
        assert (await fetch(app, "resp_1/input_items")).json == page

    @pytest.mark.parametrize(
        "said", [{"said": RAW}, {"id": f"{RAW} {RAW}"}, {"deleted": {"because": RAW}}]
    )
    async def test_a_deletion_has_known_fields_alone_where_reasoning_is_hidden(
        self, said: Json
    ) -> None:
        deleted = {"id": "resp_1", "object": "response", "deleted": True}
        app = native_app(Upstream(Answer.json({**deleted, **said})), expose="summary")
        received = await fetch(app, "resp_1", method="DELETE")
        assert received.json == {key: deleted[key] for key in deleted if key not in said}

    @pytest.mark.parametrize(
        ("tail", "body"),
        [
            ("resp_1", {**stored_upstream(), "said": RAW}),
            ("resp_1/input_items", {"object": "list", "data": [{"type": "musing", "text": RAW}]}),
        ],
    )
    async def test_what_is_left_out_is_counted(self, tail: str, body: Json) -> None:
        registry = CollectorRegistry()
        app = native_app(Upstream(Answer.json(body)), expose="summary", registry=registry)
        await fetch(app, tail)
        counted = registry.get_sample_value("abridge_dropped_fields_total", {"api": "responses"})
        assert counted == 1

    @pytest.mark.parametrize("hidden", [True, False])
    async def test_an_answer_may_have_no_headers(self, *, hidden: bool) -> None:
        model = Upstream(Answer.json(stored_upstream()))

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["method"] == "POST":
                await model(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": 200})
            await send({"type": "http.response.body", "body": b"{}"})

        exposing = native_app(app, expose="summary" if hidden else "both", form="mounted")  # type: ignore[arg-type]
        await get_response(exposing, "Hi")
        received = await fetch(exposing, "resp_1")
        assert (received.status, received.data == b"{}") == (
            (502, False) if hidden else (200, True)
        )

    @pytest.mark.parametrize("hidden", [True, False])
    async def test_an_app_that_waits_after_its_answer_is_told_of_the_end(
        self, *, hidden: bool
    ) -> None:
        model = Upstream(Answer.json(stored_upstream()))

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await model(scope, receive, send)
            assert (await receive())["type"] == "http.disconnect"

        exposing = native_app(app, expose="summary" if hidden else "both", form="mounted")  # type: ignore[arg-type]
        shown = await get_response(exposing, "Hi")
        assert (await fetch(exposing, "resp_1")).json == shown

    async def test_a_rewritten_answer_is_framed_by_its_length_alone(self) -> None:
        chunked = Answer.json(stored_upstream(), **{"transfer-encoding": "chunked"})
        app = native_app(Upstream(chunked), expose="summary", form="mounted")
        await get_response(app, "Hi")
        received = await fetch(app, "resp_1")
        assert "transfer-encoding" not in received.headers
        assert received.headers["content-length"] == str(len(received.data))

    async def test_an_encoded_answer_is_decoded(self) -> None:
        data = gzip.compress(json.dumps(stored_upstream()).encode())
        headers = {"content-type": "application/json", "content-encoding": "gzip", "etag": "x"}
        upstream = Upstream(
            Answer.json(stored_upstream()), Answer([data[:50], data[50:]], headers=headers)
        )
        app = native_app(upstream, expose="summary", form="mounted")
        shown = await get_response(app, "Hi")
        received = await call(
            app, f"{PATH}/resp_1", b"", {**KEY, "accept-encoding": "gzip"}, method="GET"
        )
        assert received.json == shown
        assert received.headers["content-length"] == str(len(received.data))
        assert {"etag", "content-encoding"}.isdisjoint(received.headers)
        assert upstream.requests[1].header("accept-encoding") is None

    @pytest.mark.parametrize("hidden", [True, False])
    async def test_an_answer_that_breaks_off_is_a_timeout(self, *, hidden: bool) -> None:
        broken = UpstreamBroken("It fell silent.", code="upstream_timeout")
        cut = Answer([b'{"output": [', broken], headers={"content-type": "application/json"})
        upstream = Upstream(Answer.json(stored_upstream()), cut)
        app = native_app(upstream, expose="summary" if hidden else "both", form="mounted")
        await get_response(app, "Hi")
        received = await fetch(app, "resp_1")
        assert (received.status, received.json["error"]["code"]) == (504, "upstream_timeout")
