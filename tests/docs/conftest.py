"""Share the demo's server among the tests of pages."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.servers import HANG
from tests.support.sidecar import environment


@pytest.fixture(scope="session")
def demo() -> Iterator[str]:
    """Run `abridge demo --serve`; return its address."""
    running = subprocess.Popen(
        (sys.executable, "-m", "abridge", "demo", "--serve"),
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert running.stdout is not None
    try:
        line = next(line for line in running.stdout if line.startswith("It keeps running"))
        yield line.split()[-1]
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=HANG)
