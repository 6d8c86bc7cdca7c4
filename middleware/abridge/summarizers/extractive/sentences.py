"""Split reasoning into sentences and headings.

Reasoning is prose, lists, drafts, tables and code, in any script, sometimes one very long line.
Anything but prose is skipped, list marks and bold asterisks are removed, and wrapped lines are
joined. Every pattern looks at each character a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_SENTENCE_CHARS = 320
"""Maximum characters of a sentence; a longer one is cut at a clause and gets an ellipsis."""

_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})[^`]*$")

_TABLE_OR_RULE = re.compile(r"\s*(?:\||[-=*_#~]{3,}\s*$)|[^|]*\|[^|]*\|")

_CODE = re.compile(
    r".*(?:[{};]|\)\s*:|=>|->\s*\S+:)\s*$|\s*(?:[$]|>>>|//)\s*\w"
    r"|\s*(?:import|from|def|class|return|if|elif|else|for|while|print|const|let|var|function)\b"
    r"[^.?!]*[(){}\[\]=:;]+[^.?!]*$"
    r"|\s*[\w.\[\]]+\s*[-+*/|]?=\s*\S+\s*$"
)

_HEADING = re.compile(r"\s*#{1,6}\s+")

_LIST_MARK = re.compile(
    r"(?:>\s*)*(?:(?:[-*+•·–]|\d{1,3}[.)])\s|\d{1,3}、|[(（]\d{1,2}[)）]|[①-⑳])\s*"
)

_LABEL = re.compile(r"\*\*([^*\n]{2,80}?)\s*[:：]?\*\*\s*[:：]?\s*")

_ITALIC_NOTE = re.compile(r"\*[^*\n]{2,40}\*\s+(?=[A-Z])")

_ASTERISKS = re.compile(r"\*\*|(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])")

_SENTENCE_END = (
    re.compile(  # starts with a character, not with alternatives: that is much faster to find
        r"[.!?…。！？](?:(?<=[.!?…])(?<![.!?…].)[.!?…]*"
        r"(?:(?=\s|$)|[\"'”’)\]»]+(?!\s+[a-z])(?=\s|$))|(?<=[。！？])[。！？]*[」』”’）)\]]*)"
    )
)

_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|approx|resp|Mr|Mrs|Ms|Dr|St|No|Fig|Eq|z\.B|d\.h|bzw|ca)|(?<=\s)[A-Z])"
    r"\.$|^\d{1,3}\.$"
)

_CLAUSE_END = re.compile(r"[,;:—](?=\s)|[，；：、]")

_SPACE = re.compile(r"\s")

_EDGE_CHARS = " \t,;:—，；：、"

_LETTER_OR_DIGIT = re.compile(r"[^\W_]")

_LETTER = re.compile(r"[^\W\d_]")


@dataclass(slots=True)
class Sentence:
    """A sentence, or the text of a heading."""

    text: str
    is_heading: bool = False  # a heading or a bold label


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of `text` in order, verbatim except for removed marks."""
    for block in _split_blocks(text):
        yield from _parse_block(block)


def _split_blocks(text: str) -> Iterator[str]:
    """Yield blocks of prose: a list item, a line, or several lines where one was wrapped."""
    block, fenced = "", False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        legible = not (fenced or _FENCE.match(line)) and _is_prose(line)
        if block and legible and _is_continuation(block, line):
            block = f"{block} {line.strip()}"
            continue
        if block:
            yield block
        block = line.strip() if legible else ""
    if block:
        yield block


def _is_prose(line: str) -> bool:
    if not _LETTER.search(line) or _TABLE_OR_RULE.match(line):
        return False
    return len(line) > MAX_SENTENCE_CHARS or not _CODE.match(line)


def _is_continuation(block: str, line: str) -> bool:
    """Return true if `line` continues `block`, which was wrapped."""
    first = line.lstrip()[:1]
    return (
        first.islower()
        and not _SENTENCE_END.search(block, max(0, len(block) - 4))
        and block[-1] != ":"
    )


def _parse_block(block: str) -> Iterator[Sentence]:
    heading = _HEADING.match(block)
    if heading:
        yield Sentence(_strip_emphasis(block[heading.end() :]), is_heading=True)
        return
    mark = _LIST_MARK.match(block)
    start = mark.end() if mark else 0
    if note := _ITALIC_NOTE.match(block, start):
        start = note.end()
    while label := _LABEL.match(block, start):
        yield Sentence(_strip_emphasis(label[1]), is_heading=True)
        start = label.end()
    for piece in _split_block(_strip_emphasis(block[start:])):
        if _LETTER_OR_DIGIT.search(piece):
            yield Sentence(piece)


def _strip_emphasis(text: str) -> str:
    """Remove bold and italic asterisks, and backticks too if they are not paired."""
    text = (_ASTERISKS.sub("", text) if "*" in text else text).strip()
    return text if text.count("`") % 2 == 0 else text.replace("`", "")


def _split_block(block: str) -> Iterator[str]:
    start = 0
    for end in _SENTENCE_END.finditer(block):
        sentence = block[start : end.end()].strip()
        if not _ABBREVIATION.search(sentence, max(0, len(sentence) - 9)):
            yield from _cut_sentence(sentence)
            start = end.end()
    yield from _cut_sentence(block[start:].strip())


def _cut_sentence(sentence: str) -> Iterator[str]:
    """Yield the sentence, in several pieces if it is too long."""
    start = 0
    while len(sentence) - start > MAX_SENTENCE_CHARS:
        end = _find_cut(sentence, start)
        yield sentence[start:end].strip(_EDGE_CHARS) + "…"
        start = end
    yield sentence[start:].lstrip(_EDGE_CHARS)


def _find_cut(sentence: str, start: int) -> int:
    for boundary in (_CLAUSE_END, _SPACE):
        matches = boundary.finditer(
            sentence, start + MAX_SENTENCE_CHARS // 3, start + MAX_SENTENCE_CHARS - 1
        )
        ends = [match.start() for match in matches]
        if ends:
            return ends[-1]
    return start + MAX_SENTENCE_CHARS - 1
