"""Test the systemd unit with systemd's own tools."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest

from abridge.config.settings import Settings
from abridge.sidecar.server.serve import CANCEL_SECONDS
from tests.deploy.dockerfile import ROOT

UNIT = ROOT / "deploy" / "systemd" / "abridge.service"
MOST_EXPOSED = 1.5
"""Of 10, in systemd's own estimate; what is left is mostly that it uses the network."""


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("there is no systemd-analyze: apt-get install systemd")
    return found


def service() -> dict[str, str]:
    """Return the settings of its [Service] section; of one that is repeated the last."""
    parser = RawConfigParser(strict=False, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign] -- names keep their case
    parser.read(UNIT)
    return dict(parser["Service"])


def test_systemd_finds_nothing_wrong(analyze: str, tmp_path: Path) -> None:
    """With a program that exists in place of Abridge's."""
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/abridge/bin/abridge", sys.executable))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert not ours
    assert done.returncode == 0


def test_it_can_reach_little(analyze: str) -> None:
    command = [analyze, "security", "--offline=yes", "--no-pager", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze knows no --offline")
    exposure = re.search(r"exposure level for abridge\.service: ([\d.]+)", done.stdout)
    assert exposure, done.stderr
    assert float(exposure[1]) <= MOST_EXPOSED


def test_it_has_time_to_drain() -> None:
    server = Settings().server
    least = server.drain_delay + server.drain + CANCEL_SECONDS
    assert float(service()["TimeoutStopSec"].removesuffix("s")) > least


def test_a_reload_has_the_settings_read_again() -> None:
    assert service()["ExecReload"] == "/bin/kill -HUP $MAINPID"


def test_a_secret_is_in_no_variable_and_on_no_command_line() -> None:
    assert "$" not in service()["ExecStart"]
    assert "LoadCredential=SEAL_KEYS:" in UNIT.read_text()
    assert "Environment=SEAL_KEYS_FILE=%d/SEAL_KEYS" in UNIT.read_text()
