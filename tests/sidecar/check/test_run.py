"""Test `abridge check`: its output, findings and exit code."""

from __future__ import annotations

import asyncio
import gzip
import logging
import sys
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.config.effective import effective_toml
from abridge.config.settings import Settings
from abridge.sidecar.check.reach import Finding
from abridge.sidecar.check.run import Check
from abridge.sidecar.check.summarizer import SAMPLE_PART
from abridge.sidecar.cli.commands import main
from abridge.sidecar.demo.model import scripted_model
from tests.apis.gemini import scripts as gemini
from tests.apis.interactions import scripts as interactions
from tests.end_to_end.translation.turn import answer
from tests.support.servers import serve, unused_address
from tests.support.sidecar import environment
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    frame,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.upstream import Answer, Upstream

MODELS = Answer.json({"object": "list", "data": [{"id": "thinker-1"}, {"id": "other"}]})


class Server:
    """A server that answers by the end of the path, or else with a 404."""

    def __init__(self, **answers: Answer) -> None:
        self.apps = {name: Upstream(answer) for name, answer in answers.items()}
        self.missing = Upstream(Answer.json({"error": {}}, 404))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        end = scope["path"].rpartition("/")[2]
        await self.apps.get(end, self.missing)(scope, receive, send)


async def findings_for(app: ASGIApp, settings: Any = None, **check: Any) -> list[Finding]:
    async with serve(app) as url:
        known = {**(settings or {})}
        if known.get("summarizer", {}).get("kind") == "model":
            known["summarizer"]["base_url"] = f"{url}/v1"
        if known.get("review", {}).get("kind") == "moderations":
            known["review"]["base_url"] = f"{url}/v1"
        return await findings_at(f"{url}/v1", known, **check)


async def findings_at(base_url: str, settings: Any = None, **check: Any) -> list[Finding]:
    known = {**(settings or {})}
    known["upstreams"] = [{"base_url": base_url, **known.pop("upstream", {})}]
    checking = Check(Settings.model_validate(known), **check)
    return [finding async for finding in checking.findings()]


class At:
    """A server that answers by the whole path."""

    def __init__(self, answers: dict[str, Answer], elsewhere: Answer) -> None:
        self._apps = {path: Upstream(answer) for path, answer in answers.items()}
        self._elsewhere = Upstream(elsewhere)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._apps.get(scope["path"], self._elsewhere)(scope, receive, send)


def thinking(models: Answer = MODELS, **frames: str) -> Server:
    """Return a server whose model thinks, on Chat Completions alone."""
    return Server(models=models, completions=Answer(chat_stream(THOUGHT, "9.9", **frames)))


def about(findings: list[Finding], subject: str) -> Finding:
    return next(finding for finding in findings if finding.subject.endswith(subject))


class TestEffective:
    def test_the_printed_settings_are_toml_that_loads_the_same(self) -> None:
        settings = Settings.model_validate(
            {
                "server": {"admin_port": 1},
                "summary": {"max_overhead": 0.5},
                "summarizer": {"extra_body": {"a": [1, {"b": None, "c": "d"}], "top k": 3.5}},
                "upstreams": [
                    {
                        "base_url": "http://u/v1",
                        "models": ["a*"],
                        "usage": {},
                        "rename": {"a*": "b/{}"},
                    }
                ],
            }
        )
        again = Settings.model_validate(tomllib.loads("\n".join(effective_toml(settings, {}))))
        assert again.summary == settings.summary
        assert again.upstreams == settings.upstreams
        assert again.server == settings.server

    def test_settings_other_than_the_default_are_marked(self) -> None:
        lines = list(effective_toml(Settings.model_validate({"summary": {"grace": 1}}), {}))
        assert [line for line in lines if "#" in line] == ["grace = 1.0  # not the default"]

    def test_secrets_are_named_and_never_shown(self) -> None:
        settings = Settings.model_validate(
            {
                "summarizer": {
                    "extra_body": {
                        "api_key": "geheim",
                        "max_tokens": 1,
                        "deep": {"token": "geheim", "keys": ["geheim"]},
                        "from": "https://anna:geheim@h/",
                    }
                },
                "upstreams": [
                    {"name": "a", "base_url": "http://u/v1", "api_key_env": "KEY_A"},
                    {"name": "b", "base_url": "http://u/v1", "api_key_env": "KEY_B"},
                ],
            }
        )
        lines = list(effective_toml(settings, {"KEY_A": "geheim"}))
        assert 'api_key_env = "KEY_A"  # is set' in lines
        assert '"max_tokens" = 1' in "\n".join(lines)
        assert 'api_key_env = "KEY_B"  # is NOT set' in lines
        assert "geheim" not in "\n".join(lines)

    @pytest.mark.parametrize(
        ("address", "masked"),
        [
            ("redis://anna:geheim@h:1/0", "redis://***@h:1/0"),
            ("redis://:ge/geheim@h", "redis://***@h"),
            ("redis://h?password=geheim&ssl_password=geheim", None),
            ("unix://:geheim@/run/redis.sock?db=1", "unix://***@/run/redis.sock?db=1"),
            ("redis://:ganz geheim@h", "redis://***@h"),
            ("redis://h?pass%77ord=geheim&db=1", "redis://h?pass%77ord=***&db=1"),
            ("unix:///a?password=so geheim", "unix:///a?password=***"),
            ("rediss://h:1/0?ssl_cert_reqs=none", "rediss://h:1/0?ssl_cert_reqs=none"),
        ],
    )
    def test_the_password_of_a_store_is_masked(self, address: str, masked: str | None) -> None:
        history = {"store": address, "seal_keys_env": "KEYS"}
        expected = "\n".join(effective_toml(Settings.model_validate({"history": history}), {}))
        masked = masked or "redis://h?password=***&ssl_password=***"
        assert f'store = "{masked}"' in expected
        assert "geheim" not in expected


