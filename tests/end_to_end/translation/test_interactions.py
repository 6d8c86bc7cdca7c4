"""Gemini's Interactions API as an upstream, beside what holds for both of Google's APIs."""

from __future__ import annotations

from tests.end_to_end.translation.google import ANY, BOTH, INTERACTIONS, Stage
from tests.end_to_end.translation.test_translation import KEY
from tests.end_to_end.translation.turn import WORDS


@BOTH
@ANY
async def test_google_keeps_nothing_of_an_interaction(client: str, *, stream: bool) -> None:
    played = INTERACTIONS.play(INTERACTIONS.spoken(WORDS), stream=stream)
    stage = Stage(INTERACTIONS, client, played, stream=stream)
    await stage.ask(store=True)
    (sent,) = stage.played.requests
    assert (sent.path, sent.query) == ("/v1beta/interactions", b"")
    assert sent.header("x-goog-api-key") == KEY["authorization"].removeprefix("Bearer ")
    assert sent.header("authorization") is None
    assert sent.header("api-revision") == "2026-05-20"
    assert (sent.json["store"], sent.json.get("stream", False)) == (False, stream)
    assert "previous_interaction_id" not in sent.json
