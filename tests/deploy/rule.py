"""Print grafana/rules/abridge.yaml as a PrometheusRule of the Prometheus Operator:

    python -m tests.deploy.rule > deploy/kubernetes/monitoring/rules/prometheusrule.yaml

Given the address at which docs/metrics.md is read, each alert links to its runbook there. With
`--plain`, print it as the rules of a Prometheus without an operator.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator

from tests.deploy.dockerfile import ROOT

RULES = ROOT / "grafana" / "rules" / "abridge.yaml"
HEAD = """\
# Made of grafana/rules/abridge.yaml by `python -m tests.deploy.rule`; change it there.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: abridge
  labels:
    app.kubernetes.io/name: abridge
    # What your Prometheus selects rules by; for the chart kube-prometheus-stack its release.
    release: kube-prometheus-stack
spec:
"""


def rules(runbooks: str) -> str:
    """Return the rules, with a `runbook_url` for each alert if there is a page of runbooks."""
    return "\n".join(_linked(RULES.read_text().splitlines(), runbooks)) + "\n"


def prometheus_rule(runbooks: str = "") -> str:
    groups = rules(runbooks).partition("\ngroups:")[2]
    lines = f"groups:{groups}".splitlines()
    return HEAD + "\n".join(f"  {line}" if line else "" for line in lines) + "\n"


def _linked(lines: list[str], runbooks: str) -> Iterator[str]:
    anchor = ""
    for line in lines:
        if alert := re.match(r" *- alert: (\w+)", line):
            anchor = alert[1].lower()
        yield line
        place = re.match(r" *(?=runbook: )", line)
        if place and runbooks:
            yield f'{place[0]}runbook_url: "{runbooks}#{anchor}"'


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the rules with links to runbooks.")
    parser.add_argument("runbooks", nargs="?", default="", help="the address of docs/metrics.md")
    parser.add_argument("--plain", action="store_true", help="for a Prometheus without an operator")
    options = parser.parse_args()
    sys.stdout.write((rules if options.plain else prometheus_rule)(options.runbooks))


if __name__ == "__main__":
    main()
