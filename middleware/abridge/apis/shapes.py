"""Rebuild JSON from what is known of it, where raw reasoning is hidden.

A shape describes one value of an API. `rebuild` returns the value with everything left out that its
shape does not name, and counts that. So whatever a provider invents next is left out until somebody
has understood it.

A few values pass although nothing names what is in them. `PASSES_UNKNOWN` lists them all, each with
its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Final, TypeAlias

from abridge.apis.decoding import is_readable
from abridge.apis.display import Display
from abridge.apis.json import as_integer, as_object, dumps, loads_exact, objects, string
from abridge.apis.obfuscation import PADDING_FIELDS
from abridge.core.conversation import Json
from abridge.core.hidden import HiddenCount, HiddenKind
from abridge.providers.catalog import TEXT_FIELDS
from abridge.stages.hidden_thinking import (
    BlockFilter,
    JsonBlockFilter,
    ThinkingFilter,
    visible_text,
)
from abridge.stages.tag_forms import FORMS, PHRASES, SIGN, may_hold_thinking

DROPPED: Final = object()
"""Returned for a value that does not have its shape."""

MAX_NAME: Final = 1024
"""The longest name or id, in characters. LiteLLM's response ids are long base64."""

PASSES_UNKNOWN: Mapping[str, str] = {
    "names and ids": "identifiers without white space or tags, names of several words in "
    "capitals, and what the client itself named so: a sentence is none",
    "numbers of usage": "figures under names that are identifiers; only servers count",
    "opaque state": "ciphertext and signatures, in base64 that no words can be read in, of "
    "providers that vouch for their encryption",
    "tool schemas": "what a server says of its tools, with keys of its own; no model writes it",
    "file attributes": "what the client itself noted of its files, with keys of its own",
    "reasoning items": "kept whole for upstream, which wants them back; shown rebuilt",
    "addresses": "URLs of images and sources, without white space: a sentence is none; of "
    "other characters than ASCII's after a scheme only, as Chinese has no white space either",
    "media": "the bytes of images, audio and files, as base64",
}
"""What may pass without being understood, and why that reveals no reasoning."""


NAMED_BY_CLIENTS: Final = (
    *("model", "stop", "stop_sequences"),
    *("user", "safety_identifier", "prompt_cache_key"),
)
"""Fields of a request in which a client names something, and which an answer may repeat."""


class DropCount:
    """Counts the values that were dropped from one response to a request that `said` this: a name
    that the client gave itself passes, whatever it is. Opaque state does only with `trusts_state`.
    """

    def __init__(
        self,
        said: Mapping[str, Any] = {},
        *,
        trusts_state: bool = True,
        hidden: HiddenCount | None = None,
    ) -> None:
        self.count = 0
        self.hidden: HiddenCount = Counter() if hidden is None else hidden  # the same, by kind
        self.trusts_state = trusts_state
        self._said = said

    @cached_property
    def own_names(self) -> frozenset[str]:  # few values need it
        given = [self._said.get(key) for key in NAMED_BY_CLIENTS]
        names = [*given, *(name for one in given if isinstance(one, list) for name in one)]
        return frozenset(name for name in names if isinstance(name, str))

    @classmethod
    def of(cls, display: Display) -> DropCount:
        return cls(display.echoed, trusts_state=display.trusts_state, hidden=display.hidden)

    def drop(self, value: Any, kind: HiddenKind = "field") -> Any:
        if value not in (None, "", [], {}):
            self.count += 1
            self.hidden[kind] += 1
        return DROPPED


Shape: TypeAlias = Callable[[Any, DropCount], Any]
"""Returns the value rebuilt, or `DROPPED`. None has every shape: it says nothing."""


def rebuild(value: Any, shape: Shape, drops: DropCount) -> Any:
    """Return the value rebuilt; None if it does not have the shape."""
    rebuilt = shape(value, drops)
    return None if rebuilt is DROPPED else rebuilt


# Single values


def streamed_text(value: Any, drops: DropCount) -> Any:
    """Text that may come in pieces: the reader looks through it for thinking."""
    return value if value is None or isinstance(value, str) else drops.drop(value)


def _whole_text(new_filter: type[BlockFilter]) -> Shape:
    def take_out_blocks(value: Any, drops: DropCount) -> Any:
        if not isinstance(value, str):
            return None if value is None else drops.drop(value)
        thinking = new_filter(limit=len(value)).counting_in(drops.hidden)
        visible = visible_text([*thinking.feed(value), *thinking.end()])
        drops.count += thinking.blocks
        return visible

    return take_out_blocks


text = _whole_text(BlockFilter)
"""A whole text; closed blocks of thinking are taken out."""


def _as_json(shape: Shape) -> Shape:
    def rebuild_json(value: Any, drops: DropCount) -> Any:
        return shape(dumps(value).decode() if isinstance(value, dict | list) else value, drops)

    return rebuild_json


