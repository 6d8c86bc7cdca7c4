"""The ways in which raw reasoning may come from an upstream of Chat Completions.

Each way is a message, a choice or an answer that says `THOUGHT` where no reasoning is looked for by
itself: in unknown fields, in known ones of another type, in texts, in names. Shares no code with
Abridge.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support.streams import DONE, chunk, completion, frame

SECRET = "odd-thoughts"
THOUGHT = f"I think {SECRET}"
Json = dict[str, Any]

ROLE = chunk({"role": "assistant", "content": ""})
STOP = (chunk({}, finish="stop"), DONE)
END = {"finish_reason": "stop"}
STATE = {"data": "b3BhcXVl", "index": 0}


@dataclass(frozen=True)
class Way:
    """What one choice says, what stands beside its message, and beside the choices."""

    message: Json = field(default_factory=lambda: {"content": "So."})
    choice: Json = field(default_factory=dict)
    answer: Json = field(default_factory=dict)
    unless: Literal["", "parses_text", "makes_summaries"] = ""
    """It is no reasoning where the profile vouches for that by this column."""

    def stream(self) -> bytes:
        """Return the answer as a stream that says all in one delta."""
        shape = json.loads(chunk({}).removeprefix(b"data: "))
        is_last = self.choice.get("finish_reason") or self.answer.get("error")
        return b"".join([ROLE, frame(self._fill(shape, "delta")), *STOP[bool(is_last) :]])

    def split_stream(self, size: int) -> bytes:
        """Return the answer with its text in many deltas; all in one if it says no text alone."""
        ((name, text),) = self.message.items() if len(self.message) == 1 else [("", None)]
        if not isinstance(text, str) or self.choice or self.answer:
            return self.stream()
        texts = [text[start : start + size] for start in range(0, len(text), size)]
        return b"".join([ROLE, *(chunk({name: one}) for one in texts), *STOP])

    def body(self) -> bytes:
        """Return the answer whole."""
        return json.dumps(self._fill(completion({}), "message")).encode()

    def _fill(self, shape: Json, name: str) -> Json:
        (given,) = shape["choices"]
        message = {"role": "assistant", **self.message}
        return {**shape, "choices": [{**given, **self.choice, name: message}], **self.answer}


def call(**fields: Any) -> Json:
    function = {"name": "f", "arguments": "{}"}
    known = {"index": 0, "id": "c", "type": "function", "function": function}
    return {"tool_calls": [{**known, **fields}]}


def function(**fields: Any) -> Json:
    return call(function={"name": "f", "arguments": "{}", **fields})


def custom(**fields: Any) -> Json:
    return call(type="custom", custom={"name": "f", "input": "x", **fields})


def citation(**fields: Any) -> list[Json]:
    return [{"type": "url_citation", "url_citation": {"url": "x:", "title": "t", **fields}}]


def say(*parts: Json) -> Json:
    return {"content": [*parts, {"type": "text", "text": "So."}]}


def beside(**fields: Any) -> Json:
    return {"content": "So.", **fields}


# Unknown fields, at each level

LEVELS: dict[str, Callable[[Json], Way]] = {
    "the answer": lambda more: Way(answer=more),
    "Groq's": lambda more: Way(answer={"x_groq": {"id": "a", **more}}),
    "a prompt's filter": lambda more: Way(answer={"prompt_filter_results": [more]}),
    "a choice": lambda more: Way(choice=more),
    "a choice's filter": lambda more: Way(choice={"content_filter_results": more}),
    "one filter": lambda more: Way(choice={"content_filter_results": {"hate": more}}),
    "a message": lambda more: Way(beside(**more)),
    "a part of text": lambda more: Way({"content": [{"type": "text", "text": "So.", **more}]}),
    "a part without a type": lambda more: Way({"content": [{"text": "So.", **more}]}),
    "a part of a refusal": lambda more: Way(say({"type": "refusal", "refusal": "No.", **more})),
    "a part of an image": lambda more: Way(say({"type": "image_url", "image_url": "x:", **more})),
    "a part of references": lambda more: Way(
        say({"type": "reference", "reference_ids": [1], **more})
    ),
    "a part of thinking": lambda more: Way(say({"type": "thinking", "thinking": "", **more})),
    "an annotation": lambda more: Way(beside(annotations=[{**citation()[0], **more}])),
    "a citation": lambda more: Way(beside(annotations=citation(**more))),
    "an annotation of a part": lambda more: Way(
        say({"type": "text", "text": "A", "annotations": citation(**more)})
    ),
    "an image": lambda more: Way(
        beside(images=[{"type": "image_url", "image_url": {"url": "x:", **more}}])
    ),
    "what is spoken": lambda more: Way({"audio": {"id": "a", "transcript": "So.", **more}}),
    "a call": lambda more: Way(call(**more)),
    "a function": lambda more: Way(function(**more)),
    "a custom call": lambda more: Way(custom(**more)),
    "a legacy call": lambda more: Way({"function_call": {"name": "f", "arguments": "{}", **more}}),
    "a call's state": lambda more: Way(call(extra_content={"google": more})),
    "a message's state": lambda more: Way(beside(extra_content={"google": more, "a": more})),
    "a detail of reasoning": lambda more: Way(
        beside(reasoning_details=[{**STATE, "type": "reasoning.encrypted", **more}])
    ),
    "a block of thinking": lambda more: Way(
        beside(thinking_blocks=[{**STATE, "type": "redacted_thinking", **more}])
    ),
}

VALUES: dict[str, Any] = {
    "a sentence": {"why": THOUGHT},
    "an object": {"thought": {"text": THOUGHT}},
    "a list": {"analysis": [{"type": "text", "text": THOUGHT}]},
    "a key": {"cot": {THOUGHT: 1}},
    "a sentence as a key": {THOUGHT: 1},
}

UNKNOWN = {
    f"{value} beside what {level} has": make(fields)
    for level, make in LEVELS.items()
    for value, fields in VALUES.items()
}

# Fields that servers have, or that say what they are in another way than text

NAMES = (
    *("reasoning_text", "thinking", "thought", "thoughts", "analysis", "reflection", "rationale"),
    *("reasoning_trace", "chain_of_thought", "thinking_content", "reasoning_summary", "scratchpad"),
    *("provider_specific_fields", "tool_plan", "context", "reasoningContent", "Reasoning"),
)

KNOWN = (
    *("role", "name", "content", "refusal", "tool_calls", "function_call", "audio", "annotations"),
    *("images", "extra_content", "reasoning_content", "reasoning", "reasoning_details"),
    "thinking_blocks",
)

OTHER_TYPES: dict[str, Any] = {
    "a list of sentences": [THOUGHT],
    "a list of lists": [[{"type": "text", "text": THOUGHT}]],
    "a list of what is unknown": [{"type": "musing", "text": THOUGHT}],
    "an object": {"text": THOUGHT, "value": THOUGHT},
    "an object's key": {THOUGHT: "x"},
}

FIELDS = {
    **{f"the field {name}": Way(beside(**{name: THOUGHT})) for name in NAMES},
    **{
        f"{value} as {name}": Way(beside(**{name: given}))
        for name in KNOWN
        for value, given in OTHER_TYPES.items()
    },
    "its field": Way(beside(reasoning_content=THOUGHT)),
    "its field, and a block": Way(
        {"reasoning_content": "Hm", "content": f"<think>{THOUGHT}</think>So."}
    ),
    "another field": Way(beside(reasoning=THOUGHT)),
    "a list of thinking blocks": Way(
        beside(thinking_blocks=[{"type": "thinking", "thinking": THOUGHT, "index": 0}])
    ),
    "log probabilities": Way(
        choice={"logprobs": {"content": [{"token": THOUGHT, "logprob": 0, "bytes": [1]}]}}
    ),
    "token ids": Way(choice={"token_ids": [THOUGHT]}),
    "log probabilities of the prompt": Way(
        answer={"prompt_logprobs": [{"1": {"decoded_token": THOUGHT}}]}
    ),
    "a prompt": Way(answer={"prompt_text": THOUGHT, "prompt_token_ids": [THOUGHT]}),
    "a completion's text": Way(choice={"text": THOUGHT}),
    "words in the usage": Way(choice=END, answer={"usage": {"total_tokens": 1, "note": THOUGHT}}),
    "a sentence as a figure's name": Way(
        choice=END, answer={"usage": {"total_tokens": 1, THOUGHT: 1}}
    ),
    "words as a figure": Way(choice={"content_filter_offsets": {"start": THOUGHT}}),
    "words as state": Way(
        beside(thinking_blocks=[{"type": "redacted_thinking", "data": THOUGHT, "index": 0}])
    ),
    "words as a signature": Way(call(extra_content={"google": {"thought_signature": THOUGHT}})),
    "words as media": Way({"audio": {"id": "a", "data": THOUGHT}}),
    "words as an address": Way(beside(annotations=citation(url=THOUGHT))),
    "arguments that are an object": Way(function(arguments={"a": f"<think>{THOUGHT}</think>"})),
}

PARTS = {
    f"a part of type {kind!r}": Way(say({"type": kind, "text": THOUGHT, "thinking": THOUGHT}))
    for kind in (
        *("thinking", "reasoning", "thought", "reasoning_text", "summary_text", "musing"),
        *("redacted_thinking", "tool_result", "Thinking", " text", 1, ["text"], {"text": "text"}),
    )
}

DETAILS = {
    f"{name} of a detail of type {kind!r}": Way(
        beside(reasoning_details=[{"type": kind, name: THOUGHT, "index": 0}]),
        unless="makes_summaries" if (kind, name) == ("reasoning.summary", "summary") else "",
    )
    for kind in ("reasoning.text", "reasoning.summary", "reasoning.encrypted", "musing", "")
    for name in ("text", "summary", "data", "thinking")
}

ERRORS = {
    "an error": Way(answer={"error": {"message": THOUGHT, "type": THOUGHT, "code": THOUGHT}}),
    "an error that is a text": Way(answer={"error": THOUGHT}),
    "an error with more": Way(
        answer={"error": {"message": "", "failed_generation": THOUGHT, "metadata": {"x": THOUGHT}}}
    ),
    "a choice's error": Way(choice={"finish_reason": "error", "error": {"message": THOUGHT}}),
}

# Names

WRITE_NAMES: dict[str, Callable[[str], Way]] = {
    "the id": lambda name: Way(answer={"id": name}),
    "the object": lambda name: Way(answer={"object": name}),
    "the model": lambda name: Way(answer={"model": name}),
    "the fingerprint": lambda name: Way(answer={"system_fingerprint": name}),
    "the tier": lambda name: Way(answer={"service_tier": name}),
    "the provider": lambda name: Way(answer={"provider": name}),
    "the role": lambda name: Way(beside(role=name)),
    "a speaker": lambda name: Way(beside(name=name)),
    "a finish reason": lambda name: Way(choice={"finish_reason": name}),
    "a native finish reason": lambda name: Way(choice={"native_finish_reason": name}),
    "a stop reason": lambda name: Way(choice={"stop_reason": name}),
    "a stop sequence": lambda name: Way(choice={"matched_stop": name}),
    "a call's id": lambda name: Way(call(id=name)),
    "a call's type": lambda name: Way(call(type=name)),
    "a function's name": lambda name: Way(function(name=name)),
    "a custom call's name": lambda name: Way(custom(name=name)),
    "a reference": lambda name: Way(say({"type": "reference", "reference_ids": [name]})),
    "a detail's format": lambda name: Way(beside(reasoning_details=[{"format": name, "index": 0}])),
}

AS_NAMES = {
    f"{kind} as {place}": make(name)
    for place, make in WRITE_NAMES.items()
    for kind, name in {
        "a sentence": THOUGHT,
        "a block": f"<think>{SECRET}</think>",
        "what a tag closes": f"{SECRET}[/THINK]",
    }.items()
}

# Tags in texts

FINAL = "<|start|>assistant<|channel|>final<|message|>"
TAGS_OF_DOCUMENTS = (
    *(("<thought>", "</thought>"), ("<reflection>", "</reflection>")),
    *(("<reasoning>", "</reasoning>"), ("<reason>", "</reason>"), ("[REASONING]", "[/REASONING]")),
)
"""Names that documents use, too: they are thinking's where a text begins with them."""

