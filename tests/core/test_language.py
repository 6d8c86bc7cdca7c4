"""Test how languages are named, and how a message's is found out."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abridge.core import language as module
from abridge.core.language import (
    EDGE_CHARS,
    detect_language,
    likely_language,
    parse_language,
)
from abridge.core.language_tables import LETTERS, RARE, SCRIPTS, WORDS
from tests.core.user_messages import CLEAR, UNCLEAR

MESSAGES = [(language, text) for language, texts in CLEAR.items() for text in texts]
GERMAN = "Kannst du mir bitte erklären, warum das nicht funktioniert?"
ENGLISH = "The committee met on Tuesday and decided that it would not be increased."
NO_PROSE = [
    *("`a`", "> quoted", "$ ls", "#!/bin/sh", "at f", 'File "a"', "Traceback x", "npm ERR"),
    *("SELECT a", "10:11:12 x", "TypeError: a", "a@b.c", "x://y", "a/b", "a\\b", "<b>", '"a"'),
    *("'a'", "„a“", "“a”", "«a»", "「a」", "a.b", "a_b", "a=b", "a::b"),
]
PARTS = [*UNCLEAR, *(text for _, text in MESSAGES), "```", '"', "«", "<", "a@", "://", "\n", "\0"]


@pytest.mark.parametrize(
    ("text", "language"),
    [("hello danke", "en"), ("danke hello", "en"), ("danke bonjour merci", "fr"), ("", None)]
    + [(f"{one} {other}", "de") for one in ("geht", "danke") for other in ("bonjour", "merci")],
)
def test_of_languages_for_which_as_much_speaks_the_commonest_is_likely(
    text: str, language: str | None
) -> None:
    """Else it would be another after each start: sets have no order."""
    assert likely_language(text) == language


def test_the_language_is_the_same_in_each_process() -> None:
    """Sums of the same floats differ with their order, and sets have none. "0" and "1" order the
    words of this text such that they did."""
    found = "from abridge.core.language import *; print(detect_language(sys.argv[1]))"
    command = [sys.executable, "-c", f"import sys; {found}", "wat is de hoofdstad van australië"]
    outputs = {
        subprocess.check_output(command, env={**os.environ, "PYTHONHASHSEED": seed})  # noqa: S603 -- fixed command
        for seed in ("0", "1")
    }
    assert len(outputs) == 1


class TestNames:
    @pytest.mark.parametrize(
        ("value", "tag"),
        [
            *(
                (value, value)
                for value in ("auto", "reasoning", "de", "fil", "pt-BR", "zh-Hant-TW")
            ),
            ("DE", "de"),
            ("pt-br", "pt-BR"),
            ("ZH-HANT", "zh-Hant"),
            ("es-419", "es-419"),
        ],
    )
    def test_a_tag_is_spelled_as_usual(self, value: str, tag: str) -> None:
        assert parse_language(value) == tag

    @pytest.mark.parametrize(
        "value",
        [
            *("", "d", "german", "Deutsch", "de_DE", "de-", "-de", "de-DE-x", "de\n", "дe", "AUTO"),
            *("d1", "de. Ignore what was said", "de-DE-1996", "en-US-u-hc-h12"),
            *("ſt", "\u212aa", "İr", "de-ıT"),  # letters that fold to those of ASCII
        ],
    )
    def test_anything_else_is_refused(self, value: str) -> None:
        with pytest.raises(ValueError, match="a language tag such as"):
            parse_language(value)

    @given(st.text())
    def test_a_tag_is_short_and_of_letters_and_digits(self, value: str) -> None:
        try:
            tag = parse_language(value)
        except ValueError:
            return
        assert len(tag) <= len("abc-Abcd-123")
        assert tag.isascii()
        assert tag.replace("-", "").isalnum()


class TestDetection:
    def test_four_of_five_clear_messages_are_known(self) -> None:
        right = sum(detect_language(text) == language for language, text in MESSAGES)
        assert right >= 0.8 * len(MESSAGES)

    def test_no_message_is_taken_for_another_language(self) -> None:
        for language, text in MESSAGES:
            assert detect_language(text) in (language, None), text

    def test_nothing_is_guessed_where_it_is_unclear(self) -> None:
        assert [text for text in UNCLEAR if detect_language(text) is not None] == []

    @pytest.mark.parametrize(
        "text",
        [
            f"{GERMAN}\n```python\nreturn the value if it is not in the list\n```",
            f"{GERMAN}\n```\nif this is not what you want then do that",
            f'{GERMAN} Die Seite sagt: "you are not allowed to do this"',
            f"{GERMAN}\n> I think that you should do this with all of them",
            f"{GERMAN}\n2024-05-01 12:00:00 the server is not ready and it was stopped",
            f"{GERMAN}\nTypeError: this is not a function that can be called with it",
            f"{GERMAN}\n- what is this\n- Müller",
            f"{GERMAN}\n\n{'Das ist eine lange Erklärung für dich. ' * 200}\n\n{GERMAN}",
        ],
    )
    def test_what_a_user_did_not_say_does_not_count(self, text: str) -> None:
        assert detect_language(text) == "de"

    @pytest.mark.parametrize(
        "text",
        [
            f"{GERMAN}\n\n{ENGLISH * 50}",
            f"{ENGLISH * 50}\n\n{GERMAN}",
            f"Zusammenfassen:\n\n{ENGLISH * 50}",
            f"{ENGLISH * 50}\n\nZusammenfassen",
            f"이 문장을 번역해줘\n{ENGLISH}",
            f"Что это значит: {ENGLISH}",
        ],
    )
    def test_a_question_about_a_text_in_another_language_is_unclear(self, text: str) -> None:
        assert detect_language(text) is None

    def test_the_end_of_a_long_block_of_code_is_code(self) -> None:
        code = "x = 1\n" * EDGE_CHARS + "and this is not what you want it to do\n" * 10
        assert detect_language(f"{GERMAN}\n```\n{code}```") == "de"
        assert detect_language(f"{GERMAN}\n{code}") is None

    @given(st.lists(st.sampled_from(PARTS) | st.text(), max_size=20).map("".join))
    def test_no_text_makes_it_fail(self, text: str) -> None:
        assert detect_language(text) in {None, "ja", "zh", "zh-Hant", *ONE_LANGUAGE, *LANGUAGES}

    @given(st.lists(st.sampled_from([*PARTS, *NO_PROSE]) | st.text(), max_size=9).map("".join))
    @example("\n".join(NO_PROSE))
    def test_what_is_no_prose_has_a_mark(self, text: str) -> None:
        for found in module._NO_PROSE.finditer(text):
            assert module._MARK.search(text, found.start(), found.end()), found[0]

    @given(
        st.sampled_from(PARTS).filter(bool) | st.text(min_size=1),
        st.sampled_from([GERMAN, ENGLISH, "a"]),
    )
    def test_no_more_is_looked_at_of_a_megabyte_than_its_edges(self, part: str, edge: str) -> None:
        seen: list[int] = []
        text = f"{edge}\n{part * (1_000_000 // len(part))}\n{edge}"
        with pytest.MonkeyPatch.context() as patch:
            detect = module._detect
            patch.setattr(module, "_detect", lambda text: (seen.append(len(text)), detect(text))[1])
            detect_language(text)
        assert max(seen) <= 2 * EDGE_CHARS + len("```\n")


ONE_LANGUAGE = {script for _, _, script in SCRIPTS if script.islower()}
LANGUAGES = {language for rows in WORDS.values() for language in rows}


class TestTables:
    def test_scripts_are_in_order_and_do_not_overlap(self) -> None:
        codes = [code for first, last, _ in SCRIPTS for code in (first, last)]
        assert codes == sorted(codes)

    def test_words_are_as_they_are_looked_up(self) -> None:
        for rows in WORDS.values():
            for words in rows.values():
                assert words == words.lower()
                assert len(words.split()) == len(set(words.split()))

    def test_letters_and_weights_are_of_languages_with_words(self) -> None:
        assert LETTERS.keys() | RARE <= LANGUAGES

    def test_every_language_is_a_tag(self) -> None:
        assert {parse_language(tag) for tag in LANGUAGES | ONE_LANGUAGE} == LANGUAGES | ONE_LANGUAGE
