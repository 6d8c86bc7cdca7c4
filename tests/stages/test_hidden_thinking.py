"""Test finding thinking in text that is shown where reasoning is hidden."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.providers.catalog import PROFILES
from abridge.stages.hidden_thinking import (
    BlockFilter,
    JsonBlockFilter,
    ThinkingFilter,
    visible_text,
)
from abridge.stages.tags import MAX_LEADING_BLANKS, TagPiece

LIMIT = 1000
FINAL = "<|start|>assistant<|channel|>final<|message|>"
WORDS = ["<think>", "</think>", "[THINK]", "<|end|>", "<|channel|>", "analysis", "<|message|>"]
WORDS += [r"\u003c|channel|\u003e", r"\u003c|message|\u003e", r"\u003e", r"\n", "<think "]
WORDS += ["[reasoning]", "(x)", "**", "<|im_end|>", "THOUGHT:", "ANSWER:"]
WORDS += ["\\u003c", "think>", "<|constrain|>", "<|start|>", "<channel|>", "<|channel>thought"]
MARKS = ["`", "a", " ", "\n", "<", "[", "◁think▷", "final"]

BLOCKS = {
    "at the beginning": ("<think>abc</think>Hello", "abc", "Hello"),
    "after the answer has begun": ("Hi <think>abc</think>there", "abc", "Hi there"),
    "in other letters": ("<Think>abc</THINK>Hello", "abc", "Hello"),
    "with an attribute": ("<thinking depth='2'>abc</thinking>Hello", "abc", "Hello"),
    "with a prefix": ("<seed:think>abc</seed:think>Hello", "abc", "Hello"),
    "in brackets": ("[THINK]abc[/THINK]Hello", "abc", "Hello"),
    "of Kimi's": ("◁think▷abc◁/think▷Hello", "abc", "Hello"),
    "of Command R's": ("<|START_THINKING|>abc<|END_THINKING|>Hello", "abc", "Hello"),
    "closed by nothing": ("Hi <think>abc", "abc", "Hi "),
    "opened by nothing": ("abc</think>Hello", "abc", "Hello"),
    "two": ("<think>a</think><think>b</think>\n\nHello", "a\nb", "Hello"),
    "empty": ("<think>\n\n</think>\n\nHello", "", "Hello"),
    "harmony": (
        "<|channel|>analysis<|message|>abc<|end|>" + FINAL + "Hello<|return|>",
        "abc",
        "Hello",
    ),
    "harmony without its tokens": ("analysisWe add.assistantfinalHello", "We add.", "Hello"),
    "harmony without its tokens, in Chinese": ("analysis加。assistantfinal好", "加。", "好"),
    "harmony without its tokens or an end": ("analysisWe add.", "We add.", ""),
    "of Granite's": (
        "Here is my thought process:\nabc\nHere is my response:\nHello",
        "abc\n",
        "Hello",
    ),
    "of Granite's, cut off": (
        "Here is my thought process: abc",
        "abc",
        "",
    ),
    "a phrase after a control token": (
        "<|begin_of_text|>\nHere are my reasoning steps:\nabc\n[BEGIN FINAL RESPONSE]\nHello",
        "abc\n",
        "<|begin_of_text|>\nHello",
    ),
    "closed between bold words": (
        "A <think> tag, **abc**</think>**Hello**",
        "A <think> tag, **abc**",
        "**Hello**",
    ),
    "folded": (
        "<details><summary>Thinking…</summary>abc</details>Hello",
        "<summary>Thinking…</summary>abc",
        "Hello",
    ),
    "harmony of a tool": (
        "Hi<|channel|>analysis to=python <|constrain|>code<|message|>abc<|call|>Hello",
        "abc",
        "HiHello",
    ),
    "harmony whose head has a tag in it": (
        "<|channel|>analysis to=[think] <|message|>abc<|end|>Hello",
        "abc",
        "Hello",
    ),
    "harmony without a channel": (
        "<|channel|>analysis<|message|>abc<|start|>assistant<|message|>Hello",
        "abc",
        "Hello",
    ),
    "a name that begins as harmony": ("analysisResults = f()", "", "analysisResults = f()"),
    "in special tokens": ("<|think|>abc<|/think|>Hello", "abc", "Hello"),
    "of Apertus'": ("<|inner_prefix|>abc<|inner_suffix|>Hello", "abc", "Hello"),
    "of Gemma's": ("<|channel>thought\nabc<channel|>Hello", "abc", "Hello"),
    "of MedGemma's": ("<unused94>thought\nabc<unused95>Hello", "thought\nabc", "Hello"),
    "of K2-V2's": ("<think_fast>abc</think_fast>Hello", "abc", "Hello"),
    "escaped": (r"\u003cthink depth=2\u003eabc\u003c/think\u003e{}", "abc", "{}"),
    "of Bedrock's, escaped": (r"\u003creasoning\u003eabc\u003c\/reasoning\u003e{}", "abc", "{}"),
    "with a line end, escaped": (r"<think\n>abc</think\n>{}", "abc", "{}"),
    "harmony, escaped": (
        r"<|channel|>analysis<|message|>abc<|end|>{}".replace("<", r"\u003c").replace(
            ">", r"\u003e"
        ),
        "abc",
        "{}",
    ),
    "escaped in part": ("\\u003cthink>abc<\\/think\\u003e{}", "abc", "{}"),
    "of Kimi's, escaped": ("\\u25c1think\\u25b7abc\\u25c1/think\\u25b7{}", "abc", "{}"),
    "quoted": ("Use the `<think>` tag.", "", "Use the `<think>` tag."),
    "no tag": ("1 < 2, a<b, [1], <b>x</b> `", "", "1 < 2, a<b, [1], <b>x</b> `"),
}


def split(pieces: list[str], *, may_begin_inside: bool = True) -> tuple[str, str]:
    """Return the thinking and the answer."""
    found = ThinkingFilter(may_begin_inside=may_begin_inside, limit=LIMIT)
    out = [piece for text in pieces for piece in found.feed(text)] + found.end()
    raw = "".join(piece.text for piece in out if piece.kind == "raw")
    return raw, "".join(piece.text for piece in out if piece.kind == "text")


@pytest.mark.parametrize("case", BLOCKS.values(), ids=BLOCKS)
def test_thinking_is_found_in_every_form_and_place(case: tuple[str, str, str]) -> None:
    text, raw, answer = case
    assert split([text]) == (raw, answer)
    assert split(list(text)) == (raw, answer)


FOLDS = ["Think", "Thoughts", "Thinking…", "Thinking (5 s)", "Thinking time: 3s", "Thought: 5s"]
FOLDS += ["Thought Process", "Thinking Process:", "Thought for a few seconds", "Reasoned for 3s"]
FOLDS += ["Reasoning steps", "Reasoning content", "Thought 12 seconds"]


@pytest.mark.parametrize("heading", FOLDS)
def test_thinking_is_folded_under_many_headings(heading: str) -> None:
    text = f"<details><summary>{heading}</summary>abc</details>Hello"
    assert split([text])[1] == split(list(text))[1] == "Hello"


@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_block_may_follow_a_bold_word(size: int) -> None:
    text = "**One**<think>**abc** d</think>Hello"
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert split(pieces, may_begin_inside=False) == ("**abc** d", "**One**Hello")


@given(
    st.lists(st.sampled_from([*WORDS, *MARKS]), max_size=12),
    st.lists(st.integers(0, 90), max_size=6),
    st.booleans(),
)
def test_any_split_of_the_text_gives_the_same(
    words: list[str],
    cuts: list[int],
    may_begin_inside: bool,  # noqa: FBT001 -- given by Hypothesis
) -> None:
    text = "".join(words)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    whole = split([text], may_begin_inside=may_begin_inside)
    assert split(pieces, may_begin_inside=may_begin_inside) == whole


def split_blocks(pieces: list[str], limit: int = LIMIT) -> tuple[str, str]:
    found = BlockFilter(limit=limit)
    out = [piece for text in pieces for piece in found.feed(text)] + found.end()
    raw = "".join(piece.text for piece in out if piece.kind == "raw")
    return raw, "".join(piece.text for piece in out if piece.kind == "text")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>a</think>{}", "{}"),
        ('{"a": "b<think>c</think>d"}', '{"a": "bd"}'),
        ("<think>a</think>b<think>", "b<think>"),
        ("a</think>b", "a</think>b"),
        ("`<think>`a</think>", "`<think>`a</think>"),
        ("<think>\n a", "<think>\n a"),
        (f"<|channel|>analysis<|message|>a<|end|>{FINAL}b", "b"),
        (f"<|channel|>analysis<|message|>a<|end|>{FINAL}b".replace(">", r"\u003e"), "b"),
    ],
)
def test_only_closed_blocks_are_taken_out_of_a_text_that_may_mention_tags(
    text: str, answer: str
) -> None:
    assert split_blocks([text])[1] == answer
    assert split_blocks(list(text))[1] == answer


@given(
    st.lists(st.sampled_from([*WORDS, *MARKS]), max_size=12),
    st.lists(st.integers(0, 90), max_size=6),
)
def test_any_split_of_a_text_that_may_mention_tags_gives_the_same(
    words: list[str], cuts: list[int]
) -> None:
    text = "".join(words)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert split_blocks([text[start:end] for start, end in pairwise(ends)]) == split_blocks([text])


def split_json(pieces: list[str], *, asks: bool = False) -> str:
    """Return what is shown of arguments; if it `asks`, pieces that pass are not fed."""
    found = JsonBlockFilter(limit=LIMIT)
    out = []
    for text in pieces:
        out += [TagPiece("text", text)] if asks and found.passes(text) else found.feed(text)
    return visible_text([*out, *found.end()])


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('<think>a "b" c</think>{"d": 1}', '{"d": 1}'),
        ('{"d": 1}<think>a "b" c</think>', '{"d": 1}'),
        ('{"d": "<think>a \\"b\\" c</think>e"}', '{"d": "e"}'),
        ('{"d": "<think>", "e": ["</think>"]}', '{"d": "<think>", "e": ["</think>"]}'),
        ('{"<think>": 1, "e": {"</think>": 2}}', '{"<think>": 1, "e": {"</think>": 2}}'),
        ('{"a": "<think>", "b": "<think>c</think>d"}', '{"a": "<think>", "b": "d"}'),
        (r'{"d": "<think>\\\"b\\\" c</think>e"}', '{"d": "e"}'),
        (r'{"d": "<think>b\\", "e": ["</think>"]}', r'{"d": "<think>b\\", "e": ["</think>"]}'),
        ('{"d": "[] <think>", "e": "</think>"}', '{"d": "[] <think>", "e": "</think>"}'),
        ('{"d": ["{x} <think>a</think>b"]}', '{"d": ["{x} b"]}'),
        ('It is "so {"d": "<think>", "e": "</think>"}', '{"d": "<think>", "e": "</think>"}'),
        ("{'d': 'a <think>b</think>c', 'e': '<think>'}", "{'d': 'a c', 'e': '<think>'}"),
    ],
)
def test_a_block_in_a_string_of_arguments_ends_inside_it(text: str, arguments: str) -> None:
    assert split_json(list(text)) == split_json(list(text), asks=True) == arguments
    for cut in range(len(text)):
        assert split_json([text[:cut], text[cut:]]) == arguments
        assert split_json([text[:cut], text[cut:]], asks=True) == arguments


@given(
    st.lists(st.sampled_from([*WORDS, '"', '\\"', "\\", "{", "}", " a"]), max_size=12),
    st.lists(st.integers(0, 90), max_size=6),
)
def test_any_split_of_arguments_gives_the_same(words: list[str], cuts: list[int]) -> None:
    text = "".join(words)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    assert split_json(pieces) == split_json(pieces, asks=True) == split_json([text])


def test_json_passes_but_not_thinking_after_it() -> None:
    found = JsonBlockFilter(limit=LIMIT)
    assert all(map(found.passes, ['{"', "a", '": "', "b", '", "c', '": {},', ' "d', '": "e']))
    rest = ["<think>", "f", "</think>", "g", '"} Hm', ", so "]
    assert not any(map(found.passes, (rest[0], rest[4])))
    assert visible_text([piece for text in rest for piece in found.feed(text)]) == 'g"} '


@pytest.mark.parametrize("interrupt", [ThinkingFilter.interrupt, ThinkingFilter.end])
@pytest.mark.parametrize(
    ("tag", "shown"),
    [("<think>", ""), ("<|end|>", "abc"), ("[THINK]", ""), ("<|channel|>analysis<|message|>", "")],
)
def test_what_goes_out_as_a_text_is_interrupted_still_begins_a_tag(
    tag: str, shown: str, interrupt: Callable[[ThinkingFilter], list[TagPiece]]
) -> None:
    for cut in range(1, len(tag)):
        found = ThinkingFilter(may_begin_inside=False, limit=LIMIT)
        before = [*found.feed(f"Hi {tag[:cut]}"), *interrupt(found)]
        assert visible_text(before) == f"Hi {tag[:cut]}"
        assert visible_text([*found.feed(f"{tag[cut:]}abc"), *found.end()]) == shown


@given(
    st.lists(st.sampled_from([*WORDS, *MARKS]), max_size=12),
    st.lists(st.integers(0, 90), max_size=6),
)
def test_no_text_that_may_mention_tags_is_said_twice(words: list[str], cuts: list[int]) -> None:
    text = "".join(words)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    found = BlockFilter(limit=LIMIT)
    out = [
        piece
        for start, end in pairwise(ends)
        for piece in [*found.feed(text[start:end]), *found.end()]
    ]
    assert "".join(piece.text for piece in out) == text


def test_a_block_longer_than_the_limit_is_text() -> None:
    text = f"<think>{'a' * LIMIT}</think>b"
    assert split_blocks(list(text)) == ("", text)


def test_a_text_that_may_begin_inside_a_block_is_held_back() -> None:
    found = ThinkingFilter(may_begin_inside=True, limit=LIMIT)
    assert found.feed("So the answer") == []
    assert found.has_held_text
    assert [piece.text for piece in found.note_reasoning()] == ["So the answer"]
    assert [piece.text for piece in found.feed(" is 4.")] == [" is 4."]
    assert found.passes(" Plain.")
    assert not found.passes(" a <b")


def test_no_more_is_held_back_than_the_limit() -> None:
    found = ThinkingFilter(may_begin_inside=True, limit=LIMIT)
    assert found.feed("a" * LIMIT) == []
    assert sum(len(piece.text) for piece in found.feed("b")) == LIMIT + 1


def test_a_text_that_cannot_begin_inside_a_block_loses_only_control_tokens() -> None:
    text = "abc</think>Hello<|end|>"
    assert split([text], may_begin_inside=False) == ("", "abc</think>Hello")


class TestAPrefilledTemplate:
    """The prompt opens the block."""

    @pytest.mark.parametrize(
        ("pieces", "raw", "answer"),
        [
            (["abc"], "abc", ""),
            (["abc</think>Hello"], "abc", "Hello"),
            (["<think>\nabc", "</think>Hello"], "abc", "Hello"),
            (["\n", "<think>abc</think>Hello"], "abc", "Hello"),
        ],
    )
    def test_the_text_begins_inside(self, pieces: list[str], raw: str, answer: str) -> None:
        found = ThinkingFilter.for_answer(PROFILES["prefilled"], LIMIT)
        out = [piece for text in pieces for piece in found.feed(text)] + found.end()
        assert "".join(piece.text for piece in out if piece.kind == "raw") == raw
        assert visible_text(out) == answer

    def test_unless_reasoning_has_come_before_it(self) -> None:
        found = ThinkingFilter.for_answer(PROFILES["prefilled"], LIMIT)
        found.note_reasoning()
        assert visible_text(found.feed("Hello")) == "Hello"

    def test_reasoning_that_comes_later_does_not_end_it(self) -> None:
        found = ThinkingFilter.for_answer(PROFILES["prefilled"], LIMIT)
        out = [*found.feed("abc"), *found.note_reasoning(), *found.feed("def</think>Hello")]
        assert visible_text(out) == "Hello"


class TestTheNextText:
    """A text of an answer that goes on with the block of the one before."""

    def after(self, *texts: str, profile: str = "auto") -> ThinkingFilter:
        last = None
        for text in texts:
            last = ThinkingFilter.for_answer(PROFILES[profile], LIMIT, after=last)
            last.feed(text)
            last.end()
        return ThinkingFilter.for_answer(PROFILES[profile], LIMIT, after=last)

    def test_it_begins_inside_a_block_that_is_open(self) -> None:
        found = self.after("Hi <think>abc", "def")
        assert visible_text([*found.feed("ghi</think>Hello"), *found.end()]) == "Hello"

    def test_it_does_not_after_one_that_is_closed(self) -> None:
        found = self.after("<think>abc</think>Hi", "there")
        assert visible_text([*found.feed("Hello"), *found.end()]) == "Hello"

    def test_reasoning_elsewhere_does_not_end_the_block(self) -> None:
        for found in (self.after("<think>abc"), self.after("abc", profile="prefilled")):
            out = [*found.note_reasoning(), *found.feed("def</think>Hello")]
            assert visible_text(out) == "Hello"


def test_an_open_block_goes_on_after_an_interruption() -> None:
    found = ThinkingFilter(may_begin_inside=True, limit=LIMIT)
    out = [*found.feed("<think>abc<"), *found.interrupt(), *found.feed("/think>Hello")]
    assert visible_text(out) == "Hello"


def test_no_more_than_some_blanks_are_held_after_a_block() -> None:
    found = ThinkingFilter(may_begin_inside=True, limit=LIMIT)
    found.feed("<think>abc</think>")
    blanks = " " * (MAX_LEADING_BLANKS + 1)
    assert visible_text(found.feed(blanks)) == blanks


def test_the_end_of_harmonys_thinking_may_go_on() -> None:
    assert split(["<|channel|>analysis<|message|>abc<|end|>", f"{FINAL}Hello"]) == ("abc", "Hello")


@pytest.mark.parametrize("split_text", [split_blocks, split_json])
def test_the_end_of_harmonys_thinking_goes_with_its_block(
    split_text: Callable[[list[str]], object],
) -> None:
    text = f'{{"a": "<|channel|>analysis<|message|>abc<|end|>{FINAL}Hello"}}'
    for cut in range(len(text)):
        assert split_text([text[:cut], text[cut:]]) == split_text([text])
