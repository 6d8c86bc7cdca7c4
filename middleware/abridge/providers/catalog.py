"""The catalog of providers: one row for each, with its source.

Facts only; the source of a single fact is beside it. `auto` reads every dialect that can be
recognized from the response, and learns the rest (`providers/learned.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_args

from abridge.providers.claude import CLAUDE_SUMMARIES
from abridge.providers.gemini import GEMINI_SUMMARIES
from abridge.providers.profile import (
    GOOGLES,
    TAGS,
    ApiName,
    ChatFeature,
    Profile,
    ReasoningPlace,
    ReasoningReturn,
    RejectedFields,
    StructuredPlace,
)

ALL_APIS: tuple[ApiName, ...] = ("chat", "responses", "messages")

IN_REASONING_CONTENT: tuple[ReasoningPlace, ...] = ("reasoning_content", "tags")

IN_REASONING: tuple[ReasoningPlace, ...] = ("reasoning", "tags")


def _switch_off(**fields: Any) -> Mapping[str, Any]:
    return MappingProxyType(fields)


_EFFORT_OFF = _switch_off(reasoning_effort="none")

_TEMPLATE_OFF = _switch_off(chat_template_kwargs={"enable_thinking": False})

_TYPE_OFF = _switch_off(thinking={"type": "disabled"})

_PENALTIES = ("presence_penalty", "frequency_penalty")

_LOGITS = ("logprobs", "top_logprobs", "logit_bias")

_SAMPLING = ("temperature", "top_p", *_PENALTIES, *_LOGITS)

_OPENAI_COLUMNS: Mapping[str, Any] = MappingProxyType(
    {
        # openai-openapi: `ChatCompletionRequestDeveloperMessage`, `ToolChoiceAllowed`, `CustomTool`
        "supports": frozenset(get_args(ChatFeature)) - {"images"},
        # openai-openapi, `CreateResponse`: the penalties are of Open Responses, `top_k` is vLLM's
        "lacks": MappingProxyType({"responses": frozenset({"top_k", *_PENALTIES})}),
        # reasoning is sent back by id or encrypted; content that is not empty is rejected
        "rejects_clear_reasoning": True,
        "compacts": ("responses",),  # guides/compaction
        "min_output_tokens": 16,  # openai-openapi, `CreateResponse.max_output_tokens`
    }
)
"""OpenAI's own APIs."""

_CLAUDE = ("*claude-*",)
"""Claude under any provider's name: its signatures are verified (docs.anthropic.com:
build-with-claude/extended-thinking, "preserving thinking blocks")."""

_BEDROCK_SUMMARIES = tuple(f"*anthropic.{model}" for model in CLAUDE_SUMMARIES)
"""The same as Bedrock names them: `us.anthropic.claude-…`."""

_OPENAI_REJECTS = (
    # learn.microsoft.com: foundry/openai/how-to/reasoning, "not supported"; vercel/ai
    # packages/openai/src/openai-language-model-capabilities.ts
    RejectedFields(
        _SAMPLING, ("o[1-9]*", "gpt-5", "gpt-5-*", "gpt-5*-pro*"), except_models=("*-chat*",)
    ),
    # depends on the effort, which defaults to none up to 5.4: inspect_ai pull 5242
    RejectedFields(_SAMPLING, ("gpt-5.[1-4]*",), except_models=("*-chat*",), when="asked"),
    RejectedFields(
        _SAMPLING, ("gpt-5.[5-9]*", "gpt-[6-9]*"), except_models=("*-chat*",), when="thinking"
    ),
    # openai-openapi, `StopConfiguration`; lm-evaluation-harness pull 3247
    RejectedFields(("stop",), ("o3*", "o4-mini*", "gpt-5", "gpt-5-*"), except_models=("*-chat*",)),
)

