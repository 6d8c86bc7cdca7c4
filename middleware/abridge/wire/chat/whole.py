"""Rewrite the choices of a whole completion, by the same rules as a stream."""

from __future__ import annotations

from abridge.turn.events import Summary
from abridge.wire.chat.beside import conceal_choice
from abridge.wire.chat.dialects import PLAIN, Found, conceal, find, native_summary
from abridge.wire.chat.fields import Fields, retell
from abridge.wire.chat.inline import split_inline
from abridge.wire.chat.shown import BETWEEN_PARTS
from abridge.wire.codec import Json, objects
from abridge.wire.display import Display
from abridge.wire.profiles import Profile


class Rewriter:
    """Put a summary into a choice, and remove what its client is not to see."""

    def __init__(self, profile: Profile, display: Display) -> None:
        self._profile = profile
        self._display = display
        self._fields = Fields(display)

    def rewrite(self, choice: Json, summary: Summary) -> None:
        message = choice.get("message")
        found = self._find(message) if isinstance(message, dict) else None
        if message is None or found is None or self._display.plain:
            return
        if not (found.native and self._display.summary):
            choice["message"] = self._shown(message, found, summary)
        elif not self._display.raw:
            choice["message"] = {**conceal(message), **native_summary(message)}
        if not self._display.raw:
            conceal_choice(choice)

    def _find(self, message: Json) -> Found | None:
        """Find the message's reasoning; inline reasoning is removed from the content.

        Where a field holds the reasoning, tags in the text belong to the answer, unless raw is
        hidden: then they are removed all the same, since they may repeat the field.
        """
        found = find(message)
        if found is not None and self._display.raw:
            return found
        content = message.get("content")
        inline, kept = split_inline(content, self._profile, alone=found is None)
        if found is not None or inline.strip():
            message["content"] = kept
        if found is None and inline.strip():
            message[PLAIN[0]] = inline
            return Found(inline, PLAIN[0])
        return found

    def _shown(self, message: Json, found: Found, summary: Summary) -> Json:
        field = self._fields.raw(found.field)
        if found.native or not self._display.raw:
            message = conceal(message)
        elif field != found.field or self._display.summary:
            message = retell(message, self._fields.told(field, found.text))
        if summary.parts:
            message[self._fields.summary(found.field)] = BETWEEN_PARTS.join(summary.parts)
        if summary.parts and self._display.details:
            details = [self._fields.detail(text, part) for part, text in enumerate(summary.parts)]
            message["reasoning_details"] = objects(message.get("reasoning_details")) + details
        if summary.trouble is not None:
            message["summary_error"] = summary.trouble.as_dict()
        return message
