"""One call of a summarizer, and of the review, in a task of its own.

Both may be a user's code, which may do anything: raise what is no `Exception`, cancel its own task,
ignore being cancelled, never finish closing. In a task of its own it does so without being noticed
by the tasks that answer the client.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from functools import partial
from time import monotonic
from typing import Any, Literal

from abridge.apis.json import replace_halves
from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.errors import SummarizerError
from abridge.summarizers.checks import Checks
from abridge.summarizers.cleaning import Cleaner
from abridge.summarizers.review import Reviewer
from abridge.summarizers.summarizer import CheckedSummarizer, Summarizer, is_name
from abridge.waiting import SilenceTimer

MAX_PART_CHARS = 32_000
"""Maximum characters of a part; the call is ended when a summarizer exceeds them."""

SLICE_CHARS = 1000
"""Characters cleaned at once, which takes some 15 ms at the worst."""

MAX_TOKENS = 1 << 53
"""No count is larger; a larger one is taken for not reported."""

BLOCK_CHARS, BLOCK_STEP = 14, 7
"""The size and the distance of the blocks of a text that are looked for in another. Whatever quotes
20 characters in one line quotes one of them."""

MAX_SEARCHED_CHARS = 128 << 10
"""Characters in which quotes are looked for."""

ESCAPE = re.compile(r"((?:\\x[0-9a-f]{2})+)|\\u([0-9a-fA-F]{4})|\\U000([0-9a-f]{5})|\\[nrt]")
"""Characters as JSON and Python spell them in ASCII."""

Verdict = Literal["passed", "withheld"]

Outcome = BaseException | None
"""What ended a call: an exception, or the end of its text."""

_END = object()


def runs_in_process(summarizer: Summarizer) -> bool:
    """Return whether a summarizer does nothing but work, and of that no more than so much for a
    part: if it takes long, then only because the process has much to do."""
    return getattr(summarizer, "in_process", False) is True


class GuardedCall:
    """Write one part, and have it reviewed.

    `output` receives clean text, then the `Outcome`; what is left to do then is closing the
    summarizer's iterator. A summarizer and a review may take `timeout` seconds together; a review
    alone after a summarizer that runs in process, or the time that the reviewer states.
    """

    def __init__(
        self, summarizer: Summarizer, passage: Passage, reviewer: Reviewer | None, timeout: float
    ) -> None:
        self.output: asyncio.Queue[str | Outcome] = asyncio.Queue()
        self.usage: SummarizerUsage | None = None
        self.review_began: float | None = None
        """When the summarizer was done and its text went to the review, by `time.monotonic`."""
        self.verdict: Verdict | None = None
        self.ended = False  # the outcome is known
        self.close_error: BaseException | None = None
        self._passage = passage
        self._reviewer = reviewer
        self._cleaner = _cleaner_for(summarizer, passage)
        self._plain_text = PlainText()
        self._remaining_chars = MAX_PART_CHARS
        self._unreviewed: list[str] = []
        self._has_text = False
        self._timeout = timeout
        self._timer: SilenceTimer | None = None
        if not runs_in_process(summarizer):
            self._start_timer(timeout)
        self.task = asyncio.create_task(self._run(summarizer))

    def stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def reviewing(self) -> bool:
        """True from when the text went to the review."""
        return self.review_began is not None

    @property
    def draft(self) -> str:
        """The text as it went to the review."""
        return "".join(self._unreviewed)

    def is_quoted_in(self, text: str) -> bool:
        """Return whether a text repeats some of what the summarizer or the review was given.

        So it is taken to if there is more of that than can be searched in a few milliseconds.
        """
        given = [self._passage.before, self._passage.text, *self._unreviewed]
        if sum(map(len, given)) > MAX_SEARCHED_CHARS:
            return True
        words = _words(" ".join(given))
        size = min(BLOCK_CHARS, len(words))
        starts = range(0, len(words) - size + 1, BLOCK_STEP) if words else ()
        blocks = {words[start : start + size] for start in starts}
        return any(
            said[start : start + size] in blocks
            for said in (_words(text), _words(replace_halves(ESCAPE.sub(_unescape, text))))
            for start in range(len(said) - size + 1)
        )

    def _start_timer(self, seconds: float) -> None:
        self.stop_timer()
        expire = partial(self.output.put_nowait, TimeoutError())
        self._timer = SilenceTimer(expire)
        self._timer.start(seconds)

    async def _run(self, summarizer: Summarizer) -> None:
        source: Any = None
        try:
            source = summarizer.summarize(self._passage)
            source = aiter(source)
            await self._read(source)
            if self._reviewer is not None:
                await self._have_reviewed(self._reviewer)
            self._end(None)
        except BaseException as error:  # noqa: BLE001 -- a user's code may raise anything
            self._end(error)
            let_pass(error)
        finally:
            await self._close(source)

    def _end(self, outcome: Outcome) -> None:
        self.ended = True
        self.output.put_nowait(outcome)

    async def _read(self, pieces: AsyncIterator[Any]) -> None:
        while not self._is_over and (piece := await anext(pieces, _END)) is not _END:
            if isinstance(piece, SummarizerUsage):
                self.usage = checked_usage(piece)
                self._cleaner.stopped = piece.stopped
            elif isinstance(piece, str):
                await self._take(str.__getitem__(piece, slice(self._remaining_chars)))
            else:
                raise TypeError(f"summarize yielded {type(piece).__name__}, which is not text")
            if isinstance(self._cleaner, Cleaner):  # a user's, which may never wait for anything
                await asyncio.sleep(0)
        self._clean(self._plain_text.feed("", last=True), last=True)
        if not self._has_text:
            raise SummarizerError("empty", "The summarizer returned no text.")

    async def _take(self, piece: str) -> None:
        self._remaining_chars -= len(piece)
        piece = self._plain_text.feed(piece)
        for start in range(0, len(piece), SLICE_CHARS):
            if start:
                await asyncio.sleep(0)
            self._clean(piece[start : start + SLICE_CHARS])

    @property
    def _is_over(self) -> bool:
        """Nothing more needs to be written."""
        return self._cleaner.is_over or self._remaining_chars <= 0

    def _clean(self, text: str, *, last: bool = False) -> None:
        self._put(self._cleaner.feed(text, last=last))
        if self._cleaner.failure is not None:
            raise self._cleaner.failure

    def _put(self, text: str) -> None:
        """Pass text on, without whitespace before the first word of the part."""
        text = text if self._has_text else text.lstrip()
        self._has_text = self._has_text or bool(text)
        if text and self._reviewer is None:
            self.output.put_nowait(text)
        elif text:
            self._unreviewed.append(text)

    async def _have_reviewed(self, reviewer: Reviewer) -> None:
        self.review_began = monotonic()
        if reviewer.timeout is not None:
            self._start_timer(reviewer.timeout)
        elif self._timer is None:
            self._start_timer(self._timeout)
        approved = await _result_of(reviewer.review(self.draft), "the review")
        if not (approved is None or isinstance(approved, str)):
            raise TypeError(f"the review returned {type(approved).__name__}, which is not text")
        shown = replace_halves(approved or "")
        self.verdict = "passed" if shown.strip() else "withheld"
        if self.verdict == "passed":
            self.output.put_nowait(shown)

    async def _close(self, source: Any) -> None:
        """Close what `summarize` returned, whatever that is."""
        try:
            if inspect.iscoroutine(source):
                source.close()
            elif (aclose := getattr(source, "aclose", None)) is not None:
                await _result_of(aclose(), "aclose")
        except BaseException as error:  # noqa: BLE001 -- as above
            self.close_error = error
            let_pass(error)


def _cleaner_for(summarizer: Summarizer, passage: Passage) -> Cleaner | Checks:
    """Return what cleans a summarizer's text, and checks it if a model writes it."""
    if isinstance(summarizer, CheckedSummarizer):
        return summarizer.new_checks(passage)
    return Cleaner()