_ROWS = (
    Profile(
        "auto",
        apis=ALL_APIS,
        compacts=("responses", "messages"),  # it may
        summarized_models=(*CLAUDE_SUMMARIES, *_BEDROCK_SUMMARIES, *GEMINI_SUMMARIES),
        signed_models=_CLAUDE,
        learns=True,
        telemetry_name="openai",  # their APIs, whoever serves them
        encrypts_state=True,  # nothing is known: only what can be read is left out
        source="what can be told by looking",
    ),
    Profile(
        "anthropic",
        reasoning_in=(),  # on its chat endpoint, which is meant for testing
        summarized_models=CLAUDE_SUMMARIES,
        signed_models=("*",),
        returns=ReasoningReturn("nothing"),
        rejects=(
            # platform.claude.com: migration guide; aido release 1.4.2
            RejectedFields(
                ("temperature", "top_p", "top_k"),
                ("claude-opus-4-[7-9]*", "claude-opus-[5-9]*", "claude-fable-*"),
            ),
            # docs.anthropic.com: build-with-claude/extended-thinking
            RejectedFields(("temperature", "top_k"), when="asked"),
        ),
        apis=("messages", "chat"),
        compacts=("messages",),  # build-with-claude/compaction-on-demand
        key_header="x-api-key",
        parses_text=True,
        makes_summaries=True,
        encrypts_state=True,
        source="docs.anthropic.com: api/overview, api/openai-sdk",
    ),
    Profile(
        "azure",
        reasoning_in=IN_REASONING_CONTENT,  # for models that are not OpenAI's: recorded
        summarized_models=CLAUDE_SUMMARIES,
        max_tokens_field="max_completion_tokens",
        thinking_off=_EFFORT_OFF,
        rejects=_OPENAI_REJECTS,
        **_OPENAI_COLUMNS,
        apis=("chat", "responses"),
        key_header="api-key",
        telemetry_name="azure.ai.openai",
        parses_text=True,
        makes_summaries=True,
        encrypts_state=True,
        source="learn.microsoft.com: foundry/openai/how-to/reasoning, reference",
    ),
    Profile(
        "bedrock",
        reasoning_in=("tags",),
        summarized_models=_BEDROCK_SUMMARIES,
        signed_models=_CLAUDE,
        returns=ReasoningReturn("nothing"),  # mastra issue 22159
        apis=ALL_APIS,
        telemetry_name="aws.bedrock",
        encrypts_state=True,  # Claude's
        source="docs.aws.amazon.com: bedrock inference-chat-completions; BrowserOS issue 167",
    ),
    Profile(
        "cerebras",
        reasoning_in=IN_REASONING,
        # recorded; kilocode issue 10375
        returns=ReasoningReturn("tags", rejects=("reasoning_content",)),
        max_tokens_field="max_completion_tokens",
        thinking_off=_EFFORT_OFF,
        rejects=(RejectedFields((*_PENALTIES, "logit_bias")),),  # resources/openai, "unsupported"
        parses_text=True,
        source="inference-docs.cerebras.ai: capabilities/reasoning, resources/openai",
    ),
    Profile(
        "deepseek",
        reasoning_in=IN_REASONING_CONTENT,
        returns=ReasoningReturn(
            "reasoning_content", wanted=True, required_on_calls=True, required_even_empty=True
        ),
        forgets_responses=True,  # guides/responses_api
        structured_outputs="none",  # it takes Claude's names: guides/anthropic_api
        thinking_off=_TYPE_OFF,
        apis=ALL_APIS,
        parses_text=True,
        source="api-docs.deepseek.com: guides/thinking_mode; opencode issue 24083",
    ),
    Profile(
        "fireworks",
        reasoning_in=IN_REASONING_CONTENT,
        thinking_off=_EFFORT_OFF,
        apis=ALL_APIS,
        source="docs.fireworks.ai: guides/reasoning",
    ),
    Profile(
        "gemini",
        reasoning_in=("tags",),
        summarized_models=GEMINI_SUMMARIES,
        returns=ReasoningReturn("extra_content", required_on_calls=True),
        thinking_off=_EFFORT_OFF,
        telemetry_name="gcp.gemini",
        parses_text=True,
        encrypts_state=True,
        source="ai.google.dev: gemini-api/docs/openai, docs/thought-signatures",
    ),
    Profile(
        "gemini-native",
        reasoning_in=(),  # on Gemini's own APIs thoughts are parts of their own
        tags=(),
        summarized_models=GEMINI_SUMMARIES,
        returns=ReasoningReturn("nothing"),  # of its own APIs, which sign calls or thoughts
        apis=GOOGLES,
        key_header="x-goog-api-key",
        telemetry_name="gcp.gemini",
        parses_text=True,
        makes_summaries=True,
        encrypts_state=True,
        source="ai.google.dev: api/generate-content, api/interactions-api, docs/thinking",
    ),
    Profile(
        "groq",
        reasoning_in=IN_REASONING,
        returns=ReasoningReturn("reasoning", rejects=("reasoning_content",)),  # jan issue 8136
        max_tokens_field="max_completion_tokens",
        thinking_off=_EFFORT_OFF,
        rejects=(RejectedFields(_LOGITS),),  # docs/openai, "currently unsupported"
        apis=("chat", "responses"),
        parses_text=True,
        source="console.groq.com: docs/reasoning, docs/openai",
    ),
    Profile(
        "huggingface",
        reasoning_in=("tags", "reasoning_content", "reasoning"),  # depends on the provider
        returns=ReasoningReturn("tags"),  # recorded
        apis=("chat", "responses"),
        source="huggingface.co: docs/inference-providers",
    ),
    Profile(
        "litellm",
        reasoning_in=("thinking_blocks", "reasoning_content", "tags"),
        summarized_models=(*CLAUDE_SUMMARIES, *_BEDROCK_SUMMARIES, *GEMINI_SUMMARIES),
        returns=ReasoningReturn("thinking_blocks"),
        cache_marks=True,  # completion/prompt_caching
        apis=ALL_APIS,
        encrypts_state=True,  # that of the vendors behind it
        source="litellm types/utils.py, types/llms/openai.py; docs.litellm.ai: reasoning_content",
    ),
    Profile(
        "llamacpp",
        reasoning_in=IN_REASONING_CONTENT,
        inline_on_responses=True,  # without its reasoning parser
        forgets_responses=True,  # "does not support 'previous_response_id'": tools/server
        thinking_off=_TEMPLATE_OFF,
        apis=ALL_APIS,
        token_counters=("messages",),  # tools/server/server.cpp
        owns_models=True,
        source="llama.cpp tools/server/README.md; issues 11607, 16934",
    ),
    Profile(
        "lmstudio",
        reasoning_in=("reasoning", "reasoning_content", "tags"),  # depends on model and switch
        thinking_off=_EFFORT_OFF,  # openclaw 2fd1e7b
        apis=ALL_APIS,
        source="lmstudio.ai: docs/developer/api-changelog, docs/developer/openai-compat",
    ),
    Profile(
        "minimax",
        reasoning_in=("tags", "reasoning_details", "reasoning_content"),
        returns=ReasoningReturn("tags", wanted=True),
        max_tokens_field="max_completion_tokens",
        effort_field="",
        thinking_off=_TYPE_OFF,  # from M3 on; earlier models ignore it
        apis=("chat", "messages"),
        parses_text=True,
        source="platform.minimax.io: api-reference/text-openai-api",
    ),
    Profile(
        "mistral",
        reasoning_in=("chunks",),
        tags=TAGS[:1],
        returns=ReasoningReturn("chunks", rejects=("reasoning_content",)),  # litellm issue 30835
        thinking_off=_EFFORT_OFF,
        telemetry_name="mistral_ai",
        parses_text=True,
        source="docs.mistral.ai: capabilities/reasoning",
    ),
    Profile(
        "moonshot",
        reasoning_in=IN_REASONING_CONTENT,
        returns=ReasoningReturn(
            "reasoning_content", wanted=True, required_on_calls=True, required_even_empty=True
        ),
        max_tokens_field="max_completion_tokens",
        thinking_off=_TYPE_OFF,  # except K3, which always reasons
        # api/models-overview, "cannot be modified"; odysseus issue 3959
        rejects=(
            RejectedFields(
                ("temperature", "top_p", *_PENALTIES), ("kimi-k2.[5-9]*", "kimi-k[3-9]*")
            ),
        ),
        apis=("chat", "messages"),
        telemetry_name="moonshot_ai",
        parses_text=True,
        source="platform.kimi.ai: guide/use-kimi-k2-thinking-model, api/models-overview",
    ),
    Profile(
        "ollama",
        reasoning_in=IN_REASONING,
        summary_is_raw=True,
        forgets_responses=True,  # docs.ollama.com, openai-compatibility: "stateless"
        returns=ReasoningReturn("reasoning"),
        thinking_off=_EFFORT_OFF,
        apis=ALL_APIS,
        source="ollama openai/openai.go, openai/responses.go",
    ),
    Profile(
        "openai",
        reasoning_in=(),
        tags=(),
        returns=ReasoningReturn("nothing"),
        max_tokens_field="max_completion_tokens",
        thinking_off=_EFFORT_OFF,
        rejects=_OPENAI_REJECTS,
        **_OPENAI_COLUMNS,
        apis=("responses", "chat"),
        token_counters=("responses",),  # api/reference: responses/input_tokens
        parses_text=True,
        makes_summaries=True,
        encrypts_state=True,
        source="OpenAI API reference: chat/create, reasoning guide",
    ),
    Profile(
        "openrouter",
        reasoning_in=("reasoning_details", "reasoning"),
        summarized_models=(*CLAUDE_SUMMARIES, *GEMINI_SUMMARIES),
        returns=ReasoningReturn("reasoning_details"),
        budget_field="reasoning.max_tokens",
        supports=frozenset({"images"}),  # @openrouter/sdk, `ChatAssistantMessage`
        cache_marks=True,  # guides/best-practices/prompt-caching
        thinking_off=_switch_off(reasoning={"enabled": False}),
        apis=ALL_APIS,
        parses_text=True,
        makes_summaries=True,
        encrypts_state=True,  # that of the vendors behind it
        source="openrouter.ai: guides/best-practices/reasoning-tokens",
    ),
    Profile(
        "prefilled",
        reasoning_in=("tags",),
        tags=TAGS[:1],
        prefilled=True,
        inline_on_responses=True,
        returns=ReasoningReturn("tags"),  # the templates remove them
        thinking_off=_TEMPLATE_OFF,
        source="DeepSeek-R1 and Qwen3 Thinking 2507 chat templates end in <think>, served without "
        "a reasoning parser",
    ),
    Profile(
        "qwen",
        reasoning_in=IN_REASONING_CONTENT,
        effort_field="",
        budget_field="thinking_budget",
        thinking_off=_switch_off(enable_thinking=False),
        apis=ALL_APIS,
        parses_text=True,
        source="Alibaba Model Studio: deep-thinking",
    ),
    Profile(
        "sglang",
        reasoning_in=IN_REASONING_CONTENT,
        thinking_off=_TEMPLATE_OFF,
        apis=ALL_APIS,
        token_counters=("messages",),  # entrypoints/anthropic/serving.py
        owns_models=True,
        source="docs.sglang.ai: separate_reasoning; entrypoints/openai/protocol.py",
    ),
    Profile(
        "together",
        reasoning_in=("reasoning", "reasoning_content", "tags"),
        returns=ReasoningReturn("reasoning"),
        thinking_off=_switch_off(reasoning={"enabled": False}),
        source="docs.together.ai: inference/chat/reasoning, glm-5.3-quickstart",
    ),
    Profile(
        "transformers",
        reasoning_in=("tags", "reasoning_content"),  # depends on its version
        inline_on_responses=True,
        forgets_responses=True,  # cli/serving: `UNUSED_RESPONSE_FIELDS`
        returns=ReasoningReturn("tags"),
        effort_field="",
        # cli/serving: `UNUSED_CHAT_COMPLETION_FIELDS`, `UNUSED_RESPONSE_FIELDS`
        rejects=(
            RejectedFields(
                (
                    *("include", "reasoning_effort", "service_tier", "store", "stream_options"),
                    *("top_logprobs", "truncation", "user"),
                )
            ),
        ),
        apis=("chat", "responses"),
        source="huggingface/transformers cli/serving/chat_completion.py, response.py",
    ),
    Profile(
        "vllm",
        reasoning_in=("reasoning", "reasoning_content", "tags"),
        inline_on_responses=True,  # without its reasoning parser
        returns=ReasoningReturn("reasoning"),
        structured_outputs="all",  # since 0.22: entrypoints/anthropic/protocol.py
        thinking_off=_TEMPLATE_OFF,
        apis=ALL_APIS,
        token_counters=("tokenize",),  # entrypoints/serve/tokenize/protocol.py
        owns_models=True,
        source="docs.vllm.ai: reasoning outputs; chat_completion/protocol.py",
    ),
    Profile(
        "xai",
        reasoning_in=("reasoning_content",),  # for grok-3-mini only
        tags=(),
        returns=ReasoningReturn("nothing"),
        thinking_off=_EFFORT_OFF,  # from grok-4.3 on: vercel/ai, @ai-sdk/xai 3.0.97
        rejects=(
            RejectedFields(
                (*_PENALTIES, "stop"),
                ("*-reasoning*", "grok-[4-9]*", "grok-3-mini*", "grok-code*"),
                except_models=("*non-reasoning*",),
            ),
            # also vercel/ai packages/xai/src/supports-reasoning-effort.ts
            RejectedFields(
                ("reasoning_effort", "reasoning.effort"),
                ("grok-3*", "grok-4", "grok-4-*", "grok-4.20*", "grok-code*", "grok-build*"),
                except_models=("grok-3-mini*", "*multi-agent*"),
            ),
        ),
        apis=("responses", "chat"),
        telemetry_name="x_ai",
        parses_text=True,
        makes_summaries=True,
        encrypts_state=True,
        source="docs.x.ai: guides/reasoning",
    ),
    Profile(
        "zai",
        reasoning_in=IN_REASONING_CONTENT,
        returns=ReasoningReturn("reasoning_content", wanted=True, required_on_calls=True),
        thinking_off=_TYPE_OFF,  # except GLM-5.3, which always reasons
        apis=("chat", "messages"),
        parses_text=True,
        source="docs.z.ai: capabilities/thinking-mode",
    ),
)

PROFILES: Mapping[str, Profile] = MappingProxyType({row.name: row for row in _ROWS})
"""By name: `auto` first, then in alphabetical order."""

TEXT_FIELDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        place
        for row in _ROWS
        for place in (*row.reasoning_in, row.returns.place)
        if place not in get_args(StructuredPlace)
    )
)
"""The fields of a chat message in which some provider puts its reasoning as text, or wants it back.
They are looked for in every message, whatever its provider.
"""
