"""Run programs that the documentation shows, in front of a scripted model."""

from __future__ import annotations

import re
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.docs.pages import texts_of
from tests.support.asgi import call
from tests.support.servers import serve
from tests.support.streams import chat_stream, completion
from tests.support.upstream import Answer, Upstream

MOUNTED, _ = texts_of("docs/mounting.md", "python")

SUMMARIZER, REVIEW = texts_of("docs/summarizers.md", "python")

ADDRESS = "http://127.0.0.1:8001"

WRITTEN = "I add the numbers. They make 12."


def thinker(reasoning: str) -> Upstream:
    return Upstream(Answer.json(completion({"reasoning_content": reasoning, "content": "12."})))


def run(program: str) -> dict[str, Any]:
    """Return what a program defines."""
    defined: dict[str, Any] = {}
    exec(program, defined)  # noqa: S102 -- it is the project's own
    return defined


async def ask(app: Starlette, thought: str, **asked: Any) -> Any:
    """Have a model answer below the program's app; return the completion that a client gets."""
    app.mount("/", thinker(thought))
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **asked}
    return (await call(app, "/v1/chat/completions", body)).json


async def ask_with_summarizer(model: Upstream, **asked: Any) -> Any:
    """Ask for a summary of the program's summarizer, which calls `model`."""
    async with serve(model) as address:
        assert ADDRESS in SUMMARIZER
        program = run(SUMMARIZER.replace(ADDRESS, address))
        async with program["client"]:
            return await ask(program["app"], "Five and seven make 12.", **asked)


async def test_the_documented_app_answers_with_a_summary_for_whoever_asks_for_none() -> None:
    answered = await call(run(MOUNTED)["app"], "/v1/chat/completions", {"model": "m"})
    message = answered.json["choices"][0]["message"]
    assert message["content"] == "Yes, 97 is prime."
    assert re.match(r"\*\*.+\*\*\n\n", message["reasoning_content"])


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        ("auto", f"**Concluding**\n\n{WRITTEN}"),
        ("concise", WRITTEN),
        ("title", "**Concluding**"),
    ],
)
async def test_the_documented_summarizer_writes_through_a_model(style: str, shown: str) -> None:
    model = Upstream(Answer(chat_stream("", WRITTEN)))
    answered = await ask_with_summarizer(model, reasoning={"summary": style})
    message = answered["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (shown, "12.")
    if style != "title":
        assert "Five and seven make 12." in model.requests[0].json["messages"][1]["content"]
        assert answered["usage"]["reasoning_summary"]["output_tokens"] == 70


async def test_a_failure_of_the_documented_summarizers_model_costs_the_summary_alone() -> None:
    answered = await ask_with_summarizer(Upstream(Answer.json({"error": {}}, status=400)))
    message = answered["choices"][0]["message"]
    assert message["content"] == "12."
    assert message["summary_error"]["code"] == "upstream_error"


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("I charge 4111 1111 1111 1111, so it is paid.", "I charge [card], so it is paid."),
        ("I add the numbers.", "I add the numbers."),
        ("I think that Project Heron decides it.", None),
    ],
)
async def test_the_documented_review_masks_and_withholds(part: str, shown: str | None) -> None:
    assert await run(REVIEW)["review"](part) == shown


async def test_what_the_documented_review_withholds_no_client_sees() -> None:
    thought = "I think that Project Heron decides whether the price may go up this year."
    answered = await ask(run(REVIEW)["app"], thought)
    message = answered["choices"][0]["message"]
    assert message["summary_error"]["code"] == "withheld"
    assert "Heron" not in str(answered)
