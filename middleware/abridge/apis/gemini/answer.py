"""What the parts of one answer of Google's share, on either of its APIs."""

from __future__ import annotations

from hashlib import blake2b

from abridge.apis.display import Display
from abridge.apis.errors import without_message
from abridge.apis.gemini.messages import MADE_ID
from abridge.apis.hosted_calls import describe_call
from abridge.apis.json import dumps, string
from abridge.apis.media import MEDIA, unrepresentable
from abridge.apis.shapes import DropCount, Shape, name, opaque, proper_name, rebuild
from abridge.core.conversation import Json
from abridge.core.events import (
    FRAME_OVERHEAD,
    LANE,
    ErrorDetail,
    ErrorReported,
    Event,
    ImageDelta,
    ResponseStarted,
)


class GoogleAnswer:
    """One answer, of which at most `limit` characters are kept."""

    def __init__(self, display: Display, limit: int) -> None:
        self.hides_raw = display.hides_raw
        self.answer_id = ""
        self.failure: ErrorDetail | None = None  # why the answer cannot be read
        self.reported: ErrorDetail | None = None  # upstream's own error
        self.item_count = 0  # reasoning items so far
        self.call_count = 0
        self.has_images = False
        self._carries_images = display.carries_images
        self._drops = DropCount.of(display)
        self._left_out = 0  # what no other API has
        self._room_left = limit
        self._hosted_calls: list[dict[str, str]] = []
        self._has_started = False

    @property
    def dropped(self) -> int:
        return self._drops.count + self._left_out

    @property
    def is_complete(self) -> bool:
        """True while everything kept fits in the limit."""
        return self._room_left >= 0

    def start(self, answer_id: object, model: object) -> list[Event]:
        """Start the answer, unless it has begun. Google's creation time, where it is sent, is no
        part of it, and an answer that is not stored may have no id."""
        if self._has_started:
            return []
        self._has_started = True
        self.answer_id = self.check(answer_id, name)
        return [ResponseStarted(None, None, self.answer_id, self.check(model, proper_name), 0)]

    def report(self, error: ErrorDetail) -> list[Event]:
        """Report upstream's error; nothing for another one."""
        if self.reported is not None:
            return []
        self.reported = self.hide(error)
        return [ErrorReported(None, None, self.reported)]

    def hide(self, error: ErrorDetail) -> ErrorDetail:
        """Return an error, in other words where upstream's may repeat what is hidden."""
        return without_message(error) if self.hides_raw else error

    def keep(self, size: int) -> bool:
        """Count what is to be kept; return whether everything still fits."""
        self._room_left -= size
        return self.is_complete

    def check(self, value: object, shape: Shape) -> str:
        """Return a string; "" if it does not have its shape and reasoning is hidden."""
        return string(rebuild(value, shape, self._drops) if self.hides_raw else value)

    def check_object(self, value: Json, shape: Shape) -> Json:
        return (rebuild(value, shape, self._drops) or {}) if self.hides_raw else value

    def leave_out(self) -> list[Event]:
        self._left_out += 1
        return []

    def note_hosted_call(self, kind: str, tool: object) -> None:
        """Note a call that Google ran itself."""
        if self.keep(FRAME_OVERHEAD):
            described = describe_call(self.check(kind, name), self.check(tool, name))
            self._hosted_calls.append(described)

    def only_hosted_calls(self, *, says_text: bool) -> list[dict[str, str]]:
        """Return the calls that Google ran itself, if there is nothing else."""
        is_alone = self.is_complete and not (says_text or self.call_count or self.has_images)
        return self._hosted_calls if is_alone else []

    def read_image(self, kind: str, media_type: object, data: object) -> ImageDelta | None:
        """Read a medium; return an image, for a client that can have one. Any other fails the
        answer. Without a `kind` the medium's type tells it."""
        known_type, known_data = self.check(media_type, name), self.check(data, opaque)
        kind = kind or known_type.partition("/")[0]
        if kind not in MEDIA or not known_data:
            self.leave_out()
            return None
        self.has_images = kind == "image" and self._carries_images
        if self.has_images:
            return ImageDelta(LANE, None, media_type=known_type, data=known_data)
        self.failure = unrepresentable(kind)
        return None

    def keep_image(self, data: str) -> bool:
        """Return whether an image is kept: only where there is room for it."""
        return len(data) <= self._room_left and self.keep(len(data))


def make_id(answer_id: str, number: int, call: Json) -> str:
    """Return an id for a call to which the model gave none, always the same for the same answer."""
    seed = f"{answer_id}/{number}/".encode(errors="surrogatepass") + dumps(call)
    return f"{MADE_ID}{blake2b(seed, digest_size=9).hexdigest()}"
