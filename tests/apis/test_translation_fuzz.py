"""Test that any request is translated, or refused with the name of a field."""

from __future__ import annotations

import ast
import inspect
import re
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abridge.apis import openai
from abridge.apis.api import UpstreamOptions
from abridge.apis.chat import messages as chat_messages
from abridge.apis.chat import request as chat
from abridge.apis.json import dumps
from abridge.apis.messages import messages as messages_messages
from abridge.apis.messages import request as messages
from abridge.apis.messages import tools as messages_tools
from abridge.apis.responses import messages as responses_messages
from abridge.apis.responses import request as responses
from abridge.apis.responses import tools as responses_tools
from abridge.errors import RequestError
from abridge.providers.catalog import PROFILES
from tests.apis.translation import HELLO, Json
from tests.support.matrix import some

NAME = re.compile(r"[a-z][a-z_]+(?:_\d{8})?")


def names_in(*modules: ModuleType) -> list[str]:
    """Return what the code of modules names: fields of a request, and types of what is in them."""
    nodes = (node for module in modules for node in ast.walk(ast.parse(inspect.getsource(module))))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant))
    return sorted({text for text in texts if isinstance(text, str) and NAME.fullmatch(text)})


READERS = {"chat": chat, "responses": responses, "messages": messages}
TOPS = {api: names_in(module) for api, module in READERS.items()}
PARTS = names_in(chat_messages, responses_messages, messages_messages)
TOOLS = names_in(openai, responses_tools, messages_tools)
NAMES = st.sampled_from(PARTS) | st.sampled_from(TOOLS)

plain = st.none() | st.booleans() | st.integers(-2, 9) | NAMES | st.text(max_size=3)
odd = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=4)
        | st.builds(
            lambda kind, rest: {**rest, "type": kind, "role": kind},
            NAMES,
            st.dictionaries(NAMES, inner, max_size=4),
        )
    ),
    max_leaves=12,
)


def bodies(api: str) -> st.SearchStrategy[Json]:
    whole: Json = {"messages": [HELLO], "input": [HELLO]}
    given = st.dictionaries(st.sampled_from(TOPS[api]), odd | st.lists(odd, max_size=3))
    return given.map(lambda body: {**whole, **body})


@pytest.mark.parametrize("api", READERS)
@settings(max_examples=some(240), deadline=None)
@given(data=st.data())
def test_any_body_is_translated_or_refused(api: str, data: st.DataObject) -> None:
    body: Any = data.draw(bodies(api))
    before = dumps(body)
    with suppress(RequestError):
        question = READERS[api].read_request(body)
        for profile in ("auto", "openai", "mistral", "litellm"):
            for write in (chat.write_request, responses.write_request, messages.write_request):
                written = write(question, UpstreamOptions(PROFILES[profile]))
                assert dumps(written.body)
                assert all(left_out.message for left_out in written.unsupported)
    assert dumps(body) == before
