"""Test titles: made from sentences, in their language, fit to be shown, and never a claim."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abridge.summarizers.extractive.titles.languages import LANGUAGES, language_of
from abridge.summarizers.extractive.titles.make import (
    MAX_TITLE_CHARS,
    MAX_TITLE_WORDS,
    make_title,
    title_key,
)
from abridge.summarizers.extractive.titles.phrases import MAX_READ_CHARS
from abridge.summarizers.extractive.titles.rating import TitleSource
from abridge.summarizers.extractive.titles.words import GERUNDS, VERBS, gerund_of


def title(*sentences: str, headings: tuple[str, ...] = (), taken: tuple[str, ...] = ()) -> str:
    return make_title([*sources(*sentences), *headed(*headings)], taken)


def sources(*sentences: str) -> list[TitleSource]:
    return [
        TitleSource(text, begins=not place, concludes=text.startswith(("So ", "Therefore")))
        for place, text in enumerate(sentences)
    ]


def headed(*headings: str) -> list[TitleSource]:
    return [TitleSource(text, headings=len(headings)) for text in headings]


# What is to be done.


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "I should compare the two mortgage offers before recommending one.",
            "Comparing the two mortgage offers",
        ),
        ("We need to plan the seating for nine guests.", "Planning the seating for nine guests"),
        (
            "I'll calculate the interest over five years.",
            "Calculating the interest over five years",
        ),
        ("Let me trace the request through the router.", "Tracing the request through the router"),
        ("Let's set up the equations for both tanks.", "Setting up the equations for both tanks"),
        (
            "We should tie the deposit to the delivery date and keep the rest.",
            "Tying the deposit to the delivery date",
        ),
        ("First, find the shortest route.", "Finding the shortest route"),
        ("I'm going to draft an itinerary for Lisbon.", "Drafting an itinerary for Lisbon"),
        (
            "The goal is to measure the latency of each query.",
            "Measuring the latency of each query",
        ),
        (
            "To find the area of the triangle, I'll use Heron's formula.",
            "Finding the area of the triangle",
        ),
        ("I need to try to simplify the fraction.", "Simplifying the fraction"),
        (
            "Maybe I should start by understanding the pay scale.",
            "Understanding the pay scale",
        ),
        (
            "The solution involves tracking the open connections.",
            "Tracking the open connections",
        ),
    ],
)
def test_what_is_to_be_done_becomes_a_gerund(sentence: str, expected: str) -> None:
    assert title(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "The user wants me to write a short story about a lighthouse keeper.",
            "Writing a short story about a lighthouse keeper",
        ),
        ("The user is asking for a recipe with lentils.", "Looking for a recipe with lentils"),
        (
            "The user is asking how to remove rust from a cast-iron pan.",
            "Working out how to remove rust from a cast-iron pan",
        ),
        ("The user wants a quieter fan.", "Working on a quieter fan"),
        ("The question is about two sisters.", "Looking into two sisters"),
        ("They ask if they can keep three hens.", "Working out whether they can keep three hens"),
        (
            "The user asks which of the two boats they should rent.",
            "Working out which of the two boats they should rent",
        ),
        (
            "The user reports a kettle that trips the fuse.",
            "Looking into a kettle that trips the fuse",
        ),
        (
            'The user asked "How do I fold a fitted sheet?"',
            "Working out how to fold a fitted sheet",
        ),
    ],
)
def test_what_the_user_asks_becomes_the_task(sentence: str, expected: str) -> None:
    assert title(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "I need to figure out why the tomatoes split.",
            "Figuring out why the tomatoes split",
        ),
        (
            "I need to check whether the retry loop handles timeouts.",
            "Checking whether the retry loop handles timeouts",
        ),
        (
            "I must verify that the lock is released.",
            "Verifying that the lock is released",
        ),
        (
            "I need to think about how the user will pay.",
            "Considering how the user will pay",
        ),
        ("I need to find out who owns the repository.", "Finding out who owns the repository"),
    ],
)
def test_a_question_is_kept_whole(sentence: str, expected: str) -> None:
    assert title(sentence) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Why does salt melt ice?", "Working out why salt melts ice"),
        ("Why did the one who drank more survive?",
         "Working out why the one who drank more survived"),
        ("How many loaves did she have in the morning?",
         "Working out how many loaves she had in the morning"),
        ("How long would the pumps take together?",
         "Working out how long the pumps would take together"),
        ("Question: does she need a visa for Ireland?",
         "Working out whether she needs a visa for Ireland"),
        ("Could it be a loose wire?", "Working out whether it could be a loose wire"),
        ("How do we sort the files by date?", "Working out how to sort the files by date"),
    ],
)  # fmt: skip
def test_a_question_is_turned_around(question: str, expected: str) -> None:
    assert title(question) == expected


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (("The user wants a timetable for the ferry.", "I need to read the config first."),
         "Working on a timetable for the ferry"),
        (("The user has a question.", "Why does the door stay shut at night?"),
         "Working out why the door stays shut at night"),
    ],
)  # fmt: skip
def test_the_task_comes_before_what_is_done_on_the_way(
    sentences: tuple[str, ...], expected: str
) -> None:
    assert title(*sentences) == expected


def test_a_phrase_does_not_end_where_the_rest_changes_what_it_says() -> None:
    body = (
        "I need to find the sum of all numbers that both of them would call perfect squares.",
        "First, I'll identify numbers that are perfect sixth powers.",
    )
    assert title(*body) == "Identifying numbers that are perfect sixth powers"
    made = title("I need to find the radius of a circle in a triangle with sides 13, 14 and 15.")
    assert made == "Finding the radius of a circle in a triangle"


def test_the_heading_of_a_part_is_its_title() -> None:
    assert (
        title("I should list the berths.", headings=("Sorting the Boats",)) == "Sorting the Boats"
    )


# What is stated.


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Therefore, the second plan is cheaper.", "Concluding that the second plan is cheaper"),
        ("So the bug is that the parser ignores the header.",
         "Concluding that the parser ignores the header"),
        ("The answer is that the ferry leaves from the old pier.",
         "Concluding that the ferry leaves from the old pier"),
    ],
)  # fmt: skip
def test_a_short_finding_is_told_whole(sentence: str, expected: str) -> None:
    assert title(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Therefore, the answer is 42.", "Concluding that the answer is 42"),
        ("So the answer is three but people often say two.", "Concluding that the answer is three"),
        ("So the next day should be Sunday.", "Concluding that the next day should be Sunday"),
        ("So the answer is to fill both jugs.", "Concluding that the answer is to fill both jugs"),
        ("So the worn gasket is the cause.", "Concluding that the worn gasket is the cause"),
        ("So the ferry leaves at 15:30.", "Concluding that the ferry leaves at 15:30"),
    ],
)
def test_a_result_is_named(sentence: str, expected: str) -> None:
    assert title("The two jugs are full.", sentence) == expected


def test_what_is_in_doubt_is_considered_and_not_concluded() -> None:
    assert title("Maybe the answer is a river.") == "Considering whether the answer is a river"
    assert (
        title("The answer might be a river.") == "Considering whether the answer might be a river"
    )
    assert "Concluding" not in title("If so, the answer is a river.")


@pytest.mark.parametrize("sentence", ["The result is 3 x =", "So the sum is <", "So that is it."])
def test_half_a_result_is_not_told(sentence: str) -> None:
    assert "that" not in title(sentence)


def test_the_last_finding_comes_before_an_earlier_one() -> None:
    made = title("So the first lock is open.", "So the second is.", "So the third lock is empty.")
    assert made == "Concluding that the third lock is empty"


def test_what_is_guessed_is_no_conclusion() -> None:
    assert title("The pump might be stuck.") == "Considering whether the pump might be stuck"
    assert title("Maybe the pump is stuck.") == "Considering whether the pump is stuck"
    assert title("The invoice does not match the order.").startswith("Noting that the invoice")


def test_words_that_stand_together_again_and_again_are_the_topic() -> None:
    made = title("Perhaps sea ice?", "I wonder about sea ice, too.")
    assert made == "Considering sea ice"


def test_of_two_findings_the_one_about_the_theme_is_the_title() -> None:
    made = title("The glacier!", "The glacier is old.", "So the road is closed.",
                 "So the glacier is gone.")  # fmt: skip
    assert made == "Concluding that the glacier is gone"


@pytest.mark.parametrize(
    ("sentence", "earlier", "expected"),
    [
        ("That may be it.", "Looking into why the pastry fell",
         "Going over why the pastry fell"),
        ("It is next, or they are.", "Moving a database of 400 GB",
         "Going over a database of 400 GB"),
        ("Das Protokoll nennt keine.", "Klären, ob der Vertrag noch gilt",
         "Weiter: Klären, ob der Vertrag noch gilt"),
        ("それは少し乾いている。", "来週のシフトの作成", "来週のシフトの作成の続き"),
    ],
)  # fmt: skip
def test_a_weak_title_gives_way_to_what_the_whole_is_about(
    sentence: str, earlier: str, expected: str
) -> None:
    assert title(sentence, taken=(earlier,)) == expected


def test_what_names_nothing_is_said_of_what_an_earlier_title_names() -> None:
    taken = ("Working out the price of the roof",)
    assert title("That gives 12 + 30 = 42.", taken=taken) == "Going over the price of the roof"
    assert title("It is.", taken=taken) == "Going over the price of the roof"


@pytest.mark.parametrize(
    "sentence",
    [
        "So three out of four requests after an update would be stale.",
        "So two unused imports: os, sys.",
        "That is not something I should call fine.",
        "I would suggest keeping 200 of it in reserve.",
        "Each machine is fast.",
    ],
)
def test_half_a_phrase_or_a_bare_number_is_no_title(sentence: str) -> None:
    made = title(sentence)
    assert not re.search(r"requests$|imports$|^Calling|200$|Each machine$", made, re.IGNORECASE)


@pytest.mark.parametrize("word", ["Therefore", "Perhaps", "Although", "Meanwhile", "Besides"])
def test_an_unknown_word_that_begins_a_sentence_is_no_verb(word: str) -> None:
    made = title(f"{word} the chicken sets the pace, and the oven is taken until seven.")
    assert word.removesuffix("e") not in made


def test_what_is_only_denied_or_guessed_is_no_task() -> None:
    assert title("I will not delete the backup.") != "Deleting the backup"
    assert "Closing" not in title("Options: close the ticket, or leave it open for now.")


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Choosing a database", "Choosing a database"),
        ("Step 1: Install dependencies", "Installing dependencies"),
        ("Check the `config` table", "Checking the config table"),
    ],
)
def test_a_heading_becomes_a_gerund(heading: str, expected: str) -> None:
    assert title("It is fine.", headings=(heading,)) == expected


# How a title is cut.


@pytest.mark.parametrize(
    "sentence",
    [
        "I need to figure out how to cool a small attic room in summer without an electric fan.",
        "I should decide between a fixed rate and a variable rate for the loan on the house.",
        "We need to review the order of the three steps that the installer runs after a reboot.",
        "I have to explain the difference between weather and climate to a class of ten-year-olds.",
        "The user wants me to sort the list of employees by the date on which they were hired.",
    ],
)
def test_a_long_phrase_ends_where_nothing_is_missing(sentence: str) -> None:
    made = title(sentence)
    assert 3 <= len(made.split()) <= MAX_TITLE_WORDS
    assert not re.search(r"\b(?:a|an|the|of|to|in|on|for|and|or|that|by|with|between)$", made)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I need to find the smallest possible value of c.",
         "Finding the smallest possible value of c"),
        ("I need to find the smallest possible value of a + b.",
         "Finding the smallest possible value"),
        ("I need to build a shed with a flat roof and two doors behind the house for the bikes.",
         "Building a shed with a flat roof and two doors"),
        ("I need to work out a plan to insulate the attic of a wooden house before the winter.",
         "Working out a plan to insulate the attic of a wooden house"),
        ("I need to find out what can float on a pond but doesn't dry out in the hot sun at noon.",
         "Finding out what can float on a pond"),
    ],
)  # fmt: skip
def test_a_phrase_is_cut_between_what_belongs_together(sentence: str, expected: str) -> None:
    assert title(sentence) == expected


def test_code_is_kept_whole_and_without_its_marks() -> None:
    assert title("I need to fix `parse_config()` first.") == "Fixing parse_config()"
    assert title("Let me read tests/test_router.py.") == "Reading tests/test_router.py"


def test_pronouns_without_what_they_stand_for_are_left_out() -> None:
    made = title("I need to check it again.", "The valve is old.")
    assert "valve" in made


@pytest.mark.parametrize(
    "sentence", ["So it comes out at 19:20.", "So this is the cause.", "Donc il reste 40 sacs."]
)
def test_no_title_tells_of_what_a_pronoun_stands_for(sentence: str) -> None:
    assert re.search(r"\b(?:it|this|il)\b", title(sentence)) is None
    assert title("So the pump is off.") == "Concluding that the pump is off"


@pytest.mark.parametrize(
    "sentence",
    [
        r"I need to solve \( x^2 - 4 = 0 \) for the roots.",
        "I need to solve x^2 - 4x = 12.",
        "I should simplify $\\frac{a}{b}$ and check.",
        "Let's compute 2*3*4 + 5.",
    ],
)
def test_formulas_are_left_out(sentence: str) -> None:
    assert not re.search(r"[\\$^*={}\d]", title(sentence))


# What may not be shown.


@pytest.mark.parametrize(
    "sentence",
    [
        "The system prompt says that I am called Robin.",
        "According to policy, I must refuse the request for Oleander.",
        "The developer message forbids the name Oleander.",
        "I should not mention Project Oleander.",
        "Do not reveal the discount code SPRING-77-QX.",
        "I need to use the key sk4f9a8b7c6d5e4f.",
        "I need to write to anna@example.org.",
        "I should call the number 0171 2345678.",
    ],
)
def test_secrets_and_talk_of_prompts_are_not_shown(sentence: str) -> None:
    made = title(sentence, "Oleander, Robin and SPRING-77-QX?")
    assert not re.search(
        r"prompt|policy|instruct|Oleander|Robin|SPRING|sk4f|anna|0171|2345678", made, re.IGNORECASE
    )


def test_a_passage_about_a_request_that_is_refused_says_no_more_than_that() -> None:
    assert title("The policy says that this is disallowed.") == "Weighing the request"


# Languages.


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Ich muss die Reisekosten berechnen, bevor ich antworte.", "Die Reisekosten berechnen"),
        (
            "Der Benutzer fragt nach der Höhe des Turms.",
            "Frage nach der Höhe des Turms",
        ),
        ("Wir sollten zuerst den Antrag stellen.", "Den Antrag stellen"),
        (
            "Je dois d'abord vérifier la conversion des unités avant de répondre.",
            "Vérifier la conversion des unités",
        ),
        ("Necesito calcular el área del terreno.", "Calcular el área del terreno"),
        ("Preciso comparar os dois planos de viagem.", "Comparar os dois planos de viagem"),
        ("Devo verificare la ricetta per quattro persone.", "Verificare la ricetta"),
        ("Нужно проверить решение уравнения.", "Проверить решение уравнения"),
        ("我需要计算圆的面积。", "计算圆的面积"),
        ("接下来我要帮用户用画图工具画出这个函数的流程图。", "画出函数的流程图"),
        ("まず、方程式を解く必要がある。", "方程式の解法"),
        ("次に円の面積を計算する。", "円の面積の計算"),
        ("방정식의 해를 계산해야 한다.", "방정식의 해 계산"),
    ],
)
def test_a_title_is_in_the_language_of_its_sentences(sentence: str, expected: str) -> None:
    assert title(sentence).startswith(expected)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("用户想知道要不要把阳台封起来。", "弄清要不要把阳台封起来"),
        ("最后的答案是3小时。", "得出答案：3小时"),
        ("根本原因是连接池太小。", "找到原因：连接池太小"),
        ("だから、水を減らすべきだ。", "水を減らすべきだという結論"),
        ("El usuario pregunta si puede recuperar la fianza.",
         "Averiguar si puede recuperar la fianza"),
        ("Así que Marta no paga nada.", "Concluir que Marta no paga nada"),
        ("Donc le bac est trop lourd pour le balcon.",
         "Conclure que le bac est trop lourd pour le balcon"),
        ("Die Nutzerin fragt, ob der Vertrag noch gilt.", "Klären, ob der Vertrag noch gilt"),
        ("Also: Ich empfehle den frühen Zug.", "Empfehlung: den frühen Zug"),
    ],
)  # fmt: skip
def test_questions_and_results_are_found_in_other_languages(sentence: str, expected: str) -> None:
    assert title(sentence) == expected


@pytest.mark.parametrize(
    ("sentences", "word"),
    [
        ("三角形的边长是相等的。三角形的高已知。", "三角形"),
        ("東京の人口は多い。東京は広い。", "東京"),
        ("기차는 빠르다. 기차가 먼저 도착한다.", "기차"),
    ],
)
def test_without_a_task_a_title_names_the_topic(sentences: str, word: str) -> None:
    made = title(*re.split(r"(?<=[.。]) ?", sentences))
    assert word in made


@pytest.mark.parametrize("language", LANGUAGES)
def test_titles_of_last_resort_are_short_and_differ(language: str) -> None:
    titles = LANGUAGES[language].last_resort
    assert len({title_key(one) for one in titles}) == len(titles) > 2
    assert all(len(one) <= MAX_TITLE_CHARS for one in titles)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Imports: os, os/exec, e.log. No use of os here, so drop os.", "Working through"),
        ("هذا هو الجواب لأن العدد أولي", "دراسة التفاصيل"),
        ("Ik denk dat het een goed antwoord is en dat de vraag niet moeilijk is.", "De details"),
    ],
)
def test_a_language_is_known_by_its_letters_or_its_commonest_words(text: str, first: str) -> None:
    assert language_of([text]).last_resort[0].startswith(first)


# Titles of earlier parts.


def test_a_title_is_not_repeated() -> None:
    sentences = ("I need to compare the two plans.", "The second plan costs less.")
    taken: tuple[str, ...] = ()
    for _ in range(5):
        made = title(*sentences, taken=taken)
        assert title_key(made) not in set(map(title_key, taken))
        taken = (*taken, made)


def test_after_all_titles_of_last_resort_the_one_used_longest_ago_comes_again() -> None:
    taken = LANGUAGES["en"].last_resort
    assert title("It is.", taken=taken) == taken[0]
    assert title("It is.", taken=(*taken, taken[0])) == taken[1]


# Any text.

WORDS = st.sampled_from(
    [
        *(
            [
                "I",
                "need",
                "to",
                "should",
                "check",
                "the",
                "a",
                "an",
                "one",
                "of",
                "in",
                "and",
                "or",
                "that",
                "is",
                "it",
                "this",
                "plan",
                "`f()`",
                "x_1",
            ]
        ),
        *(
            [
                "2.5",
                '"so"',
                "*",
                "**",
                "_",
                "$x$",
                "\\(",
                "because",
                "whether",
                "how",
                "user",
                "wants",
                "compare",
                "between",
                "two",
            ]
        ),
        *(
            [
                "plans,",
                "why:",
                "**Bold**",
                "我需要",
                "计算",
                "圆的",
                "面积。",
                "を",
                "計算",
                "Ich",
                "muss",
                "die",
                "Kosten",
                "prüfen.",
            ]
        ),
        *(
            [
                "sk-a1b2c3d4e5",
                "a@b.de",
                "policy",
                "<b>",
                "[l](http://u)",
                "answer",
                "No",
                "none",
                "any",
                "some",
            ]
        ),
        "\n",
    ]
)
TEXT = st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=24).map(" ".join))
SHOWN = TEXT.filter(lambda text: "sk-" not in text)


@given(st.lists(TEXT, max_size=6), st.lists(TEXT, max_size=3), st.lists(SHOWN, max_size=3))
@example(["no"], [], [])
@example(["the any"], ["Step 1:"], ["**"])
def test_any_text_gives_a_title_that_can_be_shown(
    sentences: list[str], headings: list[str], taken: list[str]
) -> None:
    made = title(*sentences, headings=tuple(headings), taken=tuple(taken))
    assert 0 < len(made.strip()) <= MAX_TITLE_CHARS
    assert not re.search(r"[\n\r*\\<>`]|https?:|@|sk-a1b2c3d4", made)
    assert made.count('"') % 2 == 0
    assert title_key(made) not in set(map(title_key, taken))
    assert made == title(*sentences, headings=tuple(headings), taken=tuple(taken))


def test_long_text_is_read_in_part() -> None:
    sentence = "I need to compare " + "very long words " * 50_000
    given = [*sources(*[sentence] * 2000), *headed(*[sentence] * 2000)]
    assert make_title(given, [], private=())


# Verbs.


@pytest.mark.parametrize(
    ("verb", "gerund"),
    [
        ("run", "running"), ("plan", "planning"), ("tie", "tying"), ("decide", "deciding"),
        ("prefer", "preferring"), ("see", "seeing"), ("agree", "agreeing"), ("be", "being"),
        ("debug", "debugging"), ("edit", "editing"), ("commit", "committing"), ("fix", "fixing"),
        ("study", "studying"), ("reset", "resetting"), ("model", "modeling"), ("queue", "queuing"),
    ],
)  # fmt: skip
def test_a_gerund_is_spelt_right(verb: str, gerund: str) -> None:
    assert gerund_of(verb) == gerund


def test_no_two_verbs_have_the_same_gerund() -> None:
    assert len(GERUNDS) == len(VERBS)


# What a stretch is about, named fully.


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "I wonder how a new predator would affect the deer and the grass.",
            "Working out how a new predator would affect the deer and the grass",
        ),
        (
            'I need to understand the relationship between "tree" and "forest."',
            "Understanding the relationship between tree and forest",
        ),
        ("I should examine the word list and look at each entry.", "Examining the word list"),
        (
            "I need to find four consecutive numbers whose product is 3024.",
            "Finding four consecutive numbers whose product is 3024",
        ),
    ],
)
def test_a_thing_is_named_with_what_it_belongs_to(sentence: str, expected: str) -> None:
    assert title(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Je dois visiter Paris, « la ville », demain.", "Visiter Paris"),
        ("L'utilisateur veut visiter Paris, Rome et Milan.", "Visiter Paris, Rome et Milan"),
        ("İİİİİİİİ 計算 と 確認。", "計算の検討"),
        ("I need to check the bar and foo(a, b).", "Checking the bar"),
    ],
)
def test_odd_marks_and_letters_leave_a_title_whole(sentence: str, expected: str) -> None:
    assert title(sentence) == expected


def test_no_title_names_whom_a_private_sentence_names() -> None:
    made = title("The user's name is: Quentin.", "I need to compare the rent of Quentin and Omar.")
    assert "Quentin" not in made


def test_no_title_begins_or_ends_within_a_word() -> None:
    assert "户问" not in title("用户问如何 ( 安装 ) 这个软件。")
    end = "the question is about the folding in ha"
    filler = ("it is so, " * 20)[: MAX_READ_CHARS - len(end) - 1]
    assert title(f"{filler} {end}lf each time, I think.") == "Looking into the folding"


def test_a_side_point_is_no_title_where_the_part_begins_or_ends_with_another_thing() -> None:
    body = [
        "Let me start by thinking about what happens when I stretch a rubber band.",
        "I know that rubber bands are made of rubber, which is a polymer.",
        "Polymers are long chains of molecules.",
        "When I stretch the rubber band, I'm doing work on it, putting energy into it.",
        "That energy must be going somewhere.",
    ]
    made = title(*body)
    assert "rubber band" in made
    assert "olymers" not in made


def test_a_thing_does_not_end_with_an_adjective() -> None:
    body = [
        "The girl who took her time with one cup left the bag in longer, extracting more poison.",
        "The girl who drank one slowly absorbed all the poison.",
        "The question says all drinks were poisoned, implying the poison is in the bag.",
    ]
    assert "in longer" not in title(*body, taken=("Comparing the cups",))
