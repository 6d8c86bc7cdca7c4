"""Which paths pass unread where reasoning is hidden, however they are written."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from abridge.apis.paths import UNREAD_PATHS, OpenPaths

GROQ = OpenPaths(OpenPaths().bases | {"/openai/v1"}, ("/users/*", "/v1/slots"))


def includes(paths: OpenPaths, raw_path: str, method: str = "GET") -> bool:
    return paths.include(method, unquote(raw_path), raw_path)


@pytest.mark.parametrize(
    ("method", "path"), [(row.method, glob) for row in UNREAD_PATHS for glob in row.globs]
)
def test_known_paths_pass_below_each_base(method: str, path: str) -> None:
    for base in ("", "/v1", "/openai/v1"):
        assert includes(GROQ, base + path, method)
    for base in ("/v2", "/v1/conversations", "/v1/v1"):
        assert not includes(GROQ, base + path, method)


@pytest.mark.parametrize(
    "raw_path",
    ["/v1/models/", "//v1//models", "/v1/models/Qwen/Qwen3-8B", "/v1/models/Qwen%2FQwen3-8B"],
)
def test_a_known_path_may_be_written_in_ways_that_all_servers_read_alike(raw_path: str) -> None:
    assert includes(OpenPaths(), raw_path)
    assert includes(OpenPaths(), raw_path, "HEAD")
    assert not includes(OpenPaths(), raw_path, "POST")


@pytest.mark.parametrize(
    "raw_path",
    [
        "/v1/models/../completions",
        "/v1/models/%2e%2e/completions",
        "/v1/models/..%2fcompletions",
        "/v1/models/%252e%252e/completions",
        "/v1/models/x%252f..%252f..%252fcompletions",
        "/v1/models/..%5ccompletions",
        "/v1/models/..;/completions",
        "/v1/models%3f/../completions",
        "/v1/models/%23/x",
        "/v1/models/a%3fb",
        "/v1/models/a%00",
        "/v1/models/a%0a",
        "/v1/x/../models",
        "/v1/completions/../models",
        "/v1/completions%2f..%2fmodels",
        "/v1/Models",
        "/v1/xmodels",
        "/v1/modelsx",
        "/",
        "",
    ],
)
def test_a_path_that_any_server_takes_for_another_is_closed(raw_path: str) -> None:
    assert not includes(OpenPaths(), raw_path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/batches"),
        ("GET", "/v1/messages/batches/msgbatch_1/results"),
        ("POST", "/v1/completions"),
        ("POST", "/api/chat"),
        ("POST", "/api/generate"),
        ("POST", "/generate"),
        ("GET", "/v1/conversations/conv_1/items"),
        ("GET", "/v1/files/file_1/content"),
        ("GET", "/v1/batches"),
        ("GET", "/slots"),
        ("GET", "/v1/embeddings"),
        ("POST", "/v1/models"),
        ("POST", "/v1/complete"),
        ("POST", "/v1beta/models/gemini-2.5-pro:generateContent"),
    ],
)
def test_all_other_paths_are_closed(method: str, path: str) -> None:
    assert not includes(OpenPaths(), path, method)
    assert includes(OpenPaths(globs=("/*",)), path, method)


@pytest.mark.parametrize(
    ("path", "passes"), [("/v1/embeddings", True), ("/v1/models/m", True), ("/v1/batches", False)]
)
def test_a_preflight_passes_to_what_passes_for_some_method(path: str, *, passes: bool) -> None:
    assert includes(OpenPaths(), path, "OPTIONS") is passes


def test_the_settings_open_single_paths_for_every_method() -> None:
    for method in ("GET", "POST", "DELETE"):
        assert includes(GROQ, "/users/1/keys", method)
    assert includes(GROQ, "/v1/slots")
    for closed in ("/users", "/v1/users/1", "/slots", "/users/../v1/completions", "/users/%2e%2e"):
        assert not includes(GROQ, closed)


def test_sockets_pass_to_paths_that_the_settings_open_alone() -> None:
    assert GROQ.include_socket("/users/1", "/users/1")
    assert not GROQ.include_socket("/v1/models", "/v1/models")
    assert not GROQ.include_socket("/users/../v1/realtime", "/users/../v1/realtime")


@pytest.mark.parametrize(
    ("raw_path", "leads"),
    [
        ("/v1/messages/count_tokens", True),
        ("/v1/messages", True),
        ("//v1//messages", True),
        ("/v1/messagesx", False),
        ("/v1/messages/x/../../models", False),
        ("/v1/x/../messages", False),
        ("/v1/messages%2fx/..", False),
        ("/v1/messages/%3f", False),
    ],
)
def test_a_path_leads_to_an_endpoint_if_all_servers_read_it_alike(
    raw_path: str, *, leads: bool
) -> None:
    assert OpenPaths().lead_to("/messages", unquote(raw_path), raw_path) is leads
