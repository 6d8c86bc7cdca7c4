"""The committed rules, by Prometheus's own tool."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import abridge
from abridge.config.settings import Settings
from abridge.observability.metrics import HELD_BUCKETS
from tests.grafana.committed import FOLDER, LABELS, PANELS, RULES, RULES_FILE, VARIABLES, panels
from tests.grafana.prometheus import needs_promtool, promtool

ALERTS = [rule for rule in RULES if "alert" in rule]
TESTS = FOLDER / "rules" / "tests.yaml"
SEVERITIES = {"warning", "critical"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in SEVERITIES
    assert set(alert["annotations"]) == {"summary", "description", "runbook"}
    assert all("\n" not in output for output in alert["annotations"].values())


def test_what_a_runbook_names_is_there() -> None:
    """Panels, alerts, and what the log says."""
    titles = [panel.place for panel in panels()]
    named = " ".join(alert["annotations"]["runbook"] for alert in ALERTS)
    for other in re.findall(r"\bAbridge[A-Z]\w+", named):
        assert other in [alert["alert"] for alert in ALERTS]
    code = "".join(file.read_text() for file in Path(abridge.__file__).parent.rglob("*.py"))
    lines = re.findall(r"in the log for `([^`]+)`", named)
    assert lines
    for line in lines:
        assert f'"{re.sub("…|{{.*?}}", "%s", line)}' in code
    for quoted in re.findall(r"`([A-Z][^`]+)`", named):
        assert any(title.startswith(quoted) for title in titles), quoted


def test_the_settings_that_are_named_are_there() -> None:
    annotated = [output for alert in ALERTS for output in alert["annotations"].values()]
    annotated += [panel["description"] for panel in PANELS]
    tables = Settings().model_dump()
    keys = re.findall(r"\b([a-z]+)\.([a-z_]+)\b", re.sub(r"{{.*?}}", "", " ".join(annotated)))
    assert keys
    for table, key in keys:
        assert key in tables[table], (table, key)


def test_each_alert_fires_in_a_test_and_does_not_in_another() -> None:
    for alert in ALERTS:
        cases = [case for case in _cases() if case["name"].startswith(f"{alert['alert']} ")]
        outcomes = {
            bool(test["exp_samples"])
            for case in cases
            for test in case["promql_expr_test"]
            if f'"{alert["alert"]}"' in test["expr"]
        }
        assert outcomes == {True, False}, alert["alert"]


def test_a_for_is_no_shorter_than_what_an_alert_looks_at() -> None:
    """So that one bad request alone fires none."""
    recorded = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
    for alert in ALERTS:
        expr = " ".join(
            [alert["expr"], *(recorded.get(name, "") for name in alert["expr"].split())]
        )
        windows = [int(window) for window in re.findall(r"\[(\d+)m\]", expr)]
        assert int(alert["for"].removesuffix("m")) >= max(windows, default=1), alert["alert"]


def test_answers_that_wait_for_the_whole_grace_can_be_told() -> None:
    """Where a quantile stands within a bucket is a guess: a threshold has to be an edge."""
    grace = Settings().summary.grace
    alert = next(alert for alert in ALERTS if alert["alert"] == "AbridgeAnswersHeld")
    assert alert["expr"].endswith(f" > {grace:g}")
    assert grace in HELD_BUCKETS
    assert list(HELD_BUCKETS) == sorted(HELD_BUCKETS)


@needs_promtool
class TestTool:
    def test_it_finds_nothing_wrong_with_the_rules(self) -> None:
        content, output = promtool("check", "rules", str(RULES_FILE))
        assert content, output
        assert f"{len(RULES)} rules found" in output

    def test_its_tests_pass(self) -> None:
        content, output = promtool("test", "rules", str(TESTS))
        assert content, output

    def test_money_is_tokens_times_price(self, tmp_path: Path) -> None:
        """Per style and summarizer: at prices of 2 and 8 for a million of the model's
        tokens, and of 1 and 4 for the summarizer's."""
        spent = "abridge_summarizer_tokens_total"
        samples = {
            f'{spent}{{style="auto", summarizer="model", type="input"}}': 3_000_000,
            f'{spent}{{style="auto", summarizer="model", type="output"}}': 250_000,
            f'{spent}{{style="concise", summarizer="upstream", type="input"}}': 1_000_000,
            f'{spent}{{style="concise", summarizer="upstream", type="output"}}': 500_000,
            'abridge_upstream_tokens_total{type="input"}': 5_000_000,
            'abridge_upstream_tokens_total{type="output"}': 1_000_000,
            'abridge_upstream_tokens_total{type="reasoning"}': 900_000,
        }
        expected = {
            "Money: summaries far below the models [A]": {"{}": 5 * 2 + 8},
            "Money: summaries far below the models [B]": {"{}": 3 * 1 + 1 + 2 + 4},
            "The ledger by style and summarizer: each worth its price [D]": {
                '{style="auto", summarizer="model"}': 3 * 1 + 1,
                '{style="concise", summarizer="upstream"}': 2 + 4,
            },
        }
        expressions = {panel.place: priced(panel.text) for panel in panels()}
        case = {
            "interval": "1m",
            "input_series": [
                {"series": series, "values": f"0+{tokens / 60}x60"}
                for series, tokens in samples.items()
            ],
            "promql_expr_test": [
                {
                    "expr": f"round({expressions[place]}, 0.001)",
                    "eval_time": "60m",
                    "exp_samples": [{"labels": row, "value": value} for row, value in rows.items()],
                }
                for place, rows in expected.items()
            ],
        }
        file = tmp_path / "money.yaml"
        file.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))  # JSON is YAML
        content, output = promtool("test", "rules", str(file))
        assert content, output

    def test_no_panel_shows_a_number_that_is_none(self, tmp_path: Path) -> None:
        """Where all was counted once, and nothing happens: `NaN` would be on the screen, and in the
        mean of a legend from then on."""
        case = {
            "interval": "1m",
            "input_series": [
                {"series": f"{name}{_labelled(labels)}", "values": "1+0x120"}
                for name, labels in LABELS.items()
            ],
            "promql_expr_test": [
                {"expr": f"({each}) != ({each})", "eval_time": "120m", "exp_samples": []}
                for each in (priced(panel.text) for panel in panels())
            ],
        }
        file = tmp_path / "quiet.yaml"
        file.write_text(json.dumps({"evaluation_interval": "1m", "tests": [case]}))
        content, output = promtool("test", "rules", str(file))
        assert content, output


def _labelled(labels: set[str]) -> str:
    """As a series spells labels of no particular values."""
    output = [f'{name}="{"+Inf" if name == "le" else "x"}"' for name in sorted(labels)]
    return f"{{{', '.join(output)}}}"


def priced(text: str) -> str:
    prices = {"model_input": 2, "model_output": 8, "summary_input": 1, "summary_output": 4}
    for name in VARIABLES:
        text = re.sub(rf"\${name}\b", str(prices.get(name, ".*")), text)
    return re.sub(r"\$__(rate_interval|range)\b", "60m", text)


def _cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = yaml.safe_load(TESTS.read_text())["tests"]
    return cases
