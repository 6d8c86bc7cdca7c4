"""Findings as tables: on the terminal, and between two marks in the README."""

from __future__ import annotations

from collections.abc import Iterable

from tests.benchmarks.results import Finding


def show(findings: Iterable[Finding]) -> None:
    for finding in findings:
        what, value, target, met = finding.cells()
        print(f"{what:58} {value:>14}  {target:12} {met}".rstrip())


def write() -> None:
    pass
