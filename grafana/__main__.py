"""Print the dashboard: `python -m grafana > grafana/abridge.json`."""

import json
import sys

from grafana.dashboard import build_dashboard

json.dump(build_dashboard(), sys.stdout, indent=2, ensure_ascii=False)
sys.stdout.write("\n")
