"""Test each way in which a Responses upstream may say its thinking where that is hidden.

One table: a row is a way, with a canary of its own. None reaches a client of any API, streamed or
whole, with any profile (with `--matrix`; else with a few that differ), and the answer still does.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.display import Exposure
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.support.checker import check_chat, check_responses, frames
from tests.support.matrix import batches
from tests.support.messages_checker import check_messages
from tests.support.pipeline import Pipeline
from tests.support.streams import (
    call_item,
    message_item,
    numbered,
    reasoning_item,
    response,
    responses_stream,
)

Json = dict[str, Any]
Events = list[Json]
ANSWER = "One hundred."
FEW: list[tuple[Exposure, str]] = [
    ("summary", "auto"),  # nobody vouches for summaries and texts
    ("summary", "openai"),  # its provider does
    ("none", "transformers"),  # thinking is expected in text
]
ALL: list[tuple[Exposure, str]] = [*product(("summary", "none"), PROFILES)]

REASONING, MESSAGE = reasoning_item(0, "Hm."), message_item(1, ANSWER)
TEXT = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
SECOND = {**TEXT, "content_index": 1}


class Way(NamedTuple):
    """Where a canary is said: in the events of a stream, in a whole body, or in both."""

    events: Events
    body: Json | None


Make = Callable[[str], Any]
"""Makes the odd value from a sentence with the canary."""


def parsed(frames: list[bytes]) -> Events:
    return [json.loads(frame.partition(b"data: ")[2]) for frame in frames]


# Where it is said


def in_item(make: Make) -> Callable[[str], Way]:
    """As another item after the answer, or before it."""

    def say(sentence: str) -> Way:
        item = make(sentence)
        body = response([REASONING, MESSAGE, item])
        at = {"output_index": 2, "item": item}
        bounds: Events = [
            {"type": "response.output_item.added", **at},
            {"type": "response.output_item.done", **at},
        ]
        ended = {"type": "response.completed", "response": body}
        return Way([*parsed(responses_stream([REASONING, MESSAGE]))[:-1], *bounds, ended], body)

    return say


def in_streamed_item(make: Make) -> Callable[[str], Way]:
    """In a message or a call, which streams a few characters at a time."""

    def say(sentence: str) -> Way:
        output = [REASONING, MESSAGE, make(sentence)]
        return Way(parsed(responses_stream(output)), response(output))

    return say


def in_response(make: Make) -> Callable[[str], Way]:
    """In the response itself, each time that it comes."""

    def say(sentence: str) -> Way:
        output, more = [REASONING, MESSAGE], make(sentence)
        events = parsed(responses_stream(output))
        for event in events:
            if "response" in event:
                event["response"] |= more
        return Way(events, response(output, **more))

    return say


def in_part(make: Make) -> Callable[[str], Way]:
    """As another part of the message."""

    def say(sentence: str) -> Way:
        part = make(sentence)
        message = {**MESSAGE, "content": [*MESSAGE["content"], part]}
        body = response([REASONING, message])
        events: Events = [
            {"type": "response.content_part.added", **SECOND, "part": part},
            {"type": "response.content_part.done", **SECOND, "part": part},
            {"type": "response.output_item.done", "output_index": 1, "item": message},
            {"type": "response.completed", "response": body},
        ]
        return Way([*parsed(responses_stream([REASONING, MESSAGE]))[:-2], *events], body)

    return say


def in_events(make: Make) -> Callable[[str], Way]:
    """In events within the message."""

    def say(sentence: str) -> Way:
        events = parsed(responses_stream([REASONING, MESSAGE]))
        place = [event["type"] for event in events].index("response.output_text.delta")
        return Way([*events[: place + 1], *make(sentence), *events[place + 1 :]], None)

    return say


def after_the_answer(make: Make) -> Callable[[str], Way]:
    """In events at the end."""

    def say(sentence: str) -> Way:
        *events, ended = parsed(responses_stream([REASONING, MESSAGE]))
        return Way([*events, *make(sentence), ended], None)

    return say


def at_event(kind: str, place: Json, **odd: Any) -> Json:
    return {"type": f"response.{kind}", **place, **odd}


# Items


def tool(kind: str, **own: Any) -> Json:
    return {"type": kind, "id": "it_2", "call_id": "call_2", "status": "completed", **own}


def block(sentence: str) -> str:
    return f"a <think>{sentence}</think>b"


def message(*texts: str, kind: str = "output_text", **more: Any) -> Json:
    field = "refusal" if kind == "refusal" else "text"
    content = [{"type": kind, field: text, "annotations": [], "logprobs": []} for text in texts]
    return {**message_item(2, ""), "content": content, **more}


def annotated(**annotation: Any) -> Json:
    said = message("So.")
    said["content"][0]["annotations"] = [annotation]
    return said


def mcp(**own: Any) -> Json:
    return tool("mcp_call", server_label="s", name="f", **{"arguments": "{}", "output": "o", **own})


def mcp_tools(**own: Any) -> Json:
    tools = [{"name": "f", "input_schema": {}, **own}]
    return tool("mcp_list_tools", server_label="s", tools=tools)


def found(**own: Any) -> Json:
    results = [{"file_id": "f", "filename": "f", "text": "t", "score": 1, **own}]
    return tool("file_search_call", queries=["q"], results=results)


def ran(*outputs: Any, **own: Any) -> Json:
    return tool("code_interpreter_call", container_id="c", code="x", outputs=[*outputs], **own)


def local_shell(**own: Any) -> Json:
    return tool("local_shell_call", action={"type": "exec", "command": ["ls"], "env": {}, **own})


def search(**own: Any) -> Json:
    return tool("web_search_call", action={"type": "search", "query": "q", **own})


def arguments(text: Any) -> Json:
    return {**call_item(2, "f", ""), "arguments": text}


def odd_input(text: str) -> Json:
    return tool("custom_tool_call", name="f", input=text)


ITEMS: Mapping[str, Make] = {
    "an unknown item": lambda s: tool("musing", text=s),
    "an unknown item with content": lambda s: tool("thinking", content=[{"text": s}]),
    "an item of no type": lambda s: {"id": "x", "content": [{"type": "output_text", "text": s}]},
    "an item that is a text": lambda s: s,
    "an item that is a list": lambda s: [s],
    "a reference": lambda s: {"type": "item_reference", "id": s},
    "web_search_call: an unknown key of its action": lambda s: search(reason=s),
    "web_search_call: its query": lambda s: search(query=block(s)),
    "web_search_call: its queries": lambda s: search(queries=[block(s)]),
    "web_search_call: results": lambda s: {**search(), "results": [{"text": s}]},
    "web_search_call: a source's title": lambda s: search(
        sources=[{"type": "url", "url": "https://a", "title": s}]
    ),
    "web_search_call: a sentence as address": lambda s: search(sources=[{"type": "url", "url": s}]),
    "file_search_call: an unknown key of a result": lambda s: found(why=s),
    "file_search_call: a result's text": lambda s: found(text=block(s)),
    "file_search_call: a file's attribute": lambda s: found(attributes={"a": block(s)}),
    "file_search_call: attributes that are a text": lambda s: found(attributes=s),
    "code_interpreter_call: logs": lambda s: ran({"type": "logs", "logs": block(s)}),
    "code_interpreter_call: an unknown output": lambda s: ran({"type": "thoughts", "logs": s}),
    "code_interpreter_call: an output's unknown key": lambda s: ran({"type": "logs", "note": s}),
    "code_interpreter_call: code": lambda s: {**ran(), "code": block(s)},
    "code_interpreter_call: results": lambda s: ran(results=[{"type": "logs", "logs": s}]),
    "mcp_call: an unknown key": lambda s: mcp(thought=s),
    "mcp_call: output": lambda s: mcp(output=block(s)),
    "mcp_call: output that is an object": lambda s: mcp(output={"reasoning": s}),
    "mcp_call: arguments": lambda s: mcp(arguments=json.dumps({"a": block(s)})),
    "mcp_call: arguments that are an object": lambda s: mcp(arguments={"a": block(s)}),
    "mcp_call: an unknown key of its error": lambda s: mcp(error={"type": "x", "data": s}),
    "mcp_call: an unknown content of its error": lambda s: mcp(
        error={"type": "x", "content": [{"type": "thinking", "text": s}]}
    ),
    "mcp_list_tools: an unknown key": lambda s: mcp_tools(why=s),
    "mcp_list_tools: an annotation": lambda s: mcp_tools(annotations={"title": block(s)}),
    "mcp_list_tools: a schema": lambda s: mcp_tools(input_schema={"description": block(s)}),
    "mcp_list_tools: a schema that is a text": lambda s: mcp_tools(input_schema=s),
    "mcp_list_tools: an error": lambda s: {**mcp_tools(), "error": block(s)},
    "mcp_approval_request: an unknown key": lambda s: tool("mcp_approval_request", why=s),
    "mcp_approval_response: a reason": lambda s: tool("mcp_approval_response", reason=block(s)),
    "image_generation_call: an unknown key": lambda s: tool(
        "image_generation_call", result="QUJD", why=s
    ),
    "image_generation_call: a sentence as image": lambda s: tool("image_generation_call", result=s),
    "compaction: state that can be read": lambda s: tool("compaction", encrypted_content=s),
    "compaction: a summary": lambda s: tool("compaction", encrypted_content="abc", summary=s),
    "compaction: of another name": lambda s: tool("compaction_summary", text=s),
    "local_shell_call: a nested variable": lambda s: local_shell(env={"A": {"reasoning": s}}),
    "local_shell_call: a variable": lambda s: local_shell(env={"A": block(s)}),
    "local_shell_call: a sentence as variable": lambda s: local_shell(env={s: "1"}),
    "local_shell_call: variables that are a list": lambda s: local_shell(env=[s]),
    "local_shell_call: its command": lambda s: local_shell(command=[block(s)]),
    "local_shell_call_output": lambda s: tool("local_shell_call_output", output=block(s)),
    "shell_call: a command": lambda s: tool("shell_call", action={"commands": [block(s)]}),
    "shell_call: an unknown key": lambda s: tool("shell_call", action={"commands": [], "why": s}),
    "shell_call: its environment": lambda s: tool("shell_call", environment={"type": "l", "x": s}),
    "shell_call_output: an unknown key": lambda s: tool(
        "shell_call_output", output=[{"stdout": "a", "x": s}]
    ),
    "shell_call_output: its outcome": lambda s: tool(
        "shell_call_output", output=[{"stdout": "a", "outcome": {"type": "exit", "x": s}}]
    ),
    "shell_call_output: what it prints": lambda s: tool(
        "shell_call_output", output=[{"stdout": block(s), "stderr": block(s)}]
    ),
    "apply_patch_call: an unknown key": lambda s: tool(
        "apply_patch_call", operation={"type": "update_file", "path": "a", "explanation": s}
    ),
    "apply_patch_call: its patch": lambda s: tool(
        "apply_patch_call", operation={"type": "update_file", "path": "a", "diff": block(s)}
    ),
    "apply_patch_call_output": lambda s: tool("apply_patch_call_output", output=block(s)),
    "computer_call: an unknown key": lambda s: tool("computer_call", action={"thought": s}),
    "computer_call: a sentence as number": lambda s: tool("computer_call", action={"x": s}),
    "computer_call: what it types": lambda s: tool(
        "computer_call", action={"type": "type", "text": block(s)}
    ),
    "computer_call: a check": lambda s: tool(
        "computer_call", pending_safety_checks=[{"id": "a", "why": s}]
    ),
    "tool_search_call: arguments": lambda s: tool("tool_search_call", arguments={"q": block(s)}),
    "tool_search_output: a tool's text": lambda s: tool(
        "tool_search_output", tools=[{"type": "function", "description": block(s)}]
    ),
    "tool_search_output: tools that are a text": lambda s: tool("tool_search_output", tools=s),
    "program: code": lambda s: tool("program", code=block(s)),
    "program_output: result": lambda s: tool("program_output", result=block(s)),
    "function_call_output: an unknown part": lambda s: tool(
        "function_call_output", output=[{"type": "thinking", "text": s}]
    ),
    "function_call_output: a text": lambda s: tool("function_call_output", output=block(s)),
    "function_call: an unknown key": lambda s: {**arguments("{}"), "thought_signature": s},
    "function_call: a sentence as name": lambda s: {**arguments("{}"), "name": s},
    "function_call: its caller": lambda s: {**arguments("{}"), "caller": {"type": "x", "z": s}},
    "function_call: arguments that are an object": lambda s: arguments({"a": block(s)}),
    "function_call: arguments that are a list": lambda s: arguments([block(s)]),
    "custom_tool_call: an unknown key": lambda s: {**odd_input("a"), "thought": s},
    "custom_tool_call: a sentence as name": lambda s: {**odd_input("a"), "name": s},
    "custom_tool_call: input": lambda s: odd_input(block(s)),
    "message: a refusal": lambda s: message(block(s), kind="refusal"),
    "message: an unknown role": lambda s: message(s, role="critic"),
    "message: an unknown phase": lambda s: message(s, phase="analysis"),
    "message: an unknown key": lambda s: message("So.", reasoning=s),
    "message: content that is an object": lambda s: {**message(), "content": {"text": s}},
    "message: content that is a text": lambda s: {**message(), "content": s},
    "message: parts that are texts": lambda s: {**message(), "content": [s]},
    "message: a text that is an object": lambda s: {
        **message(),
        "content": [{"type": "output_text", "text": {"thinking": s}}],
    },
    "message: an annotation's title": lambda s: annotated(
        type="url_citation", url="https://a", title=block(s), start_index=0, end_index=1
    ),
    "message: a sentence as address": lambda s: annotated(type="url_citation", url=s, title="t"),
    "message: an annotation's unknown key": lambda s: annotated(
        type="file_citation", file_id="f", index=0, filename="f", why=s
    ),
    "message: an unknown annotation": lambda s: annotated(type="thought", text=s),
    "reasoning: its content": lambda s: reasoning_item(2, s),
    "reasoning: content that is a text": lambda s: {**reasoning_item(2, ""), "content": s},
    "reasoning: an unknown key": lambda s: reasoning_item(2, "", thinking=s),
    "reasoning: a signature": lambda s: reasoning_item(2, "", signature=s),
    "reasoning: state that can be read": lambda s: reasoning_item(2, "", encrypted_content=s),
    "reasoning: state that holds it": lambda s: reasoning_item(2, s, encrypted_content=s),
    "reasoning: state in base64": lambda s: reasoning_item(
        2, "", encrypted_content=b64encode(s.encode()).decode()
    ),
    "reasoning: state that is an object": lambda s: reasoning_item(2, "", encrypted_content=[s]),
    "reasoning: a summary that is a text": lambda s: reasoning_item(2, "", summary=s),
    "reasoning: a summary of texts": lambda s: reasoning_item(2, "", summary=[s]),
    "reasoning: an odd part of a summary": lambda s: reasoning_item(
        2, "", summary=[{"type": "reasoning_text", "text": s}]
    ),
    "reasoning: an unknown key of a summary": lambda s: reasoning_item(
        2, "", summary=[{"type": "summary_text", "text": "So.", "raw": s}]
    ),
    "reasoning: a summary's error": lambda s: reasoning_item(2, "", summary_error={"message": s}),
    "reasoning: a sentence as id": lambda s: {**reasoning_item(2, "Hm."), "id": s},
}

TAGS = (
    ("<think>", "</think>"),
    ("<THINK>", "</THINK>"),
    ('<think mode="deep">', "</think >"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    ("<unused94>", "<unused95>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|start|>assistant<|message|>"),
)

TAGS_OF_DOCUMENTS = ("<thought>", "<reasoning>", "<reflection>")
"""Names that documents use, too: they are thinking's where a text begins with them."""

