"""What every title must be, in any language: short, in plain words, and fit to be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.openings import capitalize
from abridge.summarizers.extractive.titles.lexicon import LINK, PRONOUN

if TYPE_CHECKING:
    from abridge.summarizers.extractive.titles.phrases import Words

MAX_TITLE_CHARS = 72
MAX_TITLE_WORDS = 13
MAX_WIDE_TITLE_CHARS = 24  # maximum characters of a title in Chinese, Japanese or Korean

_WIDE_LETTER = lazy_compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # a syllable or a word
_FORBIDDEN_CHARS = lazy_compile(r"[*`\\|<>{}\[\]#~^=@$\x00-\x1f]|__|://")

_NOT_FOR_TITLES = lazy_compile(
    r"\b(?:system prompt|polic(?:y|ies)|instructions?|passwords?|passphrases?|secrets?|credentials?"
    r"|api[ -]?keys?|guidelines?|richtlinien?|anweisung(?:en)?|passwort)\b|系统提示|提示词|政策"
    r"|指令|密码|密钥|システムプロンプト|指示|ポリシー|パスワード|시스템 프롬프트|지침|비밀번호"
)

_SECRET = lazy_compile(
    r"\S+@\S+"  # mail
    r"|\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])(?!\d+-[a-z-]+\b)[\w-]{8,}\b"  # letters and digits
    r"|\d{7,}|\d{3,}[- /]\d{3,}|\+\d[\d ]{6,}"  # phone and account numbers
)


_PAIRS = (("(", ")"), ("“", "”"), ("«", "»"), ("（", "）"), ("「", "」"))

Kind = Literal[
    "task",  # what the user wants
    "intent",  # what the reasoning is going to do
    "doing",  # an order, or what begins with a gerund
    "asked",  # what the user asks
    "question",  # what the reasoning asks
    "topic",  # what is named as one
    "place",  # a file or function that is looked at
    "concluded",
    "stated",
    "supposed",
    "result",
    "noun",  # in a language that is not read word by word
    "again",  # what an earlier title is about
]
FINDINGS: frozenset[Kind] = frozenset({"concluded", "stated"})
CLAUSES = FINDINGS | {"supposed"}


class Draft(NamedTuple):
    """A title that might be used: a form, and the words that are put into it."""

    kind: Kind
    form: str
    words: Words
    start: int
    end: int

    @property
    def thing(self) -> str:
        return self.words.text(self.start, self.end)

    @property
    def title(self) -> str:
        return capitalize(self.form.format(self.thing))

    @property
    def points(self) -> bool:
        """Return true if a pronoun is among its words, other than one that ties a clause to it."""
        kinds = self.words.kinds[self.start : self.end]
        return any(kind & PRONOUN and not kind & LINK for kind in kinds)

    @property
    def is_cut(self) -> bool:
        """Return true if its sentence goes on after its words."""
        return self.end < len(self.words) and not self.words.marks[self.end - 1]

    @property
    def size(self) -> int:
        """The number of its words."""
        return self.end - self.start + self.form.count(" ")


def is_presentable(title: str) -> bool:
    """Return true if `title` may be shown: short, without markup, and without secrets."""
    limit = MAX_WIDE_TITLE_CHARS if _WIDE_LETTER.search(title) else MAX_TITLE_CHARS
    return (
        2 < len(title) <= limit
        and not _FORBIDDEN_CHARS.search(title)
        and not _NOT_FOR_TITLES.search(title.lower())
        and not _SECRET.search(title)
        and title.count(" ") < MAX_TITLE_WORDS
        and title.count('"') % 2 == 0
        and all(title.count(opening) == title.count(closing) for opening, closing in _PAIRS)
    )


def title_key(title: str) -> str:
    """Return what two titles have in common that read the same."""
    return "".join(filter(str.isalnum, title.casefold()))
