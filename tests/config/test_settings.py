"""Test settings: their layers, validation and one-line errors at the start."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from abridge.config.exposure import open_paths
from abridge.config.loading import load_settings, read_secret
from abridge.config.review import ReviewSettings
from abridge.config.settings import Settings
from abridge.config.tables import PromptSettings, SummarySettings
from abridge.config.upstreams import UpstreamSettings
from abridge.errors import SettingsError
from tests.docs.pages import texts_of

U = "http://u.test/v1"


def refused(environ: dict[str, str] | None = None, **tables: Any) -> str:
    """Return the error line for these settings."""
    with pytest.raises(SettingsError) as caught:
        load_settings(environ=environ or {}, flags=tables)
    line = str(caught.value)
    assert "\n" not in line
    return line


def test_the_defaults_need_nothing() -> None:
    settings = load_settings(environ={})
    assert settings.summary.grace == 5.0
    assert settings.limits.held == 256 * 1024
    assert settings.summarizer.kind == "extractive"
    assert settings.routes[0].upstream.name == "default"


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "abridge.toml"
    file.write_text("[summary]\ngrace = 1\nfirst_token = 1\npart_chars = 100\n")
    environ = {"ABRIDGE_SUMMARY__GRACE": "2", "ABRIDGE_SUMMARY__FIRST_TOKEN": "2"}
    summary = load_settings(file, environ, {"summary": {"grace": 3}}).summary
    assert (summary.grace, summary.first_token, summary.part_chars) == (3, 2, 100)


def test_lists_and_tables_are_json_in_the_environment() -> None:
    environ = {
        "ABRIDGE_UPSTREAMS": '[{"base_url": "http://a/v1"}]',
        "ABRIDGE_SUMMARY__ALLOW": '["concise"]',
        "ABRIDGE_SUMMARIZER__EXTRA_BODY": '{"seed": 1}',
    }
    settings = load_settings(environ=environ)
    assert settings.upstreams[0].base_url == "http://a/v1"
    assert settings.summary.allow == ("concise",)
    assert settings.summarizer.extra_body == {"seed": 1}


def test_paths_are_opened_beside_each_upstreams_own_exposure() -> None:
    upstreams = [{"base_url": "http://a/openai/v1/", "reasoning": {"expose": "none"}}]
    environ = {"ABRIDGE_REASONING__OPEN_PATHS": '["/users/*"]'}
    settings = load_settings(environ=environ, flags={"upstreams": upstreams})
    assert settings.routes[0].reasoning.expose == "none"
    paths = open_paths(settings)
    assert paths.globs == ("/users/*",)
    assert paths.bases == {"", "/v1", "/openai/v1"}


def test_a_language_tag_is_spelled_as_usual() -> None:
    environ = {"ABRIDGE_SUMMARY__LANGUAGE": "pt-br"}
    assert load_settings(environ=environ).summary.language == "pt-BR"
    upstreams = [{"summary": {"language": "ZH-hant"}}]
    assert load_settings(flags={"upstreams": upstreams}).routes[0].summary.language == "zh-Hant"


def test_variables_set_by_kubernetes_are_ignored() -> None:
    environ = {"ABRIDGE_PORT": "tcp://10.0.0.1:8400", "ABRIDGE_SERVICE_HOST": "10.0.0.1"}
    assert load_settings(environ=environ) == load_settings(environ={})


@pytest.mark.parametrize(
    ("tables", "line"),
    [
        (
            {"upstreams": [{"summary": {"language": "de_DE"}}]},
            "upstreams[0].summary.language: got 'de_DE'; must be auto, reasoning, or",
        ),
        ({"limits": {"bodies": "1MiB"}}, "limits: bodies must be at least as large as body"),
        ({"upstreams": [{"base_url": "http://x:port/v1"}]}, "upstreams[0].base_url: "),
        ({"upstreams": [{"base_url": "http://[::1]:99999"}]}, "upstreams[0].base_url: "),
        *(
            ({"upstreams": [{"base_url": url}]}, "upstreams[0].base_url: must be an address with")
            for url in (
                "http://:8000/v1",
                "http://a..b/v1",
                f"http://{'a' * 64}/v1",
                "http://x\\y/v1",
                "http://☃.test/v1",
                "http://[::1/v1",
                "http://[x]/v1",
                "http://x y/v1",
                "http://x/v1\n",
                "http://x\t/v1",
            )
        ),
        (
            {"summarizer": {"base_url": "http://x/v1/responses/"}},
            "summarizer.base_url: must be the address without /responses",
        ),
        ({"summary": {"grace": False}}, "summary.grace: got 'false'; must be a number of seconds"),
        ({"limits": {"body": True}}, "limits.body: got 'true'; must be a number of bytes"),
        ({"summary": {"tail_chars": True}}, "summary.tail_chars: got 'true'; must be a whole"),
        ({"summary": {"default": True}}, "summary.default: got true; must be 'off', 'auto', "),
        (
            {"summary": {"default": "auto", "allow": ["concise"]}},
            "summary.default: 'auto' is not one of summary.allow",
        ),
        (
            {"upstreams": [{"summary": {"default": "auto", "allow": []}}]},
            "upstreams[0].summary.default: 'auto' is not one of upstreams[0].summary.allow",
        ),
        (
            {"upstreams": [{"name": "a"}, {"name": "b", "summary": {"grace": "x"}}]},
            "upstreams[1].summary.grace (of 'b'): got 'x'; ",
        ),
        ({"upstreams": [{"history": {"nope": 1}}]}, "upstreams[0].history.nope: there is no such"),
        (
            {"summarizer": {"kind": "model", "base_url": "http://x"}},
            "summarizer: kind = 'model' needs model",
        ),
        ({"review": {"kind": "moderations"}}, "review: kind = 'moderations' needs base_url"),
        (
            {"review": {"base_url": "http://x/v1/moderations"}},
            "review.base_url: must be the address without /moderations",
        ),
        ({"review": {"kind": "python"}}, "review.kind: got 'python'; "),
        ({"review": {"on_flag": "show"}}, "review.on_flag: got 'show'; "),
        ({"review": {"timeout": 0}}, "review.timeout: got 0; "),
        *(
            (
                {"review": {"kind": "moderations", "base_url": "http://x/v1"}, **tables},
                f"{key}: 'extract' would show sentences that no review",
            )
            for key, tables in (
                ("summary.on_failure", {"summary": {"on_failure": "extract"}}),
                (
                    "upstreams[0].summary.on_failure",
                    {"upstreams": [{"summary": {"on_failure": "extract"}}]},
                ),
            )
        ),
        (
            {"history": {"tenant": "someone"}},
            "history.tenant: got 'someone'; must be credential or",
        ),
        (
            {"history": {"tenant": "header:"}},
            "history.tenant: got 'header:'; must be credential or",
        ),
        *(
            ({"history": {"tenant": f"header:{name}"}}, f"history.tenant: got 'header:{name}'; ")
            for name in ("X User", "é", "x:", " ")
        ),
        ({"reasoning": {"expose": "summary"}}, "summarizer.kind: 'extractive' copies"),
        (
            {
                "reasoning": {"expose": "summary"},
                "summarizer": {"kind": "upstream"},
                "summary": {"on_failure": "extract"},
            },
            "summary.on_failure: 'extract' copies",
        ),
        (
            {"reasoning": {"expose": "none"}, "history": {"store": "none"}},
            "history.store: 'none' would lose",
        ),
        (
            {
                "reasoning": {"expose": "none"},
                "history": {"store": "none", "seal_keys_env": "K"},
                "chat": {"envelope": "none"},
            },
            "history.store: 'none' would lose",
        ),
        ({"history": {"store": "disk"}}, "history.store: must be memory, none or an address"),
        ({"history": {"store": "redis://"}}, "history.store: must be memory, none or an address"),
        ({"ledger": {"url": "store"}}, "ledger.url: 'store' needs an address in history.store"),
        ({"ledger": {"url": "mysql://a:geheim@b"}}, "ledger.url: must be store or an address"),
        (
            {"ledger": {"url": "store", "url_env": "A"}},
            "ledger: url_env must be left out where url",
        ),
        ({"ledger": {"retention": float("inf")}}, "ledger.retention: "),
        ({"limits": {"connect": float("inf")}}, "limits.connect: got inf; must be at most "),
        ({"summary": {"grace": float("inf")}}, "summary.grace: got inf; must be at most "),
        ({"server": {"host": ""}}, "server.host: got ''; must not be empty"),
        (
            {"prices": {"currency": "EUR", "models": [{"input": float("inf")}]}},
            "prices.models[0].input: got inf; must be at most 1000000000",
        ),
        (
            {"history": {"store": "redis://x"}},
            "history.store: an address needs history.seal_keys_env",
        ),
        (
            {"upstreams": [{"history": {"store": "redis://x"}}]},
            "upstreams[0].history.store: an address needs history.seal_keys_env",
        ),
        (
            {"upstreams": [{"history": {"seal_keys_env": "K"}}]},
            "upstreams[0].history.seal_keys_env: can be set only in the general table",
        ),
        (
            {"reasoning": {"open_paths": ["/a", "users/*"]}},
            "reasoning.open_paths[1]: got 'users/*'; must begin with /",
        ),
        (
            {"upstreams": [{"reasoning": {"open_paths": ["/a"]}}]},
            "upstreams[0].reasoning.open_paths: can be set only in the general table",
        ),
        (
            {
                "server": {"workers": 2},
                "upstreams": [{"name": "a"}, {"name": "b", "reasoning": {"expose": "none"}}],
            },
            "server.workers: 2 processes share no memory ",
        ),
        ({"history": {"keep": "some"}}, "history.keep: got 'some'; "),
        (
            {
                "reasoning": {"expose": "both"},
                "chat": {"summary_field": "reasoning", "raw_field": "reasoning"},
            },
            "chat.raw_field: must differ",
        ),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_line(tables: dict[str, Any], line: str) -> None:
    assert refused(**tables).startswith(line)


@pytest.mark.parametrize(
    "url",
    [
        "http://my_model:8000/v1",
        "http://vllm.default.svc.cluster.local./v1",
        "http://[::1]:8000",
        "https://é.example/v1",
        "http://x:/v1",
        "http://x/openai/deployments/é",
    ],
)
def test_a_resolvable_address_is_accepted(url: str) -> None:
    assert (
        load_settings(environ={}, flags={"upstreams": [{"base_url": url}]}).upstreams[0].base_url
        == url
    )


def test_true_is_accepted_for_booleans() -> None:
    tables = {"summary": {"live": False}, "history": {"anonymous": True}, "chat": {"details": True}}
    settings = load_settings(environ={}, flags=tables)
    assert (settings.summary.live, settings.history.anonymous) == (False, True)


def test_an_upstreams_exposure_is_validated_like_the_general_one() -> None:
    line = refused(upstreams=[{"name": "a"}, {"name": "b", "reasoning": {"expose": "summary"}}])
    assert line.startswith("summarizer.kind")


def test_an_unknown_variable_is_refused() -> None:
    line = "ABRIDGE_SUMMARY__GRAZE: there is no such setting; did you mean ABRIDGE_SUMMARY__GRACE?"
    assert refused({"ABRIDGE_SUMMARY__GRAZE": "1"}) == line
    assert refused({"ABRIDGE_UPSTREAMS": "[{"}).startswith("ABRIDGE_UPSTREAMS: must be valid JSON")


def test_a_variable_nested_in_a_plain_setting_is_refused() -> None:
    both = {"ABRIDGE_SUMMARY__DEFAULT__X": "1", "ABRIDGE_SUMMARY__DEFAULT": "auto"}
    line = "ABRIDGE_SUMMARY__DEFAULT__X: another variable sets default to a single value"
    assert refused(both) == line
    assert refused(dict(reversed(both.items()))) == line
    listed = {"ABRIDGE_UPSTREAMS": "[{}]", "ABRIDGE_UPSTREAMS__NAME": "a"}
    assert refused(listed).startswith("ABRIDGE_UPSTREAMS__NAME: another")


def test_variables_extend_a_table_given_in_another() -> None:
    environ = {
        "ABRIDGE_SUMMARIZER__EXTRA_BODY__TOP_K": "1",
        "ABRIDGE_SUMMARIZER__EXTRA_BODY": '{"seed": 1}',
    }
    assert load_settings(environ=environ).summarizer.extra_body == {"seed": 1, "top_k": "1"}


def test_a_review_is_set_by_variables_alone() -> None:
    environ = {
        "ABRIDGE_REVIEW__KIND": "moderations",
        "ABRIDGE_REVIEW__BASE_URL": "https://guard.example/v1/",
        "ABRIDGE_REVIEW__MODEL": "omni-moderation-latest",
        "ABRIDGE_REVIEW__API_KEY_ENV": "GUARD_KEY",
        "ABRIDGE_REVIEW__ON_FLAG": "stop",
        "ABRIDGE_REVIEW__ON_FAILURE": "show",
        "ABRIDGE_REVIEW__TIMEOUT": "1.5",
    }
    assert load_settings(environ=environ).review == ReviewSettings(
        kind="moderations",
        base_url="https://guard.example/v1",
        model="omni-moderation-latest",
        api_key_env="GUARD_KEY",
        on_flag="stop",
        on_failure="show",
        timeout=1.5,
    )


def test_a_misplaced_secret_is_not_repeated_in_the_error() -> None:
    assert "sk-secret" not in refused(upstreams=[{"api_key": "sk-secret"}])
    assert "sk-secret" not in refused(upstreams=[{"base_url": "http://u:sk-secret@x"}])


def test_a_store_s_password_is_not_repeated_in_an_error() -> None:
    assert "secret" not in refused(history={"store": "http://:secret@x"})
    assert "secret" not in refused(history={"store": "redis://:secret@x"})
    assert "secret" not in refused(history="redis://:secret@x")
    assert "secret" not in refused(upstreams=[{"history": "redis://:secret@x"}])


@pytest.mark.parametrize("sufficient", [{"seal_keys_env": "KEYS"}, {"keep": "none"}])
def test_hidden_reasoning_needs_no_store_if_sealed_or_dropped(
    sufficient: dict[str, str],
) -> None:
    settings = load_settings(
        environ={},
        flags={"reasoning": {"expose": "none"}, "history": {"store": "none", **sufficient}},
    )
    assert settings.history.store == "none"


class TestRoutes:
    SETTINGS = Settings.model_validate(
        {
            "summary": {"grace": 1, "part_chars": 100},
            "upstreams": [
                {
                    "name": "thinkers",
                    "models": ["deepseek-*", "*-thinking"],
                    "summary": {"grace": 2},
                },
                {"name": "others", "models": ["gpt-?"]},
                {"name": "rest"},
            ],
        }
    )

    @pytest.mark.parametrize(
        ("model", "name"),
        [
            ("deepseek-r1", "thinkers"),
            ("qwen3-thinking", "thinkers"),
            ("gpt-5", "others"),
            ("gpt-5.1", "rest"),
            ("DeepSeek-R1", "rest"),
            (None, "thinkers"),
        ],
    )
    def test_the_first_matching_route_wins(self, model: str | None, name: str) -> None:
        route = self.SETTINGS.find_route(model)
        assert route is not None
        assert route.upstream.name == name

    @pytest.mark.parametrize(
        ("upstreams", "name"),
        [
            ([{"name": "a", "base_url": U, "models": ["x"]}], "a"),
            ([{"name": "a", "models": ["x"]}, {"name": "b", "models": ["z"]}], "a"),
            (
                [
                    {"name": "a", "base_url": U, "models": ["x"]},
                    {"name": "b", "base_url": U, "models": ["z"]},
                ],
                None,
            ),
        ],
        ids=["the only one", "one application", "several servers"],
    )
    def test_a_model_that_no_upstream_lists(self, upstreams: Any, name: str | None) -> None:
        route = Settings.model_validate({"upstreams": upstreams}).find_route("y")
        assert (route and route.upstream.name) == name

    def test_an_upstreams_tables_win_key_by_key(self) -> None:
        first, second, _ = self.SETTINGS.routes
        assert (first.summary.grace, first.summary.part_chars) == (2, 100)
        assert second.summary.grace == 1


class TestCredentials:
    @pytest.mark.parametrize(
        ("upstreams", "forwarded"),
        [
            ([{}], [True]),
            ([{"credential": "client"}], [True]),
            ([{"credential": "none"}], [False]),
            ([{"api_key_env": "KEY"}], [False]),
            ([{"name": "a"}, {"name": "b", "credential": "client"}], [False, True]),
            (
                [{"name": "a", "credential": "client"}, {"name": "b", "api_key_env": "K"}],
                [True, False],
            ),
        ],
    )
    def test_who_gets_the_clients(self, upstreams: Any, forwarded: list[bool]) -> None:
        settings = Settings.model_validate({"upstreams": upstreams})
        assert [route.client_credential for route in settings.routes] == forwarded

    @pytest.mark.parametrize("name", ["x y", "", "x:"])
    def test_a_header_that_cannot_be_is_refused(self, name: str) -> None:
        with pytest.raises(ValidationError, match="header name"):
            Settings.model_validate({"upstreams": [{"forward_headers": [name]}]})


def test_names_and_origins_that_can_match_are_taken() -> None:
    hosts = ["name", "*.internal", "*", "abridge.*", "bücher.example"]
    origins = [
        "https://a.example:8443",
        "http://[::1]:8500",
        "*",
        "*.example.com",
        "app://*",
        "null",
    ]
    server = Settings.model_validate(
        {"server": {"allowed_hosts": hosts, "allowed_origins": origins}}
    ).server
    assert (list(server.served_hosts), list(server.allowed_origins)) == (hosts, origins)


@pytest.mark.parametrize(
    ("tables", "line"),
    [
        ({"summary": {"grace": -1}}, "summary.grace: got -1; "),
        ({"upstreams": [{"base_url": "nowhere"}]}, "upstreams[0].base_url: must be an http"),
        ({"sumary": {}}, "sumary: there is no such setting"),
        ({"server": {"workers": 2, "page": True}}, "server.workers: must be 1 with server.page"),
        ({"server": {"admin_port": 8400}}, "server.admin_port: is 8400; must differ from"),
    ],
)
def test_settings_made_in_code_fail_with_the_command_lines_line(
    tables: dict[str, Any], line: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(**tables)
    assert str(caught.value) == refused(**tables)
    assert str(caught.value).startswith(line)
    assert caught.value.__suppress_context__


class TestSecrets:
    def test_secrets_come_from_the_environment_or_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "key"
        file.write_text("sk-file\n")
        assert read_secret("KEY", "x", {"KEY": "sk-env"}) == "sk-env"
        assert read_secret("KEY", "x", {"KEY_FILE": str(file)}) == "sk-file"

    def test_a_missing_secret_stops_the_start(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match=r"^upstreams\[0\]\.api_key_env") as caught:
            read_secret("sk-pasted-by-mistake", "upstreams[0].api_key_env", {})
        assert "sk-pasted" not in str(caught.value)
        with pytest.raises(SettingsError, match="the file that KEY_FILE names cannot be read: No "):
            read_secret("KEY", "x", {"KEY_FILE": str(tmp_path / "none")})

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "KEY_FILE names is empty"),
            (b" \n", "KEY_FILE names is empty"),
            (b"sk-one\nsk-two\n", "KEY_FILE names must hold only a key"),
            (b"sk-one\x00", "KEY_FILE names must hold only a key"),
            ("sk-é".encode(), "KEY_FILE names must hold only a key"),
            (b"sk-\xff\xfe", "is not text"),
        ],
    )
    def test_an_invalid_secret_stops_the_start(
        self, tmp_path: Path, content: bytes, reason: str
    ) -> None:
        file = tmp_path / "key"
        file.write_bytes(content)
        with pytest.raises(SettingsError, match=reason) as caught:
            read_secret("KEY", "x", {"KEY_FILE": str(file)})
        assert "sk-" not in str(caught.value)
        with pytest.raises(SettingsError, match="variable must hold only a key"):
            read_secret("KEY", "x", {"KEY": "sk-one sk-two"})


class TestNamesAndLimits:
    @pytest.mark.parametrize(
        ("upstream", "words"),
        [
            ({"rename": {"a": "b-{}"}}, "'a': must hold one *"),
            ({"rename": {"a*": "{}{}"}}, "can stand once"),
            ({"rename": {"a*": ""}}, "both names must be given"),
            ({"effort_max": "most"}, "effort_max"),
            ({"budget_max": 1000}, "budget_max"),
            ({"effort": "high", "effort_max": "low"}, "effort: must not be above effort_max"),
        ],
    )
    def test_what_cannot_be_is_refused_at_start(self, upstream: dict[str, Any], words: str) -> None:
        assert words in refused(upstreams=[{"base_url": U, **upstream}])

    def test_a_fallback_needs_the_proxy(self) -> None:
        upstreams = [{"name": "a", "fallback": "b"}, {"name": "b"}]
        assert "needs upstreams with a base_url" in refused(upstreams=upstreams)

    def test_the_example_of_the_documentation_is_valid(self) -> None:
        (example,) = texts_of("docs/routing.md", "toml")
        settings = Settings.model_validate(tomllib.loads(example))
        main, spare = settings.routes
        assert [route for route, _ in settings.fallbacks_of(main)] == [spare]
        assert settings.fallbacks_of(spare) == []
        assert spare.renames.to_upstream("claude-opus") == "anthropic/claude-opus"
        assert spare.renames.to_upstream("gpt") == "openai/gpt-oss-120b"

    @pytest.mark.parametrize(
        ("fallback", "words"),
        [
            (["b", "c"], "must name another upstream, not 'c'"),
            (["b", "a"], "must name another upstream, not 'a'"),
            (["b", {"upstream": "b"}], "names 'b' twice"),
            ([{"upstream": "b", "weight": 0}], "more than 0"),
            ([{"upstream": "b", "wait": 1}], "a table without unknown keys"),
        ],
    )
    def test_a_list_of_fallbacks_names_others_once(self, fallback: Any, words: str) -> None:
        first = {"name": "a", "base_url": U, "fallback": fallback}
        assert words in refused(upstreams=[first, {"name": "b", "base_url": U}])


def test_what_each_process_keeps_for_itself_is_not_used() -> None:
    tables = {"server": {"workers": 2}, "upstreams": [{"name": "a"}, {"name": "b"}]}
    for route in Settings.model_validate(tables).routes:
        assert route.history.store == "none"
    alone = Settings.model_validate({**tables, "server": {"workers": 1}})
    assert {route.history.store for route in alone.routes} == {"memory"}


@pytest.mark.parametrize(
    ("upstream", "api"),
    [
        ({"base_url": "http://127.0.0.1:1/v1"}, "auto"),
        ({"base_url": "http://127.0.0.1:1/v1", "api": "same"}, "same"),
        ({}, "same"),
        ({"api": "auto"}, "auto"),
    ],
)
def test_the_api_is_found_out_where_there_is_an_address(upstream: dict[str, Any], api: str) -> None:
    settings = Settings.model_validate({"upstreams": [upstream]})
    assert settings.routes[0].upstream.api == api
    assert Settings().routes[0].upstream.api == "same"


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: SummarySettings(default="x"), "summary.default: got 'x'"),
        (lambda: SummarySettings(grace=-1), "summary.grace: got -1; "),
        (lambda: PromptSettings(auto=3), "summarizer.prompts.auto: got 3"),
        (lambda: UpstreamSettings(effort="x"), "upstreams[].effort: got 'x'"),
        (lambda: Settings(summary={"default": "x"}), "summary.default: got 'x'"),  # type: ignore[typeddict-item]
    ],
)
def test_a_table_made_in_code_names_its_keys_whole(make: Callable[[], object], key: str) -> None:
    with pytest.raises(SettingsError) as refused:
        make()
    assert str(refused.value).startswith(key)
