"""Which reasoning led to which call, in an answer of any API."""

from __future__ import annotations

from abridge.wire.chat.attributed import attribute_message, each_choice
from abridge.wire.codec import Json
from abridge.wire.messages.attributing import attribute_content
from abridge.wire.responses.attributing import attribute_response


def attribute(body: Json) -> Json:
    """The body of a whole answer, each of its tool calls with what led to it: `reasoning`, a list
    of parts, or `reasoning_ref`, the id of the latest call before it that has one.

    The answer may be a Chat completion, a Responses response or a message of Anthropic's, of
    Abridge's or anybody else's; anything else comes back as it is. The body is not changed, and
    what is not new in the result is shared with it. It is for looking at: other servers than
    Abridge may refuse it where it is sent back to them.

    A Chat completion has one text for all that was thought, which is taken for the model's own
    where nothing in the body says that it is a summary.
    """
    if isinstance(body.get("choices"), list):
        return each_choice(body, _choice)
    if isinstance(body.get("content"), list):
        return {**body, "content": attribute_content(body["content"])}
    return attribute_response(body)


def _choice(choice: Json) -> Json:
    message = choice.get("message")
    if not isinstance(message, dict):
        return choice
    return {**choice, "message": attribute_message(message)}
