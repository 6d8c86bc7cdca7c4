"""The language that a summary is written in: how it is named, and how it is found out.

`detect_language` would rather say nothing than guess. A wrong language is worse than the
reasoning's own, so a text that is short, mixed, a name, code or a log has none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from abridge.caches import SCRIPTS_OF_LETTERS
from abridge.core.language_tables import (
    CHINESE,
    FOREIGN_LETTERS,
    LETTERS,
    OTHER_LANGUAGES,
    RARE,
    RARE_WEIGHT,
    SCRIPTS,
    SIMPLIFIED,
    TRADITIONAL,
    UNSPACED,
    WORDS,
)

AUTO = "auto"
"""In a setting or a request: the language of the last user message."""

REASONING = "reasoning"
"""In a setting or a request: the reasoning's own language, whichever that is."""

EDGE_CHARS = 1000
"""How much of a long text's beginning, and of its end, is looked at."""

MIN_LETTERS = 4
"""The least letters of a script that are more than a symbol or a name."""

MIN_WORDS = 3
"""The least words of a text whose language is clear, where several languages share its script."""

MIN_KNOWN_WORDS = 2
"""The least of them that are known to be of the language, and the least where it has its script for
itself."""

MIN_SCORE, MIN_LEAD, MIN_RATIO = 1.0, 0.5, 1.5
"""How much must speak for a language; how much more than for the next one; how many times as much.
A word that only one language has counts 1."""

LETTER_SCORE = 0.6
"""What a letter counts that only one language has."""

KANA_SHARE = 0.1
"""The least kana beside the characters of a Japanese text."""

WIDE_SIZES = {"Han": 3, "Kana": 3, "ko": 3}
"""How many letters of an alphabet a character is worth that stands for a syllable or a word."""

_TAG = re.compile(
    r"([a-z]{2,3})(?:-([a-z]{4}))?(?:-([a-z]{2}|[0-9]{3}))?", re.ASCII | re.IGNORECASE
)
"""Language, script and region of a tag (RFC 5646, section 2.1)."""

_COMMAND = r"^[^\S\n]*(?:>|\$ |#!|at |File \"|Traceback |npm ERR|SELECT |INSERT |UPDATE |CREATE )"

_NO_PROSE = re.compile(
    r"```.*?(?:```|\Z)"  # a block of code
    r"|`[^`\n]*`"
    rf"|{_COMMAND}.*?$"
    r"|^[^\n]{0,40}\d\d:\d\d:\d\d.*?$"  # a line of a log
    r"|\b\w++:(?:(?<=Error:)|(?<=Exception:)|(?<=Warning:))[^\n,;]*"
    r"|(?<![\w.+~-])[\w.+~-]*+(?:://|@|[\\/])\S*"  # an address, a path
    r"|</?[\w-]++[^<>\n]*+>"
    r"|(?<!\w)(?:\"[^\"\n]*\"|'[^'\n]*'|„[^„“”\n]*[“”]|“[^“”\n]*”|«[^«»\n]*»|「[^「」\n]*」)(?!\w)"
    r"|\b(?:\w++(?:[.:=]++\w++)+|\w[^\W_]*+_\w++)",  # a name in code
    re.DOTALL | re.MULTILINE,
)

_MARK = re.compile(rf"[`:@/\\<_=\"„“«「]|'(?<!\w')|\.\w|{_COMMAND}", re.MULTILINE)
"""What is not prose has one of these. Most texts have none, which is found out much sooner."""

_WORD = re.compile(r"[¿¡]|(?:[^\W\d_]++|[\u0900-\u0963]++)++(?:['’][^\W\d_]+)?")
"""A word. Devanagari writes vowels as marks, which are no letters; Spanish opens sentences with
marks that say as much as a word."""

_ASCII_WORD = re.compile(r"[A-Za-z]++(?:'[A-Za-z]+)?")  # in ASCII, found in a third of the time

_LIST_ITEM = re.compile(r"\s*(?:[-*•–]|\d+[.)])\s")

_CODE_MARKS = re.compile(r"[{}\[\]()<>=;$%|_*#\\\"&+]")

_HIRAGANA = re.compile(r"[\u3041-\u3096]")