TEXTS: Mapping[str, Make] = {
    **{
        f"{opening} {place}": lambda s, tags=(opening, closing), before=before: message(
            f"{before}{tags[0]}{s}{tags[1]}Then."
        )
        for opening, closing in TAGS
        for place, before in (("at the beginning", ""), ("in the middle", "First "))
        if not (before and opening in TAGS_OF_DOCUMENTS)
    },
    **{
        f"{opening} in arguments": lambda s, tags=(opening, closing): arguments(
            json.dumps({"a": f"b {tags[0]}{s}{tags[1]}c"})
        )
        for opening, closing in TAGS
    },
    "a block that stays open": lambda s: message(f"First <think>{s}"),
    "a block over two parts": lambda s: message("First <think>Hm, ", f"{s}</think>Then."),
    "a block over three parts": lambda s: message("First <think>", f"{s}", f"{s}</think>Then."),
    "a block before arguments": lambda s: arguments(f'<think>{s}</think>{{"a": 1}}'),
    "a block as a key of arguments": lambda s: arguments(json.dumps({block(s): 1})),
    "escaped tags in arguments": lambda s: arguments(
        f'{{"a": "\\u003cthink\\u003e{s}\\u003c\\/think\\u003eb"}}'
    ),
}

IN_RESPONSE: Mapping[str, Make] = {
    **{
        f"{key}: {form}": lambda s, key=key, make=make: {key: make(s)}
        for key in (
            *("thoughts", "reasoning_text", "input", "input_messages", "output_messages"),
            *("prompt_text", "kv_transfer_params", "provider_specific_fields", "choices"),
        )
        for form, make in {
            "a text": lambda s: s,
            "messages": lambda s: [{"role": "assistant", "content": s}],
        }.items()
    },
    **{
        f"{key}: {form}": lambda s, key=key, make=make: {key: make(s)}
        for key in (
            *("model", "service_tier", "truncation", "user", "safety_identifier", "background"),
            *("prompt_cache_key", "temperature", "completed_at", "previous_response_id"),
            *("conversation", "incomplete_details", "usage", "reasoning", "billing"),
            *("instructions", "metadata", "tool_choice", "prompt", "output_text", "moderation"),
        )
        for form, make in {"a sentence": lambda s: s, "an object": lambda s: {"a": s}}.items()
    },
    "metadata's value": lambda s: {"metadata": {"topic": s}},
    "the reason of an end": lambda s: {"incomplete_details": {"reason": s}},
    "a key of usage": lambda s: {"usage": {"total_tokens": 2, s: 1}},
    "a list in usage": lambda s: {"usage": {"total_tokens": 2, "details": [s]}},
    "details of usage": lambda s: {
        "usage": {"total_tokens": 2, "output_tokens_details": {"reasoning_text": s}}
    },
    "the id of a conversation": lambda s: {"conversation": {"id": s}},
    "the style of a summary": lambda s: {"reasoning": {"effort": "low", "summary": s}},
    "a tool": lambda s: {"tools": [{"type": "function", "name": "f", "description": s}]},
    "the form of a text": lambda s: {"text": {"format": {"type": "text", "x": s}}},
    "a prompt's variable": lambda s: {"prompt": {"id": "p", "variables": {"a": s}}},
    "a moderation": lambda s: {"moderation": {"output": {"message": s, "categories": {s: True}}}},
}

