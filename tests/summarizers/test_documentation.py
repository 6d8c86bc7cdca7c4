"""Run the summarizer and the review that docs/summarizers.md shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from prometheus_client import CollectorRegistry

from abridge.middleware import AbridgeMiddleware
from abridge.summarizers import Summarizer
from tests.support.asgi import call
from tests.support.deployments import settings_for
from tests.support.servers import serve
from tests.support.streams import chat_stream, completion
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

PAGE = Path(__file__).parents[2] / "docs" / "summarizers.md"

ASK = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "reasoning": {"summary": "auto"},
}

WRITTEN = "I add the numbers. They make 12."


def example(*names: str) -> tuple[Any, ...]:
    """Return what the page's Python defines under these names."""
    defined: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        if "app.add_middleware" not in block:
            exec(block, defined)  # noqa: S102 -- it is our own
    return tuple(defined[name] for name in names)


def thinker(reasoning: str) -> Upstream:
    return Upstream(Answer.json(completion({"reasoning_content": reasoning, "content": "12."})))


async def ask(thinking: Upstream, style: str = "auto", **given: Any) -> Any:
    """Return the message that a client gets, and its usage."""
    settings = settings_for(summarizer={"kind": "object"})
    app = AbridgeMiddleware(thinking, settings, registry=CollectorRegistry(), **given)
    answered = await call(app, "/v1/chat/completions", {**ASK, "reasoning": {"summary": style}})
    return answered.json["choices"][0]["message"], answered.json["usage"]


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        ("auto", f"**Concluding**\n\n{WRITTEN}"),
        ("concise", WRITTEN),
        ("title", "**Concluding**"),
    ],
)
async def test_the_documented_summarizer_writes_through_a_model(style: str, shown: str) -> None:
    (kind,) = example("TwoSentences")
    model = Upstream(Answer(chat_stream("", WRITTEN)))
    async with (
        serve(model) as address,
        AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        writer: Summarizer = kind(client, "small-model")
        message, usage = await ask(thinker("Five and seven make 12."), style, summarizer=writer)
    assert message["reasoning_content"] == shown
    assert message["content"] == "12."
    if style != "title":
        assert "Five and seven make 12." in model.requests[0].json["messages"][1]["content"]
        assert usage["reasoning_summary"]["output_tokens"] == 70


async def test_a_failure_of_the_documented_summarizers_model_costs_the_summary_alone() -> None:
    (kind,) = example("TwoSentences")
    model = Upstream(Answer.json({"error": {"message": "no"}}, status=400))
    async with (
        serve(model) as address,
        AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        writer: Summarizer = kind(client, "small-model")
        message, _ = await ask(thinker("Five and seven make 12."), summarizer=writer)
    assert message["content"] == "12."
    assert message["summary_error"]["code"] == "upstream_error"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("I charge 4111 1111 1111 1111, so it is paid.", "I charge [card], so it is paid."),
        ("I add the numbers.", "I add the numbers."),
        ("I think that Project Heron decides it.", None),
    ],
)
async def test_the_documented_review_masks_and_withholds(written: str, shown: str | None) -> None:
    (review,) = example("review")
    message, _ = await ask(thinker("Hm."), summarizer=Scripted(written), review=review)
    assert message.get("reasoning_content") == shown
    assert message.get("summary_error", {}).get("code") == (None if shown else "withheld")
