"""Let a real Prometheus scrape a run with every kind of traffic, then evaluate every expression of
the dashboard and the rules."""

from __future__ import annotations

import asyncio
import math
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.grafana.committed import RULES, VARIABLES, Expression, annotations, panels, rules
from tests.grafana.prometheus import (
    Prometheus,
    needs_prometheus,
    needs_promtool,
    prometheus,
    promtool,
)
from tests.grafana.traffic import SEEN, stage
from tests.support.servers import HANG

pytestmark = needs_prometheus

MOST_ROUNDS = 6
WINDOW = "10m"
"""Longer than the whole run takes."""

EMPTY = {
    "AbridgeDown": "both are up",
    "Irregularities in requests and answers: few [C]": "no reasoning is hidden",
    "Requests by key: none refused [A]": "clients need no keys",
    "Tokens by key: within their budgets [A]": "clients need no keys",
    "Requests by key: none refused [B]": "clients need no keys",
    "Cost by key and team: within their limits [A]": "clients need no keys",
    "Cost by key and team: within their limits [B]": "clients need no keys",
    "Tokens by team: within their limits [A]": "clients need no keys",
    "Requests refused for a limit: few [A]": "clients need no keys",
    "Limits counted together: none failed [A]": "clients need no keys",
}
"""Expressions that have no result here, and why."""

PRICES = {"model_input": "2", "model_output": "8", "summary_input": "0.1", "summary_output": "0.4"}

Series = list[tuple[dict[str, str], float]]


@dataclass
class PrometheusReport:
    """What Prometheus reported: the series or error of each expression, the values of each variable
    and the state of each rule; `missing` are the series never seen; `exposed` is what Abridge's own
    metrics endpoint returned."""

    answers: dict[str, Series | str] = field(default_factory=dict)
    values: dict[str, list[str]] = field(default_factory=dict)
    rules: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    exposed: str = ""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> PrometheusReport:
    return asyncio.run(_run(tmp_path_factory.mktemp("prometheus")))


async def _run(folder: Path) -> PrometheusReport:
    report = PrometheusReport()
    async with stage() as played, prometheus(folder, played.metrics) as server:
        await _wait_for_scrape(server)
        for number in range(MOST_ROUNDS):
            await played.play()
            await _wait_for_scrape(server)
            report.missing = [each for each in SEEN if not await _has_series(server, each)]
            if number > 0 and not report.missing:  # a rate needs two
                break
        report.rules = await _evaluated_rules(server)
        both_up = await _time_when_both_were_up(server)
        for expression in (*panels(), *rules(), *annotations()):
            report.answers[expression.text] = await _ask(server, expression, both_up)
        for name in filter(_is_query, VARIABLES):
            selected = fill_variables(VARIABLES[name]["definition"])[len("label_values(") :]
            report.values[name] = await server.values(name, selected.rpartition(", ")[0])
        report.exposed = (await server.client.get(played.metrics[0])).text
    return report


async def _wait_for_scrape(server: Prometheus) -> None:
    """Wait until each target has been scraped anew.

    `timestamp` tells when a sample was taken only if it is given a plain series; of a comparison
    it tells when the expression was evaluated.
    """
    scraped = f"count((timestamp(up) > {time.time()}) and (up == 1)) == 2"
    async with asyncio.timeout(HANG):
        while not await server.query(scraped):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def _time_when_both_were_up(server: Prometheus) -> float:
    """Return a time of which all samples are in: on a busy machine, a scrape may time out."""
    async with asyncio.timeout(HANG):
        while True:
            at = time.time()
            await _wait_for_scrape(server)
            if await server.query("count(up == 1) == 2", at):
                return at


async def _has_series(server: Prometheus, series: str) -> bool:
    return bool(await server.query(f"abridge_{series} > 0"))


async def _ask(server: Prometheus, expression: Expression, at: float) -> Series | str:
    try:
        return await server.query(without_threshold(fill_variables(expression.text)), at)
    except ValueError as error:
        return str(error)


async def _evaluated_rules(server: Prometheus) -> list[dict[str, Any]]:
    """Return the rules once all have been evaluated anew."""
    began = datetime.now(UTC)
    async with asyncio.timeout(HANG):
        while True:
            groups = (await server.get("rules"))["groups"]
            found = [rule for group in groups for rule in group["rules"]]
            if all(datetime.fromisoformat(rule["lastEvaluation"]) > began for rule in found):
                return found
            await asyncio.sleep(0.1)


def _is_query(name: str) -> bool:
    return bool(VARIABLES[name]["type"] == "query")


def fill_variables(text: str) -> str:
    """Return an expression as Grafana sends it with everything selected."""
    for name, variable in VARIABLES.items():
        text = re.sub(rf"\${name}\b", PRICES.get(name, variable.get("allValue", "")), text)
    return re.sub(r"\$__(rate_interval|range)\b", WINDOW, text)


def without_threshold(text: str) -> str:
    """Return an alert's expression without its threshold, so that it always has a result."""
    return re.sub(r" > [\d.]+(?=$|\s*and)", "", text) if "/" not in text else text


def test_every_expected_series_was_seen(report: PrometheusReport) -> None:
    assert not report.missing


def test_an_expression_has_a_result(report: PrometheusReport) -> None:
    for expression in (*panels(), *rules(), *annotations()):
        answer = report.answers[expression.text]
        assert not isinstance(answer, str), (expression.place, answer)
        there = any(not math.isnan(value) for _, value in answer)
        assert there != (expression.place in EMPTY), (expression.place, answer)


@pytest.mark.parametrize("name", [*filter(_is_query, VARIABLES)])
def test_a_variable_has_values(report: PrometheusReport, name: str) -> None:
    assert report.values[name]


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_metrics(report: PrometheusReport) -> None:
    assert "abridge_first_part_seconds_bucket" in report.exposed
    assert promtool("check", "metrics", read=report.exposed) == (True, "")


def test_every_rule_is_evaluated(report: PrometheusReport) -> None:
    assert len(report.rules) == len(RULES)
    assert not [rule["lastError"] for rule in report.rules if rule["health"] != "ok"]


def test_the_ledger_has_a_row_for_each_style_and_summarizer(report: PrometheusReport) -> None:
    """The table shows tokens, seconds and money."""
    ledger = [each for each in panels() if each.place.startswith("The ledger by style")]
    rows = [
        {(labels["style"], labels["summarizer"]) for labels, _ in report.answers[each.text]}
        for each in ledger
    ]
    styles = {(style, "model") for style in ("concise", "auto", "detailed")}
    extracts = {(style, "extractive") for style in ("concise", "auto", "detailed")}
    assert rows == [styles | extracts, styles, styles, styles, styles | extracts, styles | extracts]
