"""Test the committed rules, some with Prometheus's own promtool."""

from __future__ import annotations

import json
import re
from functools import cache
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
def test_an_alert_has_a_summary_and_a_runbook(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in SEVERITIES
    assert set(alert["annotations"]) == {"summary", "description", "runbook"}
    assert all("\n" not in output for output in alert["annotations"].values())


def test_everything_a_runbook_names_exists() -> None:
    """A runbook may name panels, alerts and log messages."""
    titles = [panel.place for panel in panels()]
    named = " ".join(alert["annotations"]["runbook"] for alert in ALERTS)
    for other in re.findall(r"\bAbridge[A-Z]\w+", named):
        assert other in [alert["alert"] for alert in ALERTS]
    code = "".join(file.read_text() for file in Path(abridge.__file__).parent.rglob("*.py"))
    lines = re.findall(r"in the log for `([^`]+)`", named)
    assert lines
    for words in (words.strip(" :") for line in lines for words in re.split("…|{{.*?}}", line)):
        assert words in code, words
    for quoted in re.findall(r"`([A-Z][^`]+)`", named):
        assert any(title.startswith(quoted) for title in titles), quoted


def test_the_settings_in_the_texts_exist() -> None:
    annotated = [output for alert in ALERTS for output in alert["annotations"].values()]
    annotated += [panel["description"] for panel in PANELS]
    tables = Settings().model_dump()
    keys = re.findall(r"\b([a-z]+)\.([a-z_]+)\b", re.sub(r"{{.*?}}", "", " ".join(annotated)))
    assert keys
    for table, key in keys:
        assert key in tables[table], (table, key)


def test_each_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    for alert in ALERTS:
        cases = [case for case in _cases() if case["name"].startswith(f"{alert['alert']} ")]
        outcomes = {
            bool(test["exp_samples"])
            for case in cases
            for test in case["promql_expr_test"]
            if f'"{alert["alert"]}"' in test["expr"]
        }
        assert outcomes == {True, False}, alert["alert"]


def test_an_alerts_for_is_at_least_its_window() -> None:
    """Otherwise one bad request alone fires it."""
    recorded = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
    for alert in ALERTS:
        expr = " ".join(
            [alert["expr"], *(recorded.get(name, "") for name in alert["expr"].split())]
        )
        windows = [int(window) for window in re.findall(r"\[(\d+)m\]", expr)]
        assert int(alert["for"].removesuffix("m")) >= max(windows, default=1), alert["alert"]


def test_the_hold_threshold_is_a_bucket_edge() -> None:
    """Quantiles are interpolated within a bucket, so a threshold has to be a bucket's edge."""
    grace = Settings().summary.grace
    alert = next(alert for alert in ALERTS if alert["alert"] == "AbridgeAnswersHeld")
    assert alert["expr"].endswith(f" > {grace:g}")
    assert grace in HELD_BUCKETS
    assert list(HELD_BUCKETS) == sorted(HELD_BUCKETS)


@needs_promtool
class TestTool:
    def test_promtool_accepts_the_rules(self) -> None:
        content, output = promtool("check", "rules", str(RULES_FILE))
        assert content, output
        assert f"{len(RULES)} rules found" in output

    def test_promtools_tests_pass(self) -> None:
        content, output = promtool("test", "rules", str(TESTS))
        assert content, output

    def test_money_is_tokens_times_price(self, tmp_path: Path) -> None:
        """Prices per million are 2 and 8 for the model's tokens, 1 and 4 for the summarizer's."""
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
            "The ledger by style and summarizer: cost and hold of each [D]": {
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

    def test_no_panel_shows_nan(self, tmp_path: Path) -> None:
        """Once counters stop moving, a division would show `NaN`, also in a legend's mean."""
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
    """Return labels with arbitrary values, as a series spells them."""
    output = [f'{name}="{"+Inf" if name == "le" else "x"}"' for name in sorted(labels)]
    return f"{{{', '.join(output)}}}"


def priced(text: str) -> str:
    prices = {"model_input": 2, "model_output": 8, "summary_input": 1, "summary_output": 4}
    for name in VARIABLES:
        text = re.sub(rf"\${name}\b", str(prices.get(name, ".*")), text)
    return re.sub(r"\$__(rate_interval|range)\b", "60m", text)


@cache
def _cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = yaml.safe_load(TESTS.read_text())["tests"]
    return cases
