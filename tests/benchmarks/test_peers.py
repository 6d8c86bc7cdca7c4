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


def test_upstream_and_abridge_take_turns_and_are_measured() -> None:
    rows = list(peers.run(Options(quick=True), ("direct", "passing"), [WORKLOAD], seconds=0.1))
    turns = [(row["peer"], row["api"], row["form"]) for row in rows]
    assert turns == [("direct", *WORKLOAD), ("passing", *WORKLOAD)] * 2
    assert all(float(row[key]) > 0 for row in rows for key in ("requests", "cpu_s", "rest_mib"))


@pytest.mark.repeat
def test_every_workload_is_bridged_and_summarized() -> None:
    options, names = Options(), ("bridging", "summarizing")
    with peers.serving(options, names) as servers:
        cases = list(peers.answering(servers, names, peers.WORKLOADS, options))
    assert [(case.api, case.form, case.name) for case in cases] == [
        (*workload, name) for workload in peers.WORKLOADS for name in names
    ]


def test_a_gateway_that_is_not_installed_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    rows = list(peers.run(Options(quick=True), ("direct", "nginx"), [WORKLOAD], seconds=0.05))
    assert {row["peer"] for row in rows} == {"direct"}
    assert "nginx is not installed: skipped" in capsys.readouterr().out


def test_tables_show_medians_and_their_spread() -> None:
    rows = [row("passing", number, cost) for number, cost in enumerate((3, 1, 2, 8, 4))]
    table = peers.tables([*rows, row("nginx", 0, 0.5), row("nginx", 1, 0.5)])
    assert "| Abridge, passing through | 3.00 ± 1.00 |" in table
    assert "| nginx | 0.50 ± 0 |" in table
    assert "| Abridge, passing through | 1.2 | 8.00 | 8.00 |" in table
    assert "LiteLLM" not in table
