"""The catalog of providers: one row for each, with its source.

Facts only; the source of a single fact is beside it. `auto` reads every dialect that can be
recognized from the response, and learns the rest (`providers/learned.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, get_args

from abridge.wire.profile import TAGS, ApiName, Feature, Place, Profile, Refusal, Returns

__all__ = ["PROFILES", "TAGS", "Profile", "thinks"]

ALL: tuple[ApiName, ...] = ("chat", "responses", "messages")
CONTENT: tuple[Place, ...] = ("reasoning_content", "tags")
REASONING: tuple[Place, ...] = ("reasoning", "tags")


def _off(**fields: Any) -> Mapping[str, Any]:
    return MappingProxyType(fields)


_EFFORT_OFF = _off(reasoning_effort="none")
_TEMPLATE_OFF = _off(chat_template_kwargs={"enable_thinking": False})
_TYPE_OFF = _off(thinking={"type": "disabled"})

_PENALTIES = ("presence_penalty", "frequency_penalty")
_LOGITS = ("logprobs", "top_logprobs", "logit_bias")
_SAMPLING = ("temperature", "top_p", *_PENALTIES, *_LOGITS)

_ORIGINAL: Mapping[str, Any] = MappingProxyType(
    {
        # openai-openapi: `ChatCompletionRequestDeveloperMessage`, `ToolChoiceAllowed`, `CustomTool`
        "knows": frozenset(get_args(Feature)),
        # openai-openapi, `CreateResponse`: the penalties are of Open Responses, `top_k` is vLLM's
        "lacks": MappingProxyType({"responses": frozenset({"top_k", *_PENALTIES})}),
        # reasoning is sent back by id or encrypted; content that is not empty is rejected
        "own_reasoning": True,
        "least_tokens": 16,  # openai-openapi, `CreateResponse.max_output_tokens`
    }
)
"""OpenAI's own APIs."""

_OPENAI_REFUSES = (
    # learn.microsoft.com: foundry/openai/how-to/reasoning, "not supported"; vercel/ai
    # packages/openai/src/openai-language-model-capabilities.ts
    Refusal(_SAMPLING, ("o[1-9]*", "gpt-5", "gpt-5-*", "gpt-5*-pro*"), but=("*-chat*",)),
    # depends on the effort, which defaults to none up to 5.4: inspect_ai pull 5242
    Refusal(_SAMPLING, ("gpt-5.[1-4]*",), but=("*-chat*",), when="asked"),
    Refusal(_SAMPLING, ("gpt-5.[5-9]*", "gpt-[6-9]*"), but=("*-chat*",), when="thinking"),
    # openai-openapi, `StopConfiguration`; lm-evaluation-harness pull 3247
    Refusal(("stop",), ("o3*", "o4-mini*", "gpt-5", "gpt-5-*"), but=("*-chat*",)),
)

