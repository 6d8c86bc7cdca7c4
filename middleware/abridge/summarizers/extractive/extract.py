"""The built-in summarizer: extractive, in process, without a model, deterministic.

It copies. Each sentence gets a score. Words that announce a conclusion, a decision or a finding,
words that other sentences use too, and a late position raise it; questions, thinking aloud, and
digits and symbols in place of words lower it. The best sentences are copied in their original
order, without near-duplicates. The title is copied too: a heading, or the first clause of a
sentence.

Only the head and tail of long reasoning are read, to bound the work. For a short passage it runs on
the event loop, for a longer one in a thread.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from weakref import WeakKeyDictionary

from abridge.core.plan import Passage
from abridge.core.styles import STYLES, ExtractRules
from abridge.core.usage import EXTRACTIVE, SummarizerUsage, Tokens
from abridge.summarizers.cleaning import clean
from abridge.summarizers.extractive.cues import (
    CLAUSE_BREAK,
    CONCLUSION,
    DECISION,
    FINDING,
    HEDGE,
    INTERJECTION,
    LEAD_IN,
    STOP_WORDS,
    TASK,
    THINKING_ALOUD,
)
from abridge.summarizers.extractive.sentences import MAX_SENTENCE_CHARS, split_sentences
from abridge.work import Work

MAX_INPUT_CHARS = 20_000
"""Maximum characters of reasoning to read: a third from its head, the rest from its tail."""

SHORT_CHARS = 4000
"""Characters of a passage that take some 15 ms in the script that takes longest, prose 2 ms."""

TITLE_RULES = ExtractRules(
    chars_per_sentence=1500,
    min_sentences=1,
    max_sentences=3,
    max_chars=640,
    copy_all_chars=0,
    task_score=2.0,
    late_score=0.5,
)
"""Which sentences a title is made of, where it stands alone."""

_LOOSE_END_CHARS = " ,，、-–—"

LEADING_CHARS = 24
"""Characters within which a cue counts as the start of its sentence."""

_LINK_OR_TAG = re.compile(r"://|\]\(|<[/!?A-Za-z]|www\.(?<!\wwww\.)")

_WORD = re.compile(r"[^\W\d_]+")

_LETTER_RUN = re.compile(r"[A-Za-z]{2,}")

_LONG_WORD = re.compile(r"[a-z]{4,}")

_WIDE_CHAR = re.compile(r"[\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")

_QUESTION = re.compile(r"[?？]\W*$")

_PUNCTUATED = re.compile(r"[.!?…。！？:：;；][\"'”’)\]»」』）`]*$")

MAX_TITLE_WORDS = 8

MAX_TITLE_CHARS = 60

MAX_WIDE_TITLE_CHARS = 24

_TITLE_END = re.compile(
    r"[;!?…(（，。；：！？、—–]|[.,:](?=\s|$)|\s-\s|\s(?:because|so that|and then|which)\s"
)

_TITLE_MARKUP = re.compile(r"(?<!\w)_|_(?!\w)|[*`\[\]#<>|~\\\"“”«»「」『』]")

_WEAK_START = re.compile(
    r"(?:that|there|it|this|these|the user|be|for|some|they|he|she)\b", re.IGNORECASE
)

_TITLE_EDGE_CHARS = " \t'‘’.,:;-–—"

_LETTER = re.compile(r"[^\W\d_]")

_WIDE_LETTER = re.compile(r"[\u2e80-\ua4cf\uac00-\ud7af]")


@dataclass(slots=True)
class Candidate:
    """A sentence that may be copied."""

    position: int
    text: str
    topic_words: frozenset[str]  # its topic words
    thinks_aloud: bool  # it only thinks aloud
    score: float


class ExtractiveSummarizer:
    """Writes parts with `extract`. See the `Summarizer` protocol.

    An extract of a short passage blocks the event loop for some milliseconds. Concurrent calls run
    one at a time and yield to the loop in between, so that other tasks can run.
    """

    name = EXTRACTIVE

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    async def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            work = Work(heavy=len(passage.text) > SHORT_CHARS)
            text = await work.run(extract, passage)
            await asyncio.sleep(0)
        if text:
            yield text
        yield SummarizerUsage(Tokens(0, 0, 0), EXTRACTIVE)


def extract(passage: Passage) -> str:
    """Extract the gist of a passage: clean text of at most some 2,000 characters, empty if the
    passage is empty."""
    text = _keep_head_and_tail(passage.text)
    style = STYLES[passage.style]
    rules = style.extract or TITLE_RULES
    sentences = list(split_sentences(text))
    chosen = _choose_sentences(
        _score_sentences(
            [sentence.text for sentence in sentences if not sentence.is_heading], rules
        ),
        rules,
    )
    summary = _join_sentences(
        sentence.text for sentence in sorted(chosen, key=lambda sentence: sentence.position)
    )
    summary = clean(summary or " ".join(text.split())[:MAX_SENTENCE_CHARS]).strip()
    if not style.titled or not summary:
        return summary
    headings = [sentence.text for sentence in sentences if sentence.is_heading]
    title = choose_title([*headings, *(sentence.text for sentence in chosen)], passage.titles)
    if style.title_only:
        return f"**{title}**" if title else ""
    return f"**{title}**\n\n{summary}" if title else summary


def _keep_head_and_tail(text: str) -> str:
    if len(text) <= MAX_INPUT_CHARS:
        return text
    head = MAX_INPUT_CHARS // 3
    return f"{text[:head]}…\n\n{text[head - MAX_INPUT_CHARS :]}"


def _score_sentences(texts: Sequence[str], rules: ExtractRules) -> list[Candidate]:
    stripped = [_strip_interjection(text) for text in texts]
    lowered = [text.lower() for text in stripped]
    topics = [_topic_words(lower) for lower in lowered]
    word_counts = Counter(chain.from_iterable(topics))
    candidates = []
    for position, (text, lower, words) in enumerate(zip(stripped, lowered, topics, strict=True)):
        if _LINK_OR_TAG.search(text):
            continue
        thinks_aloud = bool(THINKING_ALOUD.match(lower))
        cues = _score_cues(lower, rules)
        late = rules.late_score * (position / len(texts)) ** 2 if cues > 0 else 0.0
        vague = len(words) < 2 and not any(map(str.isdigit, text))
        score = cues + late - 3.0 * thinks_aloud - 1.0 * vague
        score += _score_legibility(text) + _score_theme(words, word_counts)
        candidates.append(Candidate(position, text, words, thinks_aloud, score))
    return candidates


def _strip_interjection(text: str) -> str:
    """Remove an "Okay, so" from the start of a sentence."""
    found = INTERJECTION.match(text)
    rest = text[found.end() :] if found else text
    return rest[0].upper() + rest[1:] if any(map(str.isalnum, rest)) else text


def _topic_words(text: str) -> frozenset[str]:
    """Return the longer words of a text; pairs of characters where the script has no spaces."""
    if text.isascii():
        return frozenset(_LONG_WORD.findall(text)) - STOP_WORDS
    found: set[str] = set()
    for word in _WORD.findall(text):
        if _WIDE_CHAR.match(word):
            found.update(word[position : position + 2] for position in range(len(word) - 1))
        elif len(word) > 3:
            found.add(word)
    return frozenset(found - STOP_WORDS)


def _score_cues(text: str, rules: ExtractRules) -> float:
    """Score the cues: in full at the start of the sentence, half elsewhere."""
    score = 0.0
    for cue, cue_score in (
        (CONCLUSION, 3.0),
        (DECISION, 2.0),
        (FINDING, 1.0),
        (TASK, rules.task_score),
    ):
        found = cue.search(text)
        if found is not None:
            score += cue_score if found.start() < LEADING_CHARS else cue_score / 2
    score -= 1.0 * bool(HEDGE.search(text)) + 4.0 * bool(_QUESTION.search(text))
    return score


def _score_legibility(text: str) -> float:
    """Score 0 for a sentence in plain words, less for a fragment or for many non-letters."""
    wide = not text.isascii() and bool(_WIDE_CHAR.search(text))
    share = _count_letters(text) / (len(text) - text.count(" "))
    count = len(text) // 3 if wide else len(text.split())
    score = -1.5 if count < 4 else 0.0
    score -= 6.0 * text.endswith((":", "："))
    score -= 1.5 * (text[0] in "([（" or text.count("(") != text.count(")") or text[-1] == "…")
    score += 0.7 * any(map(str.isdigit, text))
    return score - max(0.0, 0.75 - share) * 8


def _count_letters(text: str) -> int:
    """Count the letters of a text, except single letters that are not a word."""
    if text.isascii():
        return len("".join(_LETTER_RUN.findall(text)))
    return sum(len(word) for word in _WORD.findall(text) if len(word) > 1 or _WIDE_CHAR.match(word))


def _score_theme(words: frozenset[str], word_counts: Counter[str]) -> float:
    """Score up to 1.5 for topic words that other sentences use too."""
    shared = sum([min(word_counts[word] - 1, 4) for word in words])
    return min(1.5, shared / (4 + len(words)))


def _choose_sentences(candidates: Sequence[Candidate], rules: ExtractRules) -> list[Candidate]:
    """Choose the sentences to copy, best first."""
    length = sum(_count_chars(one.text) for one in candidates)
    if length <= rules.copy_all_chars:
        return [one for one in candidates if not one.thinks_aloud] or list(candidates)
    max_sentences = min(
        rules.max_sentences, max(rules.min_sentences, length // rules.chars_per_sentence + 1)
    )
    chosen: list[Candidate] = []
    remaining_chars = rules.max_chars
    for one in sorted(candidates, key=lambda one: -one.score):
        fits = not chosen or (_count_chars(one.text) <= remaining_chars and one.score > 0)
        if fits and not any(_is_similar(one.topic_words, other.topic_words) for other in chosen):
            chosen.append(one)
            remaining_chars -= _count_chars(one.text)
        if len(chosen) == max_sentences:
            break
    return chosen


def _count_chars(text: str) -> int:
    """Count characters; one of a script in which it is a syllable or a word counts as three."""
    return len(text) + 2 * len(_WIDE_CHAR.findall(text))


def _is_similar(words: frozenset[str], others: frozenset[str]) -> bool:
    shared = len(words & others)
    return bool(shared) and 2 * shared >= min(len(words), len(others))


def _join_sentences(texts: Iterable[str]) -> str:
    joined = ""
    for text in (text.rstrip(_LOOSE_END_CHARS) for text in texts):
        wide = bool(_WIDE_CHAR.match(text[-1]))
        stop = "" if _PUNCTUATED.search(text) else "。" if wide else "."
        space = "" if not joined or _WIDE_CHAR.match(joined[-1]) else " "
        joined += space + text + stop
    return joined


def choose_title(texts: Iterable[str], taken: Sequence[str]) -> str | None:
    """Return the first short clause in `texts` that is not among the titles `taken`.

    A clause of one or two words, or one that starts with a pronoun or the like, is used only if
    there is none better.
    """
    known = {_comparison_key(candidate) for candidate in taken}
    clauses = [
        clause
        for text in texts
        if (clause := _extract_clause(text)) and _comparison_key(clause) not in known
    ]
    strong = [
        candidate
        for candidate in clauses
        if candidate.count(" ") > 1 or _WIDE_LETTER.search(candidate)
    ]
    strong = [candidate for candidate in strong if not _WEAK_START.match(candidate)]
    return next(iter(strong + clauses), None)


def _extract_clause(text: str) -> str | None:
    """Return the text before the first stop, without its lead-in; None if it is no title."""
    plain = _TITLE_MARKUP.sub("", text[: 4 * MAX_TITLE_CHARS]).strip(_TITLE_EDGE_CHARS)
    lead_in = LEAD_IN.match(plain)
    start = lead_in.end() if lead_in else 0
    end = _TITLE_END.search(plain, start + 1)
    clause = _shorten_clause(plain[start : end.start() if end else None]).strip(_TITLE_EDGE_CHARS)
    letters = len(_LETTER.findall(clause))
    if letters < 4 or letters < len(clause.replace(" ", "")) * 2 // 3:
        return None
    return clause[0].upper() + clause[1:]


def _shorten_clause(clause: str) -> str:
    """Cut a clause to a title's length, before a word that would need another after it."""
    if _WIDE_LETTER.search(clause):
        return clause[:MAX_WIDE_TITLE_CHARS]
    words = clause.split()
    if len(words) <= MAX_TITLE_WORDS and len(clause) <= MAX_TITLE_CHARS:
        return clause
    head = " ".join(words[: MAX_TITLE_WORDS + 1])[: MAX_TITLE_CHARS + 1] + " "
    breaks = [
        match.start()
        for match in CLAUSE_BREAK.finditer(head)
        if match.start() >= MAX_TITLE_CHARS // 4
    ]
    return head[: breaks[-1]] if breaks else head[:MAX_TITLE_CHARS].rpartition(" ")[0]


def _comparison_key(clause: str) -> str:
    return "".join(filter(str.isalnum, clause.casefold()))
