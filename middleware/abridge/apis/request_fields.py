"""The request fields that go upstream where reasoning is hidden.

Others might have upstream write the thinking where no reader looks for it: into log probabilities,
into an echo of the prompt, or into the text without its tags. So only those pass that are known not
to. The groups here are what servers add to either of OpenAI's APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from abridge.apis.json import as_object, objects, string
from abridge.core.conversation import Json
from abridge.providers.profile import TAGS

Rule: TypeAlias = "Callable[[Any], bool] | Mapping[str, Rule]"
"""Says whether a field's value passes, or which entries of a list do; or has the rules for the
fields of an object."""

TAG_TEXTS = (
    *(text for tag in TAGS for text in (tag.opening, tag.closing)),
    *("[THINK]", "[/THINK]", "<seed:think>", "</seed:think>"),
    *("<|channel|>final<|message|>", "<|channel|>commentary"),
)
"""Tags around reasoning, also those that servers read themselves."""


def anything(_: Any) -> bool:
    return True


def allow(*names: str) -> dict[str, Rule]:
    """Return the rules for fields that pass with any value."""
    return dict.fromkeys(names, anything)


def only(*values: str) -> Rule:
    """Return the rule for a field that passes with these values."""
    return lambda value: value in values


def is_true(value: Any) -> bool:
    return value is True


def cuts_no_tag(stop: Any) -> bool:
    """Return whether a stop sequence leaves thinking tags whole. Without its closing tag, thinking
    looks like the answer."""
    return isinstance(stop, str) and not any(_overlap(stop, tag) for tag in TAG_TEXTS)


def _overlap(stop: str, tag: str) -> bool:
    """Return whether, in some text, `stop` may match a piece of `tag`."""
    sizes = range(1, min(len(stop), len(tag)) + 1)
    return (
        stop in tag
        or tag in stop
        or any(stop[-size:] == tag[:size] or tag[-size:] == stop[:size] for size in sizes)
    )


SAMPLING_FIELDS: Mapping[str, Rule] = {
    **allow("top_k", "top_a", "min_p", "typical_p", "tfs_z", "seed", "random_seed", "do_sample"),
    **allow("repetition_penalty", "repeat_penalty", "repeat_last_n", "length_penalty"),
    **allow("presence_penalty", "frequency_penalty", "no_repeat_ngram_size", "samplers"),
    **allow("mirostat", "mirostat_tau", "mirostat_eta", "dynatemp_range", "dynatemp_exponent"),
    **allow("xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base"),
    **allow("dry_allowed_length", "dry_penalty_last_n"),
    **dict.fromkeys(("stop", "stop_sequences"), cuts_no_tag),
}
"""How tokens are drawn. Not `logit_bias`, `stop_token_ids`, `bad_words`, `ignore_eos` and
`min_tokens`: they can forbid a tag, or have a second turn follow within the answer."""

STRUCTURE_FIELDS: Mapping[str, Rule] = {
    **allow("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    **allow("structured_outputs", "structural_tag", "json_schema", "grammar", "regex", "ebnf"),
}
"""The form of the answer, after the thinking (vLLM, SGLang, llama.cpp)."""

_GOOGLE: Mapping[str, Rule] = {
    "thinking_config": allow("include_thoughts", "thinking_budget", "thinking_level")
}

THINKING_FIELDS: Mapping[str, Rule] = {
    **allow("reasoning_effort", "enable_thinking", "thinking_budget", "thinking_token_budget"),
    **allow("preserve_thinking", "clear_thinking", "disable_reasoning", "reasoning_history"),
    **allow("think", "prompt_mode"),
    "reasoning": {
        **allow("effort", "max_tokens", "enabled", "context", "mode"),
        **allow("summary", "generate_summary"),
    },
    "thinking": allow("type", "budget_tokens", "display", "keep", "clear_thinking"),
    "chat_template_kwargs": {
        **allow("enable_thinking", "thinking", "thinking_budget", "reasoning_effort"),
        **allow("preserve_thinking", "clear_thinking"),
    },
    "google": _GOOGLE,
    "extra_body": {"google": _GOOGLE},
    # without these, thinking is left out or stays within the text
    **dict.fromkeys(
        ("include_reasoning", "separate_reasoning", "reasoning_split", "stream_reasoning"), is_true
    ),
    "reasoning_format": only("parsed", "hidden", "auto", "deepseek"),
}
"""Whether and how long to think. Not where to put it: `exclude`, Gemini's `thought_tag_marker`,
other formats (Groq, llama.cpp), a template or other arguments for it."""

SERVING_FIELDS: Mapping[str, Rule] = {
    **allow("provider", "models", "route", "transforms", "session_id"),  # OpenRouter
    **allow("priority", "cache_salt", "cache_prompt", "id_slot", "keep_alive", "lora_path"),
    **allow("safe_prompt", "enable_search", "search_options", "search_parameters", "documents"),
    "usage": allow("include"),
}
"""Who serves the request, and with what."""

EXTENSION_FIELDS: Mapping[str, Rule] = {
    **SAMPLING_FIELDS,
    **STRUCTURE_FIELDS,
    **THINKING_FIELDS,
    **SERVING_FIELDS,
}


def drop_others(body: Json, rules: Mapping[str, Rule]) -> int:
    """Drop everything from a body that these rules do not let pass; return how much that was."""
    dropped = 0
    for key, value in list(body.items()):
        rule = rules.get(key)
        if rule is anything or (rule is not None and value is None):
            continue
        if isinstance(value, dict) and isinstance(rule, Mapping):
            dropped += drop_others(value, rule)
        elif isinstance(value, list) and callable(rule):
            body[key] = list(filter(rule, value))
            dropped += len(value) - len(body[key])
        elif not (callable(rule) and rule(value)):
            del body[key]
            dropped += 1
    return dropped


def drop_begun_thinking(messages: Any) -> int:
    """Drop the last messages of a request if they begin the assistant's thinking: some servers
    continue them, and the rest of the thinking would come without its tag."""
    dropped = 0
    while isinstance(messages, list) and messages and _begins_thinking(messages[-1]):
        messages.pop()
        dropped += 1
    return dropped


def _begins_thinking(message: Any) -> bool:
    content = as_object(message).get("content")
    texts = [string(content), *(string(part.get("text")) for part in objects(content))]
    return as_object(message).get("role") == "assistant" and any(
        tag in text for text in texts for tag in TAG_TEXTS
    )
