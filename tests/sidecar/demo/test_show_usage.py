"""Test the demo's bill: tokens of the model and of its summary."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.sidecar.demo.render import ResponseProgress
from abridge.sidecar.demo.show import usage_lines


def usage(share: dict[str, Any] | None) -> dict[str, Any]:
    spent = share or {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    merged = {
        "input_tokens": 20 + spent["input_tokens"],
        "output_tokens": 1180 + spent["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": 1000},
        "total_tokens": 1200 + spent["total_tokens"],
    }
    return merged if share is None else {**merged, "reasoning_summary": share}


MODEL = {
    "input_tokens": 700,
    "output_tokens": 100,
    "total_tokens": 800,
    "model": "small",
    "parts": 3,
    "incomplete": False,
}
NONE = {**MODEL, "input_tokens": 0, "output_tokens": 0, "total_tokens": 0, "model": "extractive"}


@pytest.mark.parametrize(
    ("share", "summary", "total"),
    [
        (MODEL, "800 tokens, 40.0% of the bill: 3 parts, written by small", "2,000"),
        (NONE, "0 tokens, 0.0% of the bill: 3 parts, extracted without a model", "1,200"),
    ],
)
def test_the_summarys_tokens_are_listed_separately(
    share: dict[str, Any], summary: str, total: str
) -> None:
    lines = [
        " ".join(line.split()) for line in usage_lines(ResponseProgress(usage=usage(share)), None)
    ]
    assert lines == [
        "model 1,200 tokens: 20 input, 1,000 reasoning, 180 answer",
        f"summary {summary}",
        f"total {total} tokens",
    ]


def test_times_are_shown_if_known() -> None:
    scene = ResponseProgress(first_summary=2.04, thinking_ended=7.5)
    lines = [" ".join(line.split()) for line in usage_lines(scene, 0.256)]
    assert lines == [
        "time first summary text after 2.0 s, thinking ended after 7.5 s",
        "held the answer waited 0.26 s for its summary",
    ]