PARTS: Mapping[str, Make] = {
    "an unknown part": lambda s: {"type": "thinking", "thinking": s},
    "an unknown part with a text": lambda s: {"type": "thinking", "text": s},
    "a part of reasoning": lambda s: {"type": "reasoning_text", "text": s},
    "a part of a summary": lambda s: {"type": "summary_text", "text": s},
    "a part of no type": lambda s: {"type": "", "thinking": s},
    "a part of an input": lambda s: {"type": "input_text", "text": s},
    "audio with its transcript": lambda s: {"type": "output_audio", "transcript": s},
    "an unknown key of a part": lambda s: {"type": "output_text", "text": "So.", "reasoning": s},
    "log probabilities of a part": lambda s: {
        "type": "output_text",
        "text": "So.",
        "logprobs": [{"token": s, "logprob": 0, "top_logprobs": [{"token": s}]}],
    },
}


def delta(**odd: Any) -> Events:
    return [at_event("output_text.delta", TEXT, **{"delta": "a", **odd})]


def unknown_part(*events: Json, **place: Any) -> Events:
    part = {"type": "thinking", "text": ""}
    return [at_event("content_part.added", place or SECOND, part=part), *events]


def unknown_item(*events: Json) -> Events:
    item = {"type": "thinking", "id": "th_5"}
    return [at_event("output_item.added", {"output_index": 5}, item=item), *events]


