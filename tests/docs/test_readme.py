"""What the README shows first is what the demo's model and the built-in summarizer say."""

from __future__ import annotations

import re
import tomllib
from itertools import groupby

import pytest

from abridge import AbridgeMiddleware, Settings
from abridge.sidecar.demo.model import MODEL_NAME, scripted_model
from abridge.sidecar.demo.script import QUESTION, THINKING
from abridge.sidecar.demo.show import NORMAL_PAUSE
from tests.docs.pages import ROOT, texts_of
from tests.support.asgi import call
from tests.support.checker import check_responses

THOUGHT, SUMMARY = texts_of("README.md", "text")[:2]
LEFT_OUT = "[…]"

DEMO_SECONDS = ["1.4 s", "8 s"]
"""Until the first text of the summary, and until the answer, as the README states them."""


def unwrapped(text: str) -> list[str]:
    """Return the paragraphs of a text, each in one line."""
    paragraphs = groupby(text.splitlines(), key=lambda line: bool(line.strip()))
    return [" ".join(map(str.strip, lines)) for has_text, lines in paragraphs if has_text]


def shown(text: str) -> list[str]:
    return [paragraph.removesuffix(LEFT_OUT).strip() for paragraph in unwrapped(text)]


@pytest.fixture
async def stream() -> bytes:
    app = AbridgeMiddleware(scripted_model(0), Settings())
    asked = {"model": MODEL_NAME, "input": QUESTION, "reasoning": {"summary": "auto"}}
    return (await call(app, "/v1/responses", {**asked, "stream": True})).data


@pytest.fixture
def summary(stream: bytes) -> list[str]:
    """Return the paragraphs of the summary, as a stream tells it."""
    terminal = check_responses(stream).terminal
    assert terminal is not None
    parts = terminal["response"]["output"][0]["summary"]
    return [paragraph for part in parts for paragraph in unwrapped(part["text"])]


def test_the_thinking_is_the_models() -> None:
    assert all(paragraph in " ".join(THINKING.split()) for paragraph in shown(THOUGHT))


def test_the_summary_is_the_summarizers(summary: list[str]) -> None:
    for paragraph in shown(SUMMARY):
        assert any(each.startswith(paragraph) for each in summary), paragraph


def test_the_summary_is_shorter_than_what_it_stands_for(summary: list[str]) -> None:
    assert sum(map(len, summary)) < len(THINKING) / 2


def test_the_times_are_those_of_the_demos_pace(stream: bytes) -> None:
    before = stream.partition(b"event: response.reasoning_summary_text.delta")[0]
    first, last = (text.count(b"event: response.reasoning_text.delta") for text in (before, stream))
    assert [f"{first * NORMAL_PAUSE:.1f} s", f"{last * NORMAL_PAUSE:.0f} s"] == DEMO_SECONDS


def test_the_pythons_are_those_of_the_package() -> None:
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())
    stated = re.search(r"Python 3\.(\d+) to 3\.(\d+)", (ROOT / "README.md").read_text())
    assert stated is not None
    least, most = map(int, stated.groups())
    named = [f"Programming Language :: Python :: 3.{minor}" for minor in range(least, most + 1)]
    classifiers = package["project"]["classifiers"]
    assert [each for each in classifiers if "Python ::" in each] == named
    assert package["project"]["requires-python"] == f">=3.{least}"
    assert package["tool"]["ruff"]["target-version"] == f"py3{least}"
