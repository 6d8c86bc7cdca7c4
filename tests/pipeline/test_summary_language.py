"""Test the language of a summary: who chooses it, what summarizer and upstream are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.end_to_end.translation.turn import PATHS, answer
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.streams import completion
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

GERMAN = "Warum ist der Himmel blau, und nicht grün?"
FRENCH = "Pourquoi le ciel est-il bleu et pas vert ?"
HEADER = "x-abridge-summary-language"

EACH_API = pytest.mark.parametrize("api", ["chat", "responses"])
EACH_WAY = pytest.mark.parametrize("stream", [True, False])


def upstream_of(api: str, *, stream: bool = False) -> Upstream:
    return Upstream(answer(api, stream=stream))


def body_of(api: str, text: Any = GERMAN, *, stream: bool = False, **reasoning: Any) -> Any:
    messages = [{"role": "user", "content": text}] if isinstance(text, str) else text
    field = "messages" if api == "chat" else "input"
    return {"model": "m", field: messages, "stream": stream, "reasoning": reasoning}


async def language_for(
    api: str, body: Any, headers: dict[str, str] | None = None, **tables: Any
) -> str | None:
    """Return the language that the summarizer is told."""
    scripted = Scripted()
    app = build_app("mounted", upstream_of(api, stream=body["stream"]), writer=scripted, **tables)
    assert (await call(app, PATHS[api], body, headers)).status == 200
    (language,) = {passage.language for passage in scripted.requests}
    return language


class TestChoice:
    @EACH_API
    @EACH_WAY
    @pytest.mark.parametrize(
        ("setting", "header", "requested", "language"),
        [
            ("auto", None, None, "de"),
            ("reasoning", None, None, None),
            ("fr", None, None, "fr"),
            ("fr", "nl", None, "nl"),
            ("fr", "nl", "pt-br", "pt-BR"),
            ("fr", None, "auto", "de"),
            ("fr", "reasoning", None, None),
            ("fr", "nl", "reasoning", None),
            ("reasoning", "auto", None, "de"),
            ("auto", "", None, "de"),
        ],
    )
    async def test_the_body_wins_over_the_header_and_that_over_the_setting(
        self,
        api: str,
        setting: str,
        header: str | None,
        requested: str | None,
        language: str | None,
        *,
        stream: bool,
    ) -> None:
        body = body_of(api, stream=stream, summary="auto", summary_language=requested)
        headers = {} if header is None else {HEADER: header}
        assert await language_for(api, body, headers, summary={"language": setting}) == language

    async def test_a_users_summarizer_is_told_it_whatever_its_name(self) -> None:
        """The built-in one, which copies, keeps the reasoning's."""
        scripted = Scripted()
        scripted.name = "extractive"
        app = build_app("mounted", upstream_of("chat"), writer=scripted)
        await call(app, PATHS["chat"], body_of("chat", summary="auto"))
        assert {passage.language for passage in scripted.requests} == {"de"}

    @EACH_API
    async def test_each_upstream_may_have_its_own(self, api: str) -> None:
        tables = {
            "summary": {"language": "fr"},
            "upstreams": [
                {"name": "a", "models": ["other"]},
                {"name": "b", "models": ["m"], "summary": {"language": "nl"}},
            ],
        }
        assert await language_for(api, body_of(api, summary="auto"), **tables) == "nl"
        body = {**body_of(api, summary="auto"), "model": "other"}
        assert await language_for(api, body, **tables) == "fr"

    @EACH_API
    async def test_it_holds_for_a_summary_that_the_settings_ask_for(self, api: str) -> None:
        body = body_of(api, summary_language="nl")
        assert await language_for(api, body, summary={"default": "auto"}) == "nl"


