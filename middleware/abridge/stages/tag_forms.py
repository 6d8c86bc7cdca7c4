"""The forms of tags around thinking that are known, in any spelling.

They are looked for where raw reasoning is hidden; elsewhere only those that a profile names.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_TAG = 220
"""The longest tag, in characters."""

_NAMES = (
    "think|thinking|thoughts?|reflection|scratchpad|inner_monologue"  # R1, Qwen, Gemini, Reflection
    "|antthinking|longcat_think"  # what prompts have Claude write, LongCat
    "|think_fast(?:er)?"  # K2-V2
    "|internal_thinking|thinking_process|chain_of_thought"
)

_PREFIX = r"(?:[a-z]{1,16}:)?"  # <seed:think>, <budget:thinking>, <mm:think>

_HARMONY_CHANNEL = r"[^<]{0,60}?(?:<\|constrain\|>[^<]{0,20}?)?<\|message\|>"

_HARMONY_FINAL = (
    rf"(?:(?:<\|start\|>assistant)?<\|channel\|>(?:final|commentary){_HARMONY_CHANNEL}"
    r"|<\|start\|>assistant<\|message\|>)"
)

_ELEMENT = re.compile(r"\\.|\[[^\[\]]*+\]|.")
"""An escape, a set, or a character of a pattern."""

_ESCAPED = {
    **{mark: rf"(?:{mark}|\\u{ord(mark):04x})" for mark in "<>◁▷"},
    "/": r"\\?/",
    r"\s": r"(?:\s|\\[nrt])",
}


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches in JSON, too, where encoders may escape what it matches."""
    elements = _ELEMENT.findall(pattern)
    return re.compile("".join(_ESCAPED.get(one, one) for one in elements), re.IGNORECASE)


class Form(NamedTuple):
    """A form of tags around thinking."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    examples: tuple[str, ...]  # its commonest tags
    separator: str = "\n"  # goes between blocks that follow each other


def _form(opening: str, closing: str, *examples: str, separator: str = "\n") -> Form:
    return Form(_compile(opening), _compile(closing), examples, separator)


FORMS = (
    _form(
        rf"<{_PREFIX}(?:{_NAMES})(?:\s[^<>]{{0,60}}?)?>",
        rf"</{_PREFIX}(?:{_NAMES})\s{{0,60}}>",
        *("<think>", "</think>", "<thinking>", "</thinking>", "<thought>", "</thought>"),
        *("<reflection>", "</reflection>", "<scratchpad>", "</scratchpad>"),
        *("<seed:think>", "</seed:think>", "<budget:thinking>", "</budget:thinking>"),
        *("<think_fast>", "</think_fast>", "<think_faster>", "</think_faster>"),
    ),
    # Bedrock: a block for each fragment
    _form(
        r"<reasoning\s{0,60}>",
        r"</reasoning\s{0,60}>",
        *("<reasoning>", "</reasoning>"),
        separator="",
    ),
    _form(  # Magistral
        r"\[(?:think|thinking|reasoning)\]",
        r"\[/(?:think|thinking|reasoning)\]",
        *("[THINK]", "[/THINK]"),
    ),
    _form("◁think▷", "◁/think▷", "◁think▷", "◁/think▷"),  # Kimi-VL
    _form(  # Command R
        r"<\|START_THINKING\|>",
        r"<\|END_THINKING\|>",
        *("<|START_THINKING|>", "<|END_THINKING|>"),
    ),
    _form(  # Sky-T1, OpenThinker
        r"<\|begin_of_thought\|>",
        r"<\|end_of_thought\|>",
        *("<|begin_of_thought|>", "<|end_of_thought|>"),
    ),
    _form(
        r"<\|(?:begin_)?think(?:ing)?\|>",
        r"<\|(?:/|end_)think(?:ing)?\|>",
        *("<|think|>", "<|/think|>"),
    ),
    _form(  # Apertus
        r"<\|inner_prefix\|>",
        r"<\|inner_suffix\|>",
        *("<|inner_prefix|>", "<|inner_suffix|>"),
    ),
    _form(  # Gemma
        r"<\|channel>thought",
        r"<channel\|>",
        *("<|channel>thought", "<channel|>"),
    ),
    _form(  # MedGemma
        r"<unused94>",
        r"<unused95>",
        *("<unused94>", "<unused95>"),
    ),
    _form(  # harmony: gpt-oss without its parser (openai/harmony, docs/format.md)
        rf"(?:<\|start\|>assistant)?<\|channel\|>analysis{_HARMONY_CHANNEL}",
        rf"<\|end\|>{_HARMONY_FINAL}?|{_HARMONY_FINAL}|<\|return\|>|<\|call\|>",
        *("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>", "<|return|>"),
        *("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
    ),
)
"""The sources are those of `providers.profile.TAGS`."""

TAG_PATTERNS = tuple(
    (form, opens, form.opening if opens else form.closing)
    for form in FORMS
    for opens in (True, False)
)

ANY_TAG = re.compile("|".join(pattern.pattern for *_, pattern in TAG_PATTERNS), re.IGNORECASE)

STARTERS = re.compile(r"<(?=[/|\\a-z]|\Z)|\[(?=[/\\tr]|\Z)|◁|\\(?=u|\Z)", re.IGNORECASE)
"""Where a tag may begin."""


def _beginning_of(*parts: str) -> str:
    """Return a pattern of the beginnings of these parts in a row."""
    return "" if not parts else f"(?:{parts[0]}{_beginning_of(*parts[1:])})?"


_ESCAPE = _beginning_of(r"\\", "u", "(?:00?|25?)", "[3cb]", "[c1e7]?")

_HARMONY_PIECE = (
    r"(?:<\|start\|>[a-z]{0,9})?(?:<\|channel\|>[^<]{0,71})?(?:<\|constrain\|>[^<]{0,20})?"
    r"(?:<\|?[a-z]{0,10}\|?)?"
)

INCOMPLETE = _compile(
    rf"</?[a-z0-9_:]{{0,32}}(?:\s[^<>]{{0,60}})?{_ESCAPE}"
    rf"|<\|?/?[a-z_]{{0,20}}\|?{_ESCAPE}"
    r"|<\|channel>[a-z]{0,7}"
    rf"|(?:<\|end\|>)?{_HARMONY_PIECE}{_ESCAPE}"
    r"|\[/?[a-z]{0,10}"
    rf"|◁/?[a-z]{{0,5}}{_ESCAPE}"
)
"""Text at the end of a piece that may be the beginning of a tag."""


class Unmarked(NamedTuple):
    """What begins thinking, and what ends it, in a whole text that has no tags."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]