def parse_language(value: str) -> str:
    """Return `auto`, `reasoning`, or a language tag in its usual spelling: `pt-BR`, `zh-Hant`.

    A tag is two or three letters for the language, then a script and a region if they matter.
    Raises ValueError for anything else.
    """
    if value in (AUTO, REASONING):
        return value
    match = _TAG.fullmatch(value)
    if match is None:
        raise ValueError("must be auto, reasoning, or a language tag such as de, pt-BR or zh-Hant")
    language, script, region = (part or "" for part in match.groups())
    return "-".join(filter(None, (language.lower(), script.title(), region.upper())))


def detect_language(text: str) -> str | None:
    """Return the tag of the language that a text is written in, None if that is not clear.

    Only its beginning and its end are looked at, without code, logs, addresses and quotations. Its
    first or its last line may be what is asked about the rest: neither may be in another language.
    """
    lines = [line for line in _prose_of(text).splitlines() if not _is_code(line)]
    language = _detect("\n".join(lines))
    if language is None or len(lines) < 2:
        return language
    asked = [line for line in lines if not _LIST_ITEM.match(line)]
    agree = all(_agrees(line, language) for line in (*asked[:1], *asked[-1:]))
    return language if agree else None


def likely_language(text: str) -> str | None:
    """Return the tag of the language that most speaks for, however little that is."""
    script = "Latin" if text.isascii() else _main_script(text)
    if script == "Han":
        return "zh"
    if script == "Kana":
        return "ja"
    if script is None or script not in WORDS:
        return script
    words = _words(text)
    scores = _score(words, _known(words, script))
    found = [tag for tag in WORDS[script] if tag in scores]  # for the same text always the same
    return max(found, key=lambda tag: round(scores[tag], 6), default=None)


def is_another_language(found: str, wanted: str) -> bool:
    """Return whether a text whose language was found is surely in another than a tag says: not if
    no text is found to be in that one, or if the two are easily taken for each other."""
    one, other = (
        _ALIKE.get(base, base)
        for base in (found.split("-", maxsplit=1)[0], wanted.split("-", maxsplit=1)[0])
    )
    return one != other and other in _FOUND


def _prose_of(text: str) -> str:
    """Return the prose at the beginning and at the end of a text."""
    if len(text) <= 2 * EDGE_CHARS:
        return _NO_PROSE.sub(" ", text) if _MARK.search(text) else text
    start, end = text[:EDGE_CHARS], text[-EDGE_CHARS:]
    if text.count("```", 0, len(text) - EDGE_CHARS) % 2:
        end = f"```{end}"
    return f"{_NO_PROSE.sub(' ', start)}\n{_NO_PROSE.sub(' ', end)}"


def _is_code(line: str) -> bool:
    """Return whether a line has no letters, or more marks than prose has."""
    marks = 8 * len(_CODE_MARKS.findall(line))
    return marks >= sum(map(len, _WORD.findall(line))) if marks else _WORD.search(line) is None


def _agrees(line: str, language: str) -> bool:
    """Return whether a line is in a language, as far as it says."""
    found, script = _detect(line), _main_script(line)
    if found is not None or script is None:
        return found in (language, None)
    return script not in WORDS or any(language in row for row in _known(_words(line), script))


def _detect(text: str) -> str | None:
    script = _main_script(text)
    if script is None or not (text.isascii() or FOREIGN_LETTERS.isdisjoint(text)):
        return None
    words = _words(text)
    if script != "Latin" and _decide(words, "Latin") is not None:
        return None  # it is in two languages
    if script in WORDS:
        return _decide(words, script)
    if script == "Han":
        return _decide_chinese(set(text))
    if script == "Kana":
        return "ja" if len(_HIRAGANA.findall(text)) >= MIN_KNOWN_WORDS else None
    is_long = script in UNSPACED or len(words) >= MIN_KNOWN_WORDS
    return script if is_long and OTHER_LANGUAGES.get(script, frozenset()).isdisjoint(text) else None


def _main_script(text: str) -> str | None:
    """Return the script in which a text is written, None if that is too little or too mixed.

    Latin letters beside another script are mostly names and terms, but not the other way round.
    """
    if text.isascii():
        return "Latin" if sum(map(str.isalpha, text)) >= MIN_LETTERS else None
    counts: Counter[str] = Counter()
    for letter, count in Counter(text).items():
        if letter.isalpha():
            counts[_script_of(letter)] += count
    counts.pop("", None)
    if counts["Kana"] > KANA_SHARE * counts["Han"]:
        counts["Kana"] += counts.pop("Han", 0)
    sizes = {
        script: n * WIDE_SIZES.get(script, 1) for script, n in counts.items() if n >= MIN_LETTERS
    }
    latin = sizes.pop("Latin", 0)
    if not sizes:
        return "Latin" if latin else None
    script, size = max(sizes.items(), key=lambda pair: pair[1])
    return script if 2 * size > latin + sum(sizes.values()) else None