class TestLastUserMessage:
    @EACH_API
    @pytest.mark.parametrize(
        ("text", "language"),
        [
            ("ok", None),
            ([], None),
            ([{"role": "user", "content": GERMAN}, {"role": "user", "content": FRENCH}], "fr"),
            ([{"role": "user", "content": GERMAN}, {"role": "user", "content": "ok"}], None),
            ([{"role": "user", "content": GERMAN}, {"role": "assistant", "content": FRENCH}], "de"),
            ([{"role": "user", "content": GERMAN}, {"role": "user", "content": None}], "de"),
            ([{"role": "user", "content": [{"type": "text", "text": GERMAN}]}], "de"),
            ([{"role": "user", "content": [{"type": "input_image"}, {"text": GERMAN}]}], "de"),
            ([{"role": "user", "content": [{"text": 1}, None, "x", {"text": GERMAN}]}], "de"),
            ([{"role": "user", "content": [{"text": GERMAN}, *[{"text": "1"}] * 5000]}], "de"),
            ([{"role": "system", "content": FRENCH}, {"role": "user", "content": GERMAN}], "de"),
        ],
    )
    async def test_in_any_shape(self, api: str, text: Any, language: str | None) -> None:
        assert await language_for(api, body_of(api, text, summary="auto")) == language

    async def test_an_input_may_be_a_text(self) -> None:
        body = {**body_of("responses", summary="auto"), "input": GERMAN}
        assert await language_for("responses", body) == "de"

    async def test_an_output_of_a_tool_is_not_the_users(self) -> None:
        chat = [
            {"role": "user", "content": GERMAN},
            {"role": "assistant", "tool_calls": []},
            {"role": "tool", "tool_call_id": "c", "content": FRENCH},
        ]
        assert await language_for("chat", body_of("chat", chat, summary="auto")) == "de"
        items = [
            {"role": "user", "content": GERMAN},
            {"type": "function_call_output", "call_id": "c", "output": FRENCH},
        ]
        body = body_of("responses", items, summary="auto")
        assert await language_for("responses", body) == "de"

    async def test_it_may_stand_in_a_stored_response(self) -> None:
        scripted = Scripted()
        upstream = Upstream(answer("chat", stream=False))
        app = build_app("mounted", upstream, writer=scripted, upstreams=[{"api": "chat"}])
        first = await call(app, PATHS["responses"], body_of("responses", summary="auto"))
        message = {"role": "assistant", "content": FRENCH}
        body = body_of("responses", [message], summary="auto")
        body["previous_response_id"] = first.json["id"]
        assert (await call(app, PATHS["responses"], body)).status == 200
        assert [passage.language for passage in scripted.requests] == ["de", "de"]


class TestUpstream:
    @EACH_API
    @pytest.mark.parametrize("default", ["off", "auto"])
    @pytest.mark.parametrize("expose", ["auto", "summary"])
    @pytest.mark.parametrize("reasoning", [{}, {"summary": "auto"}, {"effort": "low"}])
    async def test_the_language_does_not_reach_upstream(
        self, api: str, default: str, expose: str, reasoning: dict[str, str]
    ) -> None:
        upstream = upstream_of(api)
        tables = {"summary": {"default": default}, "reasoning": {"expose": expose}}
        app = build_app("mounted", upstream, writer=Scripted(), **tables)
        body = body_of(api, **reasoning, summary_language="de")
        assert (await call(app, PATHS[api], body)).status == 200
        sent = upstream.requests[0].json
        assert b"summary_language" not in upstream.requests[0].body
        kept = {key: value for key, value in reasoning.items() if key == "effort"}
        if api == "responses":
            kept = reasoning
        assert sent.get("reasoning", {}) == kept
        assert {**sent, "reasoning": {}} == {**body, "reasoning": {}}

    @pytest.mark.parametrize(("client", "api"), [("chat", "responses"), ("responses", "chat")])
    async def test_the_field_is_not_translated(self, client: str, api: str) -> None:
        upstream, scripted = upstream_of(api), Scripted()
        app = build_app("mounted", upstream, writer=scripted, upstreams=[{"api": api}])
        body = body_of(client, summary="auto", summary_language="nl")
        reply = await call(app, PATHS[client], body)
        assert reply.status == 200
        assert b"summary_language" not in upstream.requests[0].body
        assert scripted.requests[0].language == "nl"
        assert reply.headers[HEADER] == "nl"

    async def test_the_header_does_not_reach_it(self) -> None:
        upstream, scripted = upstream_of("chat"), Scripted()
        app = build_app("sidecar", upstream, writer=scripted)
        body = body_of("chat", summary="auto")
        assert (await call(app, PATHS["chat"], body, {HEADER: "nl"})).status == 200
        assert HEADER not in upstream.requests[0].headers
        assert scripted.requests[0].language == "nl"

    @EACH_API
    async def test_without_a_summary_nothing_changes(self, api: str) -> None:
        """Not even for a value that would be refused with one."""
        whole = b"".join(answer(api, stream=False).steps)  # type: ignore[arg-type]
        for headers in ({}, {HEADER: "de"}, {HEADER: "german"}):
            upstream, scripted = upstream_of(api), Scripted()
            body = json.dumps(body_of(api, effort="low")).encode()
            app = build_app("mounted", upstream, writer=scripted)
            reply = await call(app, PATHS[api], body, headers)
            assert upstream.requests[0].body == body
            assert (reply.status, reply.data) == (200, whole)
            assert HEADER not in reply.headers
            assert not scripted.requests


