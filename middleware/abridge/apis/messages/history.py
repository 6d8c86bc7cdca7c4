"""Read the turns of a Messages request, and change what of them reaches upstream.

A turn of the assistant is reasoning, text and whatever a server's tools left, and a call ends it.
So each call is a turn of its own, however a client splits or joins messages. In a translated
request an answer is one joined turn.

A user message may be several turns: each tool result, then the user's own content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar

from abridge.apis.history import (
    ClientPieceHistory,
    IsOurSummary,
    Placement,
    read_text,
    strip_content,
)
from abridge.apis.json import as_object, objects, string
from abridge.apis.messages.tools import upstream_call_id
from abridge.core.conversation import Json, ToolCall, Turn, encode_sorted
from abridge.core.envelope import UNSEALED, UNSEALED_RAW, OpenEnvelope, is_envelope
from abridge.core.places import PlaceTracker
from abridge.providers.profile import Profile
from abridge.stages.tags import may_have_tags

REASONING_TYPES = ("thinking", "redacted_thinking")

STATE_KEYS = {"thinking": "signature", "redacted_thinking": "data"}
"""Where opaque state stands in a block of reasoning, by the block's type."""

TOOL_USE, TOOL_RESULT = "tool_use", "tool_result"

ABRIDGE_FIELDS = ("summary_error",)
"""Fields that Abridge adds to a block of reasoning."""

CLIENT_NOTES = ("<system-reminder>",)
"""Beginnings of texts that a client adds to a user's message, others in each request: Claude
Code."""


def _is_reasoning(block: Json) -> bool:
    return block.get("type") in REASONING_TYPES


MARK: Json = {"encrypted_index": ""}
"""Marks citations as Abridge's: one of Anthropic's has opaque state there, or no such field."""