def at_tool(kind: str, *events: Json) -> Events:
    item = {"type": kind, "id": "it_5", "call_id": "call_5", "name": "f"}
    return [at_event("output_item.added", {"output_index": 5}, item=item), *events]


TOOL = {"item_id": "it_5", "output_index": 5}

IN_EVENTS: Mapping[str, Make] = {
    "an event of unknown type": lambda s: [at_event("thinking.delta", TEXT, delta=s)],
    "a type that says it": lambda s: [{"type": s}],
    "a type of another form": lambda s: [{"type": "keepalive", "text": s}],
    "a response of unknown event": lambda s: [at_event("paused", {}, response={"thoughts": s})],
    "reasoning within a message": lambda s: [at_event("reasoning_text.delta", TEXT, delta=s)],
    "reasoning of early builds": lambda s: [at_event("reasoning.delta", TEXT, delta=s)],
    "reasoning of unknown event": lambda s: [at_event("reasoning_content.delta", TEXT, delta=s)],
    "a summary's part that is a text": lambda s: [
        at_event("reasoning_summary_part.added", TEXT, part={"type": "output_text", "text": s})
    ],
    "a summary's last part that is a refusal": lambda s: [
        at_event("reasoning_summary_part.done", TEXT, part={"type": "refusal", "refusal": s})
    ],
    "a delta that is an object": lambda s: delta(delta={"thinking": s}),
    "a delta's unknown key": lambda s: delta(reasoning=s),
    "a delta's log probabilities": lambda s: delta(logprobs=[{"token": s, "logprob": 0}]),
    "log probabilities in an object": lambda s: delta(logprobs={"content": [{"token": s}]}),
    "a delta's obfuscation": lambda s: delta(obfuscation=s),
    "a sentence as item": lambda s: delta(item_id=s),
    "a sentence as number": lambda s: delta(annotation_index=s),
    "a delta with an item": lambda s: unknown_item(
        at_event("output_text.delta", {"item_id": "th_5"}, item=MESSAGE, delta=s)
    ),
    "an unknown part with its text": lambda s: [
        at_event("content_part.done", SECOND, part={"type": "thinking", "text": s})
    ],
    **{
        f"text of an unknown part by {name}": lambda s, place=place: unknown_part(
            at_event("output_text.delta", place, delta=s),
            at_event("output_text.done", place, text=s),
            at_event("refusal.delta", place, delta=s),
        )
        for name, place in {
            "all of its address": SECOND,
            "item and part": {"item_id": "msg_1", "content_index": 1},
            "index and part": {"output_index": 1, "content_index": 1},
            "item": {"item_id": "msg_1"},
            "nothing": {},
        }.items()
    },
    "text of a part that became unknown": lambda s: [
        *(at_event("output_text.delta", TEXT, delta="zz", logprobs=[]) for _ in range(3)),
        *unknown_part(at_event("output_text.delta", TEXT, delta=s, logprobs=[]), **TEXT),
    ],
    "text of an item that became unknown": lambda s: [
        *(at_event("output_text.delta", TEXT, delta="zz", logprobs=[]) for _ in range(3)),
        at_event("output_item.added", {"output_index": 1}, item={"type": "musing", "id": "msg_1"}),
        at_event("output_text.delta", TEXT, delta=s, logprobs=[]),
    ],
    "text of an unknown part without an index": lambda s: unknown_part(
        at_event("output_text.delta", SECOND, delta=s), item_id="msg_1", output_index=1
    ),
    **{
        f"text of an unknown item by {name}": lambda s, place=place: unknown_item(
            at_event("output_text.delta", place, delta=s),
            at_event("function_call_arguments.delta", place, delta=s),
        )
        for name, place in {
            "all of its address": {"item_id": "th_5", "output_index": 5, "content_index": 0},
            "id": {"item_id": "th_5"},
            "index": {"output_index": 5},
            "another id": {"item_id": "th_6"},
            "another id and its index": {"item_id": "th_6", "output_index": 5},
            "nothing": {},
        }.items()
    },
    "arguments of a message": lambda s: [
        at_event("function_call_arguments.delta", TEXT, delta=block(s)),
        at_event("custom_tool_call_input.done", TEXT, input=block(s)),
    ],
    **{
        f"pieces of {event}": lambda s, event=event: [
            at_event(f"{event}.delta", {"item_id": "x", "output_index": 9}, delta=piece)
            for piece in ("a <thi", f"nk>{s}</th", "ink>b")
        ]
        for event in (
            *("mcp_call_arguments", "code_interpreter_call_code", "shell_call_command"),
            *("custom_tool_call_input", "function_call_arguments", "audio.transcript"),
        )
    },
    **{
        f"the whole of {event}": lambda s, event=event, key=key: [
            at_event(f"{event}.done", {"item_id": "x"}, **{key: block(s), "raw": s})
        ]
        for event, key in (
            ("mcp_call_arguments", "arguments"),
            ("code_interpreter_call_code", "code"),
            ("shell_call_command", "command"),
        )
    },
    "pieces of what a shell prints": lambda s: [
        at_event("shell_call_output_content.delta", {"item_id": "x"}, delta={"stdout": s})
    ],
    "what a shell prints": lambda s: [
        at_event("shell_call_output_content.done", {"item_id": "x"}, output=[{"why": s}])
    ],
    "a sentence as partial image": lambda s: [
        at_event("image_generation_call.partial_image", {"item_id": "x"}, partial_image_b64=s)
    ],
    "a failed call": lambda s: [at_event("mcp_call.failed", {"item_id": "x"}, error=s)],
    "an annotation": lambda s: [
        at_event("output_text.annotation.added", TEXT, annotation={"type": "thought", "text": s})
    ],
    "an unfinished response": lambda s: [
        at_event("in_progress", {}, response=response([reasoning_item(0, s)], thoughts=s))
    ],
    "an unfinished message": lambda s: [
        at_event("in_progress", {}, response=response([message(f"<think>{s}")]))
    ],
    "a queued response": lambda s: [
        at_event("queued", {}, response=response([tool("thinking", text=s)]))
    ],
}