class TestRefusals:
    @EACH_API
    @EACH_WAY
    @pytest.mark.parametrize("value", ["german", "", "de_DE", 7, True, ["de"], {"tag": "de"}])
    async def test_a_bad_language_is_a_400_that_names_the_field(
        self, api: str, value: Any, *, stream: bool
    ) -> None:
        upstream = upstream_of(api, stream=stream)
        app = build_app("mounted", upstream, writer=Scripted())
        body = body_of(api, stream=stream, summary="auto", summary_language=value)
        reply = await call(app, PATHS[api], body)
        error = reply.json["error"]
        assert (reply.status, error["param"]) == (400, "reasoning.summary_language")
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_value")
        assert "a language tag such as de" in error["message"]
        assert not upstream.requests

    @EACH_API
    @pytest.mark.parametrize("kind", ["extractive", "object"])
    async def test_a_bad_header_is_a_400_that_names_it(self, api: str, kind: str) -> None:
        upstream, writer = upstream_of(api), Scripted() if kind == "object" else None
        app = build_app("mounted", upstream, writer=writer)
        reply = await call(app, PATHS[api], body_of(api, summary="auto"), {HEADER: "de\xff"})
        assert (reply.status, reply.json["error"]["param"]) == (400, HEADER)
        assert not upstream.requests


class TestAnswer:
    @EACH_API
    @pytest.mark.parametrize(("text", "told"), [(GERMAN, "de"), ("ok", "reasoning")])
    async def test_it_tells_the_language(self, api: str, text: str, told: str) -> None:
        app = build_app("mounted", upstream_of(api), writer=Scripted())
        reply = await call(app, PATHS[api], body_of(api, text, summary="auto"))
        assert (reply.headers["x-abridge-summary"], reply.headers[HEADER]) == ("model", told)

    @EACH_API
    async def test_a_copy_keeps_the_reasonings_language_and_says_so(self, api: str) -> None:
        app = build_app("mounted", upstream_of(api))
        body = body_of(api, summary="auto", summary_language="de")
        reply = await call(app, PATHS[api], body)
        assert reply.status == 200
        assert reply.headers["x-abridge-summary"] == "extractive"
        assert reply.headers[HEADER] == "reasoning"

    @EACH_API
    async def test_so_does_an_extract_in_place_of_a_failed_summary(self, api: str) -> None:
        app = build_app(
            "mounted",
            upstream_of(api),
            writer=Scripted("", error=RuntimeError("broken")),
            summary={"on_failure": "extract"},
        )
        reply = await call(app, PATHS[api], body_of(api, summary="auto"), {HEADER: "de"})
        assert reply.headers["x-abridge-summary"] == "extractive"
        assert reply.headers[HEADER] == "reasoning"

    async def test_nothing_is_told_where_there_is_no_summary(self) -> None:
        upstream = Upstream(Answer.json(completion({"content": "Hello."})))
        app = build_app("mounted", upstream, writer=Scripted())
        reply = await call(app, PATHS["chat"], body_of("chat", summary="auto"))
        assert reply.headers["x-abridge-summary"] == "none"
        assert HEADER not in reply.headers

    async def test_no_message_is_read_for_a_copy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_: str) -> None:
            raise AssertionError

        monkeypatch.setattr("abridge.pipeline.steps.detect_language", fail)
        body = body_of("chat", summary="auto")
        assert (
            await call(build_app("mounted", upstream_of("chat")), PATHS["chat"], body)
        ).status == 200
        del body["reasoning"]
        app = build_app("mounted", upstream_of("chat"), writer=Scripted())
        assert (await call(app, PATHS["chat"], body)).status == 200