streamed_json = _as_json(streamed_text)
"""JSON as text that may come in pieces. Some servers give the object itself."""

json_text = _as_json(_whole_text(JsonBlockFilter))
"""JSON as a whole text."""


def json_value(value: Any, drops: DropCount) -> Any:
    """JSON of any type, which stays of that type: what no API describes may be an object or a text.
    Thinking is taken out of it as out of the text that it is written as. A text is judged as any
    other, and need not be JSON in it."""
    if not isinstance(value, dict | list):
        return text(value, drops) if isinstance(value, str) else number(value, drops)
    written = dumps(value).decode()
    shown = json_text(written, drops)
    try:
        return value if shown == written else loads_exact(shown.encode())
    except ValueError:
        return DROPPED


def number(value: Any, drops: DropCount) -> Any:
    """A number, or true or false."""
    is_number = isinstance(value, int | float) or as_integer(value) is not None
    return value if is_number or value is None else drops.drop(value)


_NAME = re.compile(rf"[!-~]{{0,{MAX_NAME}}}")

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")

_OPAQUE = re.compile(r"[A-Za-z0-9+/=_.:-]*")

MAX_BEGINNING = 64
"""Characters of media that are looked at."""

_ADDRESS = re.compile(r"[!-~]*|[A-Za-z][A-Za-z0-9+.-]*:\S*")


def _matching(pattern: re.Pattern[str]) -> Shape:
    def match(value: Any, drops: DropCount) -> Any:
        if not isinstance(value, str):
            return None if value is None else drops.drop(value)
        is_name = pattern.fullmatch(value) and not (SIGN.search(value) and may_hold_thinking(value))
        return value if is_name or value in drops.own_names else drops.drop(value)

    return match


name = _matching(_NAME)
"""An id, a kind, a model."""

_proper_name = _matching(re.compile(rf"{_NAME.pattern}|[\w.:/-]{{1,32}}|[\w.:/()+ -]{{1,64}}"))


def proper_name(value: Any, drops: DropCount) -> Any:
    """The name of a model or of a provider, which may have several words. Each but a number begins
    with a capital letter then: a sentence is none."""
    words = value.split(" ") if isinstance(value, str) else []
    is_name = len(words) < 2 or all(
        word[:1].isascii() and word[:1] == word[:1].upper() for word in words
    )
    return (_proper_name if is_name else name)(value, drops)


_stop = _matching(re.compile(rf"{_NAME.pattern}|\W{{0,16}}\w{{0,32}}\W{{0,16}}"))


def stop_sequence(value: Any, drops: DropCount) -> Any:
    """What ended an answer: a token's number, or a sequence that the client gave, or one of a word
    at most."""
    return _stop(value, drops) if isinstance(value, str) else number(value, drops)


_base64 = _matching(_OPAQUE)


def opaque(value: Any, drops: DropCount) -> Any:
    """Ciphertext, or media as base64; but no words in base64. Media may hold some further on."""
    is_words = isinstance(value, str) and is_readable(value, MAX_BEGINNING)
    return drops.drop(value) if is_words else _base64(value, drops)


def opaque_state(value: Any, drops: DropCount) -> Any:
    """Opaque state, of a provider that vouches for its encryption, in which nothing can be read."""
    is_words = isinstance(value, str) and is_readable(value)
    is_state = not is_words and (drops.trusts_state or not value)
    return _base64(value, drops) if is_state else drops.drop(value, "state")


def is_withheld(state: Any, display: Display) -> bool:
    """Return whether opaque state is kept from clients, where reasoning is hidden. Upstream gets it
    back: it is recorded as it came."""
    if not (display.hides_raw and state):
        return False
    return rebuild(state, opaque_state, DropCount(trusts_state=display.trusts_state)) is None


address = _matching(_ADDRESS)
"""A URL."""

_call_name = _matching(re.compile(rf"{_NAME.pattern}|[\w.:/-]{{1,64}}"))


def call_name(value: Any, drops: DropCount) -> Any:
    """The name of a call, in any script, which clients require: empty where what is given is no
    name."""
    rebuilt = _call_name(value, drops)
    return "" if rebuilt is DROPPED else rebuilt


def name_or_number(value: Any, drops: DropCount) -> Any:
    return name(value, drops) if isinstance(value, str) else number(value, drops)


def unused(_value: Any, _: DropCount) -> Any:
    """A value that is known, but says nothing."""
    return DROPPED


PADDING: Mapping[str, Shape] = dict.fromkeys(PADDING_FIELDS, unused)


def unknown(entry: str) -> Shape:
    """Return the shape of a value that passes as it is, for the reason that `PASSES_UNKNOWN` has
    under `entry`."""
    _check_entry(entry)
    return lambda value, _: value


