"""Test that long pages which have nothing to do with thinking stay as they are where reasoning is
hidden, and that thinking does not get out at any split of a text."""

from __future__ import annotations

from itertools import pairwise

import pytest

from abridge.providers.catalog import PROFILES
from abridge.stages.hidden_thinking import JsonBlockFilter, ThinkingFilter, visible_text
from tests.support.hiding import ANSWER, THINKING, samples, spoken
from tests.support.matrix import each_in_turn

SIZE = 50_000
LIMIT = 1 << 22
PROFILES_TRIED = ("auto", "vllm", "openai", "deepseek", "openrouter")
PIECES = (7, 4096, SIZE * 2)

CODE = """
fn first(thoughts: Vec<Thought>) -> Option<Think> { thoughts.get::<Thinking>(0) }
export const Row = () => busy ? <Thinking /> : <Think depth={2} />;
let score = d[reasoning] + a[think] < b && x<y>z;
s = re.sub(r'<think>.*?</think>', '', s)  # `<think>` as well
"""

PROSE = """
Thinking is hard. The analysis of it, see [Reasoning](https://example.com/reasoning), began with
THOUGHT: a word. Models write `<think>` and `</think>` around it, or `[THINK]`; the tag <think> is
one, and so are <thinking>, <thought> and <reflection>. ``A `<|end|>` in it`` ends a turn. 1 < 2.
"""

CHINESE = """
思考是困难的。模型先思考，再回答：标签 `<think>` 与 `</think>` 之间是思考。分析如下，推理见[推理](https://example.com)。
"""

LATEX = r"""
\begin{reasoning}[think] Let $a < b$, so that $\langle think \rangle = \{x \mid x<y\}$, $|x|>0$.
\end{reasoning} \(\text{thought}_{[i]} \leq \alpha\) & \[ \sum_i t_i \] \\
"""

XML = """
<report id="1"><title>Sales &amp; costs</title>
<reasoning>Sales fell.</reasoning><thought kind="late">Costs rose.</thought>
<reflection><scratchpad/>Sell.</reflection><reason>None</reason></report>
"""

DIFF = """
@@ -1,4 +1,4 @@ class Parser:
-    opening: List<Thought> = '<think>'
+    opening: List<Thought> = "<thinking>"
     return text.split('</think>')[-1] if self.reasoning[think] else <Thinking />
"""

TEMPLATE = r"""
{%- if '</think>' in content %}{%- set content = content.split('</think>')[-1].lstrip('\n') %}
{{- '<|im_start|>' + message.role + '\n<think>\n' + reasoning.strip('\n') + '\n</think>\n\n' }}
{%- if enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}
```jinja
<|user|>
Hi<|end|>
<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|assistant|>
<think>
Hm.
</think>
```
"""

PAGES = {
    "code": CODE,
    "prose": PROSE,
    "Chinese": CHINESE,
    "LaTeX": LATEX,
    "XML": XML,
    "a diff": DIFF,
    "a chat template": TEMPLATE,
}

FORMATS = {
    **{
        f"{opening} of {model}": f"{opening}{{THINKING}}{closing}{{ANSWER}} is it."
        for model, opening, closing in (
            ("ERNIE's", "<think>\n", "\n</think>\n\n<response>\n"),
            ("EXAONE's", "<thought>", "</thought>"),
            ("Seed-OSS's", "<seed:think>", "</seed:think>"),
            ("LongCat's", "<longcat_think>", "</longcat_think>"),
            ("K2-V2's", "<think_faster>", "</think_faster>"),
            ("Magistral's", "[THINK]", "[/THINK]"),
            ("Kimi-VL's", "◁think▷", "◁/think▷"),
            ("openPangu's", "[unused16]", "[unused17]"),
            ("MedGemma's", "<unused94>thought\n", "<unused95>"),
            ("Command R's", "<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
            ("OpenThinker's", "<|begin_of_thought|>", "<|end_of_thought|>"),
            ("Apertus'", "<|inner_prefix|>", "<|inner_suffix|>"),
            ("Gemma's", "<|channel>thought\n", "<channel|>"),
            ("a model that is not known", "<|reasoning_begin|>", "<|reasoning_end|>"),
            ("one with wide bars", "<｜begin▁of▁thinking｜>", "<｜end▁of▁thinking｜>"),
            ("Bedrock's", "<reasoning>", "</reasoning>"),
            ("Claude's prompts", "<antthinking>", "</antthinking>"),
            ("Reflection's", "<reflection>", "</reflection>"),
            ("Gemini's, with a mark", "THOUGHT: ", "\nANSWER: "),
            ("Gemini's, in paragraphs", "THOUGHT:\nHm.\n\n", "\n\n"),
            ("a chat template's header", "<|im_start|>assistant\n<think>\n", "\n</think>"),
        )
    },
    **{
        f"only {closing} of {model}": f"{{THINKING}}{closing}{{ANSWER}} is it."
        for model, closing in (
            ("Step's", "</think>"),
            ("Seed-OSS's", "</seed:think>"),
            ("openPangu's", "[unused17]"),
            ("EXAONE's", "</thought>"),
            ("gpt-oss'", "<|end|><|start|>assistant<|channel|>final<|message|>"),
        )
    },
}
"""As the parsers of vLLM and SGLang know them, and the chat templates of the models."""

THOUGHTS = {
    **FORMATS,
    **{one["name"]: one["text"] for one in samples("thinking-in-text")},
}


def shown(text: str, profile: str, *cuts: int) -> str:
    found = ThinkingFilter.for_answer(PROFILES[profile], LIMIT)
    ends = [0, *cuts, len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    out = [piece for one in pieces if one for piece in found.feed(one)]
    return visible_text([*out, *found.end()])


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("profile", PROFILES_TRIED)
def test_a_long_page_stays_as_it_is(name: str, profile: str) -> None:
    text = "Like this:\n" + PAGES[name] * (SIZE // len(PAGES[name]) + 1)
    for size in PIECES:
        assert shown(text, profile, *range(size, len(text), size)) == text


@pytest.mark.parametrize("name", PAGES)
def test_a_page_stays_as_it_is_at_any_split(name: str) -> None:
    text = PAGES[name] * 2
    for cut in range(len(text)):
        for profile in each_in_turn(("auto", "openai"), cut, 2):
            assert shown(text, profile, cut) == text


@pytest.mark.parametrize("name", THOUGHTS)
def test_thinking_does_not_get_out_at_any_split(name: str) -> None:
    text = spoken({"text": THOUGHTS[name]})
    for cuts in [*((cut,) for cut in range(len(text))), range(1, len(text))]:
        said = shown(text, "auto", *cuts)
        assert THINKING not in said
        assert (ANSWER in said) == (ANSWER in text)


@pytest.mark.parametrize("name", ["code", "prose", "LaTeX", "XML"])
def test_a_page_in_arguments_stays_as_it_is_but_for_closed_blocks(name: str) -> None:
    text = '{"text": "' + PAGES[name].replace("\n", "\\n").replace('"', "'") * 20 + '"}'
    for tags in ("<thought kind='late'>", "</thought>", *("<reason>", "<reasoning>")):
        text = text.replace(tags, "<p>")
    text = text.replace("<reflection>", "<p>")
    for size in (3, 64, len(text)):
        found = JsonBlockFilter(limit=LIMIT)
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        out = [piece for one in pieces for piece in found.feed(one)]
        assert visible_text([*out, *found.end()]) == text
