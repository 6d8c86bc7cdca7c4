"""Find the sentences in a block of prose.

A stop ends a sentence unless it belongs to an abbreviation (`e.g.`), an ordinal (`am 14. März`), a
factorial (`5! = 120`), or stands inside a bracket or a quotation that closes soon: a quoted riddle
of three sentences stays one sentence. A sentence that is too long is cut at a clause.

Every pattern looks at each character a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from abridge.core.segmenter import GAP
from abridge.summarizers.extractive.blocks import Sentence, split_blocks
from abridge.summarizers.extractive.notation import plain_math

MAX_SENTENCE_CHARS = 320  # a longer one is cut at a clause and gets an ellipsis

_SENTENCE_END = re.compile(  # fast to find: starts with a character, not with alternatives
    r"[.!?…。！？](?:(?<=[.!?…])(?<![.!?…].)[.!?…]*(?:(?=\s|$)|[\"'”’)\]»]+(?!\s+[a-z])(?=\s|$))"
    r"|(?<=[。！？])[。！？]*[」』”’）)\]]*)"
)

_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|approx|resp|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|Fig|Eq|Sec|Vol|pp|z\. ?B"
    r"|d\. ?h|u\. ?a|bzw|ca|evtl|ggf|inkl|Abs|Art|Mme|Sra?|p\. ?ej)|(?<=\s)[A-Z])\.$|^\d{1,3}\.$"
)

MAX_ABBREVIATION_CHARS = 7

_ORDINAL = re.compile(
    r"(?:\b(?:am|der|den|dem|des|vom|zum|im|ab|bis|das|die|und)\s\d{1,2}\.(?=$|\s))|\b\d{1,2}\.(?=\s(?:Jan"
    r"|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez))",
    re.IGNORECASE,
)

_FACTORIAL = re.compile(r"(?:\b[\dA-Za-z]|\))!(?=\s*[^\sA-Z\"'])")
_SOME = rf".{{{MAX_SENTENCE_CHARS // 3},{MAX_SENTENCE_CHARS - 2}}}"
_PIECE = re.compile(  # of one that is too long: up to a clause, else a space, else anything
    rf"(?=.{{{MAX_SENTENCE_CHARS + 1}}})(?:{_SOME}(?=[,;:—]\s|[，；：、])|{_SOME}(?=\s)"
    rf"|.{{{MAX_SENTENCE_CHARS - 1}}})|.+",
    re.DOTALL,
)
_PAIRS = (("(", ")"), ('"', '"'), ("`", "`"), ("“", "”"), ("「", "」"), ("（", "）"))

_EDGE_CHARS = " \t,;:—，；：、"
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences of `text`, and its gaps, in order, verbatim except for markup that is
    removed."""
    for block in split_blocks(text):
        if block.is_heading:
            yield block
            continue
        for piece in _split_block(plain_math(block.text)):
            if piece[:1].isalnum() or _LETTER_OR_DIGIT.search(piece) or piece == GAP:
                yield Sentence(piece, False, block.block, block.hangs)


def _split_block(block: str) -> Iterator[str]:
    start = 0
    pairs = [pair for pair in _PAIRS if pair[0] in block]
    for stop in _SENTENCE_END.finditer(block):
        end = stop.end()
        if end < len(block) and not _goes_on(block, start, end, pairs):
            yield from _cut_sentence(block[start:end].strip())
            start = end
    yield from _cut_sentence(block[start:].strip())


def _goes_on(block: str, start: int, end: int, pairs: Sequence[tuple[str, str]]) -> bool:
    """Return true if the stop before `end` does not end the sentence that begins at `start`."""
    near = max(start, end - 14)
    tail = block[near:end].rstrip("\"'”’)]»")
    short = block[start:end].lstrip() if end - start < 12 else tail
    if tail.endswith("."):
        if _ABBREVIATION.search(short, max(0, len(short) - MAX_ABBREVIATION_CHARS)):
            return True
        if tail[-2:-1].isdigit() and _ORDINAL.search(block, near, end + 5):
            return True
        if block[end : end + 2].strip().islower():
            return True
    elif tail.endswith("!") and _FACTORIAL.search(block, max(start, end - 3), end + 3):
        return True
    return bool(pairs) and end - start < MAX_SENTENCE_CHARS and _is_open(block, start, end, pairs)


def _is_open(block: str, start: int, end: int, pairs: Sequence[tuple[str, str]]) -> bool:
    """Return true if a bracket or a quotation is open at `end` and closes soon."""
    for opening, closing in pairs:
        count = block.count(opening, start, end)
        is_open = count % 2 if opening == closing else count > block.count(closing, start, end)
        if is_open:
            return block.find(closing, end, start + MAX_SENTENCE_CHARS) >= 0
    return False


def _cut_sentence(sentence: str) -> list[str]:
    """Return the sentence, in several pieces if it is too long."""
    if len(sentence) <= MAX_SENTENCE_CHARS:
        return [sentence.lstrip(_EDGE_CHARS)]
    *pieces, rest = _PIECE.findall(sentence)
    return [*(piece.strip(_EDGE_CHARS) + "…" for piece in pieces), rest.lstrip(_EDGE_CHARS)]
