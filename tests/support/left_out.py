"""At the end of a run: what was not run, for want of what, and how to run it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.matrix import LEFT

WANTS = {
    "redis-server or valkey-server": "apt-get install redis-server",
    "redis-server speaks no TLS": "a redis-server that was built with TLS",
    "chromium": "apt-get install chromium",
    "prometheus on": "apt-get install prometheus",
    "promtool": "apt-get install prometheus, which brings it",
    "kubectl": "install kubectl",
    "openssl": "apt-get install openssl",
    "hadolint": "pip install --group deploy",
    "--group deploy": "pip install --group deploy",
    "provider traffic": "recordings are no part of the project: lay yours there",
    "parameter set for (recording)": "recordings are no part of the project: lay yours there",
    "API description": "OpenAI's own, as JSON, from github.com/openai/openai-openapi",
    "no codex": "npm install --global @openai/codex",
    "no AI SDK": "npm install ai @ai-sdk/openai, and AI_SDK=the folder",
    "openai-agents": "pip install openai-agents",
    "langchain-openai": "pip install langchain-openai",
    "litellm": "pip install litellm",
    "extra 'seal'": "pip install '.[test]'",
    "anthropic package": "pip install '.[test]'",
    "grafana_foundation_sdk": "pip install '.[test]'",
    "clock cannot be put forward": "nothing to do: it runs on asyncio's own loop",
    "resource": "a POSIX system",
}
"""What a reason to skip says, and what helps."""

GONE = pytest.StashKey[int]()
"""How many tests a worker deselected, for whatever reason."""


def pytest_deselected(items: Any) -> None:
    """Each worker tells its controller, which collects nothing itself."""
    if items and (config := getattr(items[0], "config", None)):
        config.stash[GONE] = config.stash.get(GONE, 0) + len(items)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        told["deselected"] = session.config.stash.get(GONE, 0)
        told["left_out"] = session.config.stash.get(LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """All workers choose alike, so that the first that ends says it for all."""
    config, told = node.config, getattr(node, "workeroutput", {})
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if GONE in config.stash or "deselected" not in told:
        return
    config.stash[GONE], config.stash[LEFT] = told["deselected"], told["left_out"]
    if told["deselected"] and reporter is not None:
        reporter.stats["deselected"] = [SimpleNamespace()] * told["deselected"]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    lines = list(_lines(terminalreporter.stats.get("skipped", ()), config.stash.get(LEFT, 0)))
    if lines:
        terminalreporter.section("what was left out, and how to run it", sep="-")
        for line in lines:
            terminalreporter.line(line)


def _lines(skipped: Any, left: int) -> Iterator[str]:
    reasons = Counter(_reason(report) for report in skipped)
    wants: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for reason, count in reasons.items():
        want = next((want for said, want in WANTS.items() if said in reason), "")
        wants.setdefault(want or reason, []).append(reason)
        counts[want or reason] += count
    for want, count in counts.most_common():
        first = wants[want][0]
        yield f"{count:5}  {first}" + (f" -> {want}" if want != first else "")
    if reasons:
        yield "       (-rs names each)"
    if left:
        yield f"{left:5}  cases of the long matrices, whose every value was run -> pytest --matrix"


def _reason(report: Any) -> str:
    told = report.longrepr
    said = told[2] if isinstance(told, tuple) else str(told)
    return said.removeprefix("Skipped: ")
