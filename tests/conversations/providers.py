"""All the providers, by name."""

from __future__ import annotations

from tests.conversations.blocks import Anthropic, AnthropicAdaptive
from tests.conversations.chats import (
    VLLM,
    DeepSeek,
    Gemini,
    GeminiAloud,
    Groq,
    Kimi,
    MiniMax,
    Mistral,
    OpenRouter,
    Zai,
)
from tests.conversations.items import Ollama, Open, OpenAI
from tests.conversations.provider import Provider

PROVIDERS: dict[str, type[Provider]] = {
    kind.name: kind
    for kind in (
        Anthropic,
        AnthropicAdaptive,
        DeepSeek,
        Gemini,
        GeminiAloud,
        Groq,
        Kimi,
        MiniMax,
        Mistral,
        Ollama,
        Open,
        OpenAI,
        OpenRouter,
        VLLM,
        Zai,
    )
}
