"""`response.steer`: more input for a response under way.

As OpenAI's SDK has it (`BetaResponseSteerEvent`): input that is accepted ends the response as
`incomplete`, with the reason `steered`, and another one follows by itself, which has the same
settings and the new input after the old. Here a response can be steered until its answer begins:
while nothing of it was sent, or only reasoning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from abridge.apis.json import dumps, string
from abridge.apis.openai import mint_id
from abridge.core.conversation import Json

STEER = "response.steer"

STEERED: Json = {"status": "incomplete", "error": None, "incomplete_details": {"reason": "steered"}}
"""The fields of a response that ended since it was steered."""

EVENT_FIELDS = frozenset({"type", "previous_response_id", "input"})

MESSAGE_FIELDS = frozenset({"type", "role", "content"})

PART_TYPES = ("input_text", "input_image", "input_file")

UNSTEERABLE_FIELDS = ("conversation", "context_management")
"""Fields of a request whose response cannot be steered (`BetaResponseSteerEvent`)."""


class SteeringRefused(Exception):
    """Input for a response cannot be taken; `code` is one of `BetaResponseSteerErrorCode`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True, frozen=True)
class Steer:
    """More input for a response."""

    response_id: str
    input: Any  # as the client sent it
    id: str = field(default_factory=partial(mint_id, "steer_"))

    @classmethod
    def read(cls, body: Json) -> Steer:
        """Read an event, whatever its input is."""
        is_clear = body.keys() <= EVENT_FIELDS
        return cls(
            string(body.get("previous_response_id")), body.get("input") if is_clear else None
        )

    def check(self) -> None:
        """Raise SteeringRefused for input other than messages of the user."""
        is_text = isinstance(self.input, str)
        is_list = isinstance(self.input, list) and all(map(_is_message, self.input))
        if not (self.input and (is_text or is_list)):
            raise SteeringRefused(
                "invalid_input",
                "'input' must be a text or an array of user messages with text, images and files. "
                "The only other field allowed is 'previous_response_id'.",
            )

    def accepted_event(self, number: int) -> bytes:
        steer = {"id": self.id, "previous_response_id": self.response_id}
        return _write("accepted", number, steer=steer)

    def failed_event(self, refusal: SteeringRefused, *, accepted: bool = False) -> bytes:
        """Write the event that returns the input to the client."""
        own = {"id": self.id} if accepted else {}
        return _write(
            "failed",
            0,
            error={
                "type": "invalid_request_error",
                "code": refusal.code,
                "message": str(refusal),
            },
            steer={**own, "previous_response_id": self.response_id, "input": self.input},
        )


def _write(outcome: str, number: int, **fields: Json) -> bytes:
    return dumps({"type": f"{STEER}.{outcome}", "sequence_number": number, **fields})


def _is_message(item: Any) -> bool:
    if not (isinstance(item, dict) and item.keys() <= MESSAGE_FIELDS):
        return False
    content = item.get("content")
    is_parts = isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") in PART_TYPES for part in content
    )
    is_users = item.get("role") == "user" and item.get("type", "message") == "message"
    return is_users and (is_parts or isinstance(content, str))
