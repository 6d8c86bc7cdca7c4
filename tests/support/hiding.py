"""The samples of what hiding must tell apart, and what a client gets of each."""

from __future__ import annotations

import json
from typing import Any

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.providers.catalog import PROFILES
from tests.support.pipeline import Pipeline
from tests.support.shared import HIDING
from tests.support.streams import DONE, chunk, completion

THINKING, ANSWER = "SECRET the user wants a number", "Forty-two"
PROFILES_TRIED = ("auto", "vllm", "openai", "deepseek")

Json = dict[str, Any]


def samples(name: str) -> list[Json]:
    """Return the samples of a file; none where it is not there."""
    path = HIDING / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else []


def spoken(sample: Json) -> str:
    """Return what a model says that writes its thinking as a sample does."""
    text: str = sample["text"]
    return text.replace("{THINKING}", THINKING).replace("{ANSWER}", ANSWER)


def chat_answer(message: Json, finish: str, size: int | None) -> bytes:
    """Return an answer that says a message, streamed in texts of a size, or whole."""
    if size is None:
        body = completion(message)
        body["choices"][0]["finish_reason"] = finish
        return json.dumps(body).encode()
    text = message.get("content") or ""
    texts = [text[start : start + size] for start in range(0, len(text), size)]
    deltas = [chunk({"content": one}) for one in texts]
    calls = [chunk({"tool_calls": message["tool_calls"]})] if message.get("tool_calls") else []
    return b"".join([*deltas, *calls, chunk({}, finish=finish), DONE])


def shown(
    message: Json,
    *,
    client: Api = CHAT,
    profile: str = "auto",
    finish: str = "stop",
    size: int | None = None,
) -> str:
    """Return what a client of an API gets of a message of Chat Completions, with its escapes."""
    upstream = None if client is CHAT else CHAT.name
    pipeline = Pipeline(client, expose="none", profile=PROFILES[profile], upstream=upstream)
    answer = chat_answer(message, finish, size)
    out = pipeline.whole(answer) if size is None else pipeline.stream(answer)
    return out.decode()


def said(out: str, *, streamed: bool) -> str:
    """Return all strings of what a client got, one after the other."""
    bodies = [line[6:] for line in out.splitlines() if line.startswith("data: {")]
    return "".join(_strings(json.loads(body)) for body in (bodies if streamed else [out]))


def _strings(value: Any) -> str:
    if isinstance(value, dict):
        skipped = ("id", "object", "model", "type", "item_id", "obfuscation", "role", "status")
        return "".join(_strings(inner) for key, inner in value.items() if key not in skipped)
    if isinstance(value, list):
        return "".join(map(_strings, value))
    return value if isinstance(value, str) else ""
