"""A provider that speaks Anthropic Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import takewhile

from tests.apis.messages import scripts as messages
from tests.end_to_end.histories.answers import Script
from tests.end_to_end.histories.provider import Entry, Json, Plain, Provider, Refusal, Turn
from tests.support.upstream import Answer

THINKING = ("thinking", "redacted_thinking")

STARTS = (
    "messages.{}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When "
    "`thinking` is enabled, a final `assistant` message must start with a thinking block "
    "(preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you "
    "include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. "
    "Please consult our documentation at "
    "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"
)
MODIFIED = (
    "messages.{}.content.{}: `thinking` or `redacted_thinking` blocks in the latest assistant "
    "message cannot be modified. These blocks must remain as they were in the original response."
)
UNSIGNED = "messages.{}.content.{}: Invalid `signature` in `thinking` block"
"""anthropics/claude-code issues 10199 and 19539; its documentation, extended thinking."""


class Anthropic(Provider):
    """Within a tool round it demands its blocks complete, unmodified and in order; it refuses a
    signature that does not match its text."""

    name = "anthropic"
    profile = "anthropic"
    api = "messages"
    model = "claude-opus-4-5"
    demands = "rounds"
    summarizes = True

    def identity(self, serial: int, number: int, body: Json) -> str:
        return f"toolu_{number}{serial:04}x7Kq9ZtR4mP2s"

    def write_turn(self, script: Script, body: Json) -> Turn:
        """Redact part of the second round's reasoning."""
        blocks = [messages.thinking(script.reasoning_text(), script.sealed("s", "EqMD"))]
        blocks += [messages.redacted(script.sealed("e", "EroB"))] if script.round == 1 else []
        blocks = blocks if script.thinks and self._thinks(body) else []
        blocks += [messages.text(script.text)] if script.text else []
        for made in script.calls:
            block = messages.tool_use(0, made.name, **json.loads(made.arguments))
            blocks.append({**block, "id": made.id})
        return blocks

    def _thinks(self, body: Json) -> bool:
        return bool(body.get("thinking", {}).get("type") in ("enabled", "adaptive"))

    def play(self, entry: Entry, *, stream: bool) -> Answer:
        reason = "tool_use" if entry.script.calls else "end_turn"
        if stream:
            return Answer(messages.stream(entry.written, reason))
        return Answer.json(messages.message(entry.written, reason))

    def turns(self, body: Json) -> list[Turn]:
        return [_blocks(one) for one in body["messages"] if one["role"] == "assistant"]

    def questions(self, body: Json) -> list[str]:
        user_turns = [_blocks(one) for one in body["messages"] if one["role"] == "user"]
        texts = (" ".join(block.get("text", "") for block in blocks) for blocks in user_turns)
        return [text for text in texts if text.strip()]

    def rounds(self, body: Json) -> int:
        return len(list(self._since(body)))

    def _since(self, body: Json) -> Iterator[tuple[int, list[Json]]]:
        """Return the assistant messages after the last user message, latest first."""
        placed = list(enumerate(body["messages"]))
        later = takewhile(lambda one: not _speaks(one[1]), reversed(placed))
        return ((place, _blocks(one)) for place, one in later if one["role"] == "assistant")

    def reasoning(self, turn: Turn) -> list[Json]:
        return [block for block in turn if block["type"] in THINKING]

    def plain(self, turn: Turn) -> Plain:
        made = [block for block in turn if block["type"] == "tool_use"]
        text = "".join(block["text"] for block in turn if block["type"] == "text")
        return text, [(block["id"], block["name"], block["input"]) for block in made]

    def refusal_of(self, body: Json) -> Refusal | None:
        for place, one in enumerate(body["messages"]):
            for number, block in enumerate(_blocks(one)):
                if block["type"] == "thinking" and not self._signed(block):
                    return _invalid(UNSIGNED.format(place, number))
        loop = list(self._since(body))
        for place, turn in loop:
            entry, given = self.entry(turn), self.reasoning(turn)
            if entry and given and given != self.reasoning(entry.written):
                return _invalid(MODIFIED.format(place, turn.index(given[0])))
        if loop and body.get("thinking", {}).get("type") == "enabled":
            place, turn = loop[0]
            if turn[0]["type"] not in THINKING:
                return _invalid(STARTS.format(place, turn[0]["type"]))
        return None

    def _signed(self, block: Json) -> bool:
        return any(block in entry.written for entry in self.ledger)


class AnthropicAdaptive(Anthropic):
    """A later model with adaptive thinking."""

    name = "anthropic adaptive"
    model = "claude-opus-5"


class Raw(Anthropic):
    """A server of open models: it shows raw reasoning, signs nothing and demands nothing."""

    name = "vllm messages"
    profile = "vllm"
    model = "thinker-1"
    summarizes = False

    def write_turn(self, script: Script, body: Json) -> Turn:
        """Think again between the calls of the first round."""
        blocks: Turn = [messages.text(script.text)] if script.text else []
        thinks = script.thinks and self._thinks(body)
        for number, made in enumerate(script.calls):
            if number and thinks:
                blocks.append(messages.thinking(script.reasoning_text("b"), ""))
            block = messages.tool_use(0, made.name, **json.loads(made.arguments))
            blocks.append({**block, "id": made.id})
        return [messages.thinking(script.reasoning_text(), ""), *blocks] if thinks else blocks

    def refusal_of(self, body: Json) -> Refusal | None:
        return None


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _speaks(message: Json) -> bool:
    blocks = _blocks(message)
    return message["role"] == "user" and any(block["type"] == "text" for block in blocks)


def _invalid(message: str) -> Refusal:
    error = {"type": "invalid_request_error", "message": message}
    return Refusal({"type": "error", "error": error})