def described(entry: str) -> Shape:
    """Return the shape of an object with any keys and values, for the reason that `PASSES_UNKNOWN`
    has under `entry`. Closed blocks of thinking are taken out of its texts."""
    _check_entry(entry)

    def rebuild_object(value: Any, drops: DropCount) -> Any:
        is_object = value is None or isinstance(value, dict)
        return _look_through(value, drops) if is_object else drops.drop(value)

    return rebuild_object


def _check_entry(entry: str) -> None:
    if entry not in PASSES_UNKNOWN:
        raise KeyError(entry)


def _look_through(value: Any, drops: DropCount) -> Any:
    if isinstance(value, dict):
        return {key: _look_through(inner, drops) for key, inner in value.items()}
    if isinstance(value, list):
        return [_look_through(inner, drops) for inner in value]
    return text(value, drops) if isinstance(value, str) else value


def figures(value: Any, drops: DropCount, names: Container[str] = ()) -> Any:
    """An object of numbers, as usage is: under any identifier, at any depth, and in lists of such
    objects. Under `names` it has names."""
    if not isinstance(value, dict | list):
        return number(value, drops)
    inner = partial(figures, names=names)
    if isinstance(value, list):
        kept = [one for one in value if isinstance(one, dict) or drops.drop(one)]
        return each(inner)(kept, drops)
    known = {key: name if key in names else inner for key in filter(_KEY.fullmatch, value)}
    return _object_of(known)(value, drops)


# Structures


def fields(
    *groups: Mapping[str, Shape],
    names: str = "",
    numbers: str = "",
    texts: str = "",
    addresses: str = "",
    **others: Shape,
) -> Shape:
    """An object with these keys: of names, of numbers, of whole texts, of addresses, and others."""
    known = under(names, name) | under(numbers, number) | under(texts, text)
    known |= under(addresses, address)
    for group in (*groups, others):
        known |= group
    return _object_of(known)


def _object_of(known: Mapping[str, Shape]) -> Shape:
    def rebuild_fields(value: Any, drops: DropCount) -> Any:
        if not isinstance(value, dict):
            return value if value is None else drops.drop(value)
        rebuilt: Json = {}
        for key, inner in value.items():
            shape = known.get(key)
            part = drops.drop(inner) if shape is None else shape(inner, drops)
            if part is not DROPPED:
                rebuilt[key] = part
        return rebuilt

    return rebuild_fields


def each(shape: Shape) -> Shape:
    """A list of values of a shape."""

    def rebuild_list(value: Any, drops: DropCount) -> Any:
        if not isinstance(value, list):
            return value if value is None else drops.drop(value)
        parts: list[Any] = []
        for inner in value:
            part = shape(inner, drops)
            if part is not DROPPED and part is not None:
                parts.append(part)
        return parts

    return rebuild_list


def either(scalar: Shape, structured: Shape) -> Shape:
    """A string or number of the first shape, or a list or object of the second."""

    def rebuild_either(value: Any, drops: DropCount) -> Any:
        shape = structured if isinstance(value, list | dict) else scalar
        return shape(value, drops)

    return rebuild_either


def by_type(kinds: Mapping[str, Shape], key: str = "type") -> Shape:
    """An object whose `type` says which shape it has; of an unknown type nothing is left.

    The type of an object that has none is "".
    """

    def rebuild_kind(value: Any, drops: DropCount) -> Any:
        kind = value.get(key) or "" if isinstance(value, dict) else None
        shape = kinds.get(kind) if isinstance(kind, str) else None
        return drops.drop(value) if shape is None else shape(value, drops)

    return rebuild_kind


# What several APIs have


def under(keys: str, shape: Shape) -> dict[str, Shape]:
    """Return the shape for each of these keys."""
    return dict.fromkeys(keys.split(), shape)


_cited = partial(
    fields,
    names="type file_id container_id id",
    numbers="index start_index end_index",
    texts="title filename content quote text",
    addresses="url",
)

CITATION_TYPES = ("url_citation", "file_citation", "container_file_citation", "file_path")

ANNOTATION = by_type(dict.fromkeys(CITATION_TYPES, _cited(dict.fromkeys(CITATION_TYPES, _cited()))))
"""A source of a text, written flat, or nested under its type."""

_FILTER_RESULT = fields(
    numbers="filtered detected",
    names="severity",
    citation=fields(addresses="URL", license=proper_name),
)

FILTER_RESULTS = fields(
    under(
        "hate self_harm sexual violence profanity jailbreak protected_material_text "
        "protected_material_code indirect_attack task_adherence",
        _FILTER_RESULT,
    )
)
"""What Azure says that an answer holds (learn.microsoft.com: foundry/openai, content filtering)."""


