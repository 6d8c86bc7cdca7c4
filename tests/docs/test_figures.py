"""Each figure that a page states comes from one place: the last run of a benchmark, the default of
a setting, a constant, the threshold of an alert, or what another test counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from abridge import Settings
from abridge.apis import effort, model_names, token_counters
from abridge.apis.compaction import responses as compaction
from abridge.apis.messages import request as messages_request
from abridge.caches import MAX_KEY_CHARS, OPENED_BLOB_BYTES
from abridge.memory.stores import redis_client
from abridge.observability.tracing import export
from abridge.pipeline import exchange_plan, trial
from abridge.sidecar.client_keys import accounts, limits
from abridge.sidecar.demo.script import THINKING
from abridge.sidecar.server import refusals
from abridge.summarizers import checks, guard
from abridge.websocket import session
from tests.benchmarks import figures, peers, report
from tests.benchmarks.figures import REPLICA_SHARE
from tests.campaigns import scale
from tests.campaigns.constants import Constants
from tests.docs.pages import PAGES, ROOT, name_of, without_fences
from tests.docs.test_readme import DEMO_SECONDS
from tests.grafana.committed import RULES
from tests.pipeline.test_compaction_of_work import BEFORE_AND_AFTER
from tests.summarizers.model.test_prompts import MOST_SENT

GENERATED = (
    *("docs/settings.md", "docs/examples-of-summaries.md", "tests/benchmarks/README.md"),
    "CHANGELOG.md",
)
"""What the code writes, and what is not about this version."""

NUMBER = r"\d[\d,]*(?:\.\d+)?"
UNITS = {
    "seconds": "s",
    "second": "s",
    **{
        unit: unit for unit in ("µs", "ms", "s", "minutes", "days", "KB", "MB", "KiB", "MiB", "GiB")
    },
    **{unit: unit for unit in ("%", "×", "times", "tokens", "characters", "a second")},
}
FIGURE = re.compile(rf"(?<![\w.:/-])({NUMBER}(?: to {NUMBER})?) ({'|'.join(UNITS)})(?!\w)")
WHOLE = "100 %"

DEFAULTS = Settings()
MEASURED = figures.read()


def stated(page: Path) -> set[str]:
    """Return the figures of a page's prose and tables, without code."""
    text = re.sub(r"`[^`\n]+`", "", without_fences(page))
    found = {f"{number} {UNITS[unit]}" for number, unit in FIGURE.findall(text)}
    return found - {WHOLE}


def measured(*names: str) -> set[str]:
    return {MEASURED[name]["figure"] for name in names}


def alert(name: str) -> float:
    """Return the threshold of an alert."""
    [rule] = [rule for rule in RULES if rule.get("alert") == name]
    return float(rule["expr"].rpartition("> ")[2])


def mib(size: int) -> str:
    return f"{size >> 20} MiB"


def percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


NAME = f"{model_names.MAX_NAME_CHARS} characters"
PAUSE = f"{guard.BACKOFF_SECONDS:g} s"
SENT = "100 KB"  # in what the benchmarks of histories and bodies send
COSTS = Constants.load()
FLEETS = scale.costs(scale.read(), COSTS)
TTL = f"{DEFAULTS.history.seal_ttl / 86400:g} days"

