"""The command where there is no uvloop, as on Windows, nor what only POSIX or Linux has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from abridge.sidecar.client_keys import file
from abridge.sidecar.demo.model import MODEL_NAME, scripted_model
from tests.support.sidecar import environment, in_front_of

WITHOUT = (
    sys.executable,
    "-c",
    """
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
sys.argv = sys.argv[sys.argv.index("abridge"):]
runpy.run_module("abridge", run_name="__main__")
""",
)
"""Prefix of a command that is to run without them."""


def abridge(*words: str) -> subprocess.CompletedProcess[str]:
    command = (*WITHOUT, "-m", "abridge", *words)
    return subprocess.run(  # noqa: S603 -- this command
        command, check=False, capture_output=True, text=True, timeout=60, env=environment()
    )


async def test_it_serves_a_summary() -> None:
    async with in_front_of(scripted_model(0), prefix=WITHOUT) as (sidecar, client):
        asked = {"model": MODEL_NAME, "input": "When do I start?", "reasoning": {"summary": "auto"}}
        answered = await client.post(f"{sidecar.url}/v1/responses", json=asked)
        assert answered.json()["output"][0]["summary"]
        sidecar.signal()
        assert await sidecar.end() == 0


def test_the_demo_runs() -> None:
    shown = abridge("demo", "--fast")
    assert shown.returncode == 0, shown.stderr
    assert "The bill" in shown.stdout


def test_keys_are_added_listed_and_revoked(tmp_path: Path) -> None:
    keys = tmp_path / "keys.jsonl"
    config = tmp_path / "abridge.toml"
    config.write_text(f'[server]\nkeys_file = "{keys.as_posix()}"\n')
    where = ("--config", str(config))
    assert abridge("keys", "add", "alice", *where).returncode == 0
    assert "alice" in abridge("keys", "list", *where).stdout
    assert abridge("keys", "revoke", "alice", *where).returncode == 0
    assert not keys.read_text()


def test_several_processes_are_refused_with_the_reason() -> None:
    refused = abridge("serve", "--upstream", "http://127.0.0.1:9/v1", "--workers", "2")
    assert refused.returncode == 2
    assert "--workers: must be 1 on this system" in refused.stderr


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
