"""Make the title of a part: what it is about, as a status line would say it.

A title is made, not cut: "I need to compare the two plans" gives "Comparing the two plans". It is
in the language of the sentences. Of all that they give, the one is taken that is rated best.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.privacy import find_private
from abridge.summarizers.extractive.titles.languages import Language, language_of
from abridge.summarizers.extractive.titles.phrases import Draft, plain
from abridge.summarizers.extractive.titles.rating import Rating, TitleSource

MAX_SOURCES = 40  # sentences and headings that are read
MAX_SOURCE_CHARS = 400  # characters of a sentence that are read
MAX_TAKEN = 60  # earlier titles that a title must differ from, the latest of them
MAX_TITLE_CHARS = 72
MAX_TITLE_WORDS = 13
MAX_WIDE_TITLE_CHARS = 24  # maximum characters of a title in Chinese, Japanese or Korean
LEAST = -9.0  # rate of no title
PRIVATE_RATE = 0.0  # that a title needs of a passage that is private in part

_WIDE_LETTER = lazy_compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # a syllable or a word
_FORBIDDEN_CHARS = lazy_compile(r"[*`\\|<>{}\[\]#~^=@$\x00-\x1f]|__|://")
_PAIRS = (("(", ")"), ("“", "”"), ("«", "»"), ("（", "）"), ("「", "」"))
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[A-Z](?<=[\w:,\"“] [A-Z])\w+")  # fast to find: starts with a character
_GUARDED = re.compile(rf"{_NAME.pattern}|\b\w*\d\w*")
_PARTICLE = r"(?:out|into|through|at|for|on|up|with|about)\b"
_TOPIC = lazy_compile(
    rf"(?:[A-Z][a-z-]+ing\b(?: {_PARTICLE})* |(?![A-Z][a-z-]+ing\b))"
    rf"(?!{_PARTICLE}|that\b|it\b|other |another |(?:the|an?) \w+$)"
    r"(?P<topic>(?:\w+, )?[\w'’.-]+(?: [\w'’.-]+)*)"
)
"""A title, in English without its verb; none that says what is concluded, or names nothing."""


def make_title(
    sources: Sequence[TitleSource],
    taken: Sequence[str],
    *,
    is_last: bool = False,
    private: Collection[str] | None = None,
) -> str:
    """Make a title of at most `MAX_TITLE_CHARS`, without markup.

    `taken` are the titles of earlier parts, which are not repeated as long as there is another.
    `private` are sentences of the passage that may not be shown, nor the names that they name; None
    if they are to be found among the sources.
    """
    if private is None:
        private = find_private([source.text for source in sources])
        sources = [source for source in sources if source.text not in private]
    sources = [
        one._replace(text=one.text[:MAX_SOURCE_CHARS]) if len(one.text) > MAX_SOURCE_CHARS else one
        for one in sources[:MAX_SOURCES]
    ]
    language = language_of([source.text for source in sources])
    guarded = frozenset(name for text in private for name in _GUARDED.findall(text))
    earlier = taken[-MAX_TAKEN:]
    last_used = {title_key(title): position for position, title in enumerate(earlier)}

    def allow(title: str) -> bool:
        is_new = title_key(title) not in last_used
        return is_new and is_presentable(title) and guarded.isdisjoint(_WORD.findall(title))

    rating = Rating(sources, is_first=not taken, is_last=is_last)
    title, most = "", LEAST
    for draft, source in _drafts(language, sources, earlier):
        rate = rating.rate(draft, source)
        if rate > most and allow(draft.title):
            title, most = draft.title, rate
    if private and most < PRIVATE_RATE and allow(language.on_request):
        return language.on_request
    if title:
        return title
    return min(language.last_resort, key=lambda title: last_used.get(title_key(title), -1))


def _drafts(
    language: Language, sources: Sequence[TitleSource], earlier: Sequence[str]
) -> Iterator[tuple[Draft, TitleSource | None]]:
    """Yield the titles that each sentence gives, the last one's first, as of two that are rated
    alike the first is taken; then those that go on with the first topic of all."""
    names = frozenset(_NAME.findall("\n".join([source.text for source in sources])))
    for source in reversed(sources):
        for draft in language.read(plain(source.text), names, is_told=source.is_told):
            yield draft, source
    topics = filter(None, map(_TOPIC.fullmatch, earlier))
    for found in islice(topics, 1):
        for form in language.goes_on:
            yield Draft("again", form, found["topic"]), None


def is_presentable(title: str) -> bool:
    """Return true if `title` may be shown: short, and without markup."""
    limit = MAX_WIDE_TITLE_CHARS if _WIDE_LETTER.search(title) else MAX_TITLE_CHARS
    return (
        2 < len(title) <= limit
        and not _FORBIDDEN_CHARS.search(title)
        and title.count(" ") < MAX_TITLE_WORDS
        and title.count('"') % 2 == 0
        and all(title.count(opening) == title.count(closing) for opening, closing in _PAIRS)
    )


def title_key(title: str) -> str:
    """Return what two titles have in common that read the same."""
    return "".join(_WORD.findall(title.casefold()))