SOURCES: dict[str, set[str]] = {
    "README.md": {f"{len(THINKING):,} characters", *DEMO_SECONDS},
    "docs/background.md": {mib(DEFAULTS.background.bytes)},
    "docs/compaction.md": {
        f"{compaction.RETAINED_TOKENS:,} tokens",
        f"{BEFORE_AND_AFTER[0]:,} tokens",
    },
    "docs/cost.md": {
        *(f"{share:g} times" for share in MOST_SENT.values()),
        *(f"{size:,} characters" for size in MOST_SENT),
        PAUSE,
        SENT,
        "40 characters",  # of a delta of `scripts.SHORT`
        *measured("stock httpx", "event rewritten, paced", "event bridged, paced"),
        *measured("event passed, paced", "memory of a stream, open", "delay of an event, open"),
        *measured("history restored", "history opened", "history opened first"),
    },
    "docs/hiding.md": {mib(DEFAULTS.limits.reasoning)},
    "docs/keys.md": {f"{accounts.REFUSAL_SECONDS:g} s", f"{limits.LEASE / 1000:g} s"},
    "docs/ledger.md": {
        f"{DEFAULTS.ledger.retention / 86400:g} days",
        *("265 MB", "240 MB"),  # what the servers said of 40,000 entries
    },
    "docs/logs.md": {f"{export.FLUSH_SECONDS:g} s"},
    "docs/messages.md": {
        f"{messages_request.MAX_USER_CHARS} characters",
        f"{token_counters.CHARS_PER_TOKEN} characters",
        f"{token_counters.JSON_CHARS_PER_TOKEN} characters",
        f"{token_counters.BASE64_CHARS_PER_TOKEN} characters",
    },
    "docs/metrics.md": {
        f"{alert('AbridgeAnswersHeld'):g} s",
        f"{alert('AbridgeEventLoopLate'):g} s",
        percent(alert("AbridgeNearlyFull")),
        percent(alert("AbridgeSummarizerNearlyFull")),
        percent(alert("AbridgeProcessorBusy")),
    },
    "docs/routing.md": {f"{effort.LEAST_BUDGET} tokens"},
    "docs/scaling.md": {
        *(
            f"{cost:g} µs"
            for cost in (COSTS.claim, COSTS.claim_replica, COSTS.entry, COSTS.round_trip)
        ),
        f"{COSTS.store_trip:g} µs",
        *(scale.percent(each.share) for line in FLEETS.values() for each in line.values()),
        f"{redis_client.MAX_WAIT * 1000:g} ms",
    }
    - {WHOLE},
    "docs/summaries.md": {percent(exchange_plan.FIRST_SHARE)},
    "docs/summarizers.md": {f"{checks.TOLERANCE:g} times", percent(checks.MAX_ECHO)},
    "docs/threat-model.md": {
        mib(OPENED_BLOB_BYTES),
        f"{refusals.MAX_LINE >> 10} KiB",
        f"{refusals.MAX_HEAD >> 10} KiB",
        f"{MAX_KEY_CHARS} characters",
        NAME,
        f"{trial.MAX_ERROR_BYTES >> 10} KiB",
    },
    "docs/troubleshooting.md": {
        PAUSE,
        NAME,
        f"{DEFAULTS.summary.first_token:g} s",
        f"{DEFAULTS.summary.grace:g} s",
    },
    "docs/upgrading.md": {TTL, NAME},
    "docs/websockets.md": {f"{session.MAX_SECONDS / 60:g} minutes"},
    "deploy/README.md": {
        percent(REPLICA_SHARE),
        *measured("event rewritten, open", "events rewritten a second, open"),
        *measured("event rewritten, paced", "events rewritten a second, paced"),
        *measured("event passed, open", "events passed a second, open"),
        *measured("request passed", "requests passed a second"),
        *measured("request engaged", "requests engaged a second"),
        *measured("history restored", "history opened", "history opened first"),
        *measured("memory, idle", "memory of a stream, open", "memory of a stream, fast"),
        SENT,
        TTL,
        "1 s",  # what one run of .ci/image saw
    },
    ".github/CONTRIBUTING.md": {"72 characters"},  # a rule
}


def test_the_measured_figures_are_those_of_the_last_runs() -> None:
    remake = "python -m tests.benchmarks report"
    assert figures.FILE.read_text() == figures.render(report.saved_findings()), remake


def test_a_new_run_is_written_into_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, page = tmp_path / "figures.toml", tmp_path / "page.md"
    rewritten = MEASURED["event rewritten, paced"]["figure"]
    file.write_text(figures.FILE.read_text().replace(rewritten, "1.5 to 9 µs"))
    page.write_text("| 1.5 to 9 µs | 11.5 to 9 µs | 100 s |")
    monkeypatch.setattr(figures, "FILE", file)
    monkeypatch.setattr(figures, "PAGES", (page,))
    figures.write(report.saved_findings())
    assert page.read_text() == f"| {rewritten} | 11.5 to 9 µs | 100 s |"


def test_the_page_of_costs_shows_the_last_run_beside_other_gateways() -> None:
    assert peers.section() in peers.PAGE.read_text(), "python -m tests.benchmarks.peers --write"


def test_the_benchmarks_page_shows_the_last_runs() -> None:
    assert report.table() in report.README.read_text(), "python -m tests.benchmarks report"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if name_of(page) not in GENERATED], ids=name_of
)
def test_a_page_states_the_figures_of_their_sources(page: Path) -> None:
    assert stated(page) == SOURCES.get(name_of(page), set())


def test_no_page_is_named_that_is_gone() -> None:
    assert all((ROOT / page).exists() for page in SOURCES)