class PlainText:
    """Makes the pieces of a text such that they can be written: a user's may end within a
    character, hold half of one, or be of a class of its own."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-16-le")("replace")

    def feed(self, piece: str, *, last: bool = False) -> str:
        if piece.isascii() and not self._decoder.getstate()[0]:
            return piece
        return self._decoder.decode(str.encode(piece, "utf-16-le", "surrogatepass"), last)


def let_pass(error: BaseException) -> None:
    """Raise what is not to be caught: it is meant for the whole process."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error


def _words(text: str) -> str:
    return " ".join(text.split())


def _unescape(found: re.Match[str]) -> str:
    if found[1] is None:
        return chr(int(found[2] or found[3] or "20", 16))
    encoded = bytes.fromhex(found[1].replace("\\x", ""))
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        return encoded.decode("latin-1")


async def _result_of(returned: Any, caller: str) -> Any:
    """Await what a user's function returned, which may have been written without `async`."""
    if not inspect.isawaitable(returned):
        raise TypeError(f"{caller} returned {type(returned).__name__}, which cannot be awaited")
    return await returned


def checked_usage(usage: SummarizerUsage) -> SummarizerUsage:
    """Return the usage without what cannot be one."""
    tokens = usage.tokens
    if isinstance(tokens, Tokens):
        tokens = Tokens(*(count if _is_count(count) else None for count in tokens))
    else:
        tokens = None
    return SummarizerUsage(tokens, usage.model if is_name(usage.model) else None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= MAX_TOKENS
