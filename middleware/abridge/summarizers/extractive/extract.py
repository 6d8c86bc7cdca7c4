"""The built-in summarizer: extractive, in process, without a model, deterministic.

It copies. Each sentence gets a score (`scoring`), the best that can be read together are chosen
(`choosing`) and copied in their original order. No word is changed: fillers and connectives at the
start of a sentence are left out where what they refer to is not shown. A title comes first.

Only the head and tail of long reasoning are read, to bound the work. For a short passage it runs on
the event loop, for a longer one in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from traceback import format_tb
from weakref import WeakKeyDictionary

from abridge.core.plan import Passage
from abridge.core.segmenter import GAP, WIDE_RUN
from abridge.core.styles import STYLES
from abridge.core.usage import EXTRACTIVE, SummarizerUsage, Tokens
from abridge.summarizers.cleaning import clean
from abridge.summarizers.extractive.choosing import choose_sentences
from abridge.summarizers.extractive.privacy import find_private
from abridge.summarizers.extractive.scoring import Candidate, score_sentences
from abridge.summarizers.extractive.sentences import MAX_SENTENCE_CHARS, split_sentences
from abridge.summarizers.extractive.titles.make import make_title
from abridge.summarizers.extractive.titles.rating import TitleSource
from abridge.summarizers.extractive.words import topic_words
from abridge.work import Work

MAX_INPUT_CHARS = 20_000  # that are read: a third from the head, the rest from the tail
MAX_TITLE_SOURCES = 12  # sentences of a passage that are read for a title
FIRST_SENTENCES = 5  # of them from the beginning, which mostly states the task
MAX_HEADINGS = 12  # of a passage, that are read for a title
MAX_TOLD_PARTS = 20  # the latest parts, whose sentences are not said again
SHORT_CHARS = 4000  # of a passage that takes at most some 12 ms, in letters 6 ms
STEP_SENTENCES = 16  # that are judged at once

_log = logging.getLogger(__name__)

_STOPS = ".。 "
_LOOSE_END_CHARS = " ,，、-–—"
_PUNCTUATED = re.compile(r"[.!?…。！？:：;；][\"'”’)\]»」』）`]*$")

_TOLD_SENTENCE = re.compile(
    r"[^.!?。！？\n]+(?:(?:[.!?](?!\s)|(?<=\bvs)\.|(?<=\b(?:dr|mr|st|ca))\.)[^.!?。！？\n]*)*"
)


class ExtractiveSummarizer:
    """Writes parts with `extract`. See the `Summarizer` protocol.

    An extract of a short passage is made in steps on the event loop, one passage at a time; other
    tasks can run in between. One that had to wait for another is made at once, else a loop that is
    busy would fall behind.
    """

    name = EXTRACTIVE
    in_process = True  # see `runs_in_process`

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )

    async def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        is_long, must_wait = len(passage.text) > SHORT_CHARS, lock.locked()
        async with lock:
            if is_long or must_wait:
                text = await Work(heavy=is_long).run(extract, passage)
                await asyncio.sleep(0)
            else:
                for text in extract_in_steps(passage):  # noqa: B007 -- the last
                    await asyncio.sleep(0)
        if text:
            yield text
        yield SummarizerUsage(Tokens(0, 0, 0), EXTRACTIVE)


def extract(passage: Passage) -> str:
    """Extract the gist of a passage: clean text of at most some 2,000 characters, empty if the
    passage is empty."""
    *_, summary = extract_in_steps(passage)
    return summary


def extract_in_steps(passage: Passage) -> Iterator[str]:
    """Yield nothing after each step of at most about a millisecond, then the extract."""
    text = _keep_head_and_tail(passage.text)
    style = STYLES[passage.style]
    sentences = list(split_sentences(text))
    told = _told_sentences(passage.told)
    yield ""
    private = find_private([sentence.text for sentence in sentences])
    prose = [sentence for sentence in sentences if not sentence.is_heading]
    told_text = "\n".join(passage.told)
    candidates: list[Candidate] = []
    for place, one in enumerate(score_sentences(prose, frozenset().union(*told), private), start=1):
        if one.text.rstrip(_STOPS) not in told_text:
            candidates.append(one)
        if place % STEP_SENTENCES == 0:
            yield ""
    yield ""
    chosen = choose_sentences(candidates, style.extract, told, is_last=passage.last)
    summary = clean(_join(chosen) or _any_text(candidates, text, told)).strip()
    if not style.titled or not text.strip():
        yield summary
        return
    yield ""
    headings = [one.text for one in sentences if one.is_heading and one.text not in private]
    sources = _sources(candidates, chosen, headings)
    title = f"**{make_title(sources, passage.titles, is_last=passage.last, private=private)}**"
    yield f"{title}\n\n{summary}" if summary and not style.title_only else title


def _sources(
    candidates: Sequence[Candidate], chosen: Sequence[Candidate], headings: Sequence[str]
) -> list[TitleSource]:
    """Return what a title may be made of: sentences that say something, and headings."""
    told = {one.position for one in chosen if one.sound}
    read = list(candidates)
    if len(read) > MAX_TITLE_SOURCES:
        read[FIRST_SENTENCES : FIRST_SENTENCES - MAX_TITLE_SOURCES] = []
    return [
        *(
            TitleSource(one.tied, one.position in told, one.concludes, not place, one.words)
            for place, one in enumerate(read)
        ),
        *(TitleSource(text, headings=len(headings)) for text in headings[:MAX_HEADINGS]),
    ]


def extract_or_nothing(passage: Passage) -> str:
    """Like `extract`, for where nothing may be raised into the answer: empty if that fails."""
    try:
        return extract(passage)
    except Exception as error:  # noqa: BLE001 -- a fault here must not cost the answer
        _log.warning("the extract failed: %s", type(error).__name__)
        _log.debug("it failed here:\n%s", "".join(format_tb(error.__traceback__)))
        return ""


def _keep_head_and_tail(text: str) -> str:
    if len(text) <= MAX_INPUT_CHARS:
        return text
    head = MAX_INPUT_CHARS // 3
    return f"{text[:head]}…\n{GAP}\n{text[head - MAX_INPUT_CHARS :]}"


def _told_sentences(told: Sequence[str]) -> list[frozenset[str]]:
    """Return the topic words of each sentence of the latest parts."""
    return [
        words
        for sentence in _TOLD_SENTENCE.findall("\n".join(told[-MAX_TOLD_PARTS:]).lower())
        if len(words := topic_words(sentence)) > 2
    ]


def _any_text(candidates: Sequence[Candidate], text: str, told: Sequence[frozenset[str]]) -> str:
    """Return the best there is where no sentence is worth showing, and what no earlier part told;
    nothing if all is private."""
    new = [one for one in candidates if one.words not in told and (one.sound or not told)]
    best = max(new, key=lambda one: (one.sound, one.score), default=None)
    if best is not None:
        return _join([best])
    plain = " ".join(text.split())[:MAX_SENTENCE_CHARS]
    return "" if told or find_private([plain]) else plain


def _join(chosen: Iterable[Candidate]) -> str:
    """Join sentences, which come in their original order. A connective stays where what it refers
    to is shown."""
    joined, last = "", -9
    for one in chosen:
        text = (one.tied if one.position == last + 1 else one.text).rstrip(_LOOSE_END_CHARS)
        wide = bool(WIDE_RUN.match(text[-1]))
        stop = "" if _PUNCTUATED.search(text) else "。" if wide else "."
        space = "" if not joined or WIDE_RUN.match(joined[-1]) else " "
        joined += space + text + stop
        last = one.position
    return joined
