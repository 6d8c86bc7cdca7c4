"""The response object as upstream wrote it, and as the client is shown it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from abridge.apis.display import Display
from abridge.apis.frames import DeltaFrame, parse_frame
from abridge.apis.json import loads_exact, parse_object, string
from abridge.apis.responses.envelopes import EnvelopeSealer
from abridge.apis.responses.errors import as_failed
from abridge.apis.responses.history import places_in_output
from abridge.apis.responses.reasoning import (
    LANE,
    as_shown,
    is_reasoning,
    without_raw_content,
    without_reasoning,
)
from abridge.apis.responses.summaries import SUMMARY_TEXT_DELTA, numbered_delta, write_part
from abridge.apis.translated_answer import AddedText, WireEvents
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.events import (
    NO_SUMMARY,
    Event,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
)

_CALL_NEEDLE = b'"call_id"'


class Response(Protocol):
    """Build what no frame of upstream's says: summary parts, or all of a translated response."""

    @property
    def final(self) -> Json | None:
        """The finished response as the client saw it."""

    def so_far(self) -> Json | None:
        """Return the response so far, if it has begun and may be repeated."""

    def compose(self, event: Event) -> WireEvents:
        """Build the events of a stream for one that carries no frame."""

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event that only adds to a text; return None for any other."""

    def note(self, event: Event) -> None:
        """Take an event of a response that is not a stream."""

    def build_whole(self, end: ResponseEnded) -> Json | None:
        """Build the whole response; None if upstream's body is to go out as it is."""


class UpstreamResponse:
    """Show what upstream wrote in this API. See the protocol `Response`."""

    def __init__(self, display: Display) -> None:
        self.final: Json | None = None
        self._display = display
        self._beginning: bytes | None = None  # the frame of the last event that began it
        self._item_ids: dict[int, str] = {}  # of reasoning items, by output index
        self._envelopes = EnvelopeSealer(display.seal)
        self._part: tuple[int, int] | None = None  # the summary part that was written last
        self._part_frame: DeltaFrame | None = None

    def so_far(self) -> Json | None:
        response = parse_frame(self._beginning).get("response")
        return snapshot(response, self._display) if isinstance(response, dict) else None

    def compose(self, event: Event) -> WireEvents:
        """Build the parts of Abridge's summaries."""
        if not isinstance(event, SummaryPartAdded | SummaryTextDelta | SummaryPartDone):
            return iter(())
        return write_part(event, self._address(event.item, event.index))

    def add_text(self, event: Event) -> AddedText | None:
        if not isinstance(event, SummaryTextDelta):
            return None
        part = event.item, event.index
        if self._part != part:
            self._part = part
            self._part_frame = numbered_delta(SUMMARY_TEXT_DELTA, self._address(*part))
        return self._part_frame, event.text

    def _address(self, item: int, index: int) -> Json:
        address = {"item_id": self._item_ids.get(item, ""), "output_index": item}
        return {**address, "summary_index": index}

    def note(self, event: Event) -> None:
        """Do nothing: the end brings the whole body."""

    def build_whole(self, end: ResponseEnded) -> Json | None:
        response = parse_object(end.frame or b"", loads_exact) if end.ok else None
        return None if response is None else self._show_final(response, end)

    def show(self, event: Event) -> Json | None:
        """Return what a frame says as the client is shown it.

        That is nothing if it could not be parsed, and None if it is as it came.
        """
        match event:
            case ReasoningStarted():
                return self._show_item_start(event)
            case ReasoningEnded():
                return self._show_item_end(event)
            case ResponseStarted():
                self._beginning = event.frame
            case ResponseEnded():
                return self._show_end(event)
        return None

    def note_frame(self, frame: bytes) -> None:
        """Take a frame that is passed on, which may add a call."""
        if self._envelopes.is_sealing and _CALL_NEEDLE in frame:
            item = parse_frame(frame).get("item")
            if isinstance(item, dict):
                self._envelopes.note_call(item)

    def _show_item_start(self, event: ReasoningStarted) -> Json | None:
        added = parse_frame(event.frame)
        item = added.get("item")
        if not isinstance(item, dict):
            return {}
        self._item_ids[event.item] = string(item.get("id"))
        self._part = None
        shown = item
        if not self._display.show_raw:
            shown = without_reasoning(item)
            shown.pop("encrypted_content", None)
        if item.get("summary") and not self._display.show_summary:
            shown = {**shown, "summary": []}
        return None if shown is item else {**added, "item": shown}

    def _show_item_end(self, event: ReasoningEnded) -> Json | None:
        done = parse_frame(event.frame)
        item = done.get("item")
        if not isinstance(item, dict):
            return {}
        blob = self._envelopes.get_blob(event.item, item)
        shown = as_shown(item, event.summary, self._display, blob)
        return None if shown == item else {**done, "item": shown}

    def _show_end(self, event: ResponseEnded) -> Json | None:
        ended = parse_frame(event.frame)
        response = ended.get("response")
        if not isinstance(response, dict):
            return None
        shown = self._show_final(response, event)
        if event.ok and event.error is not None:
            return {"type": "response.failed", "response": as_failed(shown, event.error)}
        return None if shown == response else {**ended, "response": shown}

    def _show_final(self, response: Json, end: ResponseEnded) -> Json:
        self.final = show_final(response, end, self._item_ids, self._display, self._envelopes)
        return self.final


def snapshot(response: Json, display: Display) -> Json:
    """Return the response so far, with no more of its reasoning than is shown."""
    return _show_response(response, display, lambda _, item: as_shown(item, NO_SUMMARY, display))


def show_final(
    response: Json,
    end: ResponseEnded,
    ids: Mapping[int, str],
    display: Display,
    envelopes: EnvelopeSealer,
) -> Json:
    """Return the final response: its items as they were shown, and all of the usage.

    `ids` are those of the streamed reasoning items, by output index. Other items are known by their
    position.
    """
    output = response.get("output")
    places = list(places_in_output(output if isinstance(output, list) else ()))
    indexes_by_id = {item_id: output_index for output_index, item_id in ids.items() if item_id}

    def show_item(place: int, item: Json) -> Json:
        number = indexes_by_id.get(string(item.get("id")), -1 if ids.get(place) else place)
        summary = end.summaries.get((LANE, number), NO_SUMMARY)
        return as_shown(item, summary, display, envelopes.get_blob(number, item, places[place]))

    shown = _show_response(response, display, show_item)
    RESPONSES_USAGE.add_share(shown, end.share, merged=display.merge_usage)
    return shown


def _show_response(
    response: Json, display: Display, show_item: Callable[[int, Json], Json]
) -> Json:
    """Return the response with its reasoning items as `show_item` returns them.

    `reasoning.summary` is the style in effect (openai-openapi, `Response.reasoning`).
    """
    shown: Json = {}
    reasoning, output = response.get("reasoning"), response.get("output")
    style = display.style if display.show_summary else None
    is_different = isinstance(reasoning, dict) and reasoning.get("summary") != style
    if isinstance(reasoning, dict) and is_different and not display.is_plain:
        shown["reasoning"] = {**reasoning, "summary": style}
    if isinstance(output, list):
        shown["output"] = [
            show_item(index, item) if is_reasoning(item) else without_raw_content(item, display)
            for index, item in enumerate(output)
        ]
    return {**response, **shown}
