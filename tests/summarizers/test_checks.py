"""A model that misbehaves: what is set right, what fails, and what is shown before that."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.config.tables import PromptSettings
from abridge.core.plan import Passage
from abridge.core.segmenter import text_size
from abridge.core.styles import STYLES, SummaryStyle
from abridge.core.styles import TITLE as TITLE_IN_STYLE
from abridge.summarizers.checks import TOLERANCE, Checks, TranslationChecks
from abridge.summarizers.model.prompts import said_by_itself

REASONING = (
    "The user wants to know whether the bridge holds the new truck. The limit is twelve tons, and "
    "the truck weighs nine tons when it is empty. I think the load adds another four tons, so that "
    "it would be too heavy by one ton. Perhaps half of the load goes on a second trip instead."
)

TITLE = "**Weighing the truck**"

BODY = "I add the load to the weight of the truck. It is one ton too heavy. I plan two trips."


def checks(style: SummaryStyle = "auto", *, hidden: str = "", **more: Any) -> Checks:
    instructions = said_by_itself(style, PromptSettings())
    passage = Passage(more.pop("reasoning", REASONING), style, **more)
    return Checks(passage, instructions=instructions, hidden=hidden)


def written(
    text: str, style: SummaryStyle = "auto", size: int = 7, stopped: str = "", **more: Any
) -> tuple[str, str]:
    """Return what is shown of a text that comes in pieces, and the code of its failure."""
    made, shown = checks(style, **more), ""
    for start in range(0, len(text), size):
        shown += made.feed(text[start : start + size])
        if made.is_over:
            break
    made.stopped = stopped
    shown += made.feed("", last=True)
    return shown, made.failure.code if made.failure else ""


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{TITLE}\n\n{BODY}", f"{TITLE}\n\n{BODY}"),
        (
            f"{TITLE}\n\nI add the load.\n\nIt is too heavy.\nI plan two trips.",
            f"{TITLE}\n\nI add the load. It is too heavy. I plan two trips.",
        ),
        ("**考虑卡车**\n\n我把货物加上。\n\n太重了。", "**考虑卡车**\n\n我把货物加上。太重了。"),
        (f"```markdown\n{TITLE}\n\n{BODY}\n```", f"{TITLE}\n\n{BODY}"),
        (f"{TITLE}\n\n{BODY}\n[d4baeb end]", f"{TITLE}\n\n{BODY}"),
        (f"[d4baeb reasoning]\n{TITLE}\n\n{BODY} [d4baeb]", f"{TITLE}\n\n{BODY}"),
        (f"{TITLE}\n\n[1f1995 conclusion] {BODY}", f"{TITLE}\n\n{BODY}"),
        (f"{TITLE}\n\n{BODY}<|im_end|>", f"{TITLE}\n\n{BODY}"),
        (f"{TITLE}\n\n{BODY} Let me know if you need more.", f"{TITLE}\n\n{BODY}"),
        (
            f"{TITLE}\n\nKeep doubts as doubts; leave out what you take back. {BODY}",
            f"{TITLE}\n\n{BODY}",
        ),
        (f"{TITLE}\n\n{BODY} It is one ton too heavy.", f"{TITLE}\n\n{BODY}"),
        (f"{TITLE}\n\nThe motorway saves half an hour. {BODY}", f"{TITLE}\n\n{BODY}"),
        (f"{TITLE}\n\n{BODY} I give an example:\n\n", f"{TITLE}\n\n{BODY}"),
    ],
)
def test_what_can_be_set_right_is(text: str, shown: str, size: int) -> None:
    language = None if text.isascii() else "zh"
    assert written(text, size=size, language=language) == (shown, "")


@pytest.mark.parametrize("size", [1, 5, 10_000])
@pytest.mark.parametrize(
    "thinking",
    [
        "[THINK]The user wants a summary.[/THINK]",
        "<think>\n**Planning the summary**\n\nFirst of all.</think>\n",
        "They ask me to write it. So I begin with a title.</think>",
        "analysisWe need to write a title and a few sentences.assistantfinal",
        "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>final<|message|>",
    ],
)
def test_its_own_thinking_is_cut(thinking: str, size: int) -> None:
    assert written(f"{thinking}{TITLE}\n\n{BODY}", size=size) == (f"{TITLE}\n\n{BODY}", "")


def test_a_sentence_is_shown_once_the_next_begins_and_the_title_at_once() -> None:
    made = checks()
    assert made.feed("**Weighing the truck**") == TITLE
    assert made.feed("\n\nI add the load") == ""
    assert made.feed(". It") == "\n\nI add the load."
    assert made.feed(" is too heavy", last=True) == " It is too heavy"


def test_a_sentence_whose_mark_ended_a_piece_is_shown_with_the_next_piece() -> None:
    made = checks()
    made.feed(f"{TITLE}\n\nI add")
    assert made.feed(" the load.") == ""
    assert made.feed(" It") == "\n\nI add the load."
    assert made.feed(" is too heavy.") == ""
    assert made.feed(" ") == " It is too heavy."


def test_a_long_text_without_a_mark_is_shown_before_its_end() -> None:
    made = checks("detailed", reasoning="")
    made.feed(f"{TITLE}\n\n")
    shown = [
        made.feed(f"word{'abcdefghij'[place % 10] * (place // 10 + 1)} ") for place in range(150)
    ]
    assert any(shown)


@pytest.mark.parametrize(
    "sentence",
    [
        *re.findall(r"[A-Z][^.]*\.", TITLE_IN_STYLE.sub("", STYLES["auto"].example)),
        STYLES["concise"].example,
        "I compare the coast road with the motorway, which may be closed on Sunday.",
        "The ferry no longer runs; the motorway saves half an hour.",
    ],
)
@pytest.mark.parametrize("style", ["auto", "detailed"])
def test_no_sentence_of_a_prompts_example_is_shown(sentence: str, style: SummaryStyle) -> None:
    shown, _ = written(f"{TITLE}\n\n{BODY} {sentence} I am done with it.", style)
    assert shown == f"{TITLE}\n\n{BODY} I am done with it."
    routes = (
        "The coast road and the motorway, closed on Sunday, are compared; the ferry saves time."
    )
    assert "motorway" in written(f"{TITLE}\n\nThe motorway is closed.", reasoning=routes)[0]


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{TITLE}\n\nI add. I then look at", f"{TITLE}\n\nI add."),
        (f"{TITLE}\n\nI add. It is 3.5 and", f"{TITLE}\n\nI add."),
        (f"{TITLE}\n\nI add. It is done.", f"{TITLE}\n\nI add. It is done."),
        (f'{TITLE}\n\nI say "yes." Then', f'{TITLE}\n\nI say "yes."'),
        (f"{TITLE}\n\nI then look at", TITLE),
        ("**考虑卡车**\n\n我算。然后", "**考虑卡车**\n\n我算。"),
    ],
)
def test_words_after_the_last_sentence_are_left_out_where_the_model_was_stopped(
    text: str, shown: str, size: int
) -> None:
    language = None if text.isascii() else "zh"
    for stopped, code in {"length": "", "content_filter": "not_a_summary"}.items():
        assert written(text, size=size, stopped=stopped, language=language) == (shown, code)
    assert written(text, size=size, language=language) == (text, "")


def test_words_of_a_stopped_model_that_are_all_it_said_are_shown() -> None:
    assert written("I then look at", "concise", stopped="length") == ("I then look at", "")


@pytest.mark.parametrize("style", ["auto", "concise", "detailed"])
@pytest.mark.parametrize("title", [TITLE, ""])
def test_a_part_is_as_large_as_its_style_allows(style: SummaryStyle, title: str) -> None:
    sentences = [f"I weigh the truck of {chr(65 + at % 26)}{at} and its load." for at in range(99)]
    shown, code = written(f"{title}\n\n{' '.join(sentences)}", style)
    body = shown.rpartition("\n\n")[2]
    limit = TOLERANCE * STYLES[style].size
    assert limit - 60 < text_size(body) <= limit
    assert body.endswith("load.")
    assert not code


def test_a_sentence_without_an_end_is_cut_at_a_word() -> None:
    words = " and ".join(f"{chr(97 + at % 26)}{chr(97 + at % 7)}" for at in range(400))
    shown, code = written(f"{TITLE}\n\nI weigh {words}")
    assert text_size(shown) < TOLERANCE * STYLES["auto"].size + 40
    assert shown.endswith("…")
    assert not code


@pytest.mark.parametrize("title", [TITLE, ""])
@pytest.mark.parametrize(
    "loop",
    [
        "The answer is one because it is the only outcome. ",
        "the truck ",
        "very ",
        "First it is too heavy for us. Then it is light enough again. ",
        "Step 3: I look at the truck once more. ",
    ],
)
def test_a_loop_stops_at_once_and_what_was_said_before_stays(loop: str, title: str) -> None:
    made = checks()
    told = made.feed(f"{title}\n\nI add the load to the truck. ")
    told += "".join(made.feed(loop) for _ in range(10))
    assert made.failure is not None
    assert made.failure.code == "loop"
    assert "I add the load to the truck." in told
    assert told.startswith("**")
    assert told.count(loop) <= 1
    assert f"{loop}{loop}" not in told


def test_a_loop_of_characters() -> None:
    shown, code = written("**考虑卡车**\n\n我把货物加上。" + "然后再看一次" * 20, language="zh")
    assert shown == "**考虑卡车**\n\n我把货物加上。"
    assert code == "loop"


@pytest.mark.parametrize(
    "title",
    [
        "",
        "**Summary**",
        "**The answer is**",
        "**Comparing the two routes**",
        "**Weighing the truck and its load and whatever else there is upon it**",
    ],
)
def test_a_missing_or_bad_title_is_made_of_the_text(title: str) -> None:
    shown, code = written(f"{title}\n\n{BODY}")
    made, _, body = shown.partition("\n\n")
    assert body == BODY
    assert made != title
    assert re.fullmatch(r"\*\*[A-Z][a-z ]+\*\*", made)
    assert not code


def test_a_bold_word_is_no_title() -> None:
    assert written("**Twelve** tons is the limit.")[0].endswith("**\n\nTwelve tons is the limit.")
    assert written("**Twelve tons** is it.") == ("**Twelve tons** is it.", "")


@pytest.mark.parametrize("text", ["The answer is 1", "**The answer is**", "**Weighing the truck**"])
def test_a_title_alone_may_be_bad_too(text: str) -> None:
    shown, code = written(text, "title")
    assert re.fullmatch(r"\*\*[A-Z]\w+ [\w ]+\*\*", shown)
    assert (shown == text) is (text == TITLE)
    assert not code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("I'm sorry, but I can't help with that.", "not_a_summary"),
        ("Please provide the reasoning that I should sum up.", "not_a_summary"),
        (f"Okay, let me sum this up. {BODY}", "not_a_summary"),
        ("Sum up your thoughts in `reasoning` for the user, in first person.", "not_a_summary"),
        ("Ich wiege den Lastwagen und die Ladung. Sie sind zu schwer für die Brücke.", "language"),
    ],
)
@pytest.mark.parametrize("title", [TITLE, ""])
def test_what_is_no_summary_in_the_language_fails_before_it_is_shown(
    text: str, code: str, title: str
) -> None:
    assert written(f"{title}\n\n{text}", language="en") == (title, code)


def test_the_reasonings_own_language_counts_where_none_is_asked_for() -> None:
    german = "Ich wiege den Lastwagen und die Ladung. Sie sind zu schwer für die Brücke."
    assert written(german)[1] == "language"
    assert written(german, reasoning="Ich muss prüfen, ob die Brücke das aushält.")[1] == ""
    assert written(german, reasoning="x = 1")[1] == ""


@pytest.mark.parametrize("language", ["sw-KE", "xx", "de-AT", "de"])
def test_a_language_that_cannot_be_told_is_not_missed(language: str) -> None:
    german = "Ich wiege den Lastwagen und die Ladung. Sie sind zu schwer für die Brücke."
    assert written(german, language=language)[1] == ("language" if language == "sw-KE" else "")


def test_an_echo_fails_where_the_reasoning_is_hidden() -> None:
    echo = "I see that the truck weighs nine tons when it is empty. I add four."
    text = f"{TITLE}\n\nI add the load to the weight of it. {echo}"
    assert written(text)[1] == ""
    told = f"{TITLE}\n\nI add the load to the weight of it."
    assert written(text, hidden=REASONING) == (told, "echo")


def test_an_echo_in_short_sentences_is_one_too() -> None:
    text = f"{TITLE}\n\nThe limit is twelve tons. And the truck weighs nine tons. It is empty."
    assert written(text, hidden=REASONING)[1] == "echo"


def test_an_echo_in_a_script_without_blanks() -> None:
    reasoning = "用户想知道这座桥能不能承受新的卡车，限重是十二吨，而卡车空载时重九吨。"
    echo = "**考虑卡车**\n\n我在看限重是十二吨，而卡车空载时重九吨。"
    own = "**考虑卡车**\n\n我把货物的重量加到车上，结果超过桥的上限。"
    assert written(echo, reasoning=reasoning, hidden=reasoning)[1] == "echo"
    assert written(own, reasoning=reasoning, hidden=reasoning) == (own, "")


CHINESE = "用户想知道这座桥能不能承受新的卡车，限重是十二吨，而卡车空载时重九吨。"
OWN = {"en": BODY, "zh": "我把货物的重量加到车上。结果太重了。"}


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("title", "language", "code"),
    [
        ("The truck weighs nine tons when it is empty", "en", "echo"),
        ("Whether the bridge holds the new truck now", "en", "echo"),
        ("限重是十二吨，而卡车空载时重九吨", "zh", "echo"),
        ("Ich wiege den Lastwagen mit der Ladung", "en", "language"),
        ("I'm sorry, but I can't help", "en", "not_a_summary"),
        ("Leave out what you take back altogether", "en", ""),
        ("我把货物和车子自己的重量都加在一起再看看它们有没有超过上限所以分两次走", "zh", ""),
    ],
)
def test_words_that_may_not_be_shown_are_no_title_either(
    title: str, language: str, code: str, size: int
) -> None:
    hidden = REASONING if language == "en" else CHINESE
    checked = {"size": size, "reasoning": hidden, "hidden": hidden, "language": language}
    made, _, body = written(f"**{title}**\n\n{OWN[language]}", **checked)[0].partition("\n\n")
    assert body == OWN[language]
    assert made.startswith("**")
    assert title not in made
    alone, failed = written(f"**{title}**", "title", **checked)
    assert (title in alone, failed) == (False, code)
    assert bool(alone) is not bool(code)


def test_a_short_title_may_name_what_the_reasoning_names() -> None:
    text = f"**判断这座桥能不能承受卡车**\n\n{OWN['zh']}"
    assert written(text, reasoning=CHINESE, hidden=CHINESE, language="zh") == (text, "")


@pytest.mark.parametrize(
    ("title", "language"),
    [
        ("Whether the bridge holds the truck", "en"),
        ("The load adds another four tons", "en"),
        ("卡车空载时重九吨", "zh"),
        ("Lastwagen und Brücke", "en"),
    ],
)
@pytest.mark.parametrize("style", ["auto", "title"])
def test_a_short_title_in_the_reasonings_own_words_stays(
    title: str, language: str, style: SummaryStyle
) -> None:
    hidden = REASONING if language == "en" else CHINESE
    body = "" if style == "title" else f"\n\n{OWN[language]}"
    text = f"**{title}**{body}"
    assert written(text, style, reasoning=hidden, hidden=hidden, language=language) == (text, "")


GERMAN = "**Wiegen des Wagens**\n\nIch wiege den Wagen mit der Ladung, und er ist zu schwer."


def translated(
    text: str, original: str = REASONING, size: int = 7, stopped: str = ""
) -> tuple[str, str]:
    """Return what is shown of a translation into German, and the code of its failure."""
    made = TranslationChecks(Passage(original, language="de", translates=True))
    shown = "".join(made.feed(text[at : at + size]) for at in range(0, len(text), size))
    made.stopped = stopped
    return shown + made.feed("", last=True), made.failure.code if made.failure else ""


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (GERMAN, GERMAN),
        (f"Hier ist die Übersetzung:\n\n```\n{GERMAN}\n```", GERMAN),
        (f"Gerne! Hier ist die Übersetzung:\n{GERMAN}", GERMAN),
        (f"[b8237e text]\n{GERMAN}\n[b8237e end]", GERMAN),
        (f"[482376 text]\n{GERMAN}\n[482376 end]", GERMAN),
        (f"{GERMAN} [Hier](https://evil.example/?q=1) steht es.", f"{GERMAN} Hier steht es."),
        (f"{GERMAN}<img src=x onerror=y>\x1b[31m\u202e\u200b Ja.", f"{GERMAN} Ja."),
        (f"{GERMAN}\n\n- Ich teile sie auf.", f"{GERMAN}\n\n- Ich teile sie auf."),
    ],
)
def test_a_translation_is_as_clean_as_a_summary_and_keeps_its_form(
    text: str, shown: str, size: int
) -> None:
    assert translated(text, size=size) == (shown, "")


@pytest.mark.parametrize(
    ("original", "text"),
    [
        ("Here is what I know:\n\n- It is heavy.", "Hier ist, was ich weiß:\n\n- Es ist schwer."),
        ("I run\n\n```\nweigh()\n```", "Ich starte\n\n```\nweigh()\n```"),
    ],
)
def test_a_translation_keeps_what_the_original_has(original: str, text: str) -> None:
    assert translated(text, original) == (text, "")


def test_a_translation_may_think_aloud_as_its_original_does() -> None:
    text = "Okay, the user wants to know how to compute it."
    checks = TranslationChecks(
        Passage("好的，用户想知道如何计算。", translates=True, language="en")
    )
    assert checks.feed(text, last=True) == text


@pytest.mark.parametrize(
    ("text", "stopped"),
    [
        ("Es tut mir leid, aber dabei kann ich dir leider nicht helfen.", ""),
        (f"Hier ist die Übersetzung:\nEs tut mir leid, das darf ich nicht. {GERMAN}", ""),
        (GERMAN, "length"),
        (GERMAN, "content_filter"),
    ],
)
def test_what_is_no_whole_translation_is_not_shown(text: str, stopped: str) -> None:
    assert translated(text, stopped=stopped) == ("", "not_a_summary")


@given(st.text(alphabet="ab .*\n。[]<`I", max_size=300), st.integers(1, 40))
def test_no_way_to_split_a_text_changes_it(text: str, size: int) -> None:
    assert written(text, size=size) == written(text, size=10_000)


_PIECES = [
    *(
        "**Adding up**\n\n",
        "The train leaves at nine. ",
        "I add, so it is twelve. ",
        "\n\n",
        "- one\n",
    ),
    *("```", "```text\n", "~~~", "`", "[d4baeb end]", "[d4baeb", "[d4ba", "eb end]", " end]"),
    *("<|im_end|>", "<|im_", "</s>", "<s>", "[/INST]"),
]
_MARK = re.compile(r"```|~~~|\[[0-9a-f]{6}\b|<\|[^|>]*\|>|</?s>|\[/?INST\]")


@given(st.lists(st.sampled_from(_PIECES), max_size=14), st.integers(1, 40))
def test_no_mark_is_shown_however_it_is_cut(pieces: list[str], size: int) -> None:
    shown, _ = written("".join(pieces), size=size)
    assert _MARK.search(shown) is None


@pytest.mark.parametrize(
    "kept",
    ["In `f(x)` it fails.", "Commit [a1b2c3d] broke it.", "See [12] and [decade].", "~20 of ~30."],
)
def test_what_only_looks_like_a_mark_stays(kept: str) -> None:
    assert kept in checks().feed(f"**Looking at it**\n\n{kept}", last=True)
