"""Show which reasoning led to which tool call, in an answer of any API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from abridge.apis.api import Writer
from abridge.apis.display import Display
from abridge.attribution.chat import ChatAttributingWriter, attribute_message, map_choices
from abridge.attribution.messages import MessagesAttributingWriter, attribute_content
from abridge.attribution.responses import ResponsesAttributingWriter, attribute_response
from abridge.core.conversation import Json
from abridge.providers.profile import ApiName

ATTRIBUTING_WRITERS: Mapping[ApiName, Callable[[Writer, Display, int], Writer]] = MappingProxyType(
    {
        "chat": ChatAttributingWriter,
        "responses": ResponsesAttributingWriter,
        "messages": MessagesAttributingWriter,
    }
)
"""By the client's API: wraps a Writer in one that adds to each call the reasoning that led to it.
The number limits the characters of reasoning that it keeps; with 0 it removes what others added.
"""


def attribute(body: Json) -> Json:
    """Return a whole answer with the reasoning that led to it at each of its tool calls.

    Adds `reasoning`, a list of parts, or `reasoning_ref`, the id of the latest call before it that
    has one.

    The answer may be a Chat completion, a Responses response or an Anthropic message, from Abridge
    or any other server; anything else is returned unchanged. The body is not modified, and the
    result shares with it what is not new. The result is meant for display: servers other than
    Abridge may refuse it if it is sent back to them.

    A Chat completion has one text for all reasoning. It is taken for the model's own unless the
    body says that it is a summary.
    """
    if isinstance(body.get("choices"), list):
        return map_choices(body, _attribute_choice)
    if isinstance(body.get("content"), list):
        return {**body, "content": attribute_content(body["content"])}
    return attribute_response(body)


def _attribute_choice(choice: Json) -> Json:
    message = choice.get("message")
    if not isinstance(message, dict):
        return choice
    return {**choice, "message": attribute_message(message)}
