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

TAG = 200
TEXT = 200
ADDRESS = 600
NESTED = 100
TITLE = 120
"""Maximum characters of: a tag's attributes; a link's text; a URL or a link's target; a
parenthesized section within a target; a bold title."""

REACH = 1200
"""Characters before the end of the text in which to look for the start of a partial construct."""

_NAMES = (
    "a|abbr|address|article|aside|audio|b|base|bdo|big|blockquote|body|br|button|canvas|caption"
    "|center|cite|code|col|colgroup|dd|del|details|dialog|div|dl|dt|em|embed|fieldset|figcaption"
    "|figure|font|footer|form|frame|frameset|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|kbd"
    "|label|legend|li|link|main|map|mark|marquee|math|menu|meta|nav|noscript|object|ol|optgroup"
    "|option|p|picture|pre|progress|q|ruby|s|samp|script|section|select|small|source|span|strike"
    "|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|think"
    "|thinking|thought|title|tr|track|tt|u|ul|var|video|wbr"
)
_SCHEME = r"(?:https?|ftps?|wss?|file)://"
_STARTS = ("https://", "http://", "ftps://", "ftp://", "wss://", "ws://", "file://", "www.")
_BEGINNINGS = "|".join(
    sorted({re.escape(word[:size]) for word in _STARTS for size in range(1, len(word))})
)
_IN_ADDRESS = r"[!#-;=?-_a-~]"
_END_OF_ADDRESS = r"[#-&+\-/0-9=@-Z\\^a-z~]"
_LINK = rf"\[([^\[\]]{{0,{TEXT}}})\]"
_TARGET = rf"\([^()\n]{{0,{ADDRESS}}}(?:\([^()\n]{{0,{NESTED}}}\)[^()\n]{{0,{NESTED}}})?\)"
_LINK_BEGUN = (
    rf"\[[^\[\]]{{0,{TEXT}}}(?:\](?:\([^()\n]{{0,{ADDRESS}}}"
    rf"(?:\([^()\n]{{0,{NESTED}}}(?:\)[^()\n]{{0,{NESTED}}})?)?)?)?"
)


@dataclass(slots=True, frozen=True)
class Construct:
    """A construct to remove."""

    whole: re.Pattern[str]
    begun: re.Pattern[str]  # a partial one at the end of the text so far
    instead: str  # replacement template, expanded with the match of `complete`


def _construct(whole: str, begun: str, instead: str) -> Construct:
    flags = re.IGNORECASE | re.DOTALL
    return Construct(re.compile(whole, flags), re.compile(rf"(?:{begun})\Z", flags), instead)


CONSTRUCTS = (
    _construct(  # tags, comments, declarations; for a tag quoted as code, its name stays
        rf"(`)</?({_NAMES})(?:[\s/][^<>`]{{0,{TAG}}})?>(`)"
        rf"|</?(?:{_NAMES})\s{{0,9}}/?>"
        rf"|</?(?:{_NAMES})[\s/](?=[^<>=]{{0,{TAG}}}=)[^<>]{{0,{TAG}}}>"
        rf"|<!--(?:(?!-->).){{0,{TAG}}}-->|<[!?][^<>]{{0,{TAG}}}>",
        rf"`(?:</?(?:{_NAMES})(?:[\s/][^<>`]{{0,{TAG}}})?>)?"
        rf"|`?</?(?:{_NAMES})[\s/][^<>]{{0,{TAG}}}|`?</?[a-z]{{0,10}}[1-6]?"
        rf"|<!--(?:(?!-->).){{0,{TAG + 2}}}|<[!?][^<>]{{0,{TAG}}}",
        r"\1\2\3",
    ),
    _construct(rf"!{_LINK}{_TARGET}", rf"!(?:{_LINK_BEGUN})?", r"\1"),
    _construct(rf"{_LINK}{_TARGET}", _LINK_BEGUN, r"\1"),
    _construct(  # URLs, in angle brackets or bare
        rf"<?(?:{_SCHEME}|www\.(?=[a-z0-9]))(?:{_IN_ADDRESS}{{0,{ADDRESS}}}{_END_OF_ADDRESS})?>?",
        rf"<?(?:{_BEGINNINGS}|{_SCHEME}{_IN_ADDRESS}{{0,{ADDRESS + 1}}}"
        rf"|www\.{_IN_ADDRESS}{{0,{ADDRESS + 1}}})|<",
        "",
    ),
    _construct(  # character sequences to break up with a space
        rf"(\](?=[(:])|:(?=//)|<(?=[a-z/!?])(?!(?!script|(?:{_NAMES})>)[a-z]\w{{0,30}}>))",
        r"\]|:/?|<(?:[a-z]\w{0,30})?",
        r"\1 ",
    ),
    _construct(  # a bold title
        rf"(\*\*(?![\s*])[^*\n]{{1,{TITLE}}}\*\*)",
        rf"\*\*?|\*\*(?![\s*])[^*\n]{{0,{TITLE}}}\*?",
        r"\1",
    ),
)


@dataclass(slots=True)
class _Stage:
    construct: Construct
    held: str = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        """Return the text decided so far, with the construct removed; buffer the rest."""
        text = self.held + text
        done, place = [], 0
        begun = None if last else self._begun(text, 0)
        while found := self.construct.whole.search(text, place):
            if begun is not None and found.start() >= begun.start():
                break
            done += [text[place : found.start()], found.expand(self.construct.instead)]
            place = found.end()
            if begun is not None and place > begun.start():
                begun = self._begun(text, place)
        end = len(text) if begun is None else begun.start()
        self.held = text[end:]
        return "".join([*done, text[place:end]])

    def _begun(self, text: str, place: int) -> re.Match[str] | None:
        return self.construct.begun.search(text, max(place, len(text) - REACH))


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
    def held(self) -> int:
        """Number of characters buffered until more text arrives."""
        return sum(len(stage.held) for stage in self._stages)


def clean(text: str) -> str:
    """Clean a complete text."""
    cleaner = Cleaner()
    return cleaner.feed(text) + cleaner.end()
