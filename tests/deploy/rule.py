"""Print grafana/rules/abridge.yaml as a PrometheusRule of the Prometheus Operator:
`python -m tests.deploy.rule > deploy/kubernetes/monitoring/prometheusrule.yaml`."""

from __future__ import annotations

import sys

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


def prometheus_rule() -> str:
    groups = RULES.read_text().partition("\ngroups:")[2]
    lines = f"groups:{groups}".splitlines()
    return HEAD + "\n".join(f"  {line}" if line else "" for line in lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(prometheus_rule())
