"""Remove links, images and HTML from a summarizer's output.

A summary is made from text that third parties may have written and is shown where Markdown is
rendered, so a link or an image in it could leak private data to another server. A link is replaced
by its text and an image by its description; URLs and tags are removed. Where a removal would join
two characters into a new construct, such as `](` from `]<b>(`, a space is inserted between them,
and also into anything that merely looks like a tag.

The text passes through a chain of stages, one per construct. A construct may start in one piece of
text and end in a later one, so each stage buffers a partial match until it can decide. Every
construct has a maximum length, which bounds the buffer. The last stage changes nothing: it only
buffers a bold title until it is complete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MAX_TAG = 200
MAX_LINK_TEXT = 200
MAX_URL = 600
MAX_NESTED = 100
MAX_TITLE = 120
"""Maximum characters of: a tag's attributes; a link's text; a URL or a link's target; a
parenthesized section within a target; a bold title."""

LOOKBACK_CHARS = 1200
"""Characters before the end of the text in which to look for the start of a partial construct."""

_TAG_NAMES = (
    "a|abbr|address|article|aside|audio|b|base|bdo|big|blockquote|body|br|button|canvas|caption"
    "|center|cite|code|col|colgroup|dd|del|details|dialog|div|dl|dt|em|embed|fieldset|figcaption"
    "|figure|font|footer|form|frame|frameset|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd"
    "|label|legend|li|link|main|map|mark|marquee|math|menu|meta|nav|noscript|object|ol|optgroup"
    "|option|p|picture|pre|progress|q|ruby|s|samp|script|section|select|small|source|span|strike"
    "|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|think"
    "|thinking|thought|title|tr|track|tt|u|ul|var|video|wbr"
)

_SCHEME = r"(?:https?|ftps?|wss?|file)://"

_URL_STARTS = ("https://", "http://", "ftps://", "ftp://", "wss://", "ws://", "file://", "www.")

_PARTIAL_STARTS = "|".join(
    sorted({re.escape(word[:size]) for word in _URL_STARTS for size in range(1, len(word))})
)

_URL_CHAR = r"[!#-;=?-_a-~]"

_URL_LAST_CHAR = r"[#-&+\-/0-9=@-Z\\^a-z~]"

_LINK_TEXT = rf"\[([^\[\]]{{0,{MAX_LINK_TEXT}}})\]"

_TARGET = rf"\([^()\n]{{0,{MAX_URL}}}(?:\([^()\n]{{0,{MAX_NESTED}}}\)[^()\n]{{0,{MAX_NESTED}}})?\)"

_PARTIAL_LINK = (
    rf"\[[^\[\]]{{0,{MAX_LINK_TEXT}}}(?:\](?:\([^()\n]{{0,{MAX_URL}}}"
    rf"(?:\([^()\n]{{0,{MAX_NESTED}}}(?:\)[^()\n]{{0,{MAX_NESTED}}})?)?)?)?"
)


@dataclass(slots=True, frozen=True)
class Construct:
    """A construct to remove."""

    first: re.Pattern[str]  # its first character
    complete: re.Pattern[str]
    partial: re.Pattern[str]  # a partial one at the end of the text so far
    replacement: str  # replacement template, expanded with the match of `complete`


def _compile(first: str, complete: str, partial: str, replacement: str) -> Construct:
    flags = re.IGNORECASE | re.DOTALL
    return Construct(
        re.compile(first, flags),
        re.compile(complete, flags),
        re.compile(rf"(?:{partial})\Z", flags),
        replacement,
    )


CONSTRUCTS = (
    _compile(  # tags, comments, declarations; for a tag quoted as code, its name stays
        "[`<]",
        rf"(`)</?({_TAG_NAMES})(?:[\s/][^<>`]{{0,{MAX_TAG}}})?>(`)"
        rf"|</?(?:{_TAG_NAMES})\s{{0,9}}/?>"
        rf"|</?(?:{_TAG_NAMES})[\s/](?=[^<>=]{{0,{MAX_TAG}}}=)[^<>]{{0,{MAX_TAG}}}>"
        rf"|<!--(?:(?!-->).){{0,{MAX_TAG}}}-->|<[!?][^<>]{{0,{MAX_TAG}}}>",
        rf"`(?:</?(?:{_TAG_NAMES})(?:[\s/][^<>`]{{0,{MAX_TAG}}})?>)?"
        rf"|`?</?(?:{_TAG_NAMES})[\s/][^<>]{{0,{MAX_TAG}}}|`?</?[a-z]{{0,10}}[1-6]?"
        rf"|<!--(?:(?!-->).){{0,{MAX_TAG + 2}}}|<[!?][^<>]{{0,{MAX_TAG}}}",
        r"\1\2\3",
    ),
    _compile("!", rf"!{_LINK_TEXT}{_TARGET}", rf"!(?:{_PARTIAL_LINK})?", r"\1"),
    _compile(r"\[", rf"{_LINK_TEXT}{_TARGET}", _PARTIAL_LINK, r"\1"),
    _compile(  # URLs, in angle brackets or bare
        "[<hfw]",
        rf"<?(?:{_SCHEME}|www\.(?=[a-z0-9]))(?:{_URL_CHAR}{{0,{MAX_URL}}}{_URL_LAST_CHAR})?>?",
        rf"<?(?:{_PARTIAL_STARTS}|{_SCHEME}{_URL_CHAR}{{0,{MAX_URL + 1}}}"
        rf"|www\.{_URL_CHAR}{{0,{MAX_URL + 1}}})|<",
        "",
    ),
    _compile(  # character sequences to break up with a space
        r"[\]:<]",
        rf"(\](?=[(:])|:(?=//)|<(?=[a-z/!?])(?!(?!script|(?:{_TAG_NAMES})>)[a-z]\w{{0,30}}>))",
        r"\]|:/?|<(?:[a-z]\w{0,30})?",
        r"\1 ",
    ),
    _compile(  # a bold title
        r"\*",
        rf"(\*\*(?![\s*])[^*\n]{{1,{MAX_TITLE}}}\*\*)",
        rf"\*\*?|\*\*(?![\s*])[^*\n]{{0,{MAX_TITLE}}}\*?",
        r"\1",
    ),
)


@dataclass(slots=True)
class _Stage:
    construct: Construct
    buffer: str = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        """Return the text decided so far, with the construct removed; buffer the rest."""
        text = self.buffer + text
        pieces, position = [], 0
        partial = None if last else self._find_partial(text, 0)
        while match := self._find_complete(text, position, partial):
            pieces += [text[position : match.start()], match.expand(self.construct.replacement)]
            position = match.end()
            if partial is not None and position > partial.start():
                partial = self._find_partial(text, position)
        end = len(text) if partial is None else partial.start()
        self.buffer = text[end:]
        return "".join([*pieces, text[position:end]])

    def _find_complete(
        self, text: str, position: int, partial: re.Match[str] | None
    ) -> re.Match[str] | None:
        """Find the first complete construct, if it starts before the partial one.

        Where that starts, or after it, nothing is looked for: it will be when more text arrives, so
        that no place is looked at again with each piece.
        """
        complete = self.construct.complete
        if partial is None:
            return complete.search(text, position)
        firsts = self.construct.first.finditer(text, position, partial.start())
        matches = (complete.match(text, first.start()) for first in firsts)
        return next(filter(None, matches), None)

    def _find_partial(self, text: str, position: int) -> re.Match[str] | None:
        return self.construct.partial.search(text, max(position, len(text) - LOOKBACK_CHARS))


@dataclass(slots=True)
class Cleaner:
    """Clean one text that arrives in pieces."""

    _stages: list[_Stage] = field(default_factory=lambda: list(map(_Stage, CONSTRUCTS)))

    def feed(self, text: str) -> str:
        for stage in self._stages:
            text = stage.feed(text)
        return text

    def end(self) -> str:
        """Return the rest at the end of the text."""
        text = ""
        for stage in self._stages:
            text = stage.feed(text, last=True)
        return text

    @property
    def buffered_chars(self) -> int:
        """Number of characters buffered until more text arrives."""
        return sum(len(stage.buffer) for stage in self._stages)


def clean(text: str) -> str:
    """Clean a complete text."""
    cleaner = Cleaner()
    return cleaner.feed(text) + cleaner.end()
