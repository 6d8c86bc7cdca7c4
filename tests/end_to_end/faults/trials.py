"""The summarizer's faults, and what becomes of them: rules, of which the first that fits holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from tests.end_to_end.faults.cells import Case, Fault, What, Where, Who, faults
from tests.end_to_end.faults.dialects import DIALECTS
from tests.end_to_end.faults.players import Script
from tests.end_to_end.faults.stage import SHORT
from tests.end_to_end.faults.turns import NOTE, SILENCE

PARTS = 2
"""So many the summary has, each a call."""

RUNS_OUT = {"first_token": "timeout", "grace": "deadline", "timeout": "timeout"}
"""What may run out while a summarizer says nothing, and how the client is told."""

TELLING = ("timeout", "deadline", "empty")
"""Codes that are counted as outcomes of their own."""


@dataclass(frozen=True)
class Trial:
    """A case, what is done about the failure, and, of a stall, what is short."""

    case: Case
    on_failure: str = "omit"
    short: str = ""

    def __str__(self) -> str:
        return f"{self.case}, {self.on_failure}{self.short and f', short {self.short}'}"

    @property
    def what(self) -> What:
        return self.case.fault.what

    @property
    def harmless(self) -> bool:
        """What comes after the end concerns nobody."""
        return self.case.fault.where is Where.AFTER

    @property
    def spoke(self) -> bool:
        """Whether something of the summary was there to be shown."""
        return self.case.fault.where >= Where.ANSWER

    @property
    def extracted(self) -> bool:
        """Whether an extract stands in for a part. In a stall the first, which spoke and does not
        end, keeps the second from speaking."""
        silent = not self.harmless and (not self.spoke or self.what is What.STALL)
        return self.on_failure == "extract" and silent

    @property
    def failed(self) -> bool:
        return self.on_failure == "fail" and not self.harmless

    @property
    def script(self) -> Script:
        turn = SILENCE if self.what is What.NOTHING else NOTE
        return Script.stream(DIALECTS[self.case.api], turn)

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        table = "summarizer" if self.short == "timeout" else "summary"
        tables: dict[str, dict[str, Any]] = {"summary": {"on_failure": self.on_failure}}
        if self.short:
            tables.setdefault(table, {})[self.short] = SHORT
        return tables


CODE: tuple[tuple[Callable[[Trial], bool], Callable[[Trial], str | None]], ...] = (
    (lambda trial: trial.harmless, lambda _: None),
    (lambda trial: trial.what is What.NOTHING, lambda _: "empty"),
    (lambda trial: trial.what is What.STALL, lambda trial: RUNS_OUT[trial.short]),
    (lambda _: True, lambda _: "upstream_error"),
)
HEADER: tuple[tuple[Callable[[Trial], bool], str], ...] = (
    (lambda trial: trial.harmless, "model"),
    (lambda trial: trial.spoke, "partial"),
    (lambda trial: trial.extracted, "extractive"),
    (lambda _: True, "failed"),
)


def code_of(trial: Trial) -> str | None:
    return next(code(trial) for fits, code in CODE if fits(trial))


def outcome_of(trial: Trial) -> str:
    code = code_of(trial)
    if code is None:
        return "ok"
    if trial.spoke or trial.extracted:
        return "partial"
    return code if code in TELLING else "failed"


def spent(trial: Trial) -> int:
    """The tokens that calls reported; one that is not waited for any more reports nothing."""
    if trial.what is What.STALL and not trial.harmless:
        return 0
    dialect = DIALECTS[trial.case.api]
    where = Where.AFTER if trial.what is What.NOTHING else trial.case.fault.where
    usage = dialect.hear(trial.script.said(where)).usage or {}
    return PARTS * int(usage.get(dialect.tokens[1], 0))


def trials() -> Iterator[Trial]:
    every = product(DIALECTS, (True, False), list(faults(Who.SUMMARIZER, streamed=True)))
    for api, streamed, fault in every:
        case = Case(api, streamed, fault)
        for on_failure in ("omit", "extract", "fail"):
            for short in shorts(fault, on_failure):
                yield Trial(case, on_failure, short)


def shorts(fault: Fault, on_failure: str) -> list[str]:
    """How long a stall is borne has nothing to do with what is done about it: what runs out is
    varied with `omit` alone. Of a part that has spoken no first token is waited for."""
    if fault.what is not What.STALL:
        return [""]
    if on_failure != "omit":
        return ["grace"]
    spoke = fault.where >= Where.ANSWER
    return [short for short in RUNS_OUT if not (spoke and short == "first_token")]