AFTER: Mapping[str, Make] = {
    **{
        f"{event} of a {kind}": lambda s, kind=kind, event=event: at_tool(
            kind,
            at_event(f"{event}.delta", TOOL, delta=block(s)),
            at_event(f"{event}.done", TOOL, text=block(s), refusal=block(s), input=block(s)),
        )
        for kind in ("web_search_call", "mcp_call", "compaction", "function_call")
        for event in ("output_text", "refusal", "custom_tool_call_input")
    },
    **{
        f"arguments of a {kind}": lambda s, kind=kind: at_tool(
            kind, at_event("function_call_arguments.delta", TOOL, delta=block(s))
        )
        for kind in ("custom_tool_call", "shell_call")
    },
    "a part of a call": lambda s: at_tool(
        "function_call",
        at_event("content_part.added", TOOL, part={"type": "output_text", "text": block(s)}),
    ),
    "reasoning of nothing": lambda s: [at_event("reasoning_text.delta", {}, delta=s)],
}

FAILURES: Mapping[str, Make] = {
    "an error": lambda s: [{"type": "error", "code": "x", "message": s, "param": s}],
    "an error's code": lambda s: [{"type": "error", "code": s, "message": "m"}],
    "an error body": lambda s: [{"type": "error", "error": {"message": s, "failed_generation": s}}],
    "an error's unknown key": lambda s: [{"type": "error", "message": "m", "detail": s}],
    "a failed response": lambda s: [
        at_event(
            "failed",
            {},
            response=response(
                [tool("thinking", text=s)],
                status="failed",
                error={"code": "server_error", "message": s, "failed_generation": s},
            ),
        )
    ],
    "a refused response": lambda s: [
        at_event("failed", {}, response=response([], status="failed", error=s))
    ],
    "a response cut short": lambda s: [
        at_event(
            "incomplete",
            {},
            response=response(
                [reasoning_item(0, s)],
                status="incomplete",
                incomplete_details={"reason": "content_filter", "detail": s},
            ),
        )
    ],
    "what follows the end": lambda s: [
        at_event("completed", {}, response=response([REASONING, MESSAGE])),
        at_event("output_text.delta", TEXT, delta=s),
        at_event("thoughts", {}, text=s),
    ],
}
"""After these, the answer may be another one."""

