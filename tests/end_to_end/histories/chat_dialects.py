"""Providers that speak Chat Completions, each in its dialect."""

from __future__ import annotations

from collections.abc import Iterator

from tests.end_to_end.histories.answers import Said
from tests.end_to_end.histories.chat_provider import HOLDERS, PIECE, STATE, Chat, invalid, text_of
from tests.end_to_end.histories.provider import Json, Refusal, Turn
from tests.scripts import pieces


class DeepSeek(Chat):
    """V4: every message that calls tools, for good (opencode issue 24083); present even when it is
    empty (deepseek-harness discussion 739)."""

    name = profile = "deepseek"
    model = "deepseek-v4"
    demands = "always"

    def told(self, said: Said) -> Json:
        return {"reasoning_content": said.thought()}

    def identity(self, serial: int, number: int, body: Json) -> str:
        return f"call_{number:02}_{serial:04}Yq7ZtR4mP2sKb8xQw"

    def judge(self, body: Json) -> Refusal | None:
        for _, message in self.calling(body):
            if not isinstance(message.get("reasoning_content"), str):
                return invalid(
                    "The `reasoning_content` in the thinking mode must be passed back to the API.",
                    code="invalid_request_error",
                )
        return None


class Kimi(Chat):
    """Every message that calls tools (mastra issue 12592). Its call ids are counted in each
    conversation, so that they tell no two apart."""

    name = "kimi"
    profile = "moonshot"
    model = "kimi-k2-thinking"
    demands = "always"
    distinct = False

    def identity(self, serial: int, number: int, body: Json) -> str:
        made = [call for _, message in self.calling(body) for call in message["tool_calls"]]
        return f"functions.look:{len(made) + number}"

    def judge(self, body: Json) -> Refusal | None:
        for place, message in self.calling(body):
            if not isinstance(message.get("reasoning_content"), str):
                return invalid(
                    "thinking is enabled but reasoning_content is missing in assistant tool call "
                    f"message at index {place}"
                )
        return None


class Zai(Chat):
    """Wants what was thought in a round of tools returned with their results, unmodified and in
    order (docs.z.ai: capabilities/thinking-mode); answers the worse without."""

    name = "glm"
    profile = "zai"
    model = "glm-5"
    demands = "rounds"

    def judge(self, body: Json) -> Refusal | None:
        for _, message in self.since(body):
            entry = self.entry([message])
            if entry and self.reasoning([message]) != self.reasoning(entry.spelled):
                self.complaints.append(f"not what was thought in answer {entry.said.serial}")
        return None


class Groq(Chat):
    """Knows one field, and refuses the other (jan issue 8136)."""

    name = profile = "groq"
    model = "openai/gpt-oss-120b"
    field = "reasoning"

    def judge(self, body: Json) -> Refusal | None:
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
    """Demands its signature on the first call of each round since the user last spoke
    (discuss.ai.google.dev/t/109823; its documentation, thought signatures)."""

    name = profile = "gemini"
    model = "gemini-3-pro-preview"
    demands = "rounds"
    seals = True

    def state(self, said: Said) -> Json:
        return {STATE: {"google": {"thought_signature": said.sealed("s", "CiQ")}}}

    def told(self, said: Said) -> Json:
        return {} if said.calls else self.state(said)

    def deltas(self, said: Said) -> Iterator[Json]:
        yield from [self.told(said)] if self.told(said) else []

    def judge(self, body: Json) -> Refusal | None:
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
    """The same, asked to include its thoughts: they stand before the answer."""

    name = "gemini aloud"
    seals = False

    def content(self, said: Said) -> str | None:
        return f"<thought>{said.thought()}</thought>{said.text}"


class OpenRouter(Chat):
    """Wants its details back unmodified and in order."""

    name = profile = "openrouter"
    model = "anthropic/claude-sonnet-4.5"

    def told(self, said: Said) -> Json:
        if not said.thinks:
            return {}
        kind = {"format": "anthropic-claude-v1"}
        text, data = {"type": "reasoning.text"}, {"type": "reasoning.encrypted"}
        signed = {"text": said.thought(), "signature": said.sealed("s", "EqMD"), "index": 0}
        sealed = {"data": said.sealed("e"), "id": f"rs_{said.serial}", "index": 1}
        details = [{**text, **signed, **kind}, {**data, **sealed, **kind}]
        return {"reasoning": said.thought(), "reasoning_details": details}

    def deltas(self, said: Said) -> Iterator[Json]:
        if not said.thinks:
            return
        text, sealed = self.told(said)["reasoning_details"]
        signature = text.pop("signature")
        for piece in pieces(said.thought(), PIECE):
            yield {"reasoning": piece, "reasoning_details": [{**text, "text": piece}]}
        del text["text"]
        yield {"reasoning_details": [{**text, "signature": signature}]}
        yield {"reasoning_details": [sealed]}

    def judge(self, body: Json) -> Refusal | None:
        for message in body["messages"]:
            given = message.get("reasoning_details")
            entry = self.entry([message]) if message["role"] == "assistant" else None
            if entry and given and given != entry.spelled[0].get("reasoning_details"):
                self.complaints.append(f"other details than answer {entry.said.serial} had")
        return None


class MiniMax(Chat):
    """Thinks inline, and wants its content back intact."""

    name = profile = "minimax"
    model = "minimax-m2"

    def told(self, said: Said) -> Json:
        return {}

    def deltas(self, said: Said) -> Iterator[Json]:
        yield from ()

    def content(self, said: Said) -> str | None:
        thought = f"<think>\n{said.thought()}\n</think>\n\n" if said.thinks else ""
        return f"{thought}{said.text}"


class Mistral(Chat):
    """Thinks in chunks of its content."""

    name = profile = "mistral"
    model = "magistral-medium-2509"
    chunked = True

    def told(self, said: Said) -> Json:
        if not said.thinks:
            return {}
        texts = [{"type": "text", "text": said.text}] if said.text else []
        return {"content": [_chunk(said.thought()), *texts]}

    def deltas(self, said: Said) -> Iterator[Json]:
        yield from ({"content": [_chunk(piece)]} for piece in pieces(said.thought(), PIECE))

    def reasoning(self, turn: Turn) -> list[Json]:
        """One text, in however many chunks it came."""
        content = turn[0].get("content")
        chunks = [part for part in content if "thinking" in part] if content else []
        text = "".join(text_of(part["thinking"]) for part in chunks if isinstance(part, dict))
        others = super().reasoning(turn)
        return [*others, {"thinking": text}] if text else others


def _chunk(text: str) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
