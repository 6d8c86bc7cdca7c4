"""The comparison with other gateways works; how fast anything is, no test says."""

from __future__ import annotations

import shutil
import sys

import pytest

from tests.benchmarks import peers
from tests.benchmarks.options import Options
from tests.benchmarks.results import Row

WORKLOAD = ("messages", "stream")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")


def row(peer: str, number: int, cost: float) -> Row:
    where: Row = {"peer": peer, "version": "1.2", "api": "chat", "form": "whole", "round": number}
    return {**where, **dict.fromkeys((*peers.MEASURES, "rest_mib", "load_mib"), cost)}


def test_upstream_and_abridge_take_turns_and_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gateway that is not installed is left out."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    names = ("direct", "passing", "nginx")
    rows = list(peers.run(Options(quick=True), names, [WORKLOAD], seconds=0.1))
    turns = [(row["peer"], row["api"], row["form"]) for row in rows]
    assert turns == [("direct", *WORKLOAD), ("passing", *WORKLOAD)] * 2
    assert all(float(row[key]) > 0 for row in rows for key in ("requests", "cpu_s", "rest_mib"))
    assert "nginx is not installed: skipped" in capsys.readouterr().out


@pytest.mark.repeat
def test_every_workload_is_bridged_and_summarized() -> None:
    options, names = Options(), ("bridging", "summarizing")
    with peers.serving(options, names) as servers:
        cases = list(peers.answering(servers, names, peers.WORKLOADS, options))
    assert [(case.api, case.form, case.name) for case in cases] == [
        (*workload, name) for workload in peers.WORKLOADS for name in names
    ]


def test_tables_show_medians_and_their_spread() -> None:
    rows = [row("passing", number, cost) for number, cost in enumerate((3, 1, 2, 8, 4))]
    table = peers.tables([*rows, row("nginx", 0, 0.5), row("nginx", 1, 0.5)])
    assert "| Abridge, passing through | 3.00 ± 1.00 |" in table
    assert "| nginx | 0.50 ± 0 |" in table
    assert "| Abridge, passing through | 1.2 | 8.00 | 8.00 |" in table
    assert "LiteLLM" not in table
