"""Clean a summarizer's output.

A summary is made from text that third parties may have written and is shown where Markdown is
rendered, so a link or an image in it could leak private data to another server. A link is replaced
by its text and an image by its description; URLs and tags are removed. Where a removal would join
two characters into a new construct, such as `](` from `]<b>(`, a space is inserted between them,
and also into anything that merely looks like a tag. Before that, what a terminal would obey and
what nobody sees is removed: escape sequences, control characters, characters that turn the
direction of text or carry hidden data.

The text passes through a chain of stages, one per construct. The last one for constructs changes
nothing: it only buffers a bold title until it is complete. What a model wrote then passes through
the stages of `form.py`.
"""

from __future__ import annotations

import re

from abridge.core.styles import SummaryStyle
from abridge.errors import SummarizerError
from abridge.summarizers.constructs import ConstructStage, beginnings, construct
from abridge.summarizers.form import MAX_TITLE, OpeningStage, form_stages

MAX_TAG = 200
MAX_LINK_TEXT = 200
MAX_URL = 600
MAX_NESTED = 100
MAX_ESCAPE = 600
"""Maximum characters of: a tag's attributes; a link's text; a URL or a link's target; a
parenthesized section within a target; the text of an escape sequence."""

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

_URL_CHAR = r"[!#-;=?-_a-~]"

_URL_LAST_CHAR = r"[#-&+\-/0-9=@-Z\\^a-z~]"

_LINK_TEXT = rf"\[([^\[\]]{{0,{MAX_LINK_TEXT}}})\]"

_TARGET = rf"\([^()\n]{{0,{MAX_URL}}}(?:\([^()\n]{{0,{MAX_NESTED}}}\)[^()\n]{{0,{MAX_NESTED}}})?\)"

_PARTIAL_LINK = (
    rf"\[[^\[\]]{{0,{MAX_LINK_TEXT}}}(?:\](?:\([^()\n]{{0,{MAX_URL}}}"
    rf"(?:\([^()\n]{{0,{MAX_NESTED}}}(?:\)[^()\n]{{0,{MAX_NESTED}}})?)?)?)?"
)


_ESCAPE_TEXT = rf"[^\x07\x1b\x9c]{{0,{MAX_ESCAPE}}}"

_INVISIBLE = (
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Control characters but tab and line feed, marks that turn the direction of text, and characters
that show nothing. Variation selectors 15 and 16 choose how an emoji looks, and stay."""

_UNSEEN = re.compile(rf"{_INVISIBLE}|[\u200c\u200d]")

CONSTRUCTS = (
    construct(  # escape sequences of terminals
        r"[\x1b\x90\x98\x9b\x9d-\x9f]",
        r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
        rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_ESCAPE_TEXT}(?:\x07|\x1b\\|\x9c)"
        r"|\x1b[ -/]{0,8}[0-~]",
        r"\x1b[ -/]{0,8}|(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}"
        rf"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_ESCAPE_TEXT}\x1b?",
        "",
    ),
    construct(_INVISIBLE, _INVISIBLE, r"(?!)", ""),
    construct(  # joiners: one joins emoji or shapes letters, several in a row only carry data
        r"[\u200c\u200d]", r"[\u200c\u200d](?=[\u200c\u200d])", r"[\u200c\u200d]", ""
    ),
    construct(  # tags, comments, declarations; for a tag quoted as code, its name stays
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
    construct("!", rf"!{_LINK_TEXT}{_TARGET}", rf"!(?:{_PARTIAL_LINK})?", r"\1"),
    construct(r"\[", rf"{_LINK_TEXT}{_TARGET}", _PARTIAL_LINK, r"\1"),
    construct(  # URLs, in angle brackets or bare
        r"<|[hfw](?=tt|tp|il|s[s:]|ww|[tisw]?\Z)",
        rf"<?(?:{_SCHEME}|www\.(?=[a-z0-9]))(?:{_URL_CHAR}{{0,{MAX_URL}}}{_URL_LAST_CHAR})?>?",
        rf"<?(?:{beginnings(_URL_STARTS)}|{_SCHEME}{_URL_CHAR}{{0,{MAX_URL + 1}}}"
        rf"|www\.{_URL_CHAR}{{0,{MAX_URL + 1}}})|<",
        "",
    ),
    construct(  # character sequences to break up with a space
        r"[\]:<]",
        rf"(\](?=[(:])|:(?=//)|<(?=[a-z/!?])(?!(?!script|(?:{_TAG_NAMES})>)[a-z]\w{{0,30}}>))",
        r"\]|:/?|<(?:[a-z]\w{0,30})?",
        r"\1 ",
    ),
    construct(  # a bold title
        r"\*",
        rf"(\*\*(?![\s*])[^*\n]{{1,{MAX_TITLE}}}\*\*)",
        rf"\*\*?|\*\*(?![\s*])[^*\n]{{0,{MAX_TITLE}}}\*?",
        r"\1",
    ),
)


class Cleaner:
    """Clean one text that arrives in pieces.

    With a `style`, the text is a part that a model wrote, and is brought into that style's form.
    """

    failure: SummarizerError | None = None
    is_over = False
    stopped = ""
    """Those of `Checks`: a text that is only cleaned is never found at fault."""

    def __init__(self, style: SummaryStyle | None = None) -> None:
        self._stages: list[ConstructStage | OpeningStage] = [
            *map(ConstructStage, CONSTRUCTS),
            *([] if style is None else form_stages(style)),
        ]

    def feed(self, text: str, *, last: bool = False) -> str:
        for stage in self._stages:
            text = stage.feed(text, last=last)
        return text


def clean(text: str) -> str:
    """Clean a complete text."""
    return Cleaner().feed(text, last=True) if _may_hold_construct(text) else text


def _may_hold_construct(text: str) -> bool:
    """Return false for most texts: `CONSTRUCTS` change nothing in them, which takes ten times as
    long to find out."""
    return (
        "<" in text
        or "[" in text
        or "]" in text
        or "://" in text
        or "www." in text.lower()
        or _UNSEEN.search(text) is not None
    )