_UNMARKED = (
    # harmony where a server has removed its special tokens
    Unmarked(
        re.compile(r"\s*analysis(?=[A-Z][a-z']*,? [\w\"'])"), re.compile(r"assistantfinal|\Z")
    ),
    Unmarked(re.compile(r"\s*analysis"), re.compile("assistantfinal")),
    # Granite 3.2 (vllm/reasoning/granite_reasoning_parser.py)
    Unmarked(
        re.compile(r"\s*Here(?:['’]s| is) my thought process:\s*"),
        re.compile(r"Here(?:['’]s| is) my response:\s*|\Z"),
    ),
    # ServiceNow's Apriel
    Unmarked(
        re.compile(r"\s*Here are my reasoning steps:\s*"),
        re.compile(r"\[BEGIN FINAL RESPONSE\]\s*|\Z"),
    ),
    # HuatuoGPT-o1
    Unmarked(re.compile(r"\s*## Thinking\s*\n"), re.compile(r"## Final Response\s*|\Z")),
    # HyperCLOVA X SEED Think (its parser in vLLM)
    Unmarked(
        re.compile(r"\s*/think\s*\n"),
        re.compile(r"<\|im_end\|>\s*<\|im_start\|>assistant\s*|\Z"),
    ),
    # Simplescaling's s1
    Unmarked(re.compile(r"\s*<\|im_start\|>think\s*\n"), re.compile(r"<\|im_start\|>answer\s*|\Z")),
)


def split_unmarked(text: str) -> tuple[str, str] | None:
    """Split a whole text that has no tags into thinking and the rest; None if nothing in it tells
    that there is any."""
    for opening, closing in _UNMARKED:
        begun = opening.match(text)
        ended = None if begun is None else closing.search(text, begun.end())
        if begun is not None and ended is not None:
            return text[begun.end() : ended.start()], text[ended.end() :]
    return None


def may_hold_thinking(text: str) -> bool:
    """Return whether there is an opening tag in a text, or something before a closing one. It may
    be the bytes of an image, in which there is no mark of a tag."""
    if "<" not in text and "[" not in text and "◁" not in text and "\\" not in text:
        return False
    places = (starter.start() for starter in STARTERS.finditer(text))
    return any(
        opens or place > 0
        for place in places
        if ANY_TAG.match(text, place) is not None
        for _, opens, pattern in TAG_PATTERNS
        if pattern.match(text, place) is not None
    )
