"""All the providers, by name."""

from __future__ import annotations

from tests.end_to_end.histories.chat_dialects import (
    VLLM,
    DeepSeek,
    Gemini,
    GeminiAloud,
    Groq,
    Kimi,
    MiniMax,
    Mistral,
    OpenRouter,
    OpenRouterSummaries,
    Zai,
)
from tests.end_to_end.histories.messages_provider import Anthropic, AnthropicAdaptive, Raw
from tests.end_to_end.histories.provider import Provider
from tests.end_to_end.histories.responses_provider import Ollama, Open, OpenAI

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
        OpenRouterSummaries,
        Raw,
        VLLM,
        Zai,
    )
}
