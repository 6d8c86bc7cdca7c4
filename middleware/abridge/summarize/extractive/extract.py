"""The built-in summarizer: extractive, in process, without a model, deterministic.

It copies. Each sentence gets a score. Words that announce a conclusion, a decision or a finding,
words that other sentences use too, and a late position raise it; questions, thinking aloud, and
digits and symbols in place of words lower it. The best sentences are copied in their original
order, without near-duplicates. The title is copied too: a heading, or the first clause of a
sentence.

Only the head and tail of long reasoning are read, to bound the work, which runs on the event loop.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from weakref import WeakKeyDictionary

from abridge.summarize import Spent
from abridge.summarize.clean import clean
from abridge.summarize.extractive.cues import (
    ALOUD,
    ASIDE,
    COMMON,
    CONCLUSION,
    DECISION,
    FINDING,
    INTERJECTION,
    TASK,
)
from abridge.summarize.extractive.sentences import LONGEST, sentences
from abridge.summarize.extractive.title import title
from abridge.summarize.form import form
from abridge.turn.part import Passage
from abridge.turn.usage import EXTRACTIVE, Tokens

MOST = 20_000
"""Maximum characters of reasoning to read: a third from its head, the rest from its tail."""

_LOOSE = " ,，、-–—"

LEADING = 24
"""Characters within which a cue counts as the start of its sentence."""

_UNSHOWABLE = re.compile(r"://|\]\(|<[/!?A-Za-z]|www\.(?<!\wwww\.)")
_WORD = re.compile(r"[^\W\d_]+")
_LETTERS = re.compile(r"[A-Za-z]{2,}")
_LONG = re.compile(r"[a-z]{4,}")
_WIDE = re.compile(r"[\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_QUESTION = re.compile(r"[?？]\W*$")
_ENDED = re.compile(r"[.!?…。！？:：;；][\"'”’)\]»」』）`]*$")


@dataclass(slots=True, frozen=True)
class Shape:
    """Length and preferences of an extract."""

    each: int  # characters of prose per sentence copied
    least: int
    most: int
    room: int  # characters in all
    whole: int  # prose up to this many characters is copied nearly whole
    task: float  # score for stating the task
    late: float  # score for a position near the end


CONCISE = Shape(each=1500, least=1, most=2, room=480, whole=0, task=0.0, late=2.5)
SIZED = Shape(each=800, least=1, most=3, room=640, whole=240, task=1.0, late=2.0)
TITLED = Shape(each=500, least=1, most=3, room=640, whole=160, task=2.0, late=0.5)
DETAILED = Shape(each=250, least=2, most=7, room=1600, whole=400, task=2.0, late=0.5)


@dataclass(slots=True)
class Candidate:
    """A sentence that may be copied."""

    place: int
    text: str
    words: frozenset[str]  # its topic words
    aloud: bool  # it only thinks aloud
    weight: float


class Extractive:
    """Writes parts with `extract`. See the `Summarizer` protocol.

    An extract blocks the event loop for some milliseconds. Concurrent calls run one at a time and
    yield to the loop in between, so that other tasks can run.
    """

    name = EXTRACTIVE

    def __init__(self) -> None:
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    async def summarize(self, passage: Passage) -> AsyncIterator[str | Spent]:
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            text = extract(passage)
            await asyncio.sleep(0)
        if text:
            yield text
        yield Spent(Tokens(0, 0, 0), EXTRACTIVE)


def extract(passage: Passage) -> str:
    """Extract the gist of a passage: clean text of at most some 2,000 characters, empty if the
    passage is empty."""
    text = _head_and_tail(passage.text)
    shape = _shape(passage)
    read = list(sentences(text))
    chosen = _choose(_weigh([one.text for one in read if not one.heading], shape), shape)
    said = _join(one.text for one in sorted(chosen, key=lambda one: one.place))
    said = clean(said or " ".join(text.split())[:LONGEST]).strip()
    if form(passage) == "concise" or not said:
        return said
    headings = [one.text for one in read if one.heading]
    found = title([*headings, *(one.text for one in chosen)], passage.titles)
    return f"**{found}**\n\n{said}" if found else said


def _shape(passage: Passage) -> Shape:
    if passage.style == "auto" and passage.whole:
        return SIZED
    return {"concise": CONCISE, "titled": TITLED, "detailed": DETAILED}[form(passage)]


def _head_and_tail(text: str) -> str:
    if len(text) <= MOST:
        return text
    head = MOST // 3
    return f"{text[:head]}…\n\n{text[head - MOST :]}"


def _weigh(texts: Sequence[str], shape: Shape) -> list[Candidate]:
    bare = [_without_interjection(text) for text in texts]
    lowered = [text.lower() for text in bare]
    about = [_words(lower) for lower in lowered]
    spoken_of = Counter(chain.from_iterable(about))
    candidates = []
    for place, (text, lower, words) in enumerate(zip(bare, lowered, about, strict=True)):
        if _UNSHOWABLE.search(text):
            continue
        aloud = bool(ALOUD.match(lower))
        cues = _cues(lower, shape)
        late = shape.late * (place / len(texts)) ** 2 if cues > 0 else 0.0
        vague = len(words) < 2 and not any(map(str.isdigit, text))
        weight = cues + late - 3.0 * aloud - 1.0 * vague
        weight += _legibility(text) + _theme(words, spoken_of)
        candidates.append(Candidate(place, text, words, aloud, weight))
    return candidates


def _without_interjection(text: str) -> str:
    """Remove an "Okay, so" from the start of a sentence."""
    found = INTERJECTION.match(text)
    rest = text[found.end() :] if found else text
    return rest[0].upper() + rest[1:] if any(map(str.isalnum, rest)) else text


def _words(text: str) -> frozenset[str]:
    """Return the longer words of a text; pairs of characters where the script has no spaces."""
    if text.isascii():
        return frozenset(_LONG.findall(text)) - COMMON
    found: set[str] = set()
    for word in _WORD.findall(text):
        if _WIDE.match(word):
            found.update(word[place : place + 2] for place in range(len(word) - 1))
        elif len(word) > 3:
            found.add(word)
    return frozenset(found - COMMON)


def _cues(text: str, shape: Shape) -> float:
    """Score the cues: in full at the start of the sentence, half elsewhere."""
    weight = 0.0
    for cue, full in ((CONCLUSION, 3.0), (DECISION, 2.0), (FINDING, 1.0), (TASK, shape.task)):
        found = cue.search(text)
        if found is not None:
            weight += full if found.start() < LEADING else full / 2
    weight -= 1.0 * bool(ASIDE.search(text)) + 4.0 * bool(_QUESTION.search(text))
    return weight


def _legibility(text: str) -> float:
    """Score 0 for a sentence in plain words, less for a fragment or for many non-letters."""
    wide = not text.isascii() and bool(_WIDE.search(text))
    share = _letters(text) / (len(text) - text.count(" "))
    count = len(text) // 3 if wide else len(text.split())
    weight = -1.5 if count < 4 else 0.0
    weight -= 6.0 * text.endswith((":", "："))
    weight -= 1.5 * (text[0] in "([（" or text.count("(") != text.count(")") or text[-1] == "…")
    weight += 0.7 * any(map(str.isdigit, text))
    return weight - max(0.0, 0.75 - share) * 8


def _letters(text: str) -> int:
    """Count the letters of a text, except single letters that are not a word."""
    if text.isascii():
        return len("".join(_LETTERS.findall(text)))
    return sum(len(word) for word in _WORD.findall(text) if len(word) > 1 or _WIDE.match(word))


def _theme(words: frozenset[str], spoken_of: Counter[str]) -> float:
    """Score up to 1.5 for topic words that other sentences use too."""
    shared = sum([min(spoken_of[word] - 1, 4) for word in words])
    return min(1.5, shared / (4 + len(words)))


def _choose(candidates: Sequence[Candidate], shape: Shape) -> list[Candidate]:
    """Choose the sentences to copy, best first."""
    length = sum(_size(one.text) for one in candidates)
    if length <= shape.whole:
        return [one for one in candidates if not one.aloud] or list(candidates)
    wanted = min(shape.most, max(shape.least, length // shape.each + 1))
    chosen: list[Candidate] = []
    room = shape.room
    for one in sorted(candidates, key=lambda one: -one.weight):
        fits = not chosen or (_size(one.text) <= room and one.weight > 0)
        if fits and not any(_alike(one.words, other.words) for other in chosen):
            chosen.append(one)
            room -= _size(one.text)
        if len(chosen) == wanted:
            break
    return chosen


def _size(text: str) -> int:
    """Count characters; one of a script in which it is a syllable or a word counts as three."""
    return len(text) + 2 * len(_WIDE.findall(text))


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    shared = len(words & others)
    return bool(shared) and 2 * shared >= min(len(words), len(others))


def _join(texts: Iterable[str]) -> str:
    joined = ""
    for text in (text.rstrip(_LOOSE) for text in texts):
        wide = bool(_WIDE.match(text[-1]))
        stop = "" if _ENDED.search(text) else "。" if wide else "."
        space = "" if not joined or _WIDE.match(joined[-1]) else " "
        joined += space + text + stop
    return joined