@lru_cache(SCRIPTS_OF_LETTERS)
def _script_of(letter: str) -> str:
    code = ord(letter)
    first, last, script = SCRIPTS[max(0, bisect_right(_FIRST_CODES, code) - 1)]
    return script if first <= code <= last else ""


def _words(text: str) -> list[str]:
    """Return the words of a text but for those in capitals, which are often names or commands."""
    words = (_ASCII_WORD if text.isascii() else _WORD).findall(text.replace("’", "'"))
    return [word for word in words if len(word) == 1 or not word.isupper()]


def _known(words: Iterable[str], script: str) -> list[dict[str, float]]:
    """Return what each known word says, or piece of one such as `l'eau` or `she's`."""
    pieces, weights = {word.lower() for word in words}, _WORD_WEIGHTS[script]
    for before, apostrophe, after in [word.partition("'") for word in pieces if "'" in word]:
        pieces |= {before + apostrophe, apostrophe + after}
    return [weights[piece] for piece in pieces & weights.keys()]


def _score(words: Iterable[str], known: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return how much speaks for each language; nothing for one of which no word is known."""
    scores: dict[str, float] = {}
    for row in known:
        for language, weight in row.items():
            scores[language] = scores.get(language, 0.0) + weight
    letters = "".join(words).lower()
    for letter in () if letters.isascii() else set(letters) & _LETTER_WEIGHTS.keys():
        for language in _LETTER_WEIGHTS[letter].keys() & scores.keys():
            scores[language] += LETTER_SCORE * _LETTER_WEIGHTS[letter][language]
    return scores


def _decide(words: Sequence[str], script: str) -> str | None:
    """Return the language for which enough speaks, and clearly more than for any other.

    Words that all begin with a capital letter are names or a title.
    """
    has_small = any(word[0].isalpha() and word[0] == word[0].lower() for word in words)
    if len(words) < MIN_WORDS or not has_small:
        return None
    known = _known(words, script)
    scores = _score(words, known)
    language = max(scores, key=scores.__getitem__, default="")
    first, second = (round(n, 6) for n in (*sorted(scores.values(), reverse=True), 0.0, 0.0)[:2])
    if first < MIN_SCORE or first - second < MIN_LEAD or first < MIN_RATIO * second:
        return None
    return language if sum(language in row for row in known) >= MIN_KNOWN_WORDS else None


def _decide_chinese(characters: set[str]) -> str | None:
    if len(characters & CHINESE) < MIN_KNOWN_WORDS:
        return None
    is_traditional = len(characters & TRADITIONAL) > len(characters & SIMPLIFIED)
    return "zh-Hant" if is_traditional else "zh"


def _weigh(rows: Mapping[str, Iterable[str]]) -> dict[str, dict[str, float]]:
    """Return what each word or letter says for each language that has it."""
    languages: dict[str, tuple[str, ...]] = {}
    for language, entries in rows.items():
        for entry in entries:
            languages[entry] = (*languages.get(entry, ()), language)
    weights = {  # once for all words of the same languages
        having: {name: (RARE_WEIGHT if name in RARE else 1.0) / len(having) for name in having}
        for having in set(languages.values())
    }
    return {entry: weights[having] for entry, having in languages.items()}


_WORD_WEIGHTS = {
    script: _weigh({language: words.split() for language, words in rows.items()})
    for script, rows in WORDS.items()
}

_LETTER_WEIGHTS = _weigh(LETTERS)

_FIRST_CODES = [first for first, _, _ in SCRIPTS]

_ALIKE = {
    **dict.fromkeys(("nb", "nn", "no", "da"), "da"),
    **dict.fromkeys(("sr", "hr", "bs"), "hr"),
    **dict.fromkeys(("id", "ms"), "id"),
    "fil": "tl",
}
"""Languages that are told apart by few words, or have several tags: one stands for all of them."""

_FOUND = frozenset(
    _ALIKE.get(base, base)
    for base in (
        "zh",
        "ja",
        *(language.split("-")[0] for rows in WORDS.values() for language in rows),
        *(script for _, _, script in SCRIPTS if script.islower()),
    )
)
"""Languages that a text may be found to be in."""
