"""Takes links, images and HTML out of what a summarizer says.

A summary is made of text that others may have written, and is shown where Markdown is rendered: a
link or an image in it can carry off what the reader would not give away. So links become their
text, images their description, addresses and tags nothing. What taking out may put together, such
as `](` out of `]<b>(`, is parted by a space, and so is what only looks like a tag.

Each stage knows one construct, whole and begun. Since one may begin in one piece of text and end in
another, a stage holds back what may become one until that is decided; each construct has a length
beyond which it is none, so that what is held is bounded. The last stage changes nothing: it holds
back a bold title until it is closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TAG = 200
TEXT = 200
ADDRESS = 600
NESTED = 100
TITLE = 120
"""Characters, at most, of a tag's attributes, a link's text, an address or a link's target, what is
in parentheses within a target, and a title."""

REACH = 1200
"""Characters from the end of a text within which a construct may have begun."""

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
    """What is looked for: `whole`, and `begun` at the end of the text so far. `instead` is what it
    becomes, in terms of the match of `whole`."""

    whole: re.Pattern[str]
    begun: re.Pattern[str]
    instead: str


def _construct(whole: str, begun: str, instead: str) -> Construct:
    flags = re.IGNORECASE | re.DOTALL
    return Construct(re.compile(whole, flags), re.compile(rf"(?:{begun})\Z", flags), instead)


CONSTRUCTS = (
    _construct(  # tags, comments, declarations; of a tag quoted as code its name is kept
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
    _construct(  # addresses, in angle brackets or bare
        rf"<?(?:{_SCHEME}|www\.(?=[a-z0-9]))(?:{_IN_ADDRESS}{{0,{ADDRESS}}}{_END_OF_ADDRESS})?>?",
        rf"<?(?:{_BEGINNINGS}|{_SCHEME}{_IN_ADDRESS}{{0,{ADDRESS + 1}}}"
        rf"|www\.{_IN_ADDRESS}{{0,{ADDRESS + 1}}})|<",
        "",
    ),
    _construct(  # what must not stand together
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
        """What of the text so far is decided, without the construct."""
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
    """Cleans one text that comes in pieces."""

    _stages: list[_Stage] = field(default_factory=lambda: list(map(_Stage, CONSTRUCTS)))

    def feed(self, text: str) -> str:
        for stage in self._stages:
            text = stage.feed(text)
        return text

    def end(self) -> str:
        """The rest, once nothing more comes."""
        text = ""
        for stage in self._stages:
            text = stage.feed(text, last=True)
        return text

    @property
    def held(self) -> int:
        """Characters that wait for what comes after them."""
        return sum(len(stage.held) for stage in self._stages)


def clean(text: str) -> str:
    """A whole text, cleaned."""
    cleaner = Cleaner()
    return cleaner.feed(text) + cleaner.end()
