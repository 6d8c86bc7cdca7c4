"""Bring what a model wrote into the form of its style.

Models add what they were not asked for: a preamble, a heading in place of a bold title or no mark
at all, a fence around everything, bullets. They also slip into the third person. All of that can be
set right without changing what is said. A summary that begins as it should is not held up, except
that its title comes whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from abridge.core.segmenter import WIDE_LETTERS, text_size
from abridge.core.styles import STYLES, Style, SummaryStyle
from abridge.lazy_re import lazy_compile
from abridge.summarizers.constructs import ConstructStage, construct
from abridge.summarizers.voice import FIRST_PERSON

MAX_TITLE = 120
"""Maximum characters of a bold title."""

MAX_PLAIN_TITLE = 80
"""Maximum size of a first line that is taken for a title though nothing marks it as one."""

OPENING_CHARS = 200
"""Characters at the beginning of a text in which its title, or its first words, must be found."""

MAX_PREAMBLES = 3

_BEGINS = r"(?<![^\n].)"  # stands after a character that begins a line, or a piece

_FENCE = r"(?<=\n)[ \t]{0,8}(?:```|~~~)[\w+-]{0,20}[ \t]{0,8}"

_BULLET = r"(?<=\n)[ \t]{0,8}[-*+•–][ \t]{1,4}"

_HEADING = r"(?<=\n)[ \t]{0,3}#{1,6}[ \t]{1,4}"

FENCE = construct(
    rf"[ \t`~]{_BEGINS}", rf"{_FENCE}(?:\n|\Z)", rf"(?<=\n)[ \t]{{0,8}}[`~]{{0,3}}|{_FENCE}", ""
)
"""A line that opens or closes a fence around code, or around the whole summary."""

BULLET = construct(
    rf"[ \t*+•–-]{_BEGINS}", rf"{_BULLET}(?=[^\s\d])", rf"(?<=\n)[ \t]{{0,8}}[-*+•–]?|{_BULLET}", ""
)
"""What a line of a list begins with."""

_SECTIONS = "told|before|titles|reasoning|text|end"

MARK = construct(
    r"[\[<`~]",
    rf"\[[0-9a-f]{{6}} (?:{_SECTIONS})\]"
    r"|\[(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{6}(?: [a-z]{1,12}\]|\]|(?![0-9a-z]))"
    r"|<\|[\w ]{1,40}\|>|</?s>|\[/?INST\]|`{3,9}|~{3,9}",
    r"\[[0-9a-f]{0,6}(?: [a-z]{0,12})?|<\|?(?:[\w ]{0,40}\|?)?|</?s?|\[/?[INST]{0,4}"
    r"|`{1,9}|~{1,9}",
    " ",
)
"""A line between which the prompt's material stands, a token of a chat template, or what is left of
a fence. A blank comes in its place, so that what was around it does not become one."""

HEADING = construct(
    rf"[ \t#]{_BEGINS}",
    rf"{_HEADING}(?:\*\*)?([^*\n]{{1,{MAX_TITLE}}}?)(?:\*\*)?[ \t#]{{0,8}}(?=\n|\Z)",
    rf"(?<=\n)[ \t]{{0,3}}#{{0,6}}|{_HEADING}[^\n]{{0,{MAX_TITLE + 12}}}",
    r"**\1**",
)
"""A heading, which becomes bold."""

_BOLD = lazy_compile(rf"\*\*\s*([^*\n]{{1,{MAX_TITLE}}}?)\s*\*\*")

_BOLD_TEXT = lazy_compile(rf"\*\*[^*\n]{{1,{MAX_TITLE}}}")

_BOLD_START = lazy_compile(rf"\*\Z|\*\*[^*\n]{{0,{MAX_TITLE}}}\*?\Z")

_AGREEMENTS = (
    *("sure", "sure thing", "certainly", "of course", "absolutely", "okay", "ok", "alright"),
    *("gladly", "natürlich", "gerne", "klar", "bien sûr", "claro", "certo"),
    *("好的", "当然", "當然", "はい", "もちろん", "もちろんです"),
)

_ANNOUNCEMENTS = (
    *("here's", "here’s", "here is", "here are", "below is", "this is", "the following is"),
    *("hier ist", "hier kommt", "voici", "aquí está", "ecco"),
    *("以下是", "下面是", "这是", "這是", "以下は", "こちらが", "다음은"),
)

_TITLE_NOUNS = ("title", "titel", "titre", "título", "titolo", "标题", "標題", "タイトル", "제목")

_SUMMARY_NOUNS = (
    *("summary", "recap", "overview", "zusammenfassung", "résumé", "resumen", "riassunto"),
    *("摘要", "总结", "總結", "要約", "まとめ", "요약"),
)

_OPENINGS = (*_AGREEMENTS, *_ANNOUNCEMENTS, *_TITLE_NOUNS, *_SUMMARY_NOUNS)
"""What a preamble or a label may begin with."""


def _any(words: Iterable[str]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, longest_first))})"


_AGREEMENT, _ANNOUNCEMENT = _any(_AGREEMENTS), _any(_ANNOUNCEMENTS)

_TITLE_NOUN, _SUMMARY_NOUN = _any(_TITLE_NOUNS), _any(_SUMMARY_NOUNS)

_PREAMBLE = lazy_compile(
    rf"{_AGREEMENT}(?:[.!。！]+(?=\s|\w)|[,，、]\s*(?={_ANNOUNCEMENT}))\s*"
    rf"|{_ANNOUNCEMENT}[^\n:：*]{{0,120}}(?:{_SUMMARY_NOUN}|{_TITLE_NOUN})[^\n:：*]{{0,60}}[:：]\s*"
    rf"|{_ANNOUNCEMENT}[^\n*]{{0,150}}[:：][ \t]*\n\s*"
    rf"|{_SUMMARY_NOUN}\s*[:：]\s*",
    re.IGNORECASE,
)

_TITLE_LABEL = lazy_compile(rf"{_TITLE_NOUN}\s*[:：]\s*", re.IGNORECASE)

_LABEL = lazy_compile(rf"(?:{_SUMMARY_NOUN}|{_TITLE_NOUN})\s*[:：]\Z", re.IGNORECASE)

_LABEL_END = ":： "

_SENTENCE_END = lazy_compile(r"[.!?…][\"'”’)]?\s|[。！？]")

_TITLE_WORD = lazy_compile(
    rf"(?i:[a-z]+ing|[a-zäöüß]+ung)(?=\s)|(?![我你他她它用私])[{WIDE_LETTERS}]"
)
"""What a title that nothing marks begins with: an English gerund, a German noun of action, or a
character of a script without spaces. Other text is not held up to see whether it is one."""

_WORD = lazy_compile(r"[^\W\d_]+\Z")

_TITLE_EDGE = ' \t*_#:：.。"“”«»'


class OpeningStage:
    """Give a text the opening of its style: a bold title and a blank line, or neither.

    It looks at one character after the other until the opening is decided, so that the result does
    not depend on how the text is split.
    """

    def __init__(self, style: Style) -> None:
        self._style = style
        self._state: Literal["opening", "after title", "text", "closed"] = "opening"
        self._preambles = 0
        self.buffer = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        shown, position = "", 0
        bold = _BOLD_TEXT.match(self.buffer + text) if self._state == "opening" else None
        if bold and bold.end() > len(self.buffer):  # what ends it decides, and nothing before
            position, self.buffer = bold.end() - len(self.buffer), bold[0]
        while position < len(text) and self._state in ("opening", "after title"):
            self.buffer += text[position]
            position += 1
            shown += self._decide() if self._state == "opening" else self._separate()
        if self._state == "text":
            shown += text[position:]
        if last and self._state == "opening":
            shown += self._decide(last=True)
        return shown

    def _decide(self, *, last: bool = False) -> str:
        """Return the opening once it is known, else nothing."""
        self.buffer = self.buffer.lstrip()
        self._drop_preamble()
        text = self.buffer
        if bold := _BOLD.match(text):
            return self._read_bold(bold, last=last)
        if not last and (not text or _BOLD_START.match(text)):
            return ""
        if last and self._style.titled and text.startswith("**") and "\n" not in text:
            return self._show_title(text, "")
        label = _TITLE_LABEL.match(text) if self._style.titled else None
        title, end, rest = text[label.end() :].partition("\n") if label else ("", "", "")
        line, _, below = text.partition("\n")
        if title and (end or last):
            return self._show_title(title, rest)
        if self._is_plain_title(line, below):
            return self._show_title(line, below)
        return self._give_up() if last or not self._may_open(text, line, below) else ""

    def _drop_preamble(self) -> None:
        while self._preambles < MAX_PREAMBLES and (found := _PREAMBLE.match(self.buffer)):
            self._preambles += 1
            self.buffer = self.buffer[found.end() :]

    def _read_bold(self, bold: re.Match[str], *, last: bool) -> str:
        """Take bold text at the beginning for the title, unless it is a label."""
        below = self.buffer[bold.end() :]
        may_wait = not last and len(self.buffer) < OPENING_CHARS
        if _LABEL.match(bold[1]):
            self.buffer = f"{bold[1].rstrip(_LABEL_END)}: {below.lstrip(_LABEL_END)}"
            return self._decide(last=last)
        if self._style.titled:
            return self._show_title(bold[1], below)
        if not below.strip(" \t") and may_wait:
            return ""
        if below.strip(" \t").startswith("\n") and below.strip():
            self.buffer = below
            return self._decide(last=last)
        return "" if not below.strip() and may_wait else self._give_up()

    def _is_plain_title(self, line: str, below: str) -> bool:
        return (
            self._style.titled
            and bool(below.strip())
            and _may_be_title(line)
            and line.rstrip()[-1] not in ".!?…。！？:：,，;；"
        )

    def _may_open(self, text: str, line: str, below: str) -> bool:
        """Return whether more text may still show a title or a preamble."""
        if len(text) >= OPENING_CHARS:
            return False
        label = _TITLE_LABEL.match(text) if self._style.titled else None
        if label and "\n" not in text[label.end() :]:
            return True
        if self._style.title_only:
            return text == line and not _SENTENCE_END.search(line)
        if self._style.titled and (_WORD.match(text) or _may_be_title(line)):
            return not below.strip()
        start = text.casefold()
        if any(opening.startswith(start) for opening in _OPENINGS):
            return True
        return start.startswith(_OPENINGS) and not below and not _SENTENCE_END.search(line)

    def _show_title(self, title: str, below: str) -> str:
        title = _TITLE_LABEL.sub("", title.strip(_TITLE_EDGE), count=1).strip(_TITLE_EDGE)
        self.buffer = ""
        if self._style.title_only:
            self._state = "closed"
            return f"**{title}**" if title else ""
        if not title:
            self._state = "text"
            return below
        self._state = "after title"
        return f"**{title}**{self.feed(below)}"

    def _separate(self) -> str:
        """Return what comes between a title and the text, once that begins."""
        start = self.buffer.lstrip(":： \t\n")
        if not start:
            self.buffer = self.buffer[:OPENING_CHARS]
            return ""
        separator = self.buffer[: -len(start)]
        self.buffer, self._state = "", "text"
        goes_on = separator.strip(" \t") == "" and (start.islower() or not start.isalnum())
        return f"{separator}{start}" if goes_on else f"\n\n{start}"

    def _give_up(self) -> str:
        """Show the text as it is, or for a title alone its first sentence."""
        text, self.buffer, self._state = self.buffer, "", "text"
        if not self._style.title_only:
            return text
        self._state = "closed"
        sentence = _SENTENCE_END.split(text.strip().partition("\n")[0], maxsplit=1)[0]
        words = sentence[: MAX_PLAIN_TITLE + 1].rpartition(" ")[0]
        short = len(sentence) <= MAX_PLAIN_TITLE
        title = (sentence if short else words or sentence[:MAX_PLAIN_TITLE]).strip(_TITLE_EDGE)
        return f"**{title}**" if title else ""


def _may_be_title(line: str) -> bool:
    return bool(
        _TITLE_WORD.match(line)
        and text_size(line) <= MAX_PLAIN_TITLE
        and not _SENTENCE_END.search(line)
    )


def form_stages(style: SummaryStyle) -> list[ConstructStage | OpeningStage]:
    """Return the stages for a part in a style. Its first line is a line like the others."""
    form = STYLES[style]
    rows = (FENCE, MARK, *(() if form.lists else (BULLET,)), HEADING, *FIRST_PERSON)
    return [*(ConstructStage(row, context="\n") for row in rows), OpeningStage(form)]


def unframed(text: str) -> str:
    """Return a whole text without what a model puts around it: a preamble, fences, and marks of the
    prompt."""
    for row in (FENCE, MARK):
        text = ConstructStage(row, context="\n").feed(text, last=True)
    text, start = text.strip(), 0
    while found := _PREAMBLE.match(text, start):
        start = found.end()
    return text[start:]
