"""Test writing simple inline LaTeX as plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive.notation import plain_math


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"Let \( n \) be even.", "Let n be even."),
        (r"So $L^2=2$ and $L=\sqrt{2}$.", "So L²=2 and L=√2."),
        (r"Then \(a_n \ge \sqrt 2\) holds.", "Then a_n ≥ √2 holds."),
        (r"It is \(\frac{1}{2}\) or \(\frac12\).", "It is 1/2 or 1/2."),
        (r"It is \(\frac{a+b}{2}\).", "It is (a+b)/2."),
        (r"The rate is \(5 \times 3\).", "The rate is 5 × 3."),
        (r"The time is \boxed{50} minutes.", "The time is 50 minutes."),
        (r"It takes \(3 \text{ hours}\).", "It takes 3 hours."),
    ],
)
def test_simple_formulas_are_rewritten(text: str, expected: str) -> None:
    assert plain_math(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The bat costs $1.10. The ball costs $1 less.",
        "It is $5-$10 a day.",
        "Prices in US$ rose.",
        r"It is \(\sum_{i=1}^{n} i\).",
        r"A path such as C:\temp stays.",
        "No formula at all.",
    ],
)
def test_money_paths_and_harder_formulas_stay(text: str) -> None:
    assert plain_math(text) == text


@given(st.text(alphabet="\\($){}^_2 abfrcsqtx", max_size=80))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(plain_math(text), str)
