"""Build the response that the client is shown: snapshots on the way, and the final one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from abridge.turn.events import NO_SUMMARY, Ended, Trouble
from abridge.wire.codec import Json, string
from abridge.wire.display import Display
from abridge.wire.responses.items import LANE, dress, is_reasoning, without_raw
from abridge.wire.responses.sealing import Blobs
from abridge.wire.usage import RESPONSES

TRANSCRIPT = ("input_messages", "output_messages")
"""Fields with all that the model read, earlier reasoning included, and wrote, in its own format
(vLLM's `enable_response_messages`)."""


def snapshot(response: Json, display: Display) -> Json:
    """Return the response so far, with no more of its reasoning than is shown."""
    return _shown(response, display, lambda _, item: dress(item, NO_SUMMARY, display))


def final(
    response: Json, end: Ended, ids: Mapping[int, str], display: Display, blobs: Blobs
) -> Json:
    """Return the final response: its items as they were shown, and all of the usage.

    `ids` are those of the streamed reasoning items, by output index. Other items are known by their
    position.
    """
    numbers = {identity: number for number, identity in ids.items() if identity}

    def dressed(place: int, item: Json) -> Json:
        number = numbers.get(string(item.get("id")), -1 if ids.get(place) else place)
        summary = end.summaries.get((LANE, number), NO_SUMMARY)
        return dress(item, summary, display, blobs.blob(number, item))

    shown = _shown(response, display, dressed)
    RESPONSES.add(shown, end.share, merged=display.merged)
    return shown


def failed(response: Json, trouble: Trouble) -> Json:
    """Return the response as failed.

    `error.code` is `server_error`: the API's description allows no code of our own.
    """
    error = {"code": "server_error", "message": trouble.message}
    return {**response, "status": "failed", "error": error}


def _shown(response: Json, display: Display, show: Callable[[int, Json], Json]) -> Json:
    """Return the response with its reasoning items as `show_item` returns them.

    `reasoning.summary` is the style in effect (openai-openapi, `Response.reasoning`).
    """
    shown: Json = {}
    reasoning, output = response.get("reasoning"), response.get("output")
    style = display.style if display.summary else None
    wrong = isinstance(reasoning, dict) and reasoning.get("summary") != style
    if isinstance(reasoning, dict) and wrong and not display.plain:
        shown["reasoning"] = {**reasoning, "summary": style}
    if isinstance(output, list):
        shown["output"] = [
            show(place, item) if is_reasoning(item) else without_raw(item, display)
            for place, item in enumerate(output)
        ]
    if not display.raw:
        shown.update(dict.fromkeys(filter(response.get, TRANSCRIPT)))
    return {**response, **shown}
