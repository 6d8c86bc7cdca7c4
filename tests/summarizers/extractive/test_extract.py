"""Test the extractive summarizer: it copies the sentences that matter."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.core.events import ReasoningDelta
from abridge.core.plan import Passage
from abridge.core.styles import SummaryStyle
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.providers.catalog import PROFILES
from abridge.summarizers.extractive.extract import (
    MAX_INPUT_CHARS,
    SHORT_CHARS,
    ExtractiveSummarizer,
    extract,
    extract_or_nothing,
)
from tests.support.shared import RECORDINGS, needs_recordings

ENGLISH = (
    "Okay, so the user wants to know why the build fails. Hmm, let me think. The log says that a "
    "module is missing. Wait, maybe it is the cache? No, the cache was cleared yesterday. The lock "
    "file pins version two, because the upgrade was reverted. I'll pin version three in the lock "
    "file instead. Let me check the other packages. They are fine. Therefore, the fix is to "
    "regenerate the lock file with version three."
)
CHINESE = (
    "嗯，用户想让我解释为什么天空是蓝色的。让我想想。首先，我需要回忆瑞利散射的原理。阳光由不同波长的光组成，其中蓝光"
    "波长较短。等等，紫光的波长更短，为什么天空不是紫色的？这是因为人眼对紫光不敏感。所以，答案是瑞利散射使蓝光被大气"
    "更强烈地散射。"
)
JAPANESE = (
    "ユーザーは日本の首都について尋ねています。うーん、まず遷都について説明する必要がある。ちょっと待って、正式な法令は"
    "なかったはずです。したがって、答えは「東京が事実上の首都になった」ということになります。"
)
CODE = (
    "Let me look at the function.\n\n```python\ndef add(a, b):\n    return a - b\n```\n\n"
    "The bug is that `add` subtracts instead of adding. I'll change the minus to a plus.\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\nSo the fix is a one-character change."
)


TANK = (
    "Let me parse the problem. A tank has two pipes and a drain. The first pipe fills it in six "
    "hours, the second in four, and the drain empties it in twelve. When is the tank full?\n\n"
    "The rates add up to one third of the tank per hour. Together they need three hours. The level "
    "might matter for the drain at a constant rate?\n\nI should keep it short and make sure it is "
    "clear."
)


def part(
    text: str, style: SummaryStyle = "auto", *, whole: bool = False, titles: tuple[str, ...] = ()
) -> str:
    return extract(
        Passage(text, style, whole=whole, told=tuple(f"**{title}**" for title in titles))
    )


def bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def copies(summary: str, text: str) -> int:
    """Count the pieces of `text` that `summary` is made of; 1000 if it is not."""
    rest, source, count = bare(summary), bare(text), 0
    while rest:
        size = next((size for size in range(len(rest), 0, -1) if rest[:size] in source), 0)
        if not size:
            return 1000
        rest, count = rest[size:], count + 1
    return count


@pytest.mark.parametrize(
    ("text", "conclusion"),
    [
        pytest.param(ENGLISH, "the fix is to regenerate the lock file", id="English"),
        pytest.param(CHINESE, "答案是瑞利散射使蓝光被大气更强烈地散射", id="Chinese"),
        pytest.param(JAPANESE, "答えは「東京が事実上の首都になった」", id="Japanese"),
        pytest.param(CODE, "the fix is a one-character change", id="code"),
        pytest.param(
            "we see a thing, so the answer is a cache, " * 400, "the answer", id="one line"
        ),
    ],
)
@pytest.mark.parametrize("style", ["concise", "auto", "detailed"])
def test_the_conclusion_is_included(text: str, conclusion: str, style: SummaryStyle) -> None:
    assert conclusion in part(text, style, whole=True).replace("The fix", "the fix")
    assert conclusion in part(text, style).replace("The fix", "the fix")


def test_concise_is_the_conclusion_without_a_title() -> None:
    assert part(ENGLISH, "concise") == (
        "The fix is to regenerate the lock file with version three."
    )


def test_the_later_of_two_conclusions_counts() -> None:
    text = "So the answer is four letters. The word has an e in it. So the answer is three letters."
    assert part(text, "concise") == "The answer is three letters."


def test_a_conclusion_counts_more_than_a_doubt_about_it() -> None:
    text = "The answer is three letters. Let me check that the answer is three letters."
    assert part(text, "concise") == "The answer is three letters."


@pytest.mark.parametrize("style", ["auto", "detailed"])
@pytest.mark.parametrize("whole", [True, False])
def test_parts_are_titled_also_a_single_short_one(style: SummaryStyle, *, whole: bool) -> None:
    title, blank, body = part(ENGLISH, style, whole=whole).split("\n", 2)
    assert title.startswith("**")
    assert title.endswith("**")
    assert not blank
    assert "he fix is" in body


def test_the_style_title_is_the_title_alone() -> None:
    title = part(ENGLISH, "title")
    assert title.startswith("**")
    assert title.endswith("**")
    assert "\n" not in title


def test_detailed_keeps_steps_and_decisions() -> None:
    detailed = part(ENGLISH, "detailed")
    assert "The user wants to know why the build fails." in detailed
    assert "because the upgrade was reverted" in detailed
    assert len(detailed) >= len(part(ENGLISH))


def test_thinking_aloud_code_and_tables_are_left_out() -> None:
    summary = part(ENGLISH, "detailed") + part(CODE, "detailed")
    for noise in ("Hmm", "Wait", "Let me think", "return a", "| 1"):
        assert noise not in summary


def test_repeated_sentences_are_copied_once() -> None:
    text = "So the answer is three letters. " * 3 + "I need to list all the colours too. " * 3
    summary = part(text * 5, "detailed").partition("\n\n")[2]
    assert summary == "The answer is three letters. I need to list all the colours too."


def test_a_title_is_not_repeated() -> None:
    text = "I need to gather the ingredients. First, I should preheat the oven well." * 4
    first = part(text).partition("\n")[0].strip("*")
    second = part(text, titles=(first.upper(),)).partition("\n")[0].strip("*")
    assert first != second
    assert second


def test_a_bold_label_is_no_sentence() -> None:
    text = "1. **Analyze the `request`:** The user wants a poem about the sea.\n"
    assert part(text).endswith("**\n\nThe user wants a poem about the sea.")


def test_a_title_holds_no_markdown() -> None:
    text = "I need to fix the `parse_args` function [now] in #main _soon_ " * 9
    title = part(text).partition("**\n\n")[0].removeprefix("**")
    assert "parse_args" in title
    assert not set("`[]#*") & set(title)


@pytest.mark.parametrize("text", ["", " ", "\n\t \n", "\u3000"])
@pytest.mark.parametrize("style", ["concise", "auto", "detailed"])
def test_whitespace_has_no_gist(text: str, style: SummaryStyle) -> None:
    assert part(text, style) == ""


@pytest.mark.parametrize("text", ["No, -", "Okay. So", "Hmm...", "Wait!", "— 3 —", "x"])
def test_a_scrap_is_copied_as_it_is(text: str) -> None:
    assert copies(part(text, "concise"), text) == 1


def test_code_alone_still_gives_a_summary() -> None:
    summary = part("for (i = 0; i < n; i++) {\n  sum += i;\n}\n", "concise", whole=True)
    assert summary.startswith("for (i = 0;")


def test_a_sentence_that_a_formula_completes_is_left_out() -> None:
    text = "Multiplying by x gives\n\\[\n\\sum_i x_i\n\\]\nThe series converges for small x."
    assert part(text, "detailed").endswith("**\n\nThe series converges for small x.")


def test_links_and_markup_are_not_copied() -> None:
    text = (
        "So the answer is at https://evil.example/?q=1 <b>now</b>. I'll use the local copy instead."
    )
    assert part(text, "concise") == "I'll use the local copy instead."
    assert "evil" not in part(text, "detailed")
    assert "http" not in part("https://evil.example/?q=1", whole=True)


def test_only_head_and_tail_of_long_reasoning_are_read() -> None:
    middle = "So the answer is the middle one. " * (2 * MAX_INPUT_CHARS // 33)
    summary = part(
        f"The user asks which region goes first. {middle} Therefore, we deploy the blue cluster.",
        "detailed",
    )
    assert "The user asks which region goes first." in summary
    assert summary.endswith("e deploy the blue cluster.")


def told(text: str, *earlier: str, last: bool = False) -> str:
    """Return the body of a part that comes after others."""
    passage = Passage(text, whole=False, last=last, told=earlier)
    return extract(passage).partition("\n\n")[2]


def test_what_is_taken_back_is_left_out() -> None:
    text = (
        "The log shows a time-out. So the cause is the cache. No, the cache was cleared before. "
        "The cause is the lock file, which pins version two."
    )
    assert "the cause is the cache" not in part(text).lower()
    assert "The cause is the lock file" in part(text)


def test_the_first_sentence_is_left_out_if_the_next_one_denies_it() -> None:
    text = "The capital of Australia is Sydney. Nope, wrong. The capital of Australia is Canberra."
    assert "Sydney" not in part(text)
    assert "Canberra" in part(text)


def test_no_style_tells_a_question_alone() -> None:
    text = (
        "Which of the two trains is the faster one? The express train stops once. The regional "
        "train stops nine times. The express is faster."
    )
    assert part(text, "concise") == "The express is faster."


@pytest.mark.parametrize(("between", "is_told"), [("\n\n", False), ("\n\n…\n\n", True)])
def test_nothing_is_taken_back_from_beyond_a_gap(between: str, *, is_told: bool) -> None:
    finding = "The lock file pins version two since April."
    gist = part(f"{finding}{between}Wait, no. The cache was cleared yesterday, all of it.")
    assert (finding in gist) == is_told


def test_a_gap_is_not_shown_as_the_answer_to_a_question() -> None:
    text = "Which version does the lock file pin?\n\n…\n\nThe cache was cleared yesterday."
    assert "…" not in part(text)


def test_what_is_only_supposed_gives_way_to_what_follows_from_it() -> None:
    text = (
        "Suppose the door on the left is safe. The guard opens the middle one in that case. "
        "The player stays and wins with the left door.\n\n"
        "Therefore, switching doors wins twice out of three times."
    )
    assert part(text, "concise").endswith("witching doors wins twice out of three times.")


def test_a_connective_stays_only_beside_what_it_refers_to() -> None:
    beside = "The lock file pins version two. So the upgrade to version three is ignored."
    assert "two. So the upgrade to version three is ignored." in part(beside)
    apart = "Hmm, why? So the upgrade to version three is ignored by the resolver."
    assert part(apart).endswith("\n\nThe upgrade to version three is ignored by the resolver.")


def test_a_sentence_that_leans_comes_with_what_it_leans_on_or_not_at_all() -> None:
    text = "The export selects nothing since Tuesday. This means that the query is at fault."
    assert "since Tuesday. This means" in part(text)
    text = "It is called as f(x. This means that the query is at fault. The query filters twice."
    assert "This means" not in part(text)


def test_what_an_earlier_part_said_is_not_said_again() -> None:
    first = "The export selects nothing because the page size of the settings is zero."
    text = f"{first} I propose a helper that treats zero as unlimited. {first}"
    assert first in told(text)
    assert first not in told(text, f"**Reading the log**\n\n{first}")


def test_no_part_says_a_conclusion_again_the_last_one_neither() -> None:
    answer = "The answer is that the page size of the settings is zero."
    text = f"The tests pass with a page size of 500 rows. So {answer.lower()}"
    earlier = f"**Reading the log**\n\n{answer}"
    assert "page size of the settings is zero" not in told(text, earlier)
    assert "page size of the settings is zero" not in told(text, earlier, last=True)
    assert "page size of the settings is zero" in told(text, "**Reading the log**", last=True)


def test_a_conclusion_with_other_numbers_is_told() -> None:
    earlier = "**Finding four numbers**\n\nThe four consecutive numbers are n, n + 1, n + 2, n + 3."
    text = "The positive root is right. So the four consecutive numbers are 6, 7, 8, 9."
    assert "6, 7, 8, 9" in told(text, earlier, last=True)


def test_a_last_part_that_only_nods_does_not_repeat_what_was_concluded() -> None:
    earlier = "**Reading the log**\n\nThe answer is that the page size is zero."
    rest = "Yes, that looks right to me. I don't see anything that I have missed in the log."
    assert not told(rest, earlier, last=True)


def test_a_part_that_says_nothing_new_is_its_title_alone() -> None:
    earlier = "**Reading the log**\n\nThe export selects nothing because the page size is zero."
    text = "So the export selects nothing because the page size is zero. Okay. Good."
    assert extract(Passage(text, whole=False, last=False, told=(earlier,))).count("\n") == 0


SECRETS = (
    'The system prompt says: "You are Ada. The internal code name is Heron. Never mention the '
    'voucher KIEL-24-XZ." The user asks for a voucher and left her number, +49 151 23456789. '
    "According to policy, vouchers are not for chats. I can't help with vouchers, so I'll point "
    "her to the newsletter. Mail goes to ada@example.org."
)


@pytest.mark.parametrize("style", ["concise", "auto", "detailed", "title"])
def test_prompts_policies_and_secrets_are_not_shown(style: SummaryStyle) -> None:
    summary = part(SECRETS, style)
    for secret in ("system prompt", "Ada", "Heron", "KIEL", "151", "olicy", "@"):
        assert secret not in summary
    assert style == "title" or "the newsletter" in summary


def test_a_passage_that_is_all_private_has_no_gist() -> None:
    text = "The password is h4rbour."
    assert part(text, "concise") == ""
    assert "h4rbour" not in part(text) + part(text, "title")


def test_simple_formulas_are_plain_text_and_harder_ones_are_left_out() -> None:
    text = (
        r"We need the roots, so I set \( n^2 = 9 \) and get \(n = 3\) as the positive one. "
        r"The sum \(\sum_{i=1}^{n} i\) is then six. Therefore, the answer is $n = 3$."
    )
    summary = part(text, "detailed")
    assert "I set n² = 9 and get n = 3" in summary
    assert "The answer is n = 3." in summary or "Therefore, the answer is n = 3." in summary
    assert "\\" not in summary
    assert "$" not in summary


def test_a_displayed_formula_is_told_with_the_sentence_that_leads_up_to_it() -> None:
    formula = "\\[\nm = \\frac{-2 \\pm \\sqrt{4 + 12}}{2}.\n\\]"
    text = f"Solving this for m gives\n{formula}\nBoth roots are real."
    assert "Solving this for m gives m = (-2 ± √(4 + 12))/2. Both roots are real." in part(text)


FRAGMENTS = [
    *("Okay, so ", "the user wants ", "I'll use it. ", "Therefore, ", "so ", "42 ", "3.14 ", "\n"),
    *("\n\n", "- ", "1. ", "**Plan:** ", "*x* ", "`code` ", "```\n", "| a | b |\n", "然后", "。"),
    *("？", "答案是", "def f(x):\n", ". ", "... ", "? ", "e.g. ", ", ", "word ", "日本", "(", ")"),
    "x" * 200,
]
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=60).map("".join)
styles = st.sampled_from(["concise", "auto", "detailed"])


@given(fragments | st.text(), styles, st.sampled_from([True, False]))
def test_every_sentence_is_from_the_reasoning(
    text: str, style: SummaryStyle, whole: object
) -> None:
    summary = part(text, style, whole=bool(whole))
    body = summary.partition("\n\n")[2] if summary.startswith("**") else summary
    assert copies(body, text) <= 24
    assert len(summary) <= 2 * len(text) + 80
    assert len(summary) < 2500
    assert summary == part(text, style, whole=bool(whole))


@given(fragments)
def test_anything_to_read_has_a_gist(text: str) -> None:
    assert bool(part(text)) == bool(text.strip())


@pytest.mark.parametrize(
    "text",
    ["." * 9999 + "x", "a", "hm, ", "(", "a\n", "x. ", '."', "**a", "x = ", ", a", "so the "],
)
def test_odd_text_is_read_in_bounded_time(text: str) -> None:
    assert len(part(text * 20_000, "detailed")) < 2500


@needs_recordings
def test_every_recorded_reasoning_has_a_short_gist() -> None:
    found = 0
    for file in sorted(RECORDINGS.glob("*.response.json")):
        reader = CHAT.reader(PROFILES["auto"], Display(), 1 << 20)
        text = "".join(
            event.text
            for event in reader.read_whole(file.read_bytes())
            if isinstance(event, ReasoningDelta)
        )
        if len(text) < 1000:
            continue
        found += 1
        concise, auto, detailed = (
            part(text, style, whole=True) for style in ("concise", "auto", "detailed")
        )
        assert 0 < len(concise) <= 500, file.name
        assert 0 < len(auto) <= 780, file.name
        assert len(detailed) < len(text), file.name
    assert found > 5


@needs_recordings
def test_the_recorded_counting_of_letters_comes_to_three() -> None:
    file = RECORDINGS / "deepseek-reasoning.response.json"
    text = json.loads(file.read_bytes())["choices"][0]["message"]["reasoning_content"]
    assert part(text, "concise").lower().endswith("answer is 3.")


def test_a_refusal_is_told() -> None:
    text = (
        "The user asks for a script that guesses the landlord's password. The router is not theirs "
        "and nobody allowed them to enter it. So must refuse. A list of contracts of their own "
        "could help them more than that."
    )
    assert "must refuse" in part(text).lower()


def test_a_sentence_of_two_words_is_told_only_as_an_answer() -> None:
    assert "Two requests" not in part(f"Two requests. {ENGLISH}")
    assert "Two pumps." in part("How many pumps does the large tank have? Two pumps.")


async def test_it_reports_zero_tokens() -> None:
    summary = [
        piece async for piece in ExtractiveSummarizer().summarize(Passage(ENGLISH, "concise"))
    ]
    assert summary == [part(ENGLISH, "concise"), SummarizerUsage(Tokens(0, 0, 0), "extractive")]


async def test_it_yields_no_empty_text() -> None:
    summary = [piece async for piece in ExtractiveSummarizer().summarize(Passage(" "))]
    assert summary == [SummarizerUsage(Tokens(0, 0, 0), "extractive")]


async def test_many_summaries_do_not_block_the_event_loop() -> None:
    summarizer, ticks, seen = ExtractiveSummarizer(), count(), []

    async def write() -> None:
        summary = [next(ticks) async for _ in summarizer.summarize(Passage(ENGLISH))]
        seen.append(summary[0])

    async def do_something_else(done: asyncio.Future[Any]) -> None:
        while not done.done():
            next(ticks)
            await asyncio.sleep(0)

    writing = asyncio.gather(*(write() for _ in range(10)))
    await do_something_else(writing)
    assert all(later - earlier > 1 for earlier, later in pairwise(seen))


async def test_other_tasks_run_while_a_part_is_written() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    summary = [piece async for piece in ExtractiveSummarizer().summarize(Passage(ENGLISH * 8))]
    ticking.cancel()
    assert summary[0] == extract(Passage(ENGLISH * 8))
    assert ticks > 5  # at least one for every sixteen sentences, and the title is a step of its own


@pytest.mark.parametrize("is_long", [True, False])
async def test_a_long_passage_is_read_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
    is_long: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    threads: list[threading.Thread] = []

    def note_thread(passage: Passage) -> Iterator[str]:
        threads.append(threading.current_thread())
        yield passage.text[:1]

    monkeypatch.setattr("abridge.summarizers.extractive.extract.extract_in_steps", note_thread)
    passage = Passage("a" * (SHORT_CHARS + is_long))
    assert [piece async for piece in ExtractiveSummarizer().summarize(passage)]
    assert (threads != [threading.current_thread()]) is is_long


def test_a_fault_in_the_last_resort_is_logged_without_the_text_and_gives_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> str:
        raise ValueError("a secret")

    assert extract_or_nothing(Passage(ENGLISH)) == extract(Passage(ENGLISH))
    monkeypatch.setattr("abridge.summarizers.extractive.extract.score_sentences", fail)
    assert extract_or_nothing(Passage(ENGLISH)) == ""
    warnings = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert warnings == ["the extract failed: ValueError"]


def test_the_first_part_opens_with_the_statement_of_the_problem_and_its_question() -> None:
    body = part(TANK).partition("\n\n")[2]
    assert body.startswith("A tank has two pipes and a drain.")
    assert "When is the tank full? " in body


def test_no_part_ends_with_a_question_or_with_a_note_on_how_to_answer() -> None:
    body = part(TANK).partition("\n\n")[2]
    assert not body.endswith("?")
    assert "keep it short" not in body


def test_a_question_is_told_with_its_answer_in_the_same_words() -> None:
    text = (
        "Which of the two pumps fills the large tank first? "
        "The second pump fills the large tank first, by a quarter of an hour."
    )
    assert part(f"{ENGLISH}\n\n{text}").endswith(text)


def test_a_list_is_not_told_without_the_line_that_announces_it() -> None:
    items = "- Raise the size of the buffer to four megabytes.\n- Read the file in small pieces."
    assert "Raise the size" not in part(f"The parser fails on large files. Fixes:\n{items}")


@pytest.mark.parametrize(
    "ending",
    [
        "Final answer: the two joins multiply the rows, so sum before joining.",
        "So 9:30 and six more hours make 15:30.\n\nWait, is the drain closed at night?",
        "Putting all this together, it is the connection pool that runs dry.",
    ],
)
def test_an_extract_ends_with_what_was_found_last(ending: str) -> None:
    found = ending.partition("\n")[0].removeprefix("So ")
    assert part(f"{ENGLISH}\n\nThe night was quiet. {ending}").endswith(found)


def test_a_german_conclusion_after_a_colon_stands_alone() -> None:
    text = (
        "Die Mauer ist feucht und der Putz bröckelt. Hm.\n\nAlso: 30 Liter Farbe reichen für beide."
    )
    assert part(text).endswith("30 Liter Farbe reichen für beide.")


def test_no_sentence_of_an_earlier_part_is_told_again() -> None:
    told = ("**Counting**\n\nThe pool is dry.",)
    text = "The pool is dry. The pool is dry. The valve below the pool was never closed."
    assert extract(Passage(text, told=told)).endswith(
        "\n\nThe valve below the pool was never closed."
    )
