"""The blocks of one answer as they stream: which there are, and which is being continued."""

from __future__ import annotations

from abridge.apis.messages.blocks import LANE, Block, MessageState, ReasoningBlock
from abridge.apis.messages.framing import Framing
from abridge.core.conversation import ItemKey, Json
from abridge.core.events import Event


class AnswerBlocks:
    """Open and close the blocks of one answer."""

    def __init__(self, framing: Framing, state: MessageState) -> None:
        self._framing = framing
        self._state = state
        self._by_index: dict[int | None, Block] = {}
        self.all: list[Block] = []
        self.current: Block | None = None  # the block that was continued last
        self.untranslated = 0  # blocks that no other API has

    @property
    def has_open_part(self) -> bool:
        """Return whether upstream has begun a block and not ended it."""
        return not all(block.is_ended for block in self.all)

    def as_content(self) -> list[tuple[ItemKey | None, Json]]:
        """Return the blocks as a message has them, each with the reasoning item that it became."""
        read = ((block, block.to_json()) for block in self.all)
        return [
            (None if block.item is None else (LANE, block.item), content_block)
            for block, content_block in read
            if content_block is not None
        ]

    def find(self, index: object) -> Block | None:
        """Return the block that began last under an index."""
        return self._by_index.get(_known_index(index))

    def add(self, index: object, content_block: Json) -> Block:
        block = self._framing.make_block(content_block, self._state)
        self.untranslated += not (block.is_translated or self._framing.carries_frames)
        block.index = len(self.all)
        block.is_moved = index != block.index
        self.all.append(block)
        self._by_index[_known_index(index)] = block
        return block

    def open(self, index: object, content_block: Json, frame: bytes | None) -> list[Event]:
        """Open a block, in the place of one that is still open under its index."""
        previous = self.find(index)
        ending = self.close(previous) if previous is not None and previous.is_open else []
        block = self.add(index, content_block)
        return [*ending, *self.switch_to(block), *self._framing.start(block, frame)]

    def read_whole(self, content_block: Json) -> list[Event]:
        """Read a block of a whole message."""
        block = self.add(None, content_block)
        return [*self.switch_to(block), *block.start(), *self.close(block)]

    def switch_to(self, block: Block) -> list[Event]:
        """Continue with a block. Translated, that ends the thinking of any other; for a client of
        this API blocks follow each other, so it ends any other."""
        previous, carries_frames = self.current, self._framing.carries_frames
        if previous is block or not (block.is_translated or carries_frames):
            return []
        self.current = block
        if previous is None or not previous.is_open:
            return []
        ends = carries_frames or isinstance(previous, ReasoningBlock)
        return self._framing.stop(previous, None) if ends else []

    def close(self, block: Block, frame: bytes | None = None) -> list[Event]:
        """Stop a block. If that yields more content, continue with the block first."""
        events = self._framing.stop(block, frame)
        return [*self.switch_to(block), *events] if events else []

    def close_all(self) -> list[Event]:
        """Stop what is open, as the answer is over."""
        ending = self._close_thinking()
        for block in self.all:
            ending += self._framing.stop(block, None) if block.is_open else []
        return ending

    def break_off(self) -> list[Event]:
        """End what is open, as the answer breaks off. Calls stay incomplete."""
        ending = self._close_thinking()
        for block in self.all:
            ending += self._framing.abort(block) if block.is_open else []
        return ending

    def _close_thinking(self) -> list[Event]:
        block = self.current
        if not isinstance(block, ReasoningBlock) or not block.is_open:
            return []
        return self._framing.stop(block, None)


def _known_index(index: object) -> int | None:
    return index if isinstance(index, int) else None
