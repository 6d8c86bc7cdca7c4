"""The forms in which models write their thinking into a text, in any spelling.

They are looked for where raw reasoning is hidden; elsewhere only those that a profile names.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from abridge.core.hidden import Boundary
from abridge.lazy_re import lazy_compile

MAX_TAG = 220
"""The longest tag, in characters."""

MAX_PHRASE = 64
"""The longest phrase that ends thinking, in characters."""

Place: TypeAlias = Literal["start", "line", "any"]
"""Where an opening tag counts, outside code: at the start of the text, since documents use its name
as well; at a line's start, and within a line where it opens something; anywhere."""

_PREFIX = "(?:[a-z]{1,16}:)?"  # <seed:think>, <budget:thinking>, <mm:think>

_VALUE = r"(?:\\?\"[^\"<>]{0,60}\"|'[^'<>]{0,60}'|[^\s<>\"']{0,60}?[^\s<>\"'/])"

_ATTRIBUTES = (
    rf"(?=\s[^<>]{{0,60}}?[^<>/]>)(?:\s{{1,8}}[\w:-]{{1,24}}(?:\s?=\s?{_VALUE})?){{1,4}}\s{{0,8}}"
)

_THINK = (
    "(?:(?:ant|longcat_|internal_)?think(?:ing)?"  # R1, Qwen; what prompts have Claude write
    "(?:_fast(?:er)?|_process"  # K2-V2
    "|_[a-z_]{0,24}[0-9a-f]{8,40}|:[a-z]{1,24})?"  # Doubao, Hunyuan
    "|chain_of_thought|inner_monologue)"
)

_KINDS = "(?:think|thought|reason|analys|reflect|monologue|scratchpad)"

_ENDS = r"[^|｜<>]{0,40}?(?:end|clos|stop|/)"

_HARMONY_CHANNEL = r"[^<]{0,60}?(?:<\|constrain\|>[^<]{0,20}?)?<\|message\|>"

_HARMONY_FINAL = (
    r"(?:(?:<\|start\|>assistant)?<\|channel\|>\s{0,4}(?:final|commentary)"
    rf"{_HARMONY_CHANNEL}|<\|start\|>assistant<\|message\|>)"
)

_ELEMENT = re.compile(r"\\.|\[[^\[\]]*+\]|.")
"""An escape, a set, or a character of a pattern."""

