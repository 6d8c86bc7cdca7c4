"""The text of a request's last user message, alike in the shapes of all three APIs: a text, or a
list of messages or items whose content is a text or a list of parts."""

from __future__ import annotations

from typing import Any

from abridge.apis.json import as_object, string
from abridge.core.conversation import Json

EDGE_PARTS = 8
"""How many parts at the beginning of a message, and at its end, are read. What a user asks comes
before or after what is attached."""


def last_user_text(body: Json, field: str) -> str:
    """Return the text of the last message of the user's in `field`, empty if there is none.

    Outputs of tools are not the user's, whatever their role. Of a message in many parts only the
    first and the last ones are read.
    """
    conversation = body.get(field)
    if isinstance(conversation, str):
        return conversation
    messages = map(as_object, reversed(conversation if isinstance(conversation, list) else []))
    texts = (_text_of(message.get("content")) for message in messages if _is_users(message))
    return next(filter(None, texts), "")


def _is_users(message: Json) -> bool:
    return message.get("role") == "user"


def _text_of(content: Any) -> str:
    if not isinstance(content, list):
        return string(content)
    edges = (
        content if len(content) <= 2 * EDGE_PARTS else content[:EDGE_PARTS] + content[-EDGE_PARTS:]
    )
    return "\n".join(filter(None, (string(as_object(part).get("text")) for part in edges)))
