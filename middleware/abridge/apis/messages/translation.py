"""Frame the blocks of an answer for clients of other APIs: events without frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from abridge.apis.errors import TURN_PAUSED
from abridge.apis.hosted_calls import describe_call
from abridge.apis.json import string
from abridge.apis.messages.blocks import BLOCK_TYPES, LANE, Block, MessageState
from abridge.apis.messages.citations import CitedText
from abridge.apis.messages.lifecycle import read_stop_reason
from abridge.core.conversation import Json
from abridge.core.events import ErrorReported, Event, Finished

TRANSLATED_TYPES: dict[str, type[Block]] = {**BLOCK_TYPES, "text": CitedText}

HOSTED_CALL_TYPES = ("server_tool_use", "mcp_tool_use")
"""Types of blocks with calls that Anthropic runs itself."""


class TranslatedEvents:
    """Say in events all that other APIs can express. See the protocol `Framing`."""

    carries_frames: ClassVar[bool] = False

    def make_frame(self, _event_type: str, _fields: Json, /) -> None:
        return None

    def make_block(self, content_block: Json, state: MessageState) -> Block:
        """Make a block of its type. A call without a name is none that a client could run."""
        kind = string(content_block.get("type"))
        is_nameless = kind == "tool_use" and not string(content_block.get("name"))
        new_block = Block if is_nameless else TRANSLATED_TYPES.get(kind, Block)
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


def translate_stop(
    reason: str, blocks: Iterable[Block], state: MessageState
) -> Finished | ErrorReported:
    """Return why an answer stops. No client of another API can have a paused turn go on."""
    if reason == "pause_turn":
        return ErrorReported(None, None, TURN_PAUSED)
    finish_reason = read_stop_reason(reason, has_calls=state.call_count > 0)
    return Finished(LANE, None, finish_reason, hosted_calls=_only_hosted_calls(blocks, state))


def _only_hosted_calls(blocks: Iterable[Block], state: MessageState) -> list[dict[str, str]]:
    """Return the calls that upstream ran itself, if there is nothing else."""
    if state.text_length or state.call_count or not state.is_complete:
        return []
    contents = (block.content_block for block in blocks if block.type in HOSTED_CALL_TYPES)
    return [describe_call(content["type"], string(content.get("name"))) for content in contents]
