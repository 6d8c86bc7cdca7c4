"""Samples of what hiding must tell apart, beside those of `hiding.samples`: how models and servers
write their thinking into a text, and answers that look a little like it."""

from __future__ import annotations

from typing import NamedTuple

T, A = "{THINKING}", "{ANSWER} is it."


class Format(NamedTuple):
    """Who writes their thinking into a text, and how."""

    writer: str
    text: str
    finish: str = "stop"


FORMATS = (
    # One tag, as in most chat templates; many open it themselves
    Format("Qwen 3, template", f"<think>\n{T}\n</think>\n\n{A}"),
    Format("Qwen 3, cut off", f"<think>\n{T}", "length"),
    Format("DeepSeek R1, opened by its template", f"{T}\n</think>\n\n{A}"),
    Format("Step 3, which never opens it", f"{T}</think>{A}"),
    Format("Nemotron Nano, blank lines first", f"\n\n<think>\n{T}\n</think>\n{A}"),
    Format("SmolLM 3, empty block first", f"<think>\n\n</think>\n<think>{T}</think>{A}"),
    Format("Hermes 4, upper case", f"<THINK>{T}</THINK>{A}"),
    Format("a finetune that leaves a blank in its tags", f"<think >{T}</think >{A}"),
    Format("a call of a tool within thinking", f"<think>{T} <tool_call>x</tool_call></think>{A}"),
    # A tag around the answer, too
    Format("Granite 3.3", f"<think>{T}</think><response>{A}</response>"),
    Format("Hunyuan A13B", f"<think>\n{T}\n</think>\n<answer>\n{A}\n</answer>"),
    Format("ERNIE 4.5", f"<think>\n{T}\n</think>\n\n<response>\n{A}\n</response>"),
    Format("GLM 4.1V", f"<think>{T}</think><answer><|begin_of_box|>{A}<|end_of_box|></answer>"),
    Format("K2-Think", f"<think>{T}</think> <answer> {A} </answer>"),
    # Other names
    Format("Seed-OSS", f"<seed:think>{T}</seed:think>{A}"),
    Format(
        "Seed-OSS, its budget told",
        f"<seed:think>{T}"
        f"<seed:cot_budget_reflect>I have used 9 tokens.</seed:cot_budget_reflect>{T}"
        f"</seed:think>{A}",
    ),
    Format("LongCat", f"<longcat_think>\n{T}\n</longcat_think>\n{A}"),
    Format("K2-V2", f"<think_fast>{T}</think_fast>{A}"),
    Format("EXAONE Deep", f"<thought>\n{T}\n</thought>\n\n{A}"),
    Format("Marco-o1", f"<Thought>\n{T}\n</Thought>\n\n<Output>\n{A}\n</Output>"),
    Format("Amazon Nova", f"<thinking>{T}</thinking>\n\n{A}"),
    Format("Bedrock's gpt-oss", f"<reasoning>{T}</reasoning>{A}"),
    Format("a prompt for Claude", f"<antThinking>{T}</antThinking>{A}"),
    Format("a prompt for a scratchpad", f"<scratchpad>\n{T}\n</scratchpad>\n{A}"),
    Format("Reflection", f"<thinking>\n{T}\n<reflection>{T}</reflection>\n</thinking>\n{A}"),
    # Control tokens
    Format(
        "Command A Reasoning",
        f"<|START_THINKING|>{T}<|END_THINKING|><|START_RESPONSE|>{A}<|END_RESPONSE|>",
    ),
    Format(
        "Sky-T1 and OpenThinker",
        f"<|begin_of_thought|>\n\n{T}\n\n<|end_of_thought|>\n\n<|begin_of_solution|>"
        f"\n\n{A}\n\n<|end_of_solution|>",
    ),
    Format("Apertus", f"<|inner_prefix|>{T}<|inner_suffix|>{A}"),
    Format("Gemma", f"<|channel>thought\n{T}<channel|>{A}"),
    Format("MedGemma", f"<unused94>thought\n{T}<unused95>{A}"),
    Format("openPangu", f"[unused16]{T}[unused17]{A}"),
    Format("Kimi-VL", f"◁think▷{T}◁/think▷{A}"),
    Format("Magistral", f"[THINK]{T}[/THINK]{A}"),
    Format("Solar Open", f"<|think|>{T}<|end|><|begin|>assistant<|content|>{A}<|end|>"),
    # harmony without its parser
    Format(
        "gpt-oss",
        f"<|channel|>analysis<|message|>{T}<|end|><|start|>assistant<|channel|>"
        f"final<|message|>{A}<|return|>",
    ),
    Format(
        "gpt-oss, opened by its template",
        f"analysis<|message|>{T}<|end|><|start|>assistant<|channel|>final<|message|>{A}",
    ),
    Format(
        "gpt-oss, commentary between",
        f"<|channel|>analysis<|message|>{T}<|end|><|start|>assistant<|channel|>"
        f"analysis<|message|>{T}<|end|><|start|>assistant<|channel|>final<|message|>{A}",
    ),
    Format("gpt-oss, cut off", f"<|channel|>analysis<|message|>{T}", "length"),
    Format("gpt-oss, tokens removed", f"analysisWe need to {T}.assistantfinal{A}"),
    # Escaped on the way
    Format("a gateway that escapes JSON twice", f"\\u003cthink\\u003e{T}\\u003c/think\\u003e{A}"),
)

