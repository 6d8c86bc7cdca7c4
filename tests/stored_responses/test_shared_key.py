"""Upstreams with a key of Abridge's, to which all its clients are one: who may reach what of it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from starlette.types import ASGIApp

from tests.end_to_end.translation.test_translation import KEY
from tests.stored_responses.conversations import (
    FOLLOW_UP,
    OTHER,
    PATH,
    USER,
    Json,
    fetch,
    stored_upstream,
)
from tests.support.asgi import Call, call, scope_for
from tests.support.deployments import ORIGIN, build_app
from tests.support.loop_turns import MANY_CALLS, counting_calls
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, ReceivedRequest, Upstream

CHAT = "/v1/chat/completions"
ITEM = message_item(0, "Yes.")
BOTH = pytest.mark.parametrize("stream", [False, True])


class Account(Upstream):
    """Stores whatever it is sent, and hands it out to whoever has the key."""

    def __init__(self) -> None:
        super().__init__(Answer.json({}))
        self.count = 0

    def answer(self, request: ReceivedRequest) -> Answer:
        if request.method != "POST" or request.path.endswith("/cancel"):
            return Answer.json(stored_upstream([ITEM], id="resp_1"))
        self.count += 1
        item = {**ITEM, "id": f"msg_{self.count}"}
        answered = stored_upstream([item], id=f"resp_{self.count}")
        if request.json.get("background"):
            return Answer.json({**answered, "status": "queued", "output": [], "background": True})
        if request.json.get("stream"):
            return Answer(responses_stream([item], id=answered["id"], store=True))
        return Answer.json(answered)


@pytest.fixture(autouse=True)
def own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OWN", "sk-own")


def entry(**more: Any) -> Json:
    return {"base_url": f"{ORIGIN}/v1", "api_key_env": "OWN", **more}


def app_for(account: Upstream, history: Json | None = None, **more: Any) -> ASGIApp:
    return build_app("sidecar", account, upstreams=[entry(**more)], history=history or {})


async def ask(app: ASGIApp, key: Any = KEY, path: str = PATH, **fields: Any) -> Call:
    body = {"model": "m", **({"input": "Hi"} if path == PATH else {"messages": []}), **fields}
    return await call(app, path, body, key)


REFERENCES: tuple[Json, ...] = (
    {"previous_response_id": "resp_1"},
    {"input": [{"type": "item_reference", "id": "msg_1"}]},
    {"input": [{"id": "msg_1"}]},
)
PATHS = (("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", ""))


class TestOthersResponses:
    @BOTH
    @pytest.mark.parametrize("reference", REFERENCES)
    async def test_only_who_got_a_response_may_continue_it(
        self, reference: Json, *, stream: bool
    ) -> None:
        account = Account()
        app = app_for(account)
        await ask(app, stream=stream)
        refused = await ask(app, OTHER, **reference)
        assert (refused.status, account.count) == (400, 1)
        assert "not found" in refused.json["error"]["message"]
        assert refused.json["error"]["param"] in ("previous_response_id", "input[0].id")
        assert (await ask(app, **reference)).status == 200
        assert account.requests[-1].json.items() >= reference.items()

    @BOTH
    @pytest.mark.parametrize(("method", "tail"), PATHS)
    async def test_only_who_got_a_response_may_reach_it(
        self, method: str, tail: str, *, stream: bool
    ) -> None:
        account = Account()
        app = app_for(account)
        await ask(app, stream=stream)
        refused = await fetch(app, f"resp_1{tail}", OTHER, method)
        assert (refused.status, len(account.requests)) == (404, 1)
        assert refused.json["error"]["message"] == "Response with id 'resp_1' not found."
        assert (await fetch(app, f"resp_1{tail}", KEY, method)).status == 200
        assert account.requests[-1].header("authorization") == "Bearer sk-own"

    async def test_a_background_response_is_its_clients_too(self) -> None:
        account = Account()
        app = app_for(account)
        assert (await ask(app, background=True)).json["status"] == "queued"
        assert (await fetch(app, "resp_1", OTHER)).status == 404
        assert (await fetch(app, "resp_1")).status == 200

    async def test_a_deletion_that_failed_may_be_tried_again(self) -> None:
        account = Account()
        app = app_for(account)
        await ask(app, reasoning={"summary": "auto"})
        for _ in range(2):
            assert (await fetch(app, "resp_1", method="DELETE")).status == 200
        assert [request.method for request in account.requests] == ["POST", "DELETE", "DELETE"]

    @pytest.mark.parametrize(
        ("history", "key"),
        [({"store": "none"}, KEY), ({"anonymous": False}, None), ({}, {"x-forwarded-for": "::1"})],
        ids=["no store", "nobody", "forwarded"],
    )
    async def test_where_nothing_is_noted_nobody_may(self, history: Json, key: Any) -> None:
        account = Account()
        app = app_for(account, history)
        assert (await ask(app, key)).status == 200
        for reference in REFERENCES:
            assert (await ask(app, key, **reference)).status == 400
        assert (await fetch(app, "resp_1", key)).status == 404
        assert len(account.requests) == 1

    async def test_what_is_not_stored_is_not_noted(self) -> None:
        app = app_for(Account())
        await ask(app, store=False)
        assert (await fetch(app, "resp_1")).status == 404

    async def test_the_answer_itself_stays_as_it_is(self) -> None:
        frames = responses_stream([ITEM], store=True)
        app = app_for(Upstream(Answer(frames)))
        assert (await ask(app, stream=True)).data == b"".join(frames)

    @pytest.mark.parametrize(
        ("item", "status"),
        [
            ({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}, 200),
            ({"type": "image_generation_call", "id": "ig_1"}, 400),
            ({"type": "compaction", "id": "cmp_1"}, 400),
            ({"id": "msg_9", "status": None}, 400),
            ({"id": "msg_9", "type": ""}, 400),
            ({"id": "msg_9", "role": "assistant", "content": "Hi"}, 200),
            ({"type": "message", "role": "assistant", "id": "msg_9", "content": "Hi"}, 200),
        ],
    )
    async def test_an_item_that_upstream_would_load_is_a_reference(
        self, item: Json, status: int
    ) -> None:
        assert (await ask(app_for(Account()), input=[item])).status == status

    @pytest.mark.parametrize("expose", ["both", "summary", "none"])
    async def test_reasoning_that_is_not_stored_may_be_returned(self, expose: str) -> None:
        thought = {**reasoning_item(0, THOUGHT), "id": "rs_7"}
        account = Upstream(Answer.json({**stored_upstream([thought, ITEM]), "store": False}))
        app = build_app(
            "sidecar",
            account,
            writer=Scripted("A summary."),
            upstreams=[entry()],
            reasoning={"expose": expose},
        )
        first = await ask(app, store=False, input=[USER], reasoning={"summary": "auto"})
        turns = [USER, *first.json["output"], FOLLOW_UP]
        assert (await ask(app, store=False, input=turns)).status == 200
        assert account.requests[-1].json["input"][1]["content"] == thought["content"]

    async def test_others_reasoning_has_no_id_for_upstream_to_load_it_by(self) -> None:
        account = Account()
        item = {"type": "reasoning", "id": "rs_1", "summary": []}
        assert (await ask(app_for(account), input=[item])).status == 200
        assert "rs_1" not in str(account.requests[0].json)

    async def test_each_upstream_is_asked_for_its_own(self) -> None:
        account = Account()
        entries = [
            entry(name="a", models=["a"]),
            entry(name="b", models=["b"], base_url="http://b.test/v1"),
        ]
        app = build_app("sidecar", account, upstreams=entries)
        await ask(app, model="b")
        await fetch(app, "resp_1")
        assert account.requests[-1].header("host") == "b.test"
        assert (await ask(app, model="a", previous_response_id="resp_1")).status == 400

    async def test_clients_with_keys_of_their_own_are_upstreams_business(self) -> None:
        account = Account()
        app = build_app("sidecar", account, upstreams=[{"base_url": f"{ORIGIN}/v1"}])
        assert (await ask(app, previous_response_id="resp_7")).status == 200
        assert (await fetch(app, "resp_7", OTHER)).status == 200


class TestOtherObjects:
    @pytest.mark.parametrize(
        ("path", "fields", "param", "opens"),
        [
            (PATH, {"conversation": "conv_1"}, "conversation", "/v1/conversations"),
            (PATH, {"conversation": {"id": "conv_1"}}, "conversation", "/v1/conversations"),
            (PATH, {"prompt": {"id": "pmpt_1"}}, "prompt", "/v1/prompts"),
            (
                PATH,
                {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
                "input[0].content[0].file_id",
                "/v1/files",
            ),
            (
                PATH,
                {"tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]},
                "tools[0].vector_store_ids",
                "/v1/vector_stores",
            ),
            (
                PATH,
                {"tools": [{"type": "code_interpreter", "container": "cntr_1"}]},
                "tools[0].container",
                "/v1/containers",
            ),
            (
                PATH,
                {"tools": [{"container": {"type": "auto", "file_ids": ["f"]}}]},
                "tools[0].container.file_ids",
                "/v1/files",
            ),
            (
                PATH,
                {"tools": [{"type": "shell", "environment": {"skills": [{"skill_id": "s"}]}}]},
                "tools[0].environment.skills[0].skill_id",
                "/v1/skills",
            ),
            (
                PATH,
                {"tools": [{"type": "mcp", "tunnel_id": "tunnel_1"}]},
                "tools[0].tunnel_id",
                "/v1/tunnels",
            ),
            (
                CHAT,
                {"messages": [{"role": "user", "content": [{"file": {"file_id": "f"}}]}]},
                "messages[0].content[0].file.file_id",
                "/v1/files",
            ),
        ],
    )
    async def test_they_are_refused_unless_their_path_is_opened(
        self, path: str, fields: Json, param: str, opens: str
    ) -> None:
        account = Account()
        refused = await ask(app_for(account), path=path, **fields)
        assert (refused.status, account.requests) == (400, [])
        assert refused.json["error"]["param"] == param
        assert opens in refused.json["error"]["message"]
        opened = app_for(account, forward_paths=[opens])
        assert (await ask(opened, path=path, **fields)).status == 200

    @pytest.mark.parametrize(
        ("path", "fields", "param"),
        [
            (PATH, {"Previous_Response_Id": "resp_1"}, "Previous_Response_Id"),
            (PATH, {"previous_response_id": ["resp_1"]}, "previous_response_id"),
            (PATH, {"input": [{"type": "item_reference", "id": ["msg_1"]}]}, "input[0].id"),
            (CHAT, {"previous_response_id": "resp_1"}, "previous_response_id"),
            (CHAT, {"extra_body": {"thread_id": "mine"}}, "extra_body.thread_id"),
            (CHAT, {"index_name": "mine"}, "index_name"),
            (CHAT, {"anything": {"else": "vs_1"}}, "anything.else"),
            ("/v1/messages", {"thread": {"previous_message_id": "m"}}, "previous_message_id"),
        ],
    )
    async def test_what_may_name_one_is_refused_unless_everything_is_opened(
        self, path: str, fields: Json, param: str
    ) -> None:
        account = Account()
        refused = await ask(app_for(account), path=path, **fields)
        assert (refused.status, account.requests) == (400, [])
        assert param in refused.json["error"].get("param", refused.json["error"]["message"])
        await ask(app_for(account, forward_paths=["/*"]), path=path, **fields)
        assert len(account.requests) == 1

    async def test_metadata_and_the_schemas_of_tools_are_the_clients_own(self) -> None:
        account, names = Account(), {"index_name": "vs_1", "file_id": "file-1"}
        tool = {"type": "function", "name": "f", "parameters": {"properties": names}}
        assert (await ask(app_for(account), metadata=names, tools=[tool])).status == 200
        assert account.requests[0].json["tools"] == [tool]

    async def test_a_field_that_is_named_twice_is_read_in_one_way(self) -> None:
        account = Account()
        body = b'{"model":"m","input":"x","conversation":"conv_1","conversation":null}'
        assert (await call(app_for(account), PATH, body, KEY)).status == 200
        assert b"conv_1" not in account.requests[0].body

    async def test_many_values_are_looked_through_beside_the_event_loop(self) -> None:
        app = app_for(Upstream(Answer.json(stored_upstream([ITEM]))))
        items = [{"role": "user", "content": [{"text": "x", "id": "p", "b": {}}]}] * 15_000
        with counting_calls() as turns:
            assert (await ask(app, input=items)).status == 200
        assert max(turns) < MANY_CALLS

    async def test_a_model_that_is_named_twice_is_the_one_that_was_looked_up(self) -> None:
        account = Account()
        app = app_for(account, models=["cheap"])
        body = b'{"model":"dear","messages":[],"model":"cheap"}'
        assert (await call(app, CHAT, body, KEY)).status == 200
        assert b"dear" not in account.requests[0].body

    async def test_an_escaped_name_is_the_same_name(self) -> None:
        account = Account()
        body = b'{"model":"m","input":"x","conv\\u0065rsation":"conv_1"}'
        assert (await call(app_for(account), PATH, body, KEY)).status == 400
        assert not account.requests

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
    async def test_a_name_in_another_encoding_is_the_same_name(self, encoding: str) -> None:
        account = Account()
        body = '{"model":"m","input":"x","conversation":"conv_1"}'.encode(encoding)
        assert (await call(app_for(account), PATH, body, KEY)).status == 400
        assert not account.requests

    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ([("content-type", "application/json; charset=utf-7")], 415),
            ([("content-type", "application/json"), ("content-type", "x/y;Charset='utf-7'")], 415),
            ([("content-encoding", "identity"), ("content-encoding", "deflate")], 400),
            ([("content-type", 'application/json; charset="UTF-8"')], 200),
            ([("content-encoding", "identity")], 200),
        ],
    )
    async def test_a_body_that_could_be_read_otherwise_is_refused(
        self, headers: list[tuple[str, str]], status: int
    ) -> None:
        account, body = Account(), b'{"model":"m","input":"x","a":"+ACI-"}'
        pairs = [(name.encode(), value.encode()) for name, value in headers]
        scope = scope_for(PATH, body, KEY)
        scope["headers"] = [*pairs, (b"content-length", b"%d" % len(body))]
        answered = await Call(app_for(account), scope, body).start().finish()
        assert (answered.status, bool(account.requests)) == (status, status == 200)

    @pytest.mark.parametrize("body", [b"[]", b"{", b'"x"'])
    async def test_what_cannot_be_read_is_refused(self, body: bytes) -> None:
        account = Account()
        assert (await call(app_for(account), PATH, body, KEY)).status == 400
        assert not account.requests


class TestPaths:
    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", "/v1/files"),
            ("POST", "/v1/files"),
            ("GET", "/v1/files/f/content"),
            ("POST", "/v1/embeddings"),
            ("GET", "/v1/organization/admin_api_keys"),
            ("GET", CHAT),
            ("GET", f"{CHAT}/chatcmpl-1"),
            ("POST", f"{CHAT}/chatcmpl-1"),
            ("POST", "/v1/models"),
            ("DELETE", "/v1/models/ft"),
            ("GET", "/v1/models/../files"),
            ("GET", "/v1/models/%2e%2e/files"),
            ("GET", f"{PATH}/resp_1/x"),
            ("GET", f"/v1/files%3F{PATH}/resp_1"),
            ("GET", f"/v1/files%2F..{PATH}/resp_1"),
            ("POST", f"/v1/batches%3F{PATH}"),
            ("POST", f"/v1/batches/..{CHAT}"),
            ("POST", "/openai/deployments/gpt-x/chat/completions"),
            ("POST", "/openai/v1/responses"),
            ("GET", "/v1/organization/responses/resp_1"),
            ("GET", "/"),
        ],
    )
    async def test_what_is_not_understood_is_not_reached(self, method: str, path: str) -> None:
        account = Account()
        at = {"path": unquote(path), "raw_path": path.encode(), "method": method}
        scope = {**scope_for(path, b"{}", KEY), **at}
        refused = await Call(app_for(account), scope, b"{}").start().finish()
        assert (refused.status, account.requests) == (404, [])
        assert refused.json["error"]["type"] == "invalid_request_error"
        assert "forward_paths" in refused.json["error"]["message"]

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            (CHAT, 200),
            (PATH, 200),
            (f"{PATH}/resp_1", 200),
            (f"{PATH}/resp_1/cancel", 200),
            ("/v1/models/m", 200),
            (f"{PATH}/resp_1/x", 404),
            (f"{CHAT}/chatcmpl-1", 404),
            ("/v1/files", 404),
            ("/v1/organization/responses/resp_1", 404),
            ("/openai/v1/responses", 404),
            ("/", 404),
        ],
    )
    async def test_a_preflight_reaches_what_another_request_would(
        self, path: str, status: int
    ) -> None:
        account = Account()
        answer = await call(app_for(account), path, b"", KEY, method="OPTIONS")
        assert (answer.status, bool(account.requests)) == (status, status == 200)

    @pytest.mark.parametrize(
        ("method", "path"),
        [("GET", "/v1/models"), ("GET", "/v1/models/org/m"), ("OPTIONS", CHAT), ("POST", CHAT)],
    )
    async def test_what_is_understood_is(self, method: str, path: str) -> None:
        account = Account()
        body = {"model": "m", "messages": []}
        assert (await call(app_for(account), path, body, KEY, method=method)).status == 200
        assert account.requests[0].header("authorization") == "Bearer sk-own"

    async def test_the_settings_open_more(self) -> None:
        account = Account()
        app = app_for(account, forward_paths=["/v1/embeddings", "/v1/files*"])
        for path in ("/v1/embeddings", "/v1/files", "/v1/files/f/content", "/v1/files/responses"):
            assert (await call(app, path, {"model": "m"}, KEY)).status == 200
        assert (await call(app, "/v1/batches", {"model": "m"}, KEY)).status == 404

    @pytest.mark.parametrize("path", ["/openai/d/chat/completions", "/chat/completions", CHAT])
    async def test_an_upstreams_own_base_path_is_understood(self, path: str) -> None:
        account = Account()
        app = app_for(account, base_url=f"{ORIGIN}/openai/d")
        assert (await ask(app, path=path, messages=[])).status == 200

    async def test_an_application_of_ones_own_has_no_key_of_abridges(self) -> None:
        account = Account()
        app = build_app("mounted", account, upstreams=[{"api_key_env": "OWN"}])
        assert (await call(app, "/v1/files", b"", KEY, method="GET")).status == 200

    async def test_each_upstream_has_its_own(self) -> None:
        account = Account()
        entries = [entry(name="a", models=["a"]), {**entry(name="b"), "api_key_env": None}]
        app = build_app("sidecar", account, upstreams=entries)
        assert (await call(app, "/v1/embeddings", {"model": "a"}, KEY)).status == 404
        assert (await call(app, "/v1/embeddings", {"model": "b"}, KEY)).status == 200
