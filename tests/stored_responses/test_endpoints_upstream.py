"""Responses that upstream stores: retrieved as their client was shown them."""

from __future__ import annotations

import gzip
import json

import pytest

from abridge.apis.display import Exposure
from abridge.errors import UpstreamBroken
from tests import openapi
from tests.asgi import call
from tests.bridges.test_bridges import BOTH, KEY, SUMMARY
from tests.forms import FORMS, PREFIX, Form, abridged
from tests.scripts import (
    THOUGHT,
    call_item,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.stored_responses.conversations import (
    KEPT,
    OTHER,
    PATH,
    RAW,
    USER,
    Json,
    fetch,
    keeps,
    refused,
    same,
    told,
)
from tests.upstream import Answer, Upstream
from tests.writers import Scripted


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
    async def test_attributions_are_shown_again(self, expose: Exposure) -> None:
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

    async def test_another_tenant_sees_what_upstream_shows_it(self) -> None:
        upstream = Upstream(Answer.json(keeps()))
        app = same(upstream)
        await told(app, "Hi")
        assert (await fetch(app, "resp_1", OTHER)).json == keeps()

    @pytest.mark.parametrize("known", [True, False])
    @pytest.mark.parametrize("expose", ["summary", "none"])
    async def test_raw_is_taken_out_known_or_not(
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

    async def test_nor_does_another_abridge_say_it_of_calls(self) -> None:
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

    async def test_no_item_is_listed_with_the_summary_of_another(self) -> None:
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
    async def test_an_answer_that_breaks_off_is_a_timeout(self, hidden: bool) -> None:  # noqa: FBT001
        broken = UpstreamBroken("It fell silent.", code="upstream_timeout")
        cut = Answer([b'{"output": [', broken], headers={"content-type": "application/json"})
        upstream = Upstream(Answer.json(keeps()), cut)
        app = same(upstream, expose="summary" if hidden else "both", form="mounted")
        await told(app, "Hi")
        came = await fetch(app, "resp_1")
        assert (came.status, came.json["error"]["code"]) == (504, "upstream_timeout")
