"""Providers that speak Responses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

from tests.end_to_end.histories.answers import Script
from tests.end_to_end.histories.chat_provider import invalid
from tests.end_to_end.histories.provider import Entry, Json, Plain, Provider, Refusal, Turn
from tests.support.streams import numbered, response, responses_stream
from tests.support.upstream import Answer

OUTPUT_TYPES = ("message", "reasoning", "function_call")


class Open(Provider):
    """An open model on vLLM, which reads raw reasoning back in its place."""

    name = "vllm responses"
    profile = "vllm"
    api = "responses"
    model = "openai/gpt-oss-20b"

    def reasoning_items(self, script: Script, body: Json) -> list[Json]:
        """Return the reasoning items."""
        content = [{"type": "reasoning_text", "text": script.reasoning_text()}]
        return [{**_item("rs", script), "type": "reasoning", "summary": [], "content": content}]

    def write_turn(self, script: Script, body: Json) -> Turn:
        items = self.reasoning_items(script, body) if script.thinks else []
        if script.text:
            part = {"type": "output_text", "text": script.text, "annotations": [], "logprobs": []}
            content_items = {"type": "message", "role": "assistant", "content": [part]}
            items.append({**_item("msg", script), **content_items, "status": "completed"})
        for number, made in enumerate(script.calls):
            called = {"call_id": made.id, "name": made.name, "arguments": made.arguments}
            kind = {"type": "function_call", "status": "completed"}
            items.append({**_item("fc", script, number), **kind, **called})
        return items

    def play(self, entry: Entry, *, stream: bool) -> Answer:
        named = {"id": f"resp_{entry.script.serial}"}
        if stream:
            return Answer(self.stream(entry.written, **named))
        return Answer.json(response(entry.written, **named))

    def stream(self, output: list[Json], **named: str) -> list[bytes]:
        return responses_stream(output, **named)

    def turns(self, body: Json) -> list[Turn]:
        """Split the input into assistant turns at outputs and user messages."""
        turns: list[Turn] = [[]]
        for item in body["input"]:
            if _is_output(item):
                turns[-1].append(item)
            elif turns[-1]:
                turns.append([])
        return [turn for turn in turns if turn]

    def questions(self, body: Json) -> list[str]:
        return [_text(item) for item in body["input"] if item.get("role") == "user"]

    def rounds(self, body: Json) -> int:
        questions_at = [n for n, item in enumerate(body["input"]) if item.get("role") == "user"]
        return len(self.turns({"input": body["input"][questions_at[-1] + 1 :]}))

    def reasoning(self, turn: Turn) -> list[Json]:
        return [item for item in turn if item.get("type") == "reasoning"]

    def plain(self, turn: Turn) -> Plain:
        calls = [item for item in turn if item.get("type") == "function_call"]
        text = "".join(_text(item) for item in turn if item.get("role") == "assistant")
        return text, [(_["call_id"], _["name"], json.loads(_["arguments"])) for _ in calls]


class Ollama(Open):
    """Sends raw reasoning as a summary and again as `encrypted_content`, which alone it reads back;
    sends no part events."""

    name = "ollama responses"
    profile = "ollama"
    model = "gpt-oss:20b"

    def reasoning_items(self, script: Script, body: Json) -> list[Json]:
        summary = [{"type": "summary_text", "text": script.reasoning_text()}]
        raw = {"summary": summary, "encrypted_content": script.reasoning_text()}
        return [{**_item("rs", script), "type": "reasoning", **raw}]

    def stream(self, output: list[Json], **named: str) -> list[bytes]:
        events = [
            json.loads(frame.split(b"data: ")[1]) for frame in super().stream(output, **named)
        ]
        others = [event for event in events if "summary_part" not in event["type"]]
        return numbered(*others)

    def reasoning(self, turn: Turn) -> list[Json]:
        items = super().reasoning(turn)
        return [{"encrypted_content": item.get("encrypted_content")} for item in items]


class OpenAI(Open):
    """Refuses unknown ids, raw reasoning and foreign state; stores nothing."""

    name = profile = "openai"
    model = "gpt-5.2"
    seals = True

    def reasoning_items(self, script: Script, body: Json) -> list[Json]:
        requested = (body.get("reasoning") or {}).get("summary")
        text = f"**Native**\n\nA summary of answer {script.serial}."
        summary = [{"type": "summary_text", "text": text}] if requested else []
        item = {**_item("rs", script), "type": "reasoning", "summary": summary}
        return [{**item, "encrypted_content": script.sealed("e")}]

    def refusal_of(self, body: Json) -> Refusal | None:
        problems = (
            problem
            for place, item in enumerate(body["input"])
            for problem in (self._unknown(item), self._foreign(item, place))
        )
        found = next((problem for problem in problems if problem), None)
        return found or next(self._unpaired(body["input"]), None)

    def _sent_items(self) -> Iterator[Json]:
        return (item for entry in self.ledger for item in entry.written)

    def _unknown(self, item: Json) -> Refusal | None:
        known = {item["id"] for item in self._sent_items()}
        stored = item.get("type") != "reasoning" or item.get("encrypted_content")
        if "id" not in item or (item["id"] in known and stored):
            return None
        message = f"Item with id '{item['id']}' not found."
        if item["id"] in known:
            message += " Items are not persisted when `store` is set to false. Try again with "
            message += "`store` set to true, or remove this item from your input."
        return Refusal({**invalid(message, code=None).body}, 404)

    def _foreign(self, item: Json, place: int) -> Refusal | None:
        """musistudio/claude-code-router issue 1783; openai/codex issue 8145."""
        if item.get("type") != "reasoning":
            return None
        if count := len(item.get("content") or ()):
            at = f"input[{place}].content"
            message = (
                f"Invalid '{at}': array too long. Expected an array with maximum length 0, but got "
                f"an array with length {count} instead."
            )
            return Refusal({"error": {**_error(message, "array_above_max_length"), "param": at}})
        sealed = item.get("encrypted_content")
        if sealed is None or any(
            sealed == sent.get("encrypted_content") for sent in self._sent_items()
        ):
            return None
        message = f"The encrypted content {sealed[:4]}...{sealed[-4:]} could not be verified."
        return Refusal({"error": _error(message, "invalid_encrypted_content")})

    def _unpaired(self, items: list[Json]) -> Iterator[Refusal]:
        """Require that a reasoning item and its successor are sent together if they have ids."""
        for item, after in pairwise([*items, {}]):
            if item.get("type") == "reasoning" and not _is_output(after):
                message = "was provided without its required following item."
                yield invalid(f"Item '{item.get('id')}' of type 'reasoning' {message}")
        sent = {item["id"] for item in items if "id" in item}
        for entry in self.ledger:
            thought, first, *_ = [*entry.written, {}]
            if thought["type"] == "reasoning" and first["id"] in sent and thought["id"] not in sent:
                yield invalid(
                    f"Item '{first['id']}' of type '{first['type']}' was provided without its "
                    f"required 'reasoning' item: '{thought['id']}'."
                )


def _error(message: str, code: str) -> Json:
    return {"message": message, "type": "invalid_request_error", "param": None, "code": code}


def _item(kind: str, script: Script, number: int = 0) -> Json:
    return {"id": f"{kind}_{number}{script.serial:04}c7f29e4b1d8a60"}


def _is_output(item: Json) -> bool:
    kind = item.get("type", "message")
    return kind in OUTPUT_TYPES and item.get("role", "assistant") == "assistant" and bool(item)


def _text(item: Json) -> str:
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