class MessagesHistory(ClientPieceHistory):
    """Read and change the turns of one request. See `ClientPieceHistory`.

    The items of an assistant's turn are its blocks, those of any other turn its message.
    """

    order: ClassVar[Mapping[str, int]] = {**dict.fromkeys(REASONING_TYPES, 0), "": 1, TOOL_USE: 2}

    def __init__(self, body: Json, *, is_translated: bool = False) -> None:
        super().__init__(body, is_translated=is_translated)
        self._messages = objects(body.get("messages"))
        self._answers = list[tuple[list[Json], list[Turn]]]()  # their messages, and their turns
        self.turns = [Turn("system", read_text(without_billing(body.get("system"))))]
        beside_results = "user" if is_translated else "tool"
        for messages in _split_answers(self._messages):
            if messages[0].get("role") == "assistant":
                self._answers.append((messages, self._read_answer(messages)))
                self.turns += self._answers[-1][1]
            else:
                self.turns += _read_user_turns(messages[0], beside_results)

    is_reasoning = staticmethod(_is_reasoning)

    @staticmethod
    def raw_text(piece: Json) -> str:
        return string(piece.get("thinking")) if piece.get("type") == "thinking" else ""

    @staticmethod
    def read_turns(pieces: Sequence[Json]) -> Iterator[Turn]:
        pending = list[Json]()
        for block in pieces:
            pending.append(block)
            if _is_call(block):
                yield _assistant_turn(pending)
                pending = []
        if pending:
            yield _assistant_turn(pending)

    @staticmethod
    def read_joined_turn(pieces: Sequence[Json]) -> Turn:
        return _assistant_turn(list(pieces))

    @staticmethod
    def as_sent(pieces: Iterable[Json]) -> list[Json]:
        """See `ClientPieceHistory`. Blank texts are left out, which this API takes from nobody."""
        return [each for each in pieces if each.get("type") != "text" or each["text"].strip()]

    def _read_answer(self, messages: Sequence[Json]) -> list[Turn]:
        """Return the turns of an answer. Tags in one that is a text may hold a summary."""
        blocks, text = _read_contents(messages), messages[0].get("content")
        if len(messages) == 1 and text and isinstance(text, str):
            return [Turn("assistant", text, is_plain=not may_have_tags(text), items=blocks)]
        if self._is_translated:
            return [self.read_joined_turn(blocks)]
        return list(self.read_turns(blocks))

    def strip(self, turn: Turn, is_our_summary: IsOurSummary) -> tuple[int, bool]:
        removed, remaining = 0, list[Json]()
        for block in turn.items:
            if _is_reasoning(block):
                removed += sum(block.pop(name, None) is not None for name in ABRIDGE_FIELDS)
                if block.get("signature") == UNSEALED_RAW:
                    block["signature"], removed = "", removed + 1
                if _is_ours(block) or is_our_summary(self.raw_text(block)):
                    removed += 1
                    continue
            removed += strip_citations(block)
            remaining.append(block)
        answer = strip_content(remaining, is_our_summary)
        if answer is not remaining:
            removed, remaining = removed + 1, answer
            turn.text = _assistant_turn(answer).text
        turn.items[:] = remaining
        return removed, any(map(str.strip, self.raw_texts(remaining)))

    def calls(self, turn: Turn) -> Iterable[Json]:
        return (block for block in turn.items if string(block.get("type")).endswith(TOOL_USE))

    def _open_piece(self, piece: Json, turn: Turn, open_envelope: OpenEnvelope) -> list[Json]:
        """Replace a block with a blob by the blocks in its envelope, or by nothing: its text is a
        summary of Abridge's, and a signature means nothing without the text that it signs. No
        reasoning can be in another message than the assistant's."""
        if turn.role != "assistant":
            content = _read_blocks(piece.get("content"))
            opened = [self._open_block(block, turn, open_envelope) for block in content]
            if not all(opened):
                piece["content"] = list(chain(*opened))
            return [piece]
        return self._open_block(piece, turn, open_envelope)

    def _open_block(self, block: Json, turn: Turn, open_envelope: OpenEnvelope) -> list[Json]:
        key = STATE_KEYS.get(string(block.get("type")))
        blob = string(block.get(key)) if key is not None else ""
        if key is None or not is_envelope(blob) or blob in (UNSEALED, UNSEALED_RAW):
            return [block]
        places, _ = self._places
        path, place = places.get(id(block), ("messages", None))
        found = open_envelope(blob, f"{path}.{key}", place, "", self._places_ahead(turn))
        return [] if found is None else self._take_opened(found, turn, place)

    def place_reasoning(self, turn: Turn, profile: Profile) -> Placement:
        """Leave out thinking without a signature where that is refused."""
        remaining = [block for block in turn.items if not _is_unsigned(block)]
        if len(remaining) == len(turn.items):
            return "unchanged"
        if not profile.verifies_signatures(string(self._body.get("model"))):
            return "unchanged"
        turn.items[:] = remaining
        return "dropped"

    def body(self) -> Json:
        """Return the request body, without the messages that have nothing left in them."""
        emptied = {id(message) for answer in self._answers for message in _write_content(*answer)}
        if emptied:
            self._body["messages"] = [each for each in self._messages if id(each) not in emptied]
        return self._body

    def sent_body(self) -> Json:
        """Return the same, with a fixed thinking budget without `thinking` in a round of calls that
        began without thinking: this API would refuse it (Anthropic's guide to extended thinking).
        """
        body = self.body()
        has_fixed_budget = as_object(body.get("thinking")).get("type") == "enabled"
        if has_fixed_budget and began_without_thinking(objects(body.get("messages"))):
            del body["thinking"]
        return body

    @cached_property
    def _places(self) -> tuple[dict[int, tuple[str, bytes | None]], bytes]:
        """The path and the place of each block of reasoning, by `id()`, before any envelope is
        opened, and the place of what comes next. There is no place where no reasoning can be."""
        tracker, places = PlaceTracker(), dict[int, tuple[str, bytes | None]]()
        for number, message in enumerate(self._messages):
            blocks = _read_blocks(message.get("content"))
            is_answer = message.get("role") == "assistant"
            asks = not is_answer and not any(map(_is_result, blocks))
            for position, block in enumerate(blocks):
                kind = block.get("type")
                if kind in REASONING_TYPES:
                    place = tracker.place if is_answer else None
                    places[id(block)] = f"messages.{number}.content.{position}", place
                if kind in (TOOL_USE, TOOL_RESULT):
                    tracker.add_call(_call_id(block))
                elif is_answer:
                    tracker.add_answer()
                elif asks and kind == "text":
                    text = string(block.get("text"))
                    if not text.startswith(CLIENT_NOTES):
                        tracker.add_question(text)
        return places, tracker.place


# Turns


def _split_answers(messages: Iterable[Json]) -> Iterator[list[Json]]:
    """Yield the messages of each answer, and each other message alone. What follows an answer
    without a break is of it, unless it begins with reasoning after something was said: an answer
    that went on after a pause."""
    answer, has_said = list[Json](), False
    for message in messages:
        is_answer = message.get("role") == "assistant"
        kinds = list(map(_is_reasoning, _read_blocks(message.get("content")))) if is_answer else []
        if answer and (not is_answer or (has_said and kinds[:1] == [True])):
            yield answer
            answer, has_said = [], False
        if is_answer:
            answer.append(message)
            has_said = has_said or not all(kinds)
        else:
            yield [message]
    if answer:
        yield answer


def _assistant_turn(blocks: list[Json]) -> Turn:
    answer = [block for block in blocks if block.get("type") not in REASONING_TYPES]
    calls = [block for block in answer if block.get("type") == TOOL_USE]
    said = [block for block in answer if block.get("type") != TOOL_USE] if calls else answer
    return Turn(
        role="assistant",
        text=read_text(said) if said else "",
        calls=tuple(map(_read_call, calls)),
        has_opaque_state=len(answer) < len(blocks) and any(map(_has_opaque_state, blocks)),
        items=blocks,
    )