_ROWS = (
    Profile(
        "auto",
        apis=ALL,
        learns=True,
        telemetry="openai",  # their APIs, whoever serves them
        source="what can be told by looking",
    ),
    Profile(
        "anthropic",
        holds=(),  # on its chat endpoint, which is meant for testing
        returns=Returns("nothing"),
        refuses=(
            # platform.claude.com: migration guide; aido release 1.4.2
            Refusal(
                ("temperature", "top_p", "top_k"),
                ("claude-opus-4-[7-9]*", "claude-opus-[5-9]*", "claude-fable-*"),
            ),
            # docs.anthropic.com: build-with-claude/extended-thinking
            Refusal(("temperature", "top_k"), when="asked"),
        ),
        apis=("messages", "chat"),
        key_header="x-api-key",
        source="docs.anthropic.com: api/overview, api/openai-sdk",
    ),
    Profile(
        "azure",
        holds=CONTENT,  # for models that are not OpenAI's: recorded
        max_tokens="max_completion_tokens",
        thinking_off=_EFFORT_OFF,
        refuses=_OPENAI_REFUSES,
        **_ORIGINAL,
        apis=("chat", "responses"),
        key_header="api-key",
        telemetry="azure.ai.openai",
        source="learn.microsoft.com: foundry/openai/how-to/reasoning, reference",
    ),
    Profile(
        "bedrock",
        holds=("tags",),
        returns=Returns("nothing"),  # mastra issue 22159
        apis=ALL,
        telemetry="aws.bedrock",
        source="docs.aws.amazon.com: bedrock inference-chat-completions; BrowserOS issue 167",
    ),
    Profile(
        "cerebras",
        holds=REASONING,
        # recorded; kilocode issue 10375
        returns=Returns("tags", refuses=("reasoning_content",)),
        max_tokens="max_completion_tokens",
        thinking_off=_EFFORT_OFF,
        refuses=(Refusal((*_PENALTIES, "logit_bias")),),  # resources/openai, "unsupported"
        source="inference-docs.cerebras.ai: capabilities/reasoning, resources/openai",
    ),
    Profile(
        "deepseek",
        holds=CONTENT,
        returns=Returns("reasoning_content", wanted=True, on_calls=True, even_empty=True),
        thinking_off=_TYPE_OFF,
        apis=ALL,
        source="api-docs.deepseek.com: guides/thinking_mode; opencode issue 24083",
    ),
    Profile(
        "fireworks",
        holds=CONTENT,
        thinking_off=_EFFORT_OFF,
        apis=ALL,
        source="docs.fireworks.ai: guides/reasoning",
    ),
    Profile(
        "gemini",
        holds=("tags",),
        returns=Returns("extra_content", on_calls=True),
        thinking_off=_EFFORT_OFF,
        telemetry="gcp.gemini",
        source="ai.google.dev: gemini-api/docs/openai, docs/thought-signatures",
    ),
    Profile(
        "groq",
        holds=REASONING,
        returns=Returns("reasoning", refuses=("reasoning_content",)),  # jan issue 8136
        max_tokens="max_completion_tokens",
        thinking_off=_EFFORT_OFF,
        refuses=(Refusal(_LOGITS),),  # docs/openai, "currently unsupported"
        apis=("chat", "responses"),
        source="console.groq.com: docs/reasoning, docs/openai",
    ),
    Profile(
        "huggingface",
        holds=("tags", "reasoning_content", "reasoning"),  # depends on the provider
        returns=Returns("tags"),  # recorded
        apis=("chat", "responses"),
        source="huggingface.co: docs/inference-providers",
    ),
    Profile(
        "litellm",
        holds=("thinking_blocks", "reasoning_content", "tags"),
        returns=Returns("thinking_blocks"),
        apis=ALL,
        source="litellm types/utils.py, types/llms/openai.py; docs.litellm.ai: reasoning_content",
    ),
    Profile(
        "llamacpp",
        holds=CONTENT,
        thinking_off=_TEMPLATE_OFF,
        apis=ALL,
        source="llama.cpp tools/server/README.md; issues 11607, 16934",
    ),
    Profile(
        "lmstudio",
        holds=("reasoning", "reasoning_content", "tags"),  # depends on model and switch
        thinking_off=_EFFORT_OFF,  # openclaw 2fd1e7b
        apis=ALL,
        source="lmstudio.ai: docs/developer/api-changelog, docs/developer/openai-compat",
    ),
    Profile(
        "minimax",
        holds=("tags", "reasoning_details", "reasoning_content"),
        returns=Returns("tags", wanted=True),
        max_tokens="max_completion_tokens",
        effort="",
        thinking_off=_TYPE_OFF,  # from M3 on; earlier models ignore it
        apis=("chat", "messages"),
        source="platform.minimax.io: api-reference/text-openai-api",
    ),
    Profile(
        "mistral",
        holds=("chunks",),
        tags=TAGS[:1],
        returns=Returns("chunks", refuses=("reasoning_content",)),  # litellm issue 30835
        thinking_off=_EFFORT_OFF,
        telemetry="mistral_ai",
        source="docs.mistral.ai: capabilities/reasoning",
    ),
    Profile(
        "moonshot",
        holds=CONTENT,
        returns=Returns("reasoning_content", wanted=True, on_calls=True, even_empty=True),
        max_tokens="max_completion_tokens",
        thinking_off=_TYPE_OFF,  # except K3, which always reasons
        # api/models-overview, "cannot be modified"; odysseus issue 3959
        refuses=(
            Refusal(("temperature", "top_p", *_PENALTIES), ("kimi-k2.[5-9]*", "kimi-k[3-9]*")),
        ),
        apis=("chat", "messages"),
        telemetry="moonshot_ai",
        source="platform.kimi.ai: guide/use-kimi-k2-thinking-model, api/models-overview",
    ),
    Profile(
        "ollama",
        holds=REASONING,
        summary_is_raw=True,
        returns=Returns("reasoning"),
        thinking_off=_EFFORT_OFF,
        apis=ALL,
        source="ollama openai/openai.go, openai/responses.go",
    ),
    Profile(
        "openai",
        holds=(),
        tags=(),
        returns=Returns("nothing"),
        max_tokens="max_completion_tokens",
        thinking_off=_EFFORT_OFF,
        refuses=_OPENAI_REFUSES,
        **_ORIGINAL,
        apis=("responses", "chat"),
        source="OpenAI API reference: chat/create, reasoning guide",
    ),
    Profile(
        "openrouter",
        holds=("reasoning_details", "reasoning"),
        returns=Returns("reasoning_details"),
        thinking_off=_off(reasoning={"enabled": False}),
        apis=ALL,
        source="openrouter.ai: guides/best-practices/reasoning-tokens",
    ),
    Profile(
        "prefilled",
        holds=("tags",),
        tags=TAGS[:1],
        prefilled=True,
        returns=Returns("tags"),  # the templates remove them
        thinking_off=_TEMPLATE_OFF,
        source="DeepSeek-R1 and Qwen3 Thinking 2507 chat templates end in <think>, served without "
        "a reasoning parser",
    ),
    Profile(
        "qwen",
        holds=CONTENT,
        effort="",
        thinking_off=_off(enable_thinking=False),
        apis=ALL,
        source="Alibaba Model Studio: deep-thinking",
    ),
    Profile(
        "sglang",
        holds=CONTENT,
        thinking_off=_TEMPLATE_OFF,
        apis=ALL,
        source="docs.sglang.ai: separate_reasoning; entrypoints/openai/protocol.py",
    ),
    Profile(
        "together",
        holds=("reasoning", "reasoning_content", "tags"),
        returns=Returns("reasoning"),
        thinking_off=_off(reasoning={"enabled": False}),
        source="docs.together.ai: inference/chat/reasoning, glm-5.3-quickstart",
    ),
    Profile(
        "vllm",
        holds=("reasoning", "reasoning_content", "tags"),
        returns=Returns("reasoning"),
        thinking_off=_TEMPLATE_OFF,
        apis=ALL,
        source="docs.vllm.ai: reasoning outputs; chat_completion/protocol.py",
    ),
    Profile(
        "xai",
        holds=("reasoning_content",),  # for grok-3-mini only
        tags=(),
        returns=Returns("nothing"),
        thinking_off=_EFFORT_OFF,  # from grok-4.3 on: vercel/ai, @ai-sdk/xai 3.0.97
        refuses=(
            Refusal(
                (*_PENALTIES, "stop"),
                ("*-reasoning*", "grok-[4-9]*", "grok-3-mini*", "grok-code*"),
                but=("*non-reasoning*",),
            ),
            # also vercel/ai packages/xai/src/supports-reasoning-effort.ts
            Refusal(
                ("reasoning_effort", "reasoning.effort"),
                ("grok-3*", "grok-4", "grok-4-*", "grok-4.20*", "grok-code*", "grok-build*"),
                but=("grok-3-mini*", "*multi-agent*"),
            ),
        ),
        apis=("responses", "chat"),
        telemetry="x_ai",
        source="docs.x.ai: guides/reasoning",
    ),
    Profile(
        "zai",
        holds=CONTENT,
        returns=Returns("reasoning_content", wanted=True, on_calls=True),
        thinking_off=_TYPE_OFF,  # except GLM-5.3, which always reasons
        apis=("chat", "messages"),
        source="docs.z.ai: capabilities/thinking-mode",
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({row.name: row for row in _ROWS})
"""By name: `auto` first, then in alphabetical order."""

THINKERS = (
    "*qwen3*",
    "qwq*",
    "*deepseek-r*",
    "*deepseek-v[3-9]*",
    "*glm-4.[5-9]*",
    "*glm-[5-9]*",
    "*kimi-k*",
    "*minimax-m*",
    "*magistral*",
    "*gpt-oss*",
    "gpt-5*",
    "o[1-9]*",
    "*thinking*",
    "*reason*",
    "*-r1*",
)
"""Models that reason unless asked not to, by the usual form of their names (the model cards of
their makers). `instruct` in a name means that it does not.
"""


def thinks(model: str) -> bool:
    """Return True if a model's name says that it reasons by default."""
    name = model.casefold().rpartition("/")[2]
    return "instruct" not in name and any(fnmatchcase(name, glob) for glob in THINKERS)
