"""Test that any request is translated, or refused with the name of a field."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis.api import UpstreamOptions
from abridge.apis.chat import request as chat
from abridge.apis.json import dumps
from abridge.apis.messages import request as messages
from abridge.apis.responses import request as responses
from abridge.core.model_request import ModelRequest
from abridge.errors import RequestError
from abridge.providers.catalog import PROFILES
from tests.apis.translation import HELLO, Json
from tests.support.matrix import some

KEYS = [
    "type",
    "role",
    "content",
    "text",
    "name",
    "arguments",
    "input",
    "output",
    "call_id",
    "id",
    "tool_calls",
    "function",
    "custom",
    "thinking_blocks",
    "thinking",
    "signature",
    "data",
    "summary",
    "encrypted_content",
    "reasoning_content",
    "namespace",
    "tools",
    "mode",
    "action",
    "command",
    "image_url",
    "file",
    "audio",
    "input_audio",
    "url",
    "detail",
    "parameters",
    "strict",
    "format",
    "schema",
    "json_schema",
    "grammar",
    "allowed_tools",
    "effort",
    "source",
    "media_type",
    "tool_use_id",
    "tool_name",
    "title",
    "citations",
    "cache_control",
    "input_schema",
    "budget_tokens",
    "disable_parallel_tool_use",
]
KINDS = [
    "message",
    "reasoning",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "function_call_output",
    "web_search_call",
    "text",
    "input_text",
    "output_text",
    "refusal",
    "input_image",
    "image_url",
    "input_file",
    "file",
    "input_audio",
    "function",
    "custom",
    "namespace",
    "local_shell",
    "shell",
    "apply_patch",
    "web_search",
    "thinking",
    "redacted_thinking",
    "json_schema",
    "grammar",
    "allowed_tools",
    "user",
    "assistant",
    "system",
    "tool",
    "required",
    "auto",
    "none",
    "tool_use",
    "tool_result",
    "image",
    "document",
    "search_result",
    "base64",
    "url",
    "content",
    "enabled",
    "adaptive",
    "disabled",
    "any",
    "bash_20250124",
    "computer_20250124",
]
TOPS = {
    "chat": [
        "messages",
        "tools",
        "tool_choice",
        "response_format",
        "reasoning",
        "reasoning_effort",
        "stream",
        "stop",
        "n",
        "logprobs",
        "top_logprobs",
        "max_tokens",
        "metadata",
        "model",
    ],
    "responses": [
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "text",
        "reasoning",
        "include",
        "stream",
        "max_output_tokens",
        "top_logprobs",
        "metadata",
        "model",
    ],
    "messages": [
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "output_format",
        "reasoning",
        "stream",
        "stop_sequences",
        "max_tokens",
        "metadata",
        "service_tier",
        "container",
        "model",
    ],
}

plain = (
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(KINDS) | st.text(max_size=3)
)
odd = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
        | st.builds(
            lambda kind, rest: {**rest, "type": kind, "role": kind},
            st.sampled_from(KINDS),
            st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
        )
    ),
    max_leaves=12,
)


def bodies(api: str) -> st.SearchStrategy[Json]:
    whole: Json = {"messages": [HELLO], "input": [HELLO]}
    given = st.dictionaries(st.sampled_from(TOPS[api]), odd | st.lists(odd, max_size=3))
    return given.map(lambda body: {**whole, **body})


@pytest.mark.parametrize(
    ("api", "read"),
    [
        ("chat", chat.read_request),
        ("responses", responses.read_request),
        ("messages", messages.read_request),
    ],
)
@settings(max_examples=some(150), deadline=None)
@given(data=st.data())
def test_any_body_is_translated_or_refused(
    api: str, read: Callable[[Json], ModelRequest], data: st.DataObject
) -> None:
    body: Any = data.draw(bodies(api))
    before = dumps(body)
    with suppress(RequestError):
        question = read(body)
        for profile in ("auto", "openai", "mistral", "litellm"):
            for write in (chat.write_request, responses.write_request, messages.write_request):
                written = write(question, UpstreamOptions(PROFILES[profile]))
                assert dumps(written.body)
                assert all(left_out.message for left_out in written.unsupported)
    assert dumps(body) == before
