"""The request fields that go upstream where reasoning is hidden.

Others might have upstream write the thinking where no reader looks for it: into log probabilities,
into an echo of the prompt, or into the text without its tags. So only those pass that are known not
to. The groups here are what servers add to either of OpenAI's APIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from abridge.apis.json import as_object, objects, string
from abridge.apis.shapes import DROPPED, DropCount, Shape, each, fields
from abridge.stages.hidden_thinking import ThinkingFilter
from abridge.stages.tag_forms import FORMS

TAG_TEXTS = tuple(text for form in FORMS for text in form.examples)
"""Tags around thinking."""

_MARKS = re.compile(r"[<>\[\]|/◁▷]")


def as_sent(value: Any, _: DropCount) -> Any:
    """A value of a field that reveals nothing whatever its value."""
    return value


def allow(*names: str) -> dict[str, Shape]:
    """Return the shapes for fields that pass with any value."""
    return dict.fromkeys(names, as_sent)


def only(*values: object) -> Shape:
    """One of these values, or a list of them."""

    def match(value: Any, drops: DropCount) -> Any:
        return value if value is None or value in values else drops.drop(value)

    return one_or_more(match)


def one_or_more(shape: Shape) -> Shape:
    """A value of a shape, or a list of them, unless nothing is left of it."""

    def match(value: Any, drops: DropCount) -> Any:
        if not isinstance(value, list):
            return shape(value, drops)
        return each(shape)(value, drops) or DROPPED

    return match


def conversation(messages: Any, drops: DropCount) -> Any:
    """Messages, without an end that begins the assistant's thinking: some servers continue it, and
    the rest of the thinking would come without its tag."""
    kept = list(messages) if isinstance(messages, list) else messages
    while isinstance(kept, list) and kept and _begins_thinking(kept[-1]):
        drops.drop(kept.pop())
    return kept


def _begins_thinking(message: Any) -> bool:
    """Return whether this is an item of reasoning, or a message of the assistant's that ends inside
    a block of thinking, by its tag or as a chunk that is not `closed` (docs.mistral.ai).

    vLLM continues reasoning of status "incomplete" (entrypoints/openai/responses/utils.py).
    """
    if as_object(message).get("type") == "reasoning":
        return True
    content = as_object(message).get("content")
    text = string(content) + "".join(string(part.get("text")) for part in objects(content))
    thinking = ThinkingFilter(may_begin_inside=False, limit=len(text))
    thinking.feed(text)
    thinking.end()
    is_open = thinking.is_inside or any(part.get("closed") is False for part in objects(content))
    return is_open and as_object(message).get("role") == "assistant"


def _stop_sequence(stop: Any, drops: DropCount) -> Any:
    """A stop sequence that leaves thinking tags whole. Without its closing tag, thinking looks like
    the answer."""
    return drops.drop(stop) if _may_cut_tag(string(stop).casefold()) else stop


def _marked(pieces: Iterable[str]) -> frozenset[str]:
    """Return the pieces of tags that hold a character which marks tags. A piece of a tag's name may
    stop any text."""
    return frozenset(filter(_MARKS.search, pieces))


_TAGS = tuple(tag.casefold() for tag in TAG_TEXTS)

_BEGINNINGS = _marked(tag[:end] for tag in _TAGS for end in range(len(tag) + 1))

_ENDS = _marked(tag[start:] for tag in _TAGS for start in range(len(tag)))

_PIECES = _marked(end[:size] for end in _ENDS for size in range(len(end) + 1)) | _BEGINNINGS

_LONGEST = max(map(len, _TAGS))


def _may_cut_tag(stop: str) -> bool:
    """Return whether a stop sequence may match a piece of a tag."""
    if _MARKS.search(stop) is None:
        return False
    sizes = range(1, min(len(stop), _LONGEST) + 1)
    return (
        stop in _PIECES
        or any(stop[-size:] in _BEGINNINGS or stop[:size] in _ENDS for size in sizes)
        or any(tag in stop for tag in _TAGS)
    )


SAMPLING_FIELDS: Mapping[str, Shape] = {
    **allow("top_k", "top_a", "min_p", "typical_p", "tfs_z", "seed", "random_seed", "do_sample"),
    **allow("repetition_penalty", "repeat_penalty", "repeat_last_n", "length_penalty"),
    **allow("presence_penalty", "frequency_penalty", "no_repeat_ngram_size", "samplers"),
    **allow("mirostat", "mirostat_tau", "mirostat_eta", "dynatemp_range", "dynatemp_exponent"),
    **allow("xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base"),
    **allow("dry_allowed_length", "dry_penalty_last_n"),
    **dict.fromkeys(("stop", "stop_sequences"), one_or_more(_stop_sequence)),
}
"""How tokens are drawn. Not `logit_bias`, `stop_token_ids`, `bad_words`, `ignore_eos` and
`min_tokens`: they can forbid a tag, or have a second turn follow within the answer."""

STRUCTURE_FIELDS: Mapping[str, Shape] = {
    **allow("guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    **allow("structured_outputs", "structural_tag", "json_schema", "grammar", "regex", "ebnf"),
}
"""The form of the answer, after the thinking (vLLM, SGLang, llama.cpp)."""

_GOOGLE = fields(
    {"thinking_config": fields(allow("include_thoughts", "thinking_budget", "thinking_level"))}
)

THINKING_FIELDS: Mapping[str, Shape] = {
    **allow("reasoning_effort", "enable_thinking", "thinking_budget", "thinking_token_budget"),
    **allow("preserve_thinking", "clear_thinking", "disable_reasoning", "reasoning_history"),
    **allow("think", "prompt_mode"),
    "reasoning": fields(
        {
            **allow("effort", "max_tokens", "enabled", "context", "mode"),
            **allow("summary", "generate_summary", "summary_language"),
        }
    ),
    "thinking": fields(
        allow("type", "budget_tokens", "display", "keep", "clear_thinking", "block_binding")
    ),
    "chat_template_kwargs": fields(
        {
            **allow("enable_thinking", "thinking", "thinking_budget", "reasoning_effort"),
            **allow("preserve_thinking", "clear_thinking"),
        }
    ),
    "google": _GOOGLE,
    "extra_body": fields({"google": _GOOGLE}),
    # if false, thinking is left out, or stays within the text
    **dict.fromkeys(
        ("include_reasoning", "separate_reasoning", "reasoning_split", "stream_reasoning"),
        only(True),
    ),
    "reasoning_format": only("parsed", "hidden", "auto"),
}
"""Whether and how long to think. Not where to put it: `exclude`, Gemini's `thought_tag_marker`,
other formats (Groq, llama.cpp), a template or other arguments for it."""

SERVING_FIELDS: Mapping[str, Shape] = {
    **allow("provider", "models", "route", "transforms", "session_id"),  # OpenRouter
    **allow("priority", "cache_salt", "cache_prompt", "id_slot", "keep_alive", "lora_path"),
    **allow("safe_prompt", "enable_search", "search_options", "search_parameters", "documents"),
    "usage": fields(allow("include")),
}
"""Who serves the request, and with what."""

EXTENSION_FIELDS: Mapping[str, Shape] = {
    **SAMPLING_FIELDS,
    **STRUCTURE_FIELDS,
    **THINKING_FIELDS,
    **SERVING_FIELDS,
}
