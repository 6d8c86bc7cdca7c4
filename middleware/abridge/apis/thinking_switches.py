"""Request fields by which thinking may come into a text without the tag that ends it, where raw
reasoning is hidden.

Some servers whose models are told not to think write what they think into the text all the same. A
form of the answer may forbid the closing tag. A stop sequence may cut off the words that end the
thinking. None of it matters where servers parse what their models write: `Profile.parses_text`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from functools import reduce
from typing import Any

from abridge.apis.effort import CONFIGURATION_UPDATE
from abridge.apis.json import as_object, nested_value
from abridge.apis.shapes import DropCount
from abridge.core.conversation import Json
from abridge.providers.profile import Profile

SWITCHES: Mapping[str, Container[Any]] = {
    **dict.fromkeys(("reasoning_effort", "reasoning.effort"), ("none",)),
    **dict.fromkeys(("enable_thinking", "think", "reasoning.enabled"), (False,)),
    "disable_reasoning": (True,),
    "thinking.type": ("disabled",),
    "chat_template_kwargs.enable_thinking": (False,),
    "chat_template_kwargs.thinking": (False,),
    "chat_template_kwargs.reasoning_effort": ("none",),
}
"""Fields, dotted if nested, and the values that switch thinking off."""

GRAMMAR_TYPES: Mapping[str, Container[Any]] = dict.fromkeys(
    ("response_format.type", "text.format.type"), ("grammar", "regex", "ebnf", "lark")
)
"""Where the type of the answer's form stands, and those that may forbid a tag."""

GRAMMARS = (
    *("guided_grammar", "guided_regex", "grammar", "regex", "ebnf"),  # vLLM, llama.cpp, SGLang
    *("structured_outputs.grammar", "structured_outputs.regex"),
)
"""Fields that forbid a tag by any value."""

STOPS = ("stop", "stop_sequences", "generationConfig.stopSequences")

ENDINGS = ("\nFINAL ANSWER:", "\nFINAL RESPONSE:", "\nANSWER:", "\nRESPONSE:", "assistantfinal")
"""Words that end thinking, without which what is left of it may be taken for the answer: after
`THOUGHT:` its last paragraph, of harmony without its tokens all. (Thinking that other words began
stays hidden without those that end it, and tags are looked for in every stop sequence.)"""

MIN_PIECE = 3
"""Shorter stop sequences end any text at once, and stay."""


def drop_thinking_switches(body: Json, profile: Profile, drops: DropCount) -> Json:
    """Return a request's body without them. The switch of the profile's own stays, since there it
    does what it says. So do the other stop sequences of a list."""
    found = [path for path in GRAMMARS if nested_value(body, path) is not None]
    own = dict(profile.thinking_off)
    for path, values in {**SWITCHES, **GRAMMAR_TYPES}.items():
        value = nested_value(body, path)
        is_scalar = isinstance(value, str | bool)
        if is_scalar and value in values and value != nested_value(own, path):
            found.append(path.removesuffix(".type"))  # without its type an object says nothing
    for path in STOPS:
        stops = nested_value(body, path)
        if isinstance(stops, list) and (kept := [each for each in stops if not _cuts(each)]):
            drops.count += len(stops) - len(kept)
            body = body if kept == stops else _with(body, kept, *path.split("."))
        elif stops and all(map(_cuts, stops if isinstance(stops, list) else [stops])):
            found.append(path)
    items = body.get("input")
    if isinstance(items, list) and (updates := sum(map(_switches_off, items))):
        drops.count += updates
        items = [_without(each, "reasoning") if _switches_off(each) else each for each in items]
        body = {**body, "input": items}
    drops.count += len(found)
    return reduce(lambda kept, path: _without(kept, *path.split(".")), found, body)


def _switches_off(item: Any) -> bool:
    """Return whether an item of the input switches thinking off from there on."""
    is_update = isinstance(item, dict) and item.get("type") == CONFIGURATION_UPDATE
    return is_update and nested_value(item, "reasoning.effort") == "none"


def _cuts(stop: Any) -> bool:
    """Return whether a stop sequence is a piece of an ending."""
    text = stop.strip() if isinstance(stop, str) else ""
    return len(text) >= MIN_PIECE and any(text in ending for ending in ENDINGS)


def _with(body: Json, value: Any, key: str, *inner: str) -> Json:
    """Return an object with another value under a key, dotted if nested."""
    return {**body, key: _with(as_object(body[key]), value, *inner) if inner else value}


def _without(body: Json, key: str, *inner: str) -> Json:
    """Return an object without a key, or what is left of the object under it."""
    others = {name: body[name] for name in body if name != key}
    rest = _without(as_object(body[key]), *inner) if inner else {}
    return {**others, key: rest} if rest else others