LEGITIMATE = {
    "TypeScript generics": "Use `Promise<Thought[]>` or plain Promise<Thought> here.",
    "Java generics": "Map<String, Reasoning> byId = new HashMap<>();\nIt goes on.",
    "C++ templates": "std::vector<reasoning> notes;\nIt goes on.",
    "a comparison": "if (count<think || think>limit) return;\nIt goes on.",
    "a custom element": "Add <thinking-indicator></thinking-indicator> to the page.",
    "JSX with attributes": "return (\n  <Thinking size={2} />\n);\nIt goes on.",
    "a tag in a code span": "R1 writes its thoughts between `<think>` and `</think>`.",
    "a closing tag in a code span": "Split at `</think>` and keep the rest.",
    "tags in bold": "- **<think>**: opens\n- **</think>**: closes\nIt goes on.",
    "a tag in typographic quotation marks": "It uses the “<think>” tag, or ‘<think>’ or «<think>».",
    "a tag with a hyphen": "The <think>-tag of R1 opens its thoughts.",
    "a tag in a table": "|<think>|opens|\n|---|---|\nIt goes on.",
    "a tag in Chinese": "在<think>标签里模型思考，然后回答。继续。",
    "a tag in Japanese": "モデルは<think>タグの中で考える。",
    "a tag in Korean": "모델은 <think>태그 안에서 생각한다.",
    "a search for tags": "Run grep -o '<think>.*</think>' log.txt to find them.",
    "double backticks": "The tag is ``<think>`x`</think>`` as you see.",
    "tags in a fence": "For example:\n```\n<think>\nI add.\n</think>\nFour.\n```\nIt goes on.",
    "tags in a fence of tildes": "~~~xml\n<think>I add.</think>\n~~~\nIt goes on.",
    "an indented fence": "- so:\n  ```\n  <think>I add.</think>\n  ```\n- and on.",
    "a fence that is not closed": "```\n<think>I add.</think>\nIt goes on.",
    "a diff": "```diff\n-<thinking>\n+<thought>\n```\nIt goes on.",
    "a regular expression": 'text = re.sub(r"`<think>.*?</think>`", "", text)\nIt goes on.',
    "harmony in a fence": "```\n<|start|>assistant<|channel|>analysis<|message|>\n```\nIt goes on.",
    "a token in a code span": "End of turn is `<|im_end|>` there, and `[unused16]` opens.",
    "a link": (
        "Read [thinking](https://example.com/thinking) and "
        "[reasoning][1].\n\n[1]: https://x.example"
    ),
    "a link at the start": "[Reasoning](https://example.com/r) is the page you want.",
    "a link's target": "[thinking]: https://example.com/thinking\nIt goes on.",
    "an index": "total = notes[thinking] + d[reasoning]\nIt goes on.",
    "a citation": "As shown [Reasoning, 2024], it goes on.",
    "a label in brackets": "Sections: [INTRO] [REASONING] [END]. It goes on.",
    "an element of a document": (
        "<doc>\n  <thought>Buy low.</thought>\n  <reflection>Sell high.</reflection>\n</doc>"
    ),
    "an element within a line": "Wrap it in <scratchpad>notes</scratchpad> if you like.",
    "a heading": "## Thinking about costs\n\nCosts matter.",
    "a heading further on": (
        "It depends.\n\n## Thinking\n\nThinking is hard.\n\n## Final Response\n\nYes."
    ),
    "the word analysis": "Analysis of variance compares means.",
    "the word in small letters": "analysis: the data are skewed, and it goes on.",
    "a thought of one's own": "Here's my thought: buy it.",
    "a process": "Here is my process: first I boil water.",
    "a thought further on": "Feeling: sad.\nTHOUGHT:\nNobody likes me.\n\nIt goes on.",
    "a switch": "/think and /no_think switch a model's thinking on and off.",
    "a fold": (
        "<details>\n<summary>Show the proof</summary>\nIt is simple.\n</details>\nIt goes on."
    ),
    "a fold about thoughts": (
        "<details>\n<summary>Thought experiments</summary>\nA cat.\n</details>\nIt goes on."
    ),
    "triangles": "◁ back | next ▷ and ◁◁ again.",
    "mathematics": "For $a<b$ and $\\langle t \\rangle$, \\(x<y\\), it goes on.",
    "arrows": "a <- b <-> c <= d << e, <| and |> are F#'s pipes: x |> f <| y.",
    "mail": "Write to <thinker@example.com> or see <https://thought.example/think>.",
    "escaped HTML": "In HTML write `&lt;think&gt;` for the tag.",
    "JSON": '{"reasoning": "Because.", "thought": "<b>x</b>", "answer": 4}',
    "Chinese": "思考一下：如果 a<b，那么“思维链”就结束了。",
}