def under_names(shape: Shape) -> Shape:
    """An object of values of one shape."""

    def rebuild_object(value: Any, drops: DropCount) -> Any:
        keys = value if isinstance(value, dict) else ()
        known = {key: shape for key in keys if name(key, drops) is not DROPPED}
        return _object_of(known)(value, drops)

    return rebuild_object


MODERATION_RESULT: Mapping[str, Shape] = {
    **under("type model code", name),
    "flagged": number,
    **under("categories category_scores", under_names(number)),
    "category_applied_input_types": under_names(each(name)),
}
"""What OpenAI's moderation says of a text (openai-openapi: `ModerationResultBody`)."""


# Requests: what goes upstream of one where reasoning is hidden. Other fields might have upstream
# write the thinking where no reader looks for it: into an echo of the prompt, or into the text
# without its tags. So only those pass that are known not to.

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
    a block of thinking, by its tag or as a chunk that is not `closed` (docs.mistral.ai), or that
    has nothing but reasoning.

    vLLM continues reasoning of status "incomplete" (entrypoints/openai/responses/utils.py).
    """
    if as_object(message).get("type") == "reasoning":
        return True
    content = as_object(message).get("content")
    if as_object(message).get("role") != "assistant":
        return False
    if not (content or message.get("tool_calls")) and any(map(message.get, TEXT_FIELDS)):
        return True
    text = string(content) + "".join(string(part.get("text")) for part in objects(content))
    thinking = ThinkingFilter(may_begin_inside=False, limit=len(text))
    thinking.feed(f"{text}Hm")  # as a server would go on
    thinking.end()
    return thinking.is_inside or any(part.get("closed") is False for part in objects(content))


def _stop_sequence(stop: Any, drops: DropCount) -> Any:
    """A stop sequence that leaves whole what ends thinking. Without that, thinking looks like the
    answer."""
    text = string(stop)
    is_phrase = any(form.closing.search(f"\n{text}") for form in PHRASES)
    return drops.drop(stop) if is_phrase or _may_cut_tag(text.casefold()) else stop


def _marked(pieces: Iterable[str]) -> frozenset[str]:
    """Return the pieces of tags that hold a character which marks tags. A piece of a tag's name may
    stop any text."""
    return frozenset(filter(_MARKS.search, pieces))


_TAGS = tuple(tag.casefold() for tag in TAG_TEXTS)

_BEGINNINGS = _marked(tag[:end] for tag in _TAGS for end in range(len(tag) + 1))

_ENDS = _marked(tag[start:] for tag in _TAGS for start in range(len(tag)))

_LONGEST = max(map(len, _TAGS))


def _may_cut_tag(stop: str) -> bool:
    """Return whether a stop sequence may match a piece of a tag."""
    if _MARKS.search(stop) is None:
        return False
    sizes = range(1, min(len(stop), _LONGEST) + 1)
    return any(stop in tag or tag in stop for tag in _TAGS) or any(
        stop[-size:] in _BEGINNINGS or stop[:size] in _ENDS for size in sizes
    )


SAMPLING_FIELDS: Mapping[str, Shape] = {
    **allow("top_k", "top_a", "min_p", "typical_p", "tfs_z", "seed", "random_seed", "do_sample"),
    **allow("repetition_penalty", "repeat_penalty", "repeat_last_n", "length_penalty"),
    **allow("presence_penalty", "frequency_penalty", "no_repeat_ngram_size", "samplers"),
    **allow("mirostat", "mirostat_tau", "mirostat_eta", "dynatemp_range", "dynatemp_exponent"),
    **allow("xtc_probability", "xtc_threshold", "dry_multiplier", "dry_base"),
    **allow("dry_allowed_length", "dry_penalty_last_n", "top_n_sigma", "min_keep"),
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
    thinking_config=fields(allow("include_thoughts", "thinking_budget", "thinking_level"))
)

THINKING_FIELDS: Mapping[str, Shape] = {
    **allow("reasoning_effort", "enable_thinking", "thinking_budget", "thinking_token_budget"),
    **allow("preserve_thinking", "clear_thinking", "disable_reasoning", "reasoning_history"),
    **allow("think", "prompt_mode", "thinking_budget_tokens", "reasoning_budget_tokens"),
    "reasoning": fields(
        allow("effort", "max_tokens", "enabled", "context", "mode"),
        allow("summary", "generate_summary", "summary_language"),
    ),
    "thinking": fields(
        allow("type", "budget_tokens", "display", "keep", "clear_thinking", "block_binding")
    ),
    "chat_template_kwargs": fields(
        allow("enable_thinking", "thinking", "thinking_budget", "reasoning_effort"),
        allow("preserve_thinking", "clear_thinking"),
    ),
    "google": _GOOGLE,
    "extra_body": fields(google=_GOOGLE),
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