TABLE: Mapping[str, Callable[[str], Way]] = {
    **{f"item: {name}": in_item(make) for name, make in ITEMS.items()},
    **{f"text: {name}": in_streamed_item(make) for name, make in TEXTS.items()},
    **{f"response: {name}": in_response(make) for name, make in IN_RESPONSE.items()},
    **{f"part: {name}": in_part(make) for name, make in PARTS.items()},
    **{f"event: {name}": in_events(make) for name, make in IN_EVENTS.items()},
    **{f"after the answer: {name}": after_the_answer(make) for name, make in AFTER.items()},
    **{f"failure: {name}": in_events(make) for name, make in FAILURES.items()},
}
CANARIES = {name: f"canary-{number:04}" for number, name in enumerate(TABLE)}


def texts_in(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts with their keys, and the keys."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        yield from (("", name) for name in value)
        yield from (text for name, inner in value.items() for text in texts_in(inner, name))
    elif isinstance(value, list):
        yield from (text for inner in value for text in texts_in(inner, key))


def joined(stream: bytes) -> str:
    """Return the texts of a stream, those under the same key in a row, as clients join deltas."""
    texts: dict[str, str] = {}
    for _, data in frames(stream):
        for key, text in texts_in({} if data == "[DONE]" else json.loads(data)):
            texts[key] = texts.get(key, "") + text
    return "\n".join(texts.values())


CHECKS: tuple[tuple[Api, str | None, Callable[[bytes], Any]], ...] = (
    (RESPONSES, None, partial(check_responses, texts_agree=False)),
    (CHAT, RESPONSES.name, check_chat),
    (MESSAGES, RESPONSES.name, check_messages),
)


def sentence(name: str) -> str:
    return f"I think of {CANARIES[name]} now"


def is_in(text: str, name: str) -> bool:
    """Return whether the canary of a way is in a text, or its sentence in base64."""
    return CANARIES[name] in text or b64encode(sentence(name).encode()).decode() in text


@pytest.mark.parametrize("names", batches(TABLE))
def test_no_canary_gets_out(names: list[str], request: pytest.FixtureRequest) -> None:
    for name in names:
        check_way(name, many=request.config.getoption("--matrix"))


def check_way(name: str, *, many: bool) -> None:
    way = TABLE[name](sentence(name))
    stream = b"".join(numbered(*way.events))
    assert is_in(joined(stream), name)
    whole = json.dumps(way.body).encode()
    number = [*TABLE].index(name)
    third = ALL[number % 3 :: 3]  # each profile is tried with a third of the ways
    for turn, (expose, profile) in enumerate(third if many else FEW, number):
        # of the other clients, whose writers get what this one's reader read, one tries it once
        others = CHECKS[1:] if many else CHECKS[1 + number % 2 :][: turn % len(FEW) == 0]
        for api, upstream, check in (CHECKS[0], *others):
            new_pipeline = partial(
                Pipeline, api, expose, profile=PROFILES[profile], upstream=upstream
            )
            out = new_pipeline().stream(stream)
            assert not is_in(joined(out), name)
            check(out)
            if api is RESPONSES and not name.startswith("failure"):
                assert ANSWER.encode() in out, name
            if way.body is not None:
                out = new_pipeline().whole(whole)
                assert not is_in(out.decode(), name)
                assert ANSWER.encode() in out, name


def test_a_canary_gets_out_where_nothing_is_hidden() -> None:
    """Most ways reveal something, else the table shows nothing."""
    revealed = 0
    for name, say in TABLE.items():
        stream = b"".join(numbered(*say(sentence(name)).events))
        revealed += is_in(joined(Pipeline(RESPONSES, "raw").stream(stream)), name)
    assert len(TABLE) > 200
    assert revealed > 0.8 * len(TABLE)


@pytest.mark.parametrize("kind", ["function_call_arguments", "custom_tool_call_input"])
@pytest.mark.parametrize("said_first", ["msg_1", "msg_2"], ids=["known", "unknown"])
def test_what_a_call_is_sent_is_left_out_of_a_message_that_nobody_announced(
    kind: str, said_first: str
) -> None:
    texts = [{"type": "response.output_text.delta", **TEXT, "delta": "Hi"}]
    texts += [{**texts[0], "item_id": said_first, "output_index": 7}]
    event = {"type": f"response.{kind}.delta", "item_id": said_first, "delta": "<think>Canary"}
    pipeline = Pipeline(RESPONSES, expose="none")
    for sent in (*texts, event):
        pipeline.frame(b"data: %b\n\n" % json.dumps(sent).encode())
    pipeline.close()
    assert b"Canary" not in pipeline.out
    assert pipeline.reader.dropped == 1


@pytest.mark.parametrize(
    ("api", "upstream", "check"), CHECKS, ids=["responses", "chat", "messages"]
)
def test_a_text_of_an_item_that_is_reasoning_elsewhere_is_left_out(
    api: Api, upstream: str | None, check: Callable[[bytes], Any]
) -> None:
    first, second = {"item_id": "msg_1"}, {"item_id": "msg_2"}
    events = [
        {"type": "response.created", "response": response([])},
        at_event("output_text.delta", first, delta="Hello "),
        at_event("output_text.delta", second, delta="world."),
        at_event("output_item.done", {}, item={"id": "msg_2", "type": "reasoning", "summary": []}),
        at_event("refusal.delta", second, delta="<think>Canary</think>"),
        at_event("completed", {}, response=response([])),
    ]
    pipeline = Pipeline(api, "none", profile=PROFILES["openai"], upstream=upstream)
    out = pipeline.stream(b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in events))
    check(out)
    assert b"world." in out
    assert b"Canary" not in out
    assert pipeline.reader.dropped
