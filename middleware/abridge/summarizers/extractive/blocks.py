"""Find the prose in reasoning: paragraphs, list items and headings.

Reasoning is prose, lists, drafts, tables, formulas and code, in any script, sometimes one very long
line. Anything but prose is skipped, list marks and bold asterisks are removed, and wrapped lines
are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from abridge.core.segmenter import GAP

MAX_LINE_CHARS = 320  # characters up to which a line may be code; a longer one is read as prose

_FENCES = "```", "~~~"
_TABLE_OR_MATH = re.compile(r"\s*(?:\||\\\[|\\\]|\$\$|\\begin\b|\\end\b|&)")

_CODE = re.compile(
    r"\s*(?:[$]|>>>|//)\s*\w|\s*(?:import|from|def|class|return|if|elif|else|for|while|print|const"
    r"|let|var|function)\b[^.?!]*[(){}\[\]=:;]+[^.?!]*$|\s*[\w.\[\]]+\s*[-+*/|]?=\s*\S+\s*$"
)

_DISPLAYED = re.compile(
    r"\n(?:[ \t\r]*\n)?[ \t]*(?:\\\[|\$\$)\s{0,8}([^\n]{1,120}?)\s{0,8}(?:\\\]|\$\$)[ \t\r]*"
    r"(?=\n|$)"
)
"""A formula of one line that stands apart."""

_LEADS_UP = re.compile(r"(?:[\w,:：，、]|\\\))\s*$")
"""The end of a line that such a formula completes."""

_DISPLAY_START = re.compile(r"\s{0,8}(?:\\\[|\$\$)")

_HEADING = re.compile(r"\s*#{1,6}\s+")
_GLUED_HEADING = re.compile(r"\*\*(?<=[.!?]\*\*)([^*\n]{2,80}\*\*)$", re.MULTILINE)
_RECORD = re.compile(r"^(?:\w+: .*\n)?\w+: \w+://.*(?:\n\w+: .*)*", re.MULTILINE)
"""A result of a search: lines of fields, one of which is an address."""

_LIST_MARK = re.compile(
    r"(?:>\s*)*(?:(?:[-*+•·–]|\d{1,3}[.)])\s|\d{1,3}、|[(（]\d{1,2}[)）]|[①-⑳])\s*"
)

_LABEL = re.compile(r"\*\*([^*\n]{2,80}?)\s*[:：]?\*\*\s*[:：]?\s*")
_ITALIC_NOTE = re.compile(r"\*[^*\n]{2,40}\*\s+(?=[A-Z])")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]{1,200}?)(?<=\S)\*\*|\*\*(?!\*)")
_ITALIC = re.compile(r"\*(?<![\w*)\]]\*)(?=[^\s*)])([^*\n]{1,200}?)(?<=[^\s*(])\*(?![\w*(])")

_BULLETS = "-*+•·–"
_LINE_END = re.compile(r"[.!?…。！？:：][\"'”’)\]»」』]*$")
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(slots=True)
class Sentence:
    """A sentence, or the text of a heading; at first all that a paragraph or a list item says."""

    text: str
    is_heading: bool = False  # a heading or a bold label
    block: int = 0  # number of its block, so that neighbours in a paragraph are known
    hangs: bool = False  # its list was announced by a line that ends with a colon


def split_blocks(text: str) -> Iterator[Sentence]:
    """Yield headings, and what is said in each block of prose, in order."""
    announced = False
    text = _RECORD.sub("", text) if "://" in text else text
    text = _DISPLAYED.sub(_join_formula, text) if "\\[" in text or "$$" in text else text
    text = _GLUED_HEADING.sub(r"\n**\1", text) if "**" in text else text
    for number, line in enumerate(_join_wrapped(text)):
        headings, said, is_item = _parse(line)
        for heading in headings:
            yield Sentence(heading, is_heading=True, block=number)
        if not is_item:
            announced = line.endswith((":", "："))
        yield Sentence(said, block=number, hangs=is_item and announced)


def _join_formula(found: re.Match[str]) -> str:
    """Return a displayed formula as an inline one if the line before it leads up to it."""
    text, start = found.string, found.start()
    line_start = text.rfind("\n", 0, start) + 1
    leads_up = _LEADS_UP.search(text, max(line_start, start - 4), start)
    if leads_up is None or _HEADING.match(text, line_start):
        return found[0]
    stop = "." if _DISPLAY_START.match(text, found.end()) else ""
    return f" \\({found[1]}\\){stop}"


def _join_wrapped(text: str) -> Iterator[str]:
    """Yield lines of prose, several as one where a line was wrapped."""
    block, fenced = "", False
    for line in text.splitlines():
        bare = line.strip()
        is_fence = bare.startswith(_FENCES) and "`" not in bare.lstrip("`")
        is_formula = bare in {"$$", "\\]"} or (bare.startswith("\\[") and "\\]" not in bare)
        toggles = is_fence or is_formula  # one begins or ends
        fenced ^= toggles
        legible = not (fenced or toggles) and (bare == GAP or _is_prose(line))
        if block and legible and _is_continuation(block, line):
            block = f"{block} {bare}"
            continue
        if block:
            is_half = toggles and not _LINE_END.search(block, max(0, len(block) - 4))
            yield f"{block}:" if is_half else block
        block = bare if legible else ""
    if block:
        yield block


def _is_prose(line: str) -> bool:
    if not _LETTER.search(line) or line.count("|") > 1 or _TABLE_OR_MATH.match(line):
        return False
    return len(line) > MAX_LINE_CHARS or not _CODE.match(line)


def _is_continuation(block: str, line: str) -> bool:
    """Return true if `line` continues `block`, which was wrapped."""
    return line.lstrip()[:1].islower() and not _LINE_END.search(block, max(0, len(block) - 4))


def _parse(line: str) -> tuple[list[str], str, bool]:
    """Return the heading that a line is or its bold labels, its text, whether it is an item."""
    heading = _HEADING.match(line)
    if heading:
        return [_strip_emphasis(line[heading.end() :])], "", False
    mark = _LIST_MARK.match(line)
    start = mark.end() if mark else 0
    if note := _ITALIC_NOTE.match(line, start):
        start = note.end()
    labels = []
    while label := _LABEL.match(line, start):
        labels.append(_strip_emphasis(label[1]))
        start = label.end()
    text = _strip_emphasis(line[start:])
    if labels and text and mark and line[0] in _BULLETS:  # a term of a list, and what is said of it
        text = f"{labels.pop()}: {text}"
    return labels, text, mark is not None


def _strip_emphasis(text: str) -> str:
    """Remove bold and italic asterisks, and backticks too if they are not paired."""
    if "*" in text:
        text = _ITALIC.sub(r"\1", _BOLD.sub(r"\1", text))
    text = text.strip()
    return text if text.count("`") % 2 == 0 else text.replace("`", "")
