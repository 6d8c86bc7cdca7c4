"""Frame the blocks of an answer for clients of other APIs: events without frames."""

from __future__ import annotations

from typing import ClassVar

from abridge.apis.json import string
from abridge.apis.messages.blocks import BLOCK_TYPES, Block, MessageState
from abridge.core.conversation import Json
from abridge.core.events import Event


class TranslatedEvents:
    """Say in events all that other APIs can express. See the protocol `Framing`."""

    carries_frames: ClassVar[bool] = False

    def make_frame(self, _event_type: str, _fields: Json, /) -> None:
        return None

    def make_block(self, content_block: Json, state: MessageState) -> Block:
        """Make a block of its type. A call without a name is none that a client could run."""
        kind = string(content_block.get("type"))
        is_nameless = kind == "tool_use" and not string(content_block.get("name"))
        new_block = Block if is_nameless else BLOCK_TYPES.get(kind, Block)
        return new_block(content_block, state)

    def start(self, block: Block, _frame: bytes | None, /) -> list[Event]:
        return block.start()

    def add_delta(self, block: Block, event: Json, _frame: bytes | None, /) -> list[Event]:
        return block.add_delta(event["delta"])

    def stop(self, block: Block, _frame: bytes | None, /) -> list[Event]:
        return block.stop()

    def abort(self, block: Block) -> list[Event]:
        return block.abort()

    def other(self, _frame: bytes | None, /) -> list[Event]:
        return []
