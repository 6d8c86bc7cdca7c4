"""Test the command line: its flags, and that a mistake is reported in one line."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from abridge import __version__
from abridge.config.settings import Settings
from abridge.sidecar.cli.commands import main
from abridge.sidecar.cli.options import nest_options
from abridge.sidecar.cli.serving import open_listener, startup_lines
from tests.support.sidecar import environment

UPSTREAM = ("--upstream", "http://127.0.0.1:9/v1")
MODEL = ("--summarizer-url", "http://127.0.0.1:9/v1", "--summarizer-model", "small")


def invoke(*words: str, **environ: str) -> tuple[int, list[str]]:
    """Run the command; return its exit code and stderr."""
    result = CliRunner().invoke(main, words, env=environ)
    return result.exit_code, result.stderr.splitlines()


def test_it_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "abridge", "--version"]
    output = run(command, capture_output=True, check=True, text=True, env=environment())  # noqa: S603 -- fixed command
    assert output.stdout == f"abridge {__version__}\n"


@pytest.mark.parametrize(
    ("flags", "key", "words"),
    [
        ((), "upstreams", "--upstream http"),
        (("--upstream", "localhost:8000"), "--upstream", "must be an http"),
        ((*UPSTREAM, "--port", "abc"), "--port", "'abc'"),
        ((*UPSTREAM, "--admin-port", "65536"), "--admin-port", "65535"),
        ((*UPSTREAM, "--summary", "short"), "--summary", "'concise'"),
        ((*UPSTREAM, "--expose", "some"), "--expose", "'both'"),
        ((*UPSTREAM, "--expose", "summary"), "summarizer.kind", "must be model"),
        ((*UPSTREAM, "--profile", "nobody"), "--profile", "vllm"),
        ((*UPSTREAM, "--workers", "two"), "--workers", "'two'"),
        ((*UPSTREAM, "--workers", "2", "--expose", "none"), "--workers", "redis://"),
        (("--profile", "vllm"), "--profile", "--upstream"),
        (
            (*UPSTREAM, *MODEL[:2]),
            "--summarizer-url: summarizer",
            "needs model (--summarizer-model)",
        ),
        (
            (*UPSTREAM, *MODEL[2:]),
            "--summarizer-model: summarizer",
            "needs base_url (--summarizer-url)",
        ),
        ((*UPSTREAM, "--config", "/nowhere.toml"), "/nowhere.toml", "cannot be read"),
    ],
)
def test_wrong_settings_get_one_line(flags: tuple[str, ...], key: str, words: str) -> None:
    code, output = invoke("serve", *flags)
    assert code == 2
    assert len(output) == 1, output
    assert output[0].startswith(f"Error: {key}: ")
    assert words in output[0]


def test_an_invalid_variable_is_reported_in_one_line() -> None:
    code, output = invoke("serve", *UPSTREAM, ABRIDGE_SUMMARY__GRACE="soon")
    assert (code, len(output)) == (2, 1)
    assert output[0].startswith("Error: ABRIDGE_SUMMARY__GRACE: got 'soon'; ")


def test_a_proxy_that_cannot_be_is_reported_in_one_line() -> None:
    for name in ("https_proxy", "HTTPS_PROXY"):
        code, output = invoke(
            *("serve", "--upstream", "https://model.test/v1"),
            **{"https_proxy": "", "NO_PROXY": "", name: "socks5://anna:secret@proxy.test"},
        )
        assert (code, len(output)) == (2, 1)
        assert output[0].startswith("Error: HTTPS_PROXY: must be an address")


def test_the_start_says_which_proxy_is_used_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://anna:secret@proxy.test:3128")
    monkeypatch.setenv("no_proxy", "direct.test")
    tables = {
        "upstreams": [
            {"name": "a", "base_url": "https://model.test/v1", "models": ["a"]},
            {"name": "b", "base_url": "https://direct.test/v1", "models": ["b"]},
        ],
        "review": {"kind": "moderations", "base_url": "https://guard.test/v1"},
    }
    lines = startup_lines(Settings.model_validate(tables), "http://here:1", None)
    assert [line for line in lines if "proxy" in line] == [
        "  proxy       http://proxy.test:3128, to model.test",
        "  proxy       http://proxy.test:3128, to guard.test",
    ]


def test_a_missing_secret_is_reported_in_one_line() -> None:
    code, output = invoke("serve", *UPSTREAM, *MODEL, ABRIDGE_SUMMARIZER__API_KEY_ENV="NOT_SET")
    assert (code, len(output)) == (2, 1)
    assert output[0].startswith("Error: ABRIDGE_SUMMARIZER__API_KEY_ENV: ")


def test_an_invalid_file_is_reported_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "abridge.toml"
    file.write_text("[server]\nprot = 1\n")
    assert invoke("serve", *UPSTREAM, "--config", str(file)) == (
        2,
        [f"Error: {file}:2: server.prot: there is no such setting; did you mean server.port?"],
    )


def test_a_port_in_use_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, output = invoke("serve", *UPSTREAM, "--port", port)
        with pytest.raises(click.ClickException, match="; set another port with --admin-port"):
            open_listener("127.0.0.1", int(port), "--admin-port")
    line = (
        f"cannot listen on 127.0.0.1:{port}: Address already in use; set another port with --port"
    )
    assert (code, output) == (1, [f"Error: {line}"])


def test_a_host_that_is_not_this_one_is_reported_in_one_line() -> None:
    code, output = invoke("serve", *UPSTREAM, "--host", "192.0.2.1")
    assert (code, len(output)) == (1, 1)
    assert output[0].startswith("Error: cannot listen on 192.0.2.1:8400: ")
    assert output[0].endswith("; --host must be an address of this host")


@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        ({}, {}),
        ({"server__port": None}, {}),
        ({"server__port": "0"}, {"server": {"port": "0"}}),
        (
            {"server__host": "::", "server__admin_port": "1", "summary__default": "auto"},
            {"server": {"host": "::", "admin_port": "1"}, "summary": {"default": "auto"}},
        ),
        (
            {"summarizer__model": "small"},
            {"summarizer": {"kind": "model", "model": "small"}},
        ),
    ],
)
def test_flags_are_settings(flags: dict[str, str | None], settings: dict[str, Any]) -> None:
    assert nest_options(None, flags) == settings


def test_upstream_is_the_only_flag_needed() -> None:
    flags = {"profile": "ollama", "api": "chat"}
    made = Settings.model_validate(nest_options("http://127.0.0.1:9/v1/", flags))
    (upstream,) = made.upstreams
    assert (upstream.name, upstream.profile, upstream.api) == ("default", "ollama", "chat")
    assert upstream.base_url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("summarizer", "words"),
    [
        ({}, "extractive"),
        ({"kind": "upstream"}, "own model"),
        (
            {"kind": "model", "model": "small", "base_url": "http://s/v1"},
            "small at http://s/v1",
        ),
    ],
)
def test_the_banner_names_the_summarizer(summarizer: dict[str, Any], words: str) -> None:
    upstreams = [{"base_url": "http://u/v1"}]
    settings = Settings.model_validate({"upstreams": upstreams, "summarizer": summarizer})
    lines = list(startup_lines(settings, "http://here:1", None))
    assert any("summarizer" in line and words in line for line in lines)
    assert lines[-1].endswith("http://here:1/abridge/metrics")


def test_the_banner_names_fallbacks() -> None:
    main, spare = ({"name": name, "base_url": f"http://{name}/v1"} for name in ("main", "spare"))
    settings = Settings.model_validate({"upstreams": [{**main, "fallback": "spare"}, spare]})
    lines = [line for line in startup_lines(settings, "http://a", None) if "upstream " in line]
    assert [line.endswith(", fallback spare") for line in lines] == [True, False]


def test_the_banner_names_a_review() -> None:
    review = {"kind": "moderations", "base_url": "http://guard/v1", "on_flag": "stop"}
    settings = Settings.model_validate({"review": review, "upstreams": [{"base_url": "http://u"}]})
    line = "  review      moderations at http://guard/v1: stop at what it flags, withhold what it"
    assert any(each.startswith(line) for each in startup_lines(settings, "http://a", None))
    plain = Settings.model_validate({"upstreams": [{"base_url": "http://u"}]})
    assert not any("review" in each for each in startup_lines(plain, "http://a", None))


@pytest.mark.parametrize(
    ("server", "lines"),
    [
        ({}, []),
        ({"workers": 4}, ["  workers     4 processes; limits apply to each"]),
        ({"page": True}, ["  page        http://here:1/abridge"]),
    ],
)
def test_the_banner_names_unusual_settings(server: dict[str, Any], lines: list[str]) -> None:
    tables = {"upstreams": [{"base_url": "http://u/v1"}], "history": {"store": "none"}}
    usual = list(startup_lines(Settings.model_validate(tables), "http://here:1", None))
    output = startup_lines(
        Settings.model_validate({**tables, "server": server}), "http://here:1", None
    )
    assert [line for line in output if line not in usual] == lines


def test_the_demo_reports_a_port_in_use_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = invoke("demo", "--serve", "--port", str(port))
    line = (
        f"cannot listen on 127.0.0.1:{port}: Address already in use; set another port with --port"
    )
    assert (code, output) == (1, [f"Error: {line}"])


def test_the_demo_has_no_port_unless_it_serves() -> None:
    assert invoke("demo", "--port", "8400") == (2, ["Error: --port: needs --serve"])


class TestHelp:
    @pytest.mark.parametrize("columns", [60, 80, 120])
    def test_the_overview_says_all_of_what_each_command_does(self, columns: int) -> None:
        output = CliRunner().invoke(main, ["--help"], terminal_width=columns).output
        words = " ".join(output.split())
        for name, command in main.commands.items():
            paragraph = (command.help or "").partition("\n\n")[0]
            assert " ".join([name, *paragraph.split()]) in words

    @pytest.mark.parametrize("columns", [60, 80, 120])
    @pytest.mark.parametrize("command", ["", *main.commands, "keys add", "keys list"])
    def test_no_line_is_wider_than_the_terminal(self, command: str, columns: int) -> None:
        words = [*command.split(), "--help"]
        output = CliRunner().invoke(main, words, terminal_width=columns).output
        assert "..." not in output.replace("[ARGS]...", "")
        assert max(map(len, output.splitlines())) <= columns


class TestCompletion:
    @pytest.mark.parametrize(
        ("before", "typed", "completed"),
        [
            ([], "pro", ["profiles"]),
            (["serve"], "--summarizer-", ["--summarizer-url", "--summarizer-model"]),
            (["serve", "--api"], "m", ["messages"]),
            (["serve", "--expose"], "", ["auto", "both", "summary", "raw", "none"]),
            (["check", "--profile"], "vl", ["vllm"]),
            (["profiles"], "vl", ["vllm"]),
        ],
    )
    def test_a_shell_completes(self, before: list[str], typed: str, completed: list[str]) -> None:
        complete = BashComplete(main, {}, "abridge", "_ABRIDGE_COMPLETE")
        assert [item.value for item in complete.get_completions(before, typed)] == completed

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_each_shell_gets_a_script(self, shell: str) -> None:
        environ = {"_ABRIDGE_COMPLETE": f"{shell}_source"}
        output = CliRunner().invoke(main, env=environ, prog_name="abridge").stdout
        assert f"_ABRIDGE_COMPLETE={shell}_complete" in output