OWN_TAGS = (
    *(("<think>", "</think>"), ("<THINKING >", "</THINKING>"), ("<think>", "<//think>")),
    *(("<think time='3'>", "</think>"), ("<seed:think>", "</seed:think>")),
    *(("<think_faster>", "</think_faster>"), ("<think:opensource>", "</think:opensource>")),
    *(("&lt;think&gt;", "&lt;/think&gt;"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷")),
    *(("<think_never_used_51bce0c785ca2f68>", "</think_never_used_51bce0c785ca2f68>"),),
    *(("<|thought_start|>", "<|thought_end|>"), ("[unused16]", "[unused17]")),
    ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"),
    *(("<|START_THINKING|>", "<|END_THINKING|>"), ("<|begin_of_thought|>", "<|end_of_thought|>")),
    *(("<|think|>", "<|/think|>"), ("<|inner_prefix|>", "<|inner_suffix|>")),
    *(("<|channel>thought\n", "<channel|>"), ("<unused94>thought\n", "<unused95>")),
    *(
        ("<|channel|>analysis<|message|>", f"<|end|>{FINAL}"),
        ("<|start|>assistant<|channel|>analysis to=python code<|message|>", f"<|call|>{FINAL}"),
        ("<|channel|> musing <|message|>", f"<|end|>{FINAL}"),
    ),
)

TAGS = (*OWN_TAGS, *TAGS_OF_DOCUMENTS)


def escaped(text: str) -> str:
    """Return a JSON text as encoders write it that escape what a browser may take for markup."""
    return json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e")


WRITE_LATER: dict[str, Callable[[str], Way]] = {
    "a refusal": lambda text: Way({"refusal": f"No. {text}"}),
    "a part of a refusal": lambda text: Way(say({"type": "refusal", "refusal": f"No. {text}"})),
    "what is spoken": lambda text: Way({"audio": {"id": "a", "transcript": f"So. {text}"}}),
    "a text that has begun": lambda text: Way({"content": f"So. {text}Yes."}),
    "a text's line": lambda text: Way({"content": f"So.\n{text}Yes."}),
}
"""Texts in which thinking comes later."""

WRITE_TEXTS: dict[str, Callable[[str], Way]] = {
    "a text": lambda text: Way({"content": f"{text}So."}),
    "a part of text": lambda text: Way({"content": [{"type": "text", "text": f"{text}So."}]}),
    "a title": lambda text: Way(beside(annotations=citation(title=text))),
    "arguments": lambda text: Way(function(arguments=json.dumps({"a": f"{text}b"}))),
    "a key of arguments": lambda text: Way(function(arguments=json.dumps({f"{text}b": 1}))),
    "escaped arguments": lambda text: Way(function(arguments=escaped(f"{text}b"))),
    "a custom call": lambda text: Way(custom(input=f"a {text} b")),
    "a legacy call": lambda text: Way(
        {"function_call": {"name": "f", "arguments": json.dumps([text])}}
    ),
}

IN_TAGS = {
    **{
        f"{opening} closed by nothing": Way({"content": f"So. {opening}{THOUGHT}"})
        for opening, _ in OWN_TAGS
    },
    **{
        f"{closing} opened by nothing": Way(
            {"content": f"{THOUGHT}{closing}So."}, unless="parses_text"
        )
        for _, closing in TAGS
    },
    **{
        f"{opening} in {place}": make(f"{opening}{THOUGHT}{closing}")
        for tags, writers in ((TAGS, WRITE_TEXTS), (OWN_TAGS, WRITE_LATER))
        for opening, closing in tags
        for place, make in writers.items()
    },
    **{
        f"{opening} before arguments": Way(function(arguments=f"{opening}{THOUGHT}{closing}{{}}"))
        for opening, closing in TAGS
    },
    "words of harmony": Way(
        {"content": f"analysis{THOUGHT}assistantfinalSo."}, unless="parses_text"
    ),
    "words of Granite": Way(
        {"content": f"Here's my thought process: {THOUGHT}\nHere's my response: So."},
        unless="parses_text",
    ),
}

WAYS: dict[str, Way] = {
    **UNKNOWN,
    **FIELDS,
    **PARTS,
    **DETAILS,
    **ERRORS,
    **AS_NAMES,
    **IN_TAGS,
}
