"""Show which reasoning led to which tool call, in an answer of any API."""

from __future__ import annotations

from abridge.apis.chat.tools import attribute_message, map_choices
from abridge.apis.chat.writer import ReasoningFields
from abridge.apis.display import Display
from abridge.apis.messages.tools import attribute_content
from abridge.apis.responses.tools import attribute_response
from abridge.core.conversation import Json


def attribute(body: Json) -> Json:
    """Return a whole answer that has, at each tool call, the reasoning that led to it.

    Each call gets `reasoning`, a list of parts, or `reasoning_ref`, the id of the latest call
    before it that has some.

    The answer may be a chat completion, a Responses response or an Anthropic message, from Abridge
    or any other server; anything else is returned unchanged. The body is not modified; the result
    shares the unchanged parts with it. The result is for display: servers other than Abridge may
    refuse it if it is sent back to them.

    A chat completion has one text for all reasoning. It counts as the model's own unless the body
    says that it is a summary.
    """
    if isinstance(body.get("choices"), list):
        return map_choices(body, _attribute_choice)
    if isinstance(body.get("content"), list):
        return {**body, "content": attribute_content(body["content"])}
    return attribute_response(body)


def _attribute_choice(choice: Json) -> Json:
    message, display = choice.get("message"), Display()
    if not isinstance(message, dict):
        return choice
    fields = ReasoningFields(display).names
    return {**choice, "message": attribute_message(message, display, fields)}
