"""Format the tokens and seconds of the demo's response."""

from __future__ import annotations

from collections.abc import Iterator

from abridge.demo.scene import Scene
from abridge.turn.usage import EXTRACTIVE
from abridge.wire.codec import Json


def bill(scene: Scene, held: float | None) -> Iterator[str]:
    """Format usage and times. The answer waited `held_seconds`, by Abridge's metrics."""
    if scene.usage is not None:
        yield from _tokens(scene.usage)
    if scene.first_summary is not None and scene.thought_until is not None:
        yield (
            f"  time       first summary text after {scene.first_summary:.1f} s, "
            f"thinking over after {scene.thought_until:.1f} s"
        )
    if held is not None:
        yield f"  held       the answer waited {held:.2f} s for its summary"


def _tokens(usage: Json) -> Iterator[str]:
    share = usage.get("reasoning_summary") or {}
    spent = share.get("total_tokens") or 0
    asked = usage["input_tokens"] - (share.get("input_tokens") or 0)
    thought = usage["output_tokens_details"]["reasoning_tokens"]
    answered = usage["output_tokens"] - (share.get("output_tokens") or 0) - thought
    yield (
        f"  model      {asked + thought + answered:,} tokens: "
        f"{asked:,} asked, {thought:,} thought, {answered:,} answered"
    )
    writer = share.get("model")
    by = "extracted without a model" if writer == EXTRACTIVE else f"written by {writer}"
    yield (
        f"  summary    {spent:,} tokens, {spent / usage['total_tokens']:.1%} of the bill: "
        f"{share.get('parts', 0)} parts, {by}"
    )
    yield f"  together   {usage['total_tokens']:,} tokens"
