"""Test the progress that the demo reads from a response's events."""

from __future__ import annotations

import json

from abridge.sidecar.demo.render import ResponseProgress
from tests.support.checker import frames
from tests.support.streams import RESPONSES_USAGE, message_item, reasoning_item, responses_stream

SUMMARY = [{"type": "summary_text", "text": text} for text in ("**One**\n\nFirst.", "Second.")]
OUTPUT = [reasoning_item(0, "Thinking aloud.", summary=SUMMARY), message_item(1, "Hello.")]


def progress_after(events: list[bytes]) -> ResponseProgress:
    """Return the progress after these events, one second apart."""
    scene = ResponseProgress()
    for now, (_, data) in enumerate(frames(b"".join(events))):
        scene.apply(json.loads(data), float(now))
    return scene


def test_a_complete_response_is_read() -> None:
    scene = progress_after(responses_stream(OUTPUT))
    assert scene.thinking == "Thinking aloud."
    assert [part.text for part in scene.parts] == ["**One**\n\nFirst.", "Second."]
    assert all(part.done for part in scene.parts)
    assert scene.answer == "Hello."
    assert scene.usage == RESPONSES_USAGE
    assert scene.thinking_ended is not None
    assert scene.first_summary is not None
    assert scene.thinking_ended < scene.first_summary


def test_a_failed_response_has_no_usage() -> None:
    assert progress_after(responses_stream(OUTPUT, status="failed")).usage is None


def test_a_response_that_has_only_begun_has_no_answer() -> None:
    scene = progress_after(responses_stream(OUTPUT)[:5])
    assert scene.thinking
    assert (scene.parts, scene.answer, scene.thinking_ended) == ([], "", None)
