"""Test the Dockerfile without building it; `replay` executes its steps."""

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

LOCKS = ("requirements.lock", "build.lock", "sbom.lock")


def test_the_linter_finds_nothing() -> None:
    bundled = Path(sys.executable).with_name("hadolint")
    hadolint = str(bundled) if bundled.exists() else shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("there is no hadolint: pip install --group deploy")
    each = subprocess.run([hadolint, str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert each.returncode == 0, each.stdout


def test_every_stage_uses_one_base_image_of_an_exact_version() -> None:
    """Its digest is an argument of the build: only a registry can say it."""
    stages = [each.arguments for each in instructions() if each.name == "FROM"]
    assert stages == ["${BASE} AS build", "${BASE} AS sbom", "${BASE}"]
    argument = next(each.arguments for each in instructions() if each.name == "ARG")
    assert re.fullmatch(r"BASE=python:3\.\d+\.\d+-slim-\w+", argument)


def test_the_labels_say_what_was_built_of_what() -> None:
    labels = dict(word.split("=", 1) for word in image()["LABEL"].words)
    assert labels["org.opencontainers.image.version"] == "${VERSION}"
    assert labels["org.opencontainers.image.revision"] == "${REVISION}"
    assert labels["org.opencontainers.image.base.name"] == "${BASE}"


def test_the_process_runs_without_root_and_receives_signals_itself() -> None:
    assert all(int(number) > 0 for number in image()["USER"].arguments.split(":"))
    assert image()["ENTRYPOINT"].arguments.startswith("["), "a shell would not pass on a signal"
    assert image()["STOPSIGNAL"].arguments == "SIGTERM"


def test_every_package_is_pinned_by_hash() -> None:
    installs = [each.arguments for each in instructions() if " install " in each.arguments]
    assert installs
    for instruction in installs:
        for command in re.findall(r"pip .*?install [^&]*", instruction):
            assert "--require-hashes" in command or "--no-index" in command
    for lock in LOCKS:
        for requirement in (ROOT / "deploy" / lock).read_text().replace("\\\n", "").splitlines():
            assert re.match(r"[\w-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", requirement)


def test_the_build_context_holds_only_what_is_copied() -> None:
    lines = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    sent = [line[1:] for line in lines if line.startswith("!")]
    copied = {
        source
        for each in instructions()
        if each.name == "COPY" and "from" not in each.flags
        for source in each.words[:-1]
    }
    assert "*" in lines
    assert sorted(sent) == sorted(copied)
    assert all((ROOT / source).exists() for source in copied)
    assert not any(fnmatchcase(source, "*.git*") for source in sent)


def test_the_image_has_the_packages_version() -> None:
    arguments = [each.arguments for each in instructions() if each.name == "ARG"]
    assert f"VERSION={abridge.__version__}" in arguments


def test_it_exposes_the_ports_in_the_settings() -> None:
    server = load_settings(environ=environment()).server
    assert image()["EXPOSE"].words == [str(server.port), str(server.admin_port)]


async def test_the_health_check_passes_while_running_and_fails_afterwards() -> None:
    program, *command = health()
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    async with sidecar("--admin-port", "0", "--upstream", "http://127.0.0.1:9/v1") as running:
        port = running.admin.rpartition(":")[2]
        assert _exit_code([program, *command], port) == 0
        running.signal()
        await running.end()
        assert _exit_code([program, *command], port) == 1


def _exit_code(command: list[str], port: str) -> int:
    environ = {"ABRIDGE_SERVER__ADMIN_PORT": port}
    return subprocess.run(command, env=environ, capture_output=True, check=False).returncode
