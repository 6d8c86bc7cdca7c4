"""What every title must be, in any language: short, in plain words, and fit to be shown."""

from __future__ import annotations

from typing import NamedTuple

from abridge.lazy_re import lazy_compile

MAX_TITLE_CHARS = 72
MAX_TITLE_WORDS = 10
MAX_CLAUSE_TITLE_WORDS = 12  # of one that tells a question or a result
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


class Draft(NamedTuple):
    """A title that might be used, and how good it is."""

    text: str
    score: float


def is_presentable(title: str) -> bool:
    """Return true if `title` may be shown: short, without markup, and without secrets."""
    limit = MAX_WIDE_TITLE_CHARS if _WIDE_LETTER.search(title) else MAX_TITLE_CHARS
    return (
        2 < len(title) <= limit
        and not _FORBIDDEN_CHARS.search(title)
        and not _NOT_FOR_TITLES.search(title.lower())
        and not _SECRET.search(title)
        and title.count('"') % 2 == 0
        and title.count("“") == title.count("”")
    )


def title_key(title: str) -> str:
    """Return what two titles have in common that read the same."""
    return "".join(filter(str.isalnum, title.casefold()))