def _read_user_turns(message: Json, beside_results: str) -> Iterator[Turn]:
    """Yield the turns of another message than the assistant's. What stands beside tool results has
    a role of its own: clients add notes there, which do not end a round of calls."""
    role, content = string(message.get("role")), message.get("content")
    if isinstance(content, str):
        yield Turn(role, content, items=[message])
        return
    blocks = MessagesHistory.without_reasoning(objects(content))
    results = list(filter(_is_result, blocks))
    for block in results:
        output = read_text(block.get("content"))
        yield Turn("tool", output, answers_call=_call_id(block), items=[message])
    if len(results) < len(blocks) or not blocks:
        others = [block for block in blocks if not _is_result(block)]
        yield Turn(beside_results if results else role, read_text(others), items=[message])


# Blocks


def _read_blocks(content: Any) -> list[Json]:
    """Return the blocks of a content, which may be a plain text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return objects(content)


def _read_contents(messages: Iterable[Json]) -> list[Json]:
    return [block for message in messages for block in _read_blocks(message.get("content"))]


def _write_content(messages: Sequence[Json], turns: Sequence[Turn]) -> Sequence[Json]:
    """Write the blocks of an answer's turns into its messages, all into the first if there are
    other blocks by now; return those that this emptied."""
    blocks = [block for turn in turns for block in turn.items]
    if blocks == _read_contents(messages):
        return []
    messages[0]["content"] = blocks
    return messages[1:] if blocks else messages


def _is_call(block: Json) -> bool:
    return block.get("type") == TOOL_USE


def _call_id(block: Json) -> str:
    """Return the id of a call or a result, as upstream has it."""
    return upstream_call_id(string(block.get("id" if _is_call(block) else "tool_use_id")))


def _is_result(block: Json) -> bool:
    return block.get("type") == TOOL_RESULT


def _has_opaque_state(block: Json) -> bool:
    """Return whether a block holds opaque state of upstream's."""
    key = STATE_KEYS.get(string(block.get("type")))
    state = block.get(key) if key is not None else None
    return bool(state) and not is_envelope(state)


def _is_unsigned(block: Json) -> bool:
    return block.get("type") == "thinking" and not block.get("signature")


def _is_ours(block: Json) -> bool:
    """Return whether a block is known to be Abridge's: it is signed as a summary, whatever became
    of its text, or says nothing, as one does where nothing is shown."""
    says_nothing = not any(block.get(key) for key in ("thinking", "signature", "data"))
    return says_nothing or UNSEALED in (block.get("signature"), block.get("data"))


def _read_call(block: Json) -> ToolCall:
    arguments = encode_sorted(block.get("input"))
    return ToolCall(_call_id(block), string(block.get("name")), arguments)


def began_without_thinking(messages: Sequence[Json]) -> bool:
    """Return whether the current round of calls began without thinking. All calls since the last
    user message belong to one turn, and only its first message has to think."""
    first = "thinking"
    for run in reversed(list(_split_answers(messages))):
        kinds = [string(block.get("type")) for block in _read_contents(run)]
        if TOOL_RESULT not in kinds and TOOL_USE not in kinds:
            break  # a new user message
        if run[0].get("role") == "assistant":
            first = kinds[0]
    return first not in REASONING_TYPES


# The system prompt without Claude Code's line for Anthropic's billing. The line differs in every
# request (`cch=…`). It says nothing to a model, and before everything else it would keep any other
# upstream from finding the rest of the prompt in its cache (sgl-project/sglang pull 29169,
# musistudio/claude-code-router pull 1343).

_BILLING_LINE = re.compile(r"x-anthropic-billing-header:[^\n]*\n?")


def without_billing(system: Any) -> Any:
    """Return a system prompt, a text or blocks, without the line at its beginning."""
    if isinstance(system, str):
        return system[_billing_end(system) :]
    if not isinstance(system, list) or not system or not isinstance(system[0], dict):
        return system
    first, *rest = system
    text = string(first.get("text"))
    end = _billing_end(text)
    if not end:
        return system
    return [{**first, "text": text[end:]}, *rest] if text[end:].strip() else rest


def _billing_end(text: str) -> int:
    """Return where the line ends at the beginning of a text; 0 if there is none."""
    match = _BILLING_LINE.match(text)
    return match.end() if match is not None else 0


def strip_citations(block: Json) -> int:
    """Remove Abridge's citations from a text that a client returns; return how many there were."""
    citations = block.get("citations")
    if not isinstance(citations, list):
        return 0
    remaining = [each for each in citations if as_object(each).get("encrypted_index") != ""]
    if len(remaining) < len(citations):
        block["citations"] = remaining or None
    return len(citations) - len(remaining)
