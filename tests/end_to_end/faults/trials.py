"""The summarizer's faults and their outcomes, as rules of which the first match applies."""

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
"""The parts of a summary, each of which is one call."""

RUNS_OUT = {"first_token": "timeout", "grace": "deadline", "timeout": "timeout"}
"""The limits that may run out while a summarizer stalls, and the code that results."""

COUNTED_CODES = ("timeout", "deadline", "empty")
"""Codes counted as outcomes of their own."""


@dataclass(frozen=True)
class Trial:
    """A case, the `on_failure` setting and, for a stall, the limit that runs out."""

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
        """Whether the fault comes after the end."""
        return self.case.fault.where is Where.AFTER

    @property
    def began(self) -> bool:
        """Whether some of the summary arrived before the fault."""
        return self.case.fault.where >= Where.ANSWER

    @property
    def extracted(self) -> bool:
        """Whether an extract replaces a part.

        In a stall the first part, which began and does not end, keeps the second from beginning.
        """
        silent = not self.harmless and (not self.began or self.what is What.STALL)
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
    (lambda trial: trial.began, "partial"),
    (lambda trial: trial.extracted, "extractive"),
    (lambda _: True, "failed"),
)


def code_of(trial: Trial) -> str | None:
    return next(code(trial) for fits, code in CODE if fits(trial))


def outcome_of(trial: Trial) -> str:
    code = code_of(trial)
    if code is None:
        return "ok"
    if trial.began or trial.extracted:
        return "partial"
    return code if code in COUNTED_CODES else "failed"


def spent(trial: Trial) -> int:
    """Return the tokens that calls reported; an abandoned call reports none."""
    if trial.what is What.STALL and not trial.harmless:
        return 0
    dialect = DIALECTS[trial.case.api]
    where = Where.AFTER if trial.what is What.NOTHING else trial.case.fault.where
    usage = dialect.parse_stream(trial.script.body(where)).usage or {}
    return PARTS * int(usage.get(dialect.tokens[1], 0))


def trials() -> Iterator[Trial]:
    every = product(DIALECTS, (True, False), list(faults(Who.SUMMARIZER, streamed=True)))
    for api, streamed, fault in every:
        case = Case(api, streamed, fault)
        for on_failure in ("omit", "extract", "fail"):
            for short in shorts(fault, on_failure):
                yield Trial(case, on_failure, short)


def shorts(fault: Fault, on_failure: str) -> list[str]:
    """Return the limits to run out.

    They do not interact with `on_failure`, so they vary with `omit` alone. Once a part has begun,
    no first token is awaited.
    """
    if fault.what is not What.STALL:
        return [""]
    if on_failure != "omit":
        return ["grace"]
    began = fault.where >= Where.ANSWER
    return [short for short in RUNS_OUT if not (began and short == "first_token")]