class TestReaching:
    @pytest.mark.parametrize(
        ("keys", "store", "expected"),
        [
            (None, "memory", "history.seal_keys_env: neither the variable KEYS"),
            ("k:short", "memory", "history.seal_keys_env: key 1 is not valid base64"),
            (f"k:{'A' * 43}=", "redis://h:geheim/0", "history.store: must be an address"),
            (f"k:{'A' * 43}=", "redis://nobody:1/0", "history.store does not answer"),
            (f"k:{'A' * 43}=", "memory", ""),
        ],
    )
    async def test_settings_that_stop_the_start_are_faults(
        self, keys: str | None, store: str, expected: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if keys is not None:
            monkeypatch.setenv("KEYS", keys)
        history = {"seal_keys_env": "KEYS", "store": store}
        findings = await findings_for(Server(models=MODELS), {"history": history})
        faults = [finding.text for finding in findings if finding.grade == "fault"]
        assert len(faults) == bool(expected)
        assert "".join(faults).startswith(expected)
        assert "geheim" not in str(findings)

    @pytest.mark.parametrize(
        ("address", "expected"),
        [
            (None, "ledger.url_env: neither the variable LEDGER, which it names, nor"),
            ("redis://h:geheim/0", "ledger.url_env: must be an address such as redis://"),
            (
                "postgresql://a:ge/heim@h/db",
                "ledger.url_env: must be an address such as postgresql:",
            ),
            ("mysql://a:geheim@h/db", "ledger.url_env: must be an address"),
            ("postgresql://a:geheim@h/db", ""),
        ],
    )
    async def test_a_ledger_without_an_address_is_a_fault(
        self, address: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if address is not None:
            monkeypatch.setenv("LEDGER", address)
        findings = await findings_for(Server(models=MODELS), {"ledger": {"url_env": "LEDGER"}})
        faults = [finding.text for finding in findings if finding.grade == "fault"]
        assert len(faults) == bool(expected)
        assert "".join(faults).startswith(expected)
        assert "heim" not in str(findings)

    @pytest.mark.parametrize(
        ("content", "grade", "text"),
        [
            ("", "note", "server.keys_file: {path} has no keys yet"),
            ("{}", "fault", "server.keys_file: {path}: line 1: name: is missing"),
        ],
    )
    async def test_what_is_wrong_with_the_file_of_keys_is_said(
        self, content: str, grade: str, text: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "keys"
        path.touch(0o600)
        path.write_text(content)
        settings = {"server": {"keys_file": str(path)}, "upstream": {"credential": "none"}}
        findings = await findings_for(Server(models=MODELS), settings)
        (said,) = [each.text for each in findings if each.grade == grade]
        assert said.startswith(text.format(path=path))

    async def test_a_missing_extra_is_a_fault(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "abridge.observability.tracing.export", raising=False)
        monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
        findings = await findings_for(Server(models=MODELS), {"tracing": {"enabled": True}})
        faults = [finding.text for finding in findings if finding.grade == "fault"]
        assert len(faults) == 1
        assert faults[0].startswith("tracing.enabled: needs the package opentelemetry")

    async def test_a_server_that_lists_models_is_ok(self) -> None:
        findings = await findings_for(Server(models=MODELS))
        upstream = about(findings, "default")
        assert upstream.grade == "ok"
        assert "thinker-1, other" in upstream.text
        assert about(findings, "summarizer").grade == "ok"

    async def test_the_names_that_clients_say_are_listed(self) -> None:
        rename = {"say-*": "up-{}", "mine": "other", "yours": "none"}
        findings = await findings_for(Server(models=MODELS), {"upstream": {"rename": rename}})
        texts = [finding.text for finding in findings if "upstream" in finding.subject]
        assert "say-* = up-{}, mine = other, yours = none" in texts[1]
        assert texts[2] == "rename: its list of models does not have none"
        assert [finding.grade for finding in findings[1:3]] == ["ok", "note"]

    @pytest.mark.parametrize(("globs", "subject"), [("*", "upstream"), ("claude-*", "settings")])
    async def test_a_model_with_a_name_of_claudes_is_noted_once(
        self, globs: str, subject: str
    ) -> None:
        listed = Answer.json({"data": [{"id": "thinker-1"}, {"id": "claude-sonnet-4-5"}]})
        findings = await findings_for(Server(models=listed), {"upstream": {"models": [globs]}})
        (note,) = [each for each in findings if "is taken for Claude" in each.text]
        assert (note.subject.partition(" ")[0], note.grade) == (subject, "note")

    async def test_an_unreachable_server_is_a_fault(self) -> None:
        findings = await findings_at(f"{unused_address()}/v1", probing=True)
        assert about(findings, "default").grade == "fault"
        assert about(findings, "default").text.endswith("cannot be reached: Connection refused")

    @pytest.mark.parametrize(
        ("status", "keyed", "grade", "words"),
        [
            (200, False, "note", "with no list of models: is it a model server's"),
            (401, False, "note", "requires a key (401): --key-env can name one"),
            (401, True, "fault", "refuses the key (401), whose variable upstreams[].api_key_env"),
            (403, True, "fault", "refuses the key"),
            (404, False, "ok", "lists no models (404)"),
            (503, False, "fault", "status 503"),
        ],
    )
    async def test_a_missing_model_list_is_graded_by_status(
        self, status: int, grade: str, words: str, monkeypatch: pytest.MonkeyPatch, *, keyed: bool
    ) -> None:
        monkeypatch.setenv("A_KEY", "geheim")
        server = Server(models=Answer.json({}, status))
        upstream = {"api_key_env": "A_KEY"} if keyed else {}
        finding = about(await findings_for(server, {"upstream": upstream}), "default")
        assert finding.grade == grade
        assert words in finding.text
        for received in server.apps["models"].requests:
            assert received.header("authorization") == ("Bearer geheim" if keyed else None)

    @pytest.mark.parametrize(
        ("path", "listed_at", "found"),
        [
            ("", "/v1", "/v1"),
            ("/api", "/v1", "/v1"),
            ("/openai", "/openai/v1", "/openai/v1"),
            ("/v1", "", ""),
            ("", "/v1beta", "/v1beta"),
            ("/v1", "/v1", None),
            ("", "/v2", None),
        ],
    )
    @pytest.mark.parametrize("elsewhere", [Answer.json({}, 404), Answer.json({"error": "None"})])
    async def test_an_address_beside_the_api_is_a_fault_that_names_the_right_one(
        self, path: str, listed_at: str, found: str | None, elsewhere: Answer
    ) -> None:
        async with serve(At({f"{listed_at}/models": MODELS}, elsewhere)) as url:
            findings = await findings_at(url + path)
        upstream = about(findings, "upstream default")
        assert (upstream.grade == "fault") is (found is not None)
        if found is not None:
            assert upstream.text == (
                f"{url}{path} answers, but has no API there; set base_url to {url}{found}, which "
                "has one"
            )

    async def test_without_a_list_of_models_it_is_found_by_a_probe(self) -> None:
        chat = Answer(chat_stream(THOUGHT))
        async with serve(At({"/v1/chat/completions": chat}, Answer.json({}, 404))) as url:
            findings = await findings_at(url, probing=True, model="m")
        faults = [each.text for each in findings if each.grade == "fault"]
        advice = f"set base_url to {url}/v1, which has one"
        assert f"{url} answers, but has no API there; {advice}" in faults

    @pytest.mark.parametrize("path", ["", "/v1", "/llm/v1"])
    async def test_an_upstream_that_is_an_abridge_is_told(self, path: str) -> None:
        health = Answer([b"ok\n"], headers={"content-type": "text/plain"})
        at = {f"{path}/models": MODELS, f"{path.removesuffix('/v1')}/abridge/healthz": health}
        async with serve(At(at, Answer.json({}, 404))) as url:
            findings = await findings_at(url + path)
        assert [each.grade for each in findings if "is Abridge, too" in each.text] == ["note"]

    async def test_every_missing_key_is_a_fault(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One that nothing would read, too: `abridge serve` would not start."""
        tables = {
            "upstream": {"api_key_env": "NOT_SET"},
            "summarizer": {"api_key_env": "NOT_SET"},
            "review": {"api_key_env": "NOT_SET"},
        }
        findings = await findings_for(Server(models=MODELS), {**tables})
        assert [each.text.partition(":")[0] for each in findings if each.grade == "fault"] == [
            "upstreams[0].api_key_env",
            "summarizer.api_key_env",
            "review.api_key_env",
        ]
        monkeypatch.setenv("NOT_SET", "sk-1")
        findings = await findings_for(Server(models=MODELS), {**tables})
        assert not [each for each in findings if each.grade == "fault"]

    @pytest.mark.parametrize(("model", "grade"), [("thinker-1", "ok"), ("absent", "note")])
    async def test_whether_the_summarizer_is_listed(self, model: str, grade: str) -> None:
        settings = {"summarizer": {"kind": "model", "model": model}}
        findings = await findings_for(Server(models=MODELS), settings)
        assert about(findings, "summarizer").grade == grade

    async def test_a_summarizer_on_messages_is_asked_as_anthropic_is(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SUMMARIZER_KEY", "sk-small")
        settings = {
            "summarizer": {
                "kind": "model",
                "model": "thinker-1",
                "api": "messages",
                "api_key_env": "SUMMARIZER_KEY",
            }
        }
        server = Server(models=MODELS, messages=answer("messages", stream=True))
        findings = await findings_for(server, settings, probing=True)
        assert about(findings, "summarizer").grade == "ok"
        for asked in server.apps.values():
            (request, *_) = [each for each in asked.requests if each.header("x-api-key")]
            assert request.header("x-api-key") == "sk-small"
            assert request.header("anthropic-version") == "2023-06-01"
            assert request.header("authorization") is None


class TestProbing:
    async def test_an_upstream_with_both_apis(self) -> None:
        findings = await findings_for(scripted_model(0.0), probing=True)
        grades = [finding.grade for finding in findings]
        assert grades == ["ok", "ok", "ok", "note", "ok", "ok", "ok"]
        assert about(findings, "Messages").text == "is not available (404)"
        chat = about(findings, "Chat Completions").text
        assert chat.startswith("streams; reasoning in a separate field, reasoning_content; first")
        assert "reasoning in separate items" in about(findings, "Responses").text

    @pytest.mark.parametrize("api", ["same", "auto", "chat"])
    async def test_auto_is_suggested_where_clients_have_no_api(self, api: str) -> None:
        server = thinking()
        findings = await findings_for(server, {"upstream": {"api": api}}, probing=True)
        said = {finding.text for finding in findings}
        suggestion = 'api = "auto" would also serve clients of Responses and Messages'
        served = "clients of Responses and Messages are served through an API that it has"
        assert (suggestion in said, served in said) == (api == "same", api == "auto")
        assert not [finding for finding in findings if 'api = "chat"' in finding.text]

    @pytest.mark.parametrize("model", [None, "say-1"])
    async def test_a_model_is_probed_by_upstreams_name(self, model: str | None) -> None:
        server = thinking()
        upstream = {"rename": {"say-*": "thinker-{}"}, "models": ["say-*"], "api": "chat"}
        await findings_for(server, {"upstream": upstream}, probing=True, model=model)
        asked = server.apps["completions"].requests
        assert {request.json["model"] for request in asked} == {"thinker-1"}

    async def test_an_upstream_with_one_api(self) -> None:
        server = thinking(field="reasoning")
        findings = await findings_for(server, {"upstream": {"models": ["th*"]}}, probing=True)
        assert (
            "reasoning in a separate field, reasoning;" in about(findings, "Chat Completions").text
        )
        assert about(findings, "Responses") == Finding(
            "upstream default, Responses", "is not available (404)", "note"
        )
        assert not [finding for finding in findings if finding.grade == "fault"]
        assert server.apps["completions"].requests[0].json["model"] == "thinker-1"

    async def test_an_upstream_with_the_messages_api(self) -> None:
        server = Server(models=MODELS, messages=answer("messages", stream=True))
        upstream = {"api": "messages", "profile": "anthropic", "api_key_env": "THEIR_KEY"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("THEIR_KEY", "sk-theirs")
            kind = {"kind": "upstream"}
            findings = await findings_for(
                server, {"upstream": upstream, "summarizer": kind}, probing=True
            )
        expected = about(findings, "Messages")
        assert (expected.grade, "reasoning in" in expected.text) == ("ok", True)
        assert not [finding for finding in findings if "Completions" in finding.subject]
        assert about(findings, "summarizer").grade == "ok", "asked over the bridge"
        (received, *_) = server.apps["messages"].requests
        assert received.header("x-api-key") == "sk-theirs"
        assert received.header("authorization") is None
        assert received.header("anthropic-version")

    async def test_an_upstream_with_geminis_api(self) -> None:
        listed = Answer.json({"models": [{"name": "models/gemini-3-flash"}]})
        parts = [gemini.thought(THOUGHT), gemini.text("9.9")]
        endpoint = "gemini-3-flash:streamGenerateContent"
        server = Server(models=listed, **{endpoint: Answer(gemini.stream(parts))})
        upstream = {"api": "gemini", "profile": "gemini-native"}
        findings = await findings_for(server, {"upstream": upstream}, probing=True)
        probed = about(findings, "Gemini")
        assert (probed.grade, "reasoning in" in probed.text) == ("ok", True)
        (received,) = server.apps[endpoint].requests
        assert (received.path, received.query) == (f"/v1/models/{endpoint}", b"alt=sse")
        assert not {"model", "stream"} & received.json.keys()

    async def test_an_upstream_with_geminis_interactions(self) -> None:
        listed = Answer.json({"models": [{"name": "models/gemini-3-flash"}]})
        steps = [interactions.thought(THOUGHT), interactions.output("9.9")]
        server = Server(models=listed, interactions=Answer(interactions.stream(steps)))
        upstream = {"api": "interactions", "profile": "gemini-native"}
        findings = await findings_for(server, {"upstream": upstream}, probing=True)
        probed = about(findings, "Interactions")
        assert (probed.grade, "reasoning in" in probed.text) == ("ok", True)
        (received,) = server.apps["interactions"].requests
        assert (received.json["model"], received.json["store"]) == ("gemini-3-flash", False)

    @pytest.mark.parametrize("profile", ["auto", "transformers"])
    async def test_reasoning_inside_messages_is_told_apart(self, profile: str) -> None:
        answer = Answer(responses_stream([message_item(0, f"<think>{THOUGHT}</think>9.9")]))
        server = Server(models=MODELS, responses=answer)
        upstream = {"profile": profile, "api": "responses"}
        findings = await findings_for(server, {"upstream": upstream}, probing=True)
        text = about(findings, "Responses").text
        assert text.startswith("streams; reasoning in tags inside its messages; first word after")
        (request,) = server.apps["responses"].requests
        assert ("store" in request.json) == (profile == "auto"), "rejected fields are not sent"

    @pytest.mark.parametrize(
        "text", [f"<think>{THOUGHT}", f"{THOUGHT}</think>9.9"], ids=["cut off", "never opened"]
    )
    async def test_reasoning_inside_messages_without_a_whole_block_is_told(self, text: str) -> None:
        server = Server(models=MODELS, responses=Answer(responses_stream([message_item(0, text)])))
        findings = await findings_for(server, {"upstream": {"api": "responses"}}, probing=True)
        assert "reasoning in tags inside its messages" in about(findings, "Responses").text

    @pytest.mark.parametrize(
        ("items", "words"),
        [
            ([message_item(0, f"<think>{THOUGHT}</think>9.9")], "is inside its messages"),
            ([message_item(0, "9.9")], "does not show"),
        ],
    )
    async def test_where_chat_serves_clients_better_that_is_said(
        self, items: list[Any], words: str
    ) -> None:
        chat = Answer(chat_stream(THOUGHT, "9.9"))
        server = Server(models=MODELS, completions=chat, responses=Answer(responses_stream(items)))
        findings = await findings_for(server, probing=True)
        (finding,) = [finding for finding in findings if 'api = "chat"' in finding.text]
        assert finding.grade == "note"
        assert words in finding.text

    async def test_of_an_empty_answer_nothing_is_concluded(self) -> None:
        chat = Answer(chat_stream(THOUGHT, "9.9"))
        server = Server(models=MODELS, completions=chat, responses=Answer(responses_stream([])))
        findings = await findings_for(server, probing=True)
        assert not [finding for finding in findings if 'api = "chat"' in finding.text]
        assert "its answer was empty" in about(findings, "Responses").text
        assert "did not think" not in about(findings, "Responses").text

    async def test_where_both_serve_alike_nothing_is_said(self) -> None:
        findings = await findings_for(scripted_model(0.0), probing=True)
        assert not [finding for finding in findings if 'api = "chat"' in finding.text]

    async def test_a_compressed_answer_is_read(self) -> None:
        packed = gzip.compress(b"".join(chat_stream(THOUGHT, "9.9")))
        headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
        listing = gzip.compress(b'{"data": [{"id": "thinker-1"}]}')
        server = Server(
            models=Answer([listing], headers={"content-encoding": "gzip"}),
            completions=Answer([packed[:50], packed[50:]], headers=headers),
        )
        findings = await findings_for(server, {"upstream": {"models": ["th*"]}}, probing=True)
        assert "models: thinker-1" in findings[0].text
        assert (
            "reasoning in a separate field, reasoning_content"
            in about(findings, "Chat Completions").text
        )

    @pytest.mark.parametrize(
        ("encoding", "words"),
        [
            ("gzip", "does not match its headers"),
            ("br", "is encoded, although that was not requested: br"),
        ],
    )
    async def test_an_answer_that_cannot_be_decoded_is_a_fault(
        self, encoding: str, words: str
    ) -> None:
        odd = Answer([b"odd"], headers={"content-encoding": encoding})
        finding = (await findings_for(Server(models=odd)))[0]
        assert finding.grade == "fault"
        assert words in finding.text

    async def test_auto_is_not_suggested_where_it_would_not_help(self) -> None:
        server = Server(models=MODELS, messages=answer("messages", stream=True))
        findings = await findings_for(server, probing=True)
        assert about(findings, "Messages").grade == "ok"
        assert not [finding for finding in findings if 'api = "auto"' in finding.text]

    async def test_the_upstreams_effort_is_used(self) -> None:
        server = thinking()
        await findings_for(server, {"upstream": {"effort": "high"}}, probing=True)
        (request, *_) = server.apps["completions"].requests
        assert request.json["reasoning_effort"] == "high"

    @pytest.mark.parametrize("status", [401, 500])
    async def test_a_named_model_is_probed_though_the_list_fails(
        self, status: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CLIENT_KEY", "k")
        server = thinking(Answer.json({}, status))
        findings = await findings_for(server, probing=True, model="m", key_env="CLIENT_KEY")
        assert findings[0].grade == "note"
        assert about(findings, "Chat Completions").grade == "ok"
        findings = await findings_for(server, probing=True, key_env="CLIENT_KEY")
        assert findings[0].grade == "fault"

    async def test_where_the_list_fails_the_settings_name_a_model_to_probe(self) -> None:
        server = thinking(Answer.json({}, 500))
        upstream = {"models": ["thinker-1"]}
        findings = await findings_for(server, {"upstream": upstream}, probing=True)
        assert findings[0].grade == "note"
        assert about(findings, "Chat Completions").grade == "ok"
        assert {one.json["model"] for one in server.apps["completions"].requests} == {"thinker-1"}

    async def test_where_the_list_fails_and_no_model_is_known_the_flag_is_named(self) -> None:
        findings = await findings_for(Server(models=Answer.json({}, 500)), probing=True)
        assert [finding.grade for finding in findings[:2]] == ["fault", "fault"]
        assert findings[1].text == "no model is known; set one with --model"

    async def test_no_api_that_streams_is_a_fault(self) -> None:
        findings = await findings_for(Server(models=MODELS), probing=True)
        assert "no API streams" in findings[-3].text
        assert findings[-3].grade == "fault"

    async def test_no_model_to_probe(self) -> None:
        findings = await findings_for(Server(), probing=True)
        assert about(findings, "default").grade == "ok"
        assert "--model" in findings[1].text
        assert findings[1].grade == "fault"

    @pytest.mark.parametrize(
        ("answer", "grade", "words"),
        [
            (Answer.json({}, 500), "fault", "status 500"),
            (Answer([b"{"], 500, headers={"content-encoding": "br"}), "fault", "status 500"),
            (Answer([frame({"error": {"message": "x"}})]), "fault", "unreadable"),
            (Answer([b"data: {"]), "fault", "unreadable"),
            (Answer(chat_stream("", text="9.9")), "ok", "no reasoning seen"),
        ],
    )
    async def test_each_response_has_its_grade(
        self, answer: Answer, grade: str, words: str
    ) -> None:
        findings = await findings_for(
            Server(completions=answer), {"upstream": {"models": ["m"]}}, probing=True
        )
        finding = about(findings, "Chat Completions")
        assert finding.grade == grade
        assert words in finding.text

    @pytest.mark.parametrize(
        ("profile", "delta", "words"),
        [
            ("auto", {"content": "9.9"}, "no reasoning seen: the model did not think"),
            ("auto", {"content": ""}, "its answer was empty"),
            ("auto", {"content": "<think>Hm.</think>9.9"}, "reasoning in tags inside its messages"),
            ("auto", {"reasoning": "Hm."}, "reasoning in a separate field, reasoning;"),
            (
                "auto",
                {"thoughts": "Hm."},
                "no reasoning seen, but fields that Abridge does not know: thoughts",
            ),
        ],
    )
    async def test_it_says_where_the_reasoning_is(
        self, profile: str, delta: dict[str, str], words: str
    ) -> None:
        said = Answer([frame({"choices": [{"index": 0, "delta": delta}]}), b"data: [DONE]\n\n"])
        upstream = {"models": ["m"], "profile": profile, "api": "chat"}
        findings = await findings_for(
            Server(completions=said), {"upstream": upstream}, probing=True
        )
        assert words in about(findings, "Chat Completions").text

    async def test_what_a_server_says_of_a_refusal_is_told_without_the_key(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("A_KEY", "geheim")
        error = {"error": {"message": "max_tokens\x1b is too\nlarge for geheim"}}
        missing = Answer.json({"error": {"message": "There is no model m."}}, 404)
        server = Server(completions=Answer.json(error, 400), responses=missing)
        upstream = {"models": ["m"], "api_key_env": "A_KEY"}
        findings = await findings_for(server, {"upstream": upstream}, probing=True)
        assert about(findings, "Chat Completions").text == (
            "answers with status 400: max_tokens is too large for ***"
        )
        assert about(findings, "Responses").text == "is not available (404): There is no model m."

    @pytest.mark.parametrize(
        ("owner", "profile", "is_told"),
        [
            ("llamacpp", "auto", True),
            ("vllm", "auto", True),
            ("llamacpp", "vllm", False),
            ("openai", "auto", False),
        ],
    )
    async def test_a_server_that_says_what_it_is_should_have_its_profile(
        self, owner: str, profile: str, *, is_told: bool
    ) -> None:
        models = Answer.json({"data": [{"id": "thinker-1", "owned_by": owner}]})
        upstream = {"profile": profile}
        findings = await findings_for(Server(models=models), {"upstream": upstream})
        told = [each for each in findings if f'set profile = "{owner}"' in each.text]
        assert [each.grade for each in told] == ["note"] * is_told

    async def test_an_upstream_that_does_not_stream(self) -> None:
        whole = response([reasoning_item(0, THOUGHT), message_item(1, "9.9")])
        findings = await findings_for(
            Server(responses=Answer.json(whole)), probing=True, model="any", key_env=None
        )
        finding = about(findings, "Responses")
        assert finding.grade == "note"
        assert finding.text.startswith("answers, but does not stream; reasoning in separate items")

    async def test_each_api_is_asked_the_same_and_for_no_state(self) -> None:
        answer = Answer(responses_stream([message_item(0, "9.9")]))
        server = Server(models=MODELS, completions=Answer.json({}, 404), responses=answer)
        await findings_for(server, probing=True)
        (chat,) = server.apps["completions"].requests
        (responses,) = server.apps["responses"].requests
        assert chat.json["max_tokens"] == responses.json["max_output_tokens"]
        assert chat.json["stream"] is responses.json["stream"] is True
        assert "include" not in responses.json  # models without reasoning refuse that

    async def test_a_clients_key_is_used_for_upstreams_without_one(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CLIENT_KEY", "geheim")
        server = Server(models=MODELS, completions=Answer(chat_stream("", text="9.9")))
        settings = {"summarizer": {"kind": "upstream"}}
        findings = await findings_for(server, settings, probing=True, key_env="CLIENT_KEY")
        assert findings[-1].grade == "ok"
        received = [*server.apps["models"].requests, *server.apps["completions"].requests]
        assert {one.header("authorization") for one in received} == {"Bearer geheim"}
        assert not any("geheim" in str(finding) for finding in findings)


class TestTheSummarizer:
    SETTINGS: ClassVar[dict[str, Any]] = {
        "summarizer": {"kind": "model", "model": "small", "timeout": 0.3}
    }

    async def finding(self, answer: Answer, **summary: float) -> Finding:
        settings = {
            **self.SETTINGS,
            "summary": summary,
            "limits": {"headers": 0.3},
            "upstream": {"models": ["m"]},
        }
        return (await findings_for(Server(completions=answer), settings, probing=True))[-1]

    async def test_a_part_in_time_is_ok(self) -> None:
        finding = await self.finding(Answer(chat_stream("", text="I compare the tenths.")))
        assert finding.grade == "ok"
        assert "11 tokens in, 70 out" in finding.text

    async def test_no_part_in_time_is_a_fault(self) -> None:
        finding = await self.finding(Answer([asyncio.Event()]))
        assert finding.grade == "fault"
        assert "(timeout)" in finding.text

    async def test_a_part_too_late_for_an_answer_is_a_fault(self) -> None:
        frames = chat_stream("", text="I compare the tenths.")
        finding = await self.finding(Answer([0.05, *frames]), first_token=0.01)
        assert finding.grade == "fault"
        assert finding.text.endswith("an answer waits only 0.01 s for it, summary.first_token")

    async def test_what_its_server_says_of_a_refusal_is_told(self) -> None:
        refusal = Answer.json({"error": {"message": "temperature is not supported"}}, 400)
        finding = await self.finding(refusal)
        assert finding.grade == "fault"
        assert finding.text.endswith("(upstream_error): temperature is not supported")

    async def test_an_empty_part_is_a_fault(self) -> None:
        finding = await self.finding(Answer(chat_stream("", text="")))
        assert finding.grade == "fault"
        assert "(empty)" in finding.text

    async def test_a_failure_is_a_finding_and_no_line_of_the_log(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        assert (await self.finding(Answer.json({}, 500))).grade == "fault"
        assert not caplog.records
        logging.getLogger("abridge").warning("what else there is to say")
        assert caplog.messages == ["what else there is to say"]


class TestTheReview:
    async def findings(
        self, answer: Answer | None = None, *, probing: bool = False, **review: Any
    ) -> list[Finding]:
        """Return what is found about the review, by a server that answers so."""
        self.server = Server(models=MODELS, **({} if answer is None else {"moderations": answer}))
        settings = {
            "review": {"kind": "moderations", "timeout": 0.3, **review},
            "upstream": {"models": ["m"]},
        }
        found = await findings_for(self.server, settings, probing=probing)
        return [finding for finding in found if finding.subject == "review"]

    async def test_without_one_nothing_is_said_of_it(self) -> None:
        findings = await findings_for(Server(models=MODELS), probing=True)
        assert not [finding for finding in findings if finding.subject == "review"]

    async def test_its_server_is_reached(self) -> None:
        (finding,) = await self.findings()
        assert (finding.grade, "answers; models: thinker-1" in finding.text) == ("ok", True)
        assert len(self.server.apps["models"].requests) == 2

    async def test_a_missing_key_is_a_fault(self) -> None:
        findings = await findings_for(
            Server(models=MODELS), {"review": {"kind": "moderations", "api_key_env": "NOT_SET"}}
        )
        assert findings[-1].grade == "fault"
        assert findings[-1].text.startswith("review.api_key_env: neither the variable NOT_SET")

    async def test_a_verdict_is_ok(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GUARD_KEY", "geheim")
        passed = Answer.json({"results": [{"flagged": False, "categories": {}}]})
        _, finding = await self.findings(
            passed, probing=True, model="omni", api_key_env="GUARD_KEY"
        )
        assert finding.grade == "ok"
        assert finding.text.startswith("passes a harmless part after ")
        (request,) = self.server.apps["moderations"].requests
        assert request.json == {"model": "omni", "input": SAMPLE_PART}
        assert request.header("authorization") == "Bearer geheim"

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            (Answer.json({"results": [{"flagged": True}]}), "flags a harmless part"),
            (Answer.json({}, 401), "answered with status 401"),
            (Answer.json({}), "answered without a verdict"),
            (Answer([asyncio.Event()]), "no verdict within review.timeout, 0.3 s"),
        ],
    )
    async def test_anything_else_is_a_fault(self, answer: Answer, words: str) -> None:
        _, finding = await self.findings(answer, probing=True)
        assert finding.grade == "fault"
        assert words in finding.text

    async def test_a_part_that_is_reviewed_may_begin_as_late_as_the_grace(self) -> None:
        frames = chat_stream("", text="I compare the tenths.")
        server = Server(completions=Answer([0.05, *frames]))
        findings = await findings_for(
            server,
            {
                "summarizer": {"kind": "model", "model": "small"},
                "summary": {"first_token": 0.01},
                "review": {"kind": "moderations"},
                "upstream": {"models": ["m"]},
            },
            probing=True,
        )
        (*_, finding) = (each for each in findings if each.subject == "summarizer")
        assert finding.grade == "ok"


async def run_check(*words: str) -> tuple[int | None, bytes]:
    """Return the exit code and the output of the command."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "abridge", "check", *words),
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await process.communicate()
    return process.returncode, output


@pytest.mark.parametrize("probing", [("--probe",), pytest.param((), marks=pytest.mark.repeat)])
async def test_the_command_exits_without_a_fault(probing: tuple[str, ...]) -> None:
    async with serve(scripted_model(0.0)) as url:
        returned, output = await run_check("--upstream", f"{url}/v1", *probing)
    assert returned == 0
    assert b'base_url = "' in output
    assert output.count(b"\nok    ") == (6 if probing else 2)


def test_a_mistake_of_the_command_line_is_exit_code_2() -> None:
    words = ("check", "--upstream", "http://127.0.0.1:9/v1", "--model")
    assert CliRunner().invoke(main, words).exit_code == 2


def test_a_fault_is_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "abridge.toml"
    file.write_text("[server]\nprot = 1\n")
    ran = CliRunner().invoke(main, ("check", "--config", str(file)))
    assert ran.exit_code == 1
    assert ran.stdout == (
        f"fault settings: {file}:2: server.prot: there is no such setting; did you mean "
        "server.port?\n"
    )
