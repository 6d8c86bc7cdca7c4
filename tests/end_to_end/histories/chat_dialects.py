"""Providers with dialects of Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator

from tests.end_to_end.histories.answers import Script
from tests.end_to_end.histories.chat_provider import HOLDERS, PIECE, STATE, Chat, invalid, text_of
from tests.end_to_end.histories.provider import Json, Refusal, Turn
from tests.support.streams import pieces


class DeepSeek(Chat):
    """V4: always demands reasoning on every message with calls (opencode issue 24083), even empty
    (deepseek-harness discussion 739)."""

    name = profile = "deepseek"
    model = "deepseek-v4"
    demands = "always"

    def reasoning_fields(self, script: Script) -> Json:
        return {"reasoning_content": script.reasoning_text()}

    def identity(self, serial: int, number: int, body: Json) -> str:
        return f"call_{number:02}_{serial:04}Yq7ZtR4mP2sKb8xQw"

    def refusal_of(self, body: Json) -> Refusal | None:
        for _, message in self.calling(body):
            if not isinstance(message.get("reasoning_content"), str):
                return invalid(
                    "The `reasoning_content` in the thinking mode must be passed back to the API.",
                    code="invalid_request_error",
                )
        return None


class Kimi(Chat):
    """Demands reasoning on every message with calls (mastra issue 12592). Its call ids count up in
    each conversation, so they identify none."""

    name = "kimi"
    profile = "moonshot"
    model = "kimi-k2-thinking"
    demands = "always"
    distinct = False

    def identity(self, serial: int, number: int, body: Json) -> str:
        made = [call for _, message in self.calling(body) for call in message["tool_calls"]]
        return f"functions.look:{len(made) + number}"

    def refusal_of(self, body: Json) -> Refusal | None:
        for place, message in self.calling(body):
            if not isinstance(message.get("reasoning_content"), str):
                return invalid(
                    "thinking is enabled but reasoning_content is missing in assistant tool call "
                    f"message at index {place}"
                )
        return None


class Zai(Chat):
    """Wants a tool round's reasoning returned with the results, unmodified and in order
    (docs.z.ai: capabilities/thinking-mode); answers worse without it."""

    name = "glm"
    profile = "zai"
    model = "glm-5"
    demands = "rounds"

    def refusal_of(self, body: Json) -> Refusal | None:
        for _, message in self.since(body):
            entry = self.entry([message])
            if entry and self.reasoning([message]) != self.reasoning(entry.written):
                self.complaints.append(f"not what was thought in answer {entry.script.serial}")
        return None


class Groq(Chat):
    """Accepts one field and refuses the other (jan issue 8136)."""

    name = profile = "groq"
    model = "openai/gpt-oss-120b"
    field = "reasoning"

    def refusal_of(self, body: Json) -> Refusal | None:
        for place, message in enumerate(body["messages"]):
            for unknown in message.keys() & {"reasoning_content", *HOLDERS[2:], STATE}:
                at = f"'messages.{place}' : "
                return invalid(
                    f"{at}for 'role:{message['role']}' the following must be satisfied"
                    f"[({at}property '{unknown}' is unsupported)]"
                )
        return None


class VLLM(Chat):
    """Renders `reasoning` where its template does, and reads nothing else."""

    name = profile = "vllm"
    model = "openai/gpt-oss-20b"
    field = "reasoning"


class Gemini(Chat):
    """Demands its signature on the first call of each round after the last user message
    (discuss.ai.google.dev/t/109823; its documentation, thought signatures)."""

    name = profile = "gemini"
    model = "gemini-3-pro-preview"
    demands = "rounds"
    seals = True

    def state(self, script: Script) -> Json:
        return {STATE: {"google": {"thought_signature": script.sealed("s", "CiQ")}}}

    def reasoning_fields(self, script: Script) -> Json:
        return {} if script.calls else self.state(script)

    def deltas(self, script: Script) -> Iterator[Json]:
        yield from [self.reasoning_fields(script)] if self.reasoning_fields(script) else []

    def refusal_of(self, body: Json) -> Refusal | None:
        for place, message in self.since(body):
            first = (message.get("tool_calls") or [None])[0]
            if first and not first.get(STATE, {}).get("google", {}).get("thought_signature"):
                return Refusal({"error": _unsigned(first["function"]["name"], place + 1)})
        return None


def _unsigned(name: str, position: int) -> Json:
    message = (
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        "tools to work correctly, and missing thought_signature may lead to degraded model "
        f"performance. Additional data, function call `default_api:{name}` , position {position}. "
        "Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )
    return {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}


class GeminiAloud(Gemini):
    """Gemini asked to include its thoughts, which precede the answer."""

    name = "gemini aloud"
    seals = False

    def content(self, script: Script) -> str | None:
        return f"<thought>{script.reasoning_text()}</thought>{script.text}"


class OpenRouter(Chat):
    """Wants its details back unmodified and in order."""

    name = profile = "openrouter"
    model = "anthropic/claude-3.7-sonnet"

    def reasoning_fields(self, script: Script) -> Json:
        if not script.thinks:
            return {}
        kind = {"format": "anthropic-claude-v1"}
        text, data = {"type": "reasoning.text"}, {"type": "reasoning.encrypted"}
        signed = {
            "text": script.reasoning_text(),
            "signature": script.sealed("s", "EqMD"),
            "index": 0,
        }
        sealed = {"data": script.sealed("e"), "id": f"rs_{script.serial}", "index": 1}
        details = [{**text, **signed, **kind}, {**data, **sealed, **kind}]
        return {"reasoning": script.reasoning_text(), "reasoning_details": details}

    def deltas(self, script: Script) -> Iterator[Json]:
        if not script.thinks:
            return
        text, sealed = self.reasoning_fields(script)["reasoning_details"]
        signature = text.pop("signature")
        for piece in pieces(script.reasoning_text(), PIECE):
            yield {"reasoning": piece, "reasoning_details": [{**text, "text": piece}]}
        del text["text"]
        yield {"reasoning_details": [{**text, "signature": signature}]}
        yield {"reasoning_details": [sealed]}

    def refusal_of(self, body: Json) -> Refusal | None:
        for message in body["messages"]:
            given = message.get("reasoning_details")
            entry = self.entry([message]) if message["role"] == "assistant" else None
            if entry and given and given != entry.written[0].get("reasoning_details"):
                self.complaints.append(f"other details than answer {entry.script.serial} had")
        return None


class OpenRouterSummaries(OpenRouter):
    """The same, of a model whose thinking is a summary."""

    name = "openrouter summaries"
    model = "anthropic/claude-sonnet-4.5"
    summarizes = True


class MiniMax(Chat):
    """Reasons inline, and wants its content back intact."""

    name = profile = "minimax"
    model = "minimax-m2"

    def reasoning_fields(self, script: Script) -> Json:
        return {}

    def deltas(self, script: Script) -> Iterator[Json]:
        yield from ()

    def content(self, script: Script) -> str | None:
        thought = f"<think>\n{script.reasoning_text()}\n</think>\n\n" if script.thinks else ""
        return f"{thought}{script.text}"


class Mistral(Chat):
    """Puts reasoning into chunks of its content."""

    name = profile = "mistral"
    model = "magistral-medium-2509"
    chunked = True

    def reasoning_fields(self, script: Script) -> Json:
        if not script.thinks:
            return {}
        texts = [{"type": "text", "text": script.text}] if script.text else []
        return {"content": [_chunk(script.reasoning_text()), *texts]}

    def deltas(self, script: Script) -> Iterator[Json]:
        yield from (
            {"content": [_chunk(piece)]} for piece in pieces(script.reasoning_text(), PIECE)
        )

    def reasoning(self, turn: Turn) -> list[Json]:
        """Join the reasoning's chunks into one text."""
        content = turn[0].get("content")
        chunks = [part for part in content if "thinking" in part] if content else []
        text = "".join(text_of(part["thinking"]) for part in chunks if isinstance(part, dict))
        others = super().reasoning(turn)
        return [*others, {"thinking": text}] if text else others


def _chunk(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
