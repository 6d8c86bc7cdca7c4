"""The panels, by row."""

from collections.abc import Mapping, Sequence

from grafana.panel import Panel
from grafana.rows.costs import COSTS
from grafana.rows.health import HEALTH
from grafana.rows.traffic import TRAFFIC
from grafana.rows.users import USERS

ROWS: Mapping[str, Sequence[Panel]] = {
    "What users get": USERS,
    "What it costs": COSTS,
    "Traffic": TRAFFIC,
    "Health": HEALTH,
}
