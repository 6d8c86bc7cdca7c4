"""The command where there is no uvloop, as on Windows, nor what only POSIX or Linux has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from abridge.sidecar.client_keys import file
from abridge.sidecar.demo.model import MODEL_NAME, scripted_model
from tests.support.sidecar import environment, in_front_of

LACKING = """
import asyncio, os, runpy, signal, socket, sys, tempfile
lacking = {
    os: ("fork", "fchown", "fchmod", "O_NOCTTY"),
    signal: ("SIGHUP", "pthread_sigmask"),
    socket: ("SO_REUSEPORT", "TCP_USER_TIMEOUT"),
}
for module, names in lacking.items():
    for name in names:
        delattr(module, name)
for name in ("uvloop", "fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
"""

ONE = """
sys.argv = sys.argv[sys.argv.index("abridge"):]
runpy.run_module("abridge", run_name="__main__")
"""
WITHOUT = (sys.executable, "-c", LACKING + ONE)
"""Prefix of a command that is to run without them."""

SEVERAL = """
import json
from click.testing import CliRunner
from abridge.sidecar.cli import main
for words in json.loads(sys.argv[1]):
    ran = CliRunner().invoke(main, words)
    print(json.dumps([ran.exit_code, ran.output]))
"""


def abridge(*commands: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return the exit code and the output of commands that one process runs without them."""
    ran = subprocess.run(  # noqa: S603 -- these commands
        (sys.executable, "-c", LACKING + SEVERAL, json.dumps(commands)),
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
    )
    return [tuple(json.loads(line)) for line in ran.stdout.splitlines()]


async def test_it_serves_a_summary() -> None:
    async with in_front_of(scripted_model(0), prefix=WITHOUT) as (sidecar, client):
        asked = {"model": MODEL_NAME, "input": "When do I start?", "reasoning": {"summary": "auto"}}
        answered = await client.post(f"{sidecar.url}/v1/responses", json=asked)
        assert answered.json()["output"][0]["summary"]
        sidecar.signal()
        assert await sidecar.end() == 0


def test_commands_run_and_several_processes_are_refused_with_the_reason(tmp_path: Path) -> None:
    keys = tmp_path / "keys.jsonl"
    config = tmp_path / "abridge.toml"
    config.write_text(f'[server]\nkeys_file = "{keys.as_posix()}"\n')
    where = ("--config", str(config))
    demo, added, listed, revoked, refused = abridge(
        ("demo", "--fast"),
        *(("keys", *words, *where) for words in (("add", "alice"), ("list",), ("revoke", "alice"))),
        ("serve", "--upstream", "http://127.0.0.1:9/v1", "--workers", "2"),
    )
    assert [code for code, _ in (demo, added, listed, revoked)] == [0] * 4
    assert "The bill" in demo[1]
    assert "alice" in listed[1]
    assert not keys.read_text()
    assert refused[0] == 2
    assert "--workers: must be 1 on this system" in refused[1]


def test_a_file_is_closed_before_it_replaces_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, open_files = tmp_path / "keys.jsonl", []
    path.write_text("")
    replace = Path.replace

    def replace_closed(source: Path, target: Path) -> Path:
        open_files.extend(
            link for link in Path("/proc/self/fd").iterdir() if link.resolve() == source
        )
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", replace_closed)
    file.replace_file(path, "# none yet\n")
    assert path.read_text() == "# none yet\n"
    assert open_files == []
