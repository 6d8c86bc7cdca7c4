"""What the README shows first is what the demo's model and the embedded summarizer say."""

from __future__ import annotations

from itertools import groupby

import pytest

from abridge import AbridgeMiddleware, Settings
from abridge.sidecar.demo.model import MODEL_NAME, scripted_model
from abridge.sidecar.demo.script import QUESTION, THINKING
from tests.docs.pages import texts_of
from tests.support.asgi import call
from tests.support.checker import check_responses

THOUGHT, SUMMARY = texts_of("README.md", "text")[:2]
LEFT_OUT = "[…]"


def unwrapped(text: str) -> list[str]:
    """Return the paragraphs of a text, each in one line."""
    paragraphs = groupby(text.splitlines(), key=lambda line: bool(line.strip()))
    return [" ".join(map(str.strip, lines)) for has_text, lines in paragraphs if has_text]


def shown(text: str) -> list[str]:
    return [paragraph.removesuffix(LEFT_OUT).strip() for paragraph in unwrapped(text)]


@pytest.fixture
async def summary() -> list[str]:
    """Return the paragraphs of the summary, as a stream tells it."""
    app = AbridgeMiddleware(scripted_model(0), Settings())
    asked = {"model": MODEL_NAME, "input": QUESTION, "reasoning": {"summary": "auto"}}
    answered = await call(app, "/v1/responses", {**asked, "stream": True})
    terminal = check_responses(answered.data).terminal
    assert terminal is not None
    parts = terminal["response"]["output"][0]["summary"]
    return [paragraph for part in parts for paragraph in unwrapped(part["text"])]


def test_the_thinking_is_the_models() -> None:
    assert all(paragraph in " ".join(THINKING.split()) for paragraph in shown(THOUGHT))


async def test_the_summary_is_the_summarizers(summary: list[str]) -> None:
    for paragraph in shown(SUMMARY):
        assert any(each.startswith(paragraph) for each in summary), paragraph


async def test_the_summary_is_shorter_than_what_it_stands_for(summary: list[str]) -> None:
    assert sum(map(len, summary)) < len(THINKING) / 2