_ESCAPED = {
    **{mark: rf"(?:{mark}|\\u{ord(mark):04x})" for mark in "◁▷"},
    "<": r"(?:<|\\u003c|&lt;)",
    ">": r"(?:>|\\u003e|&gt;)",
    "/": r"\\?/",
    r"\s": r"(?:\s|\\[nrt])",
}


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches in JSON and HTML, too, where encoders may escape what it
    matches."""
    elements = _ELEMENT.findall(pattern)
    return lazy_compile("".join(_ESCAPED.get(one, one) for one in elements), re.IGNORECASE)


class Form(NamedTuple):
    """A form of tags around thinking."""

    opening: re.Pattern[str]
    closing: re.Pattern[str]
    examples: tuple[str, ...]  # its commonest tags
    place: Place = "any"
    separator: str = "\n"  # goes between blocks that follow each other
    lone: re.Pattern[str] = lazy_compile("")
    """In closing tags that tell of thinking though nothing has opened it. Of a form that counts
    anywhere the others are taken out as well."""
    is_phrase: bool = False
    ends_last: bool = False
    """What follows the last blank line is the answer, if nothing else closes it."""
    name: str = ""  # a pattern of it, if its tags are those of XML

    @property
    def boundary(self) -> Boundary:
        """What its openers are."""
        if self.is_phrase:
            return "phrase"
        return "token" if self.place == "any" else "tag"


def _form(opening: str, closing: str, *examples: str, place: Place = "any", lone: str = "") -> Form:
    return Form(_compile(opening), _compile(closing), examples, place, lone=_compile(lone))


def _element(name: str, *examples: str, place: Place = "start") -> Form:
    """Return the form of a tag of XML. One that closes itself, as those of JSX, is none."""
    opening = rf"<{_PREFIX}{name}(?:\s{{0,8}}|{_ATTRIBUTES})>"
    form = _form(opening, rf"<//?{_PREFIX}{name}\s{{0,60}}>", *examples, place=place)
    return form._replace(name=name)


def _pairs(*names: str) -> list[str]:
    return [tag for name in names for tag in (f"<{name}>", f"</{name}>")]


FORMS = (
    _element(
        _THINK,
        *_pairs("think", "thinking", "seed:think", "budget:thinking"),
        *_pairs("think_fast", "think_faster"),
        place="line",
    ),
    _element("thoughts?", *_pairs("thought")),  # Gemini
    _element("reflection", *_pairs("reflection")),  # Reflection
    _element("scratchpad", *_pairs("scratchpad")),
    _element("reason", *_pairs("reason")),  # rStar2
    # Bedrock: a block for each fragment
    _element("reasoning", *_pairs("reasoning"))._replace(separator=""),
    _form(  # Magistral
        r"\[(?-i:THINK)\]",
        r"\[/(?-i:THINK)\]",
        *("[THINK]", "[/THINK]"),
        place="line",
    ),
    _form(
        r"\[(?:think|thinking|reasoning)\](?![(\[:])",
        r"\[/(?:think|thinking|reasoning)\]",
        *("[REASONING]", "[/REASONING]"),
        place="start",
    ),
    _form("◁think▷", "◁/think▷", "◁think▷", "◁/think▷"),  # Kimi-VL
    _form(  # Solar Open
        r"<\|think\|>",
        r"<\|(?:/|end_?)think\|>|<\|end\|>(?:<\|begin\|>assistant(?:<\|content\|>)?)?",
        *("<|think|>", "<|/think|>"),
        lone="think",
    ),
    _form(  # control tokens by their kind: Command R, Sky-T1, OpenThinker, MiniCPM
        rf"<[|｜](?!{_ENDS}|no_?th)[a-z0-9_▁]{{0,24}}?{_KINDS}[a-z0-9_▁]{{0,24}}[|｜]>",
        rf"<[|｜](?={_ENDS})[/a-z0-9_▁]{{0,24}}?{_KINDS}[a-z0-9_▁]{{0,24}}[|｜]>",
        *("<|START_THINKING|>", "<|END_THINKING|>", "<|think|>", "<|/think|>"),
        *("<|begin_of_thought|>", "<|end_of_thought|>"),
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
    _form(  # MedGemma, openPangu
        r"(?:<unused\d{0,3}[02468]>|\[unused\d{0,3}[02468]\])",
        r"(?:<unused\d{0,3}[13579]>|\[unused\d{0,3}[13579]\])",
        *("<unused94>", "<unused95>", "[unused16]", "[unused17]"),
    ),
    _form(  # Kimi K3
        rf"<\|open\|>{_KINDS}[a-z]{{0,16}}<\|sep\|>",
        rf"<\|(?:close\|>|open\|>(?!{_KINDS}))[a-z]{{1,24}}<\|sep\|>",
        *("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        lone=rf"close\|>{_KINDS}",
    ),
    _form(  # harmony: gpt-oss without its parser (openai/harmony, docs/format.md)
        r"(?:<\|start\|>assistant)?<\|channel\|>(?!\s{0,4}(?:final|commentary))"
        rf"{_HARMONY_CHANNEL}",
        rf"<\|end\|>{_HARMONY_FINAL}?|{_HARMONY_FINAL}|<\|return\|>|<\|call\|>",
        *("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>", "<|return|>"),
        *("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
        lone=r"<\|message\|>",
    ),
)
"""The sources are those of `providers.profile.TAGS`."""

TAG_PATTERNS = tuple(
    (form, opens, form.opening if opens else form.closing)
    for form in FORMS
    for opens in (True, False)
)

ANY_TAG = _compile(
    rf"</{{0,2}}{_PREFIX}(?:{'|'.join(form.name for form in FORMS if form.name)})"
    r"|<[|｜]|<channel|<unused|\[/?(?:think|reasoning|unused)|◁"
)
"""What every tag begins with: a text that has none of this needs no other search."""

STARTERS = re.compile(r"<(?=[/|｜\\a-zA-Z]|\Z)|\[(?=[/\\tTrRuU]|\Z)|◁|\\(?=[uU]|\Z)|&(?=[lL]|\Z)")
"""Where a tag may begin."""


def _beginning_of(*parts: str) -> str:
    """Return a pattern of the beginnings of these parts in a row."""
    return "" if not parts else f"(?:{parts[0]}{_beginning_of(*parts[1:])})?"


_ESCAPE = "|".join(
    [
        "(?:" + _beginning_of(r"\\", "u", "(?:00?|25?)", "[3cb]", "[c1e7]?"),
        _beginning_of("&", "[lg]", "t") + ")",
    ]
)

_HARMONY_PIECE = (
    r"(?:<\|(?:start|begin)\|>[a-z]{0,9})?(?:<\|channel\|>[^<]{0,71})?(?:<\|constrain\|>[^<]{0,20})?"
    r"(?:<\|?[a-z]{0,10}\|?)?"
)

INCOMPLETE = _compile(
    rf"<//?[a-z0-9_:]{{0,72}}(?:\s[^<>]{{0,62}})?{_ESCAPE}"
    rf"|<[a-z0-9_:]{{0,72}}(?:\s[^<>]{{0,62}})?{_ESCAPE}"
    rf"|<[|｜]?/?[a-z0-9_▁]{{0,56}}[|｜]?{_ESCAPE}"
    r"|<\|channel>[a-z]{0,7}"
    rf"|<\|(?:open|close)\|>[a-z]{{0,24}}(?:<\|?[a-z]{{0,3}}\|?)?{_ESCAPE}"
    rf"|(?:<\|end\|>)?{_HARMONY_PIECE}{_ESCAPE}"
    r"|\[/?[a-z]{0,10}\d{0,4}"
    rf"|◁/?[a-z]{{0,5}}{_ESCAPE}"
)
"""Text at the end of a piece that may be the beginning of a tag."""


# Words that begin thinking at the very start of a text, where nobody says that it holds none


def _phrase(opening: str, closing: str, *heads: str, ends_last: bool = False) -> Form:
    """Return the form of a phrase. `heads` are what it may begin with."""
    opens, closes = lazy_compile(opening), lazy_compile(closing)
    return Form(opens, closes, heads, "start", is_phrase=True, ends_last=ends_last)


PHRASES = (
    # harmony where a server has removed its special tokens
    _phrase(
        r"(?:assistant)?analysis(?=[A-Z][a-z']*+,? [\w\"']|(?![A-Za-z])[^\W\d_])",
        "assistantfinal",
        *("analysis", "assistantanalysis"),
    ),
    # Granite 3.2 (vllm/reasoning/granite_reasoning_parser.py)
    _phrase(
        r"Here(?:['’]s| is) my thought process:",
        r"Here(?:['’]s| is) my response:\s{0,8}",
        "Here",
    ),
    # ServiceNow's Apriel
    _phrase("Here are my reasoning steps:", r"\[BEGIN FINAL RESPONSE\]\s{0,8}", "Here"),
    # HuatuoGPT-o1
    _phrase(r"## Thinking[ \t]{0,8}\n", r"## Final Response\s{0,8}", "## Thinking"),
    # HyperCLOVA X SEED Think (its parser in vLLM)
    _phrase(
        r"/think[ \t]{0,8}\n",
        r"<\|im_end\|>\s{0,8}<\|im_start\|>assistant\s{0,8}",
        "/think",
    ),
    # Simplescaling's s1
    _phrase(
        r"<\|im_start\|>think[ \t]{0,8}\n",
        r"<\|im_start\|>answer\s{0,8}",
        "<|im_start|>think",
    ),
    # Gemini (googleapis/python-genai issue 2121)
    _phrase(r"THOUGHT:", r"\n(?:FINAL )?(?:ANSWER|RESPONSE):\s{0,8}", "THOUGHT:", ends_last=True),
    # Open WebUI and what imitates it, Dify
    _phrase(
        r"<details(?=[^<>]{0,160}type=\"reasoning\""
        r"|[^<>]{0,160}>\s{0,8}<summary>\s{0,8}(?i:think(?:ing)?|thoughts?|reason(?:ing|ed))"
        r"(?: for\b|(?i:\s(?:process|steps?|content|time))?[^<\w]{0,4}(?:\d[^<]{0,16})?<))"
        r"[^<>]{0,160}>",
        "</details>",
        "<details",
    ),
)

_STRIPPED = re.compile(r"\s*+(?:assistant)?analysis(.*?)assistantfinal(.*)", re.DOTALL)


def may_begin_phrase(text: str) -> bool:
    """Return whether a text's start may yet turn out to be a phrase."""
    heads = (head for phrase in PHRASES for head in phrase.examples)
    return len(text) < MAX_TAG and any(
        head.startswith(text) or text.startswith(head) for head in heads
    )


SIGN = re.compile(r"[<\[◁\\&]")
"""A character without which no tag begins."""


def split_stripped(text: str) -> tuple[str, str] | None:
    """Split a whole text of harmony without its tokens, which only its end tells, into thinking and
    the rest."""
    found = _STRIPPED.fullmatch(text)
    return None if found is None else (found[1], found[2])


def may_hold_thinking(text: str) -> bool:
    """Return whether there is an opening tag in a text, or something before a closing one. It may
    be the bytes of an image, in which there is no mark of a tag."""
    if SIGN.search(text) is None:
        return False
    places = (starter.start() for starter in STARTERS.finditer(text))
    return any(
        opens or place > 0
        for place in places
        if ANY_TAG.match(text, place) is not None
        for _, opens, pattern in TAG_PATTERNS
        if pattern.match(text, place) is not None
    )
