"""Add up the events of a stream to the whole message, as Anthropic's clients do."""

from __future__ import annotations

from io import StringIO

from abridge.apis.json import loads_exact, parse_object, string
from abridge.apis.messages.calls import wrap_invalid
from abridge.core.conversation import Json

_SUMMED_FIELDS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
"""By the type of a delta, its field and that of the block which it adds to."""


class MessageAccumulator:
    """Add up one message, of events in their order."""

    def __init__(self) -> None:
        self.message: Json = {}
        self._texts: dict[str, StringIO] = {}

    def add(self, event_type: str, fields: Json) -> None:
        match event_type:
            case "message_start":
                self.message = {**fields["message"], "content": []}
            case "content_block_start":
                self.message["content"].append(dict(fields["content_block"]))
            case "content_block_delta":
                source, target = _SUMMED_FIELDS[fields["delta"]["type"]]
                text = string(fields["delta"].get(source))
                self._texts.setdefault(target, StringIO()).write(text)
            case "content_block_stop":
                self._end_block(fields)
            case "message_delta":
                self.message |= {**fields["delta"], "usage": fields["usage"]}

    def _end_block(self, fields: Json) -> None:
        block = self.message["content"][-1]
        block |= {name: text.getvalue() for name, text in self._texts.items()}
        block |= {name: value for name, value in fields.items() if name != "index"}
        self._texts = {}
        if isinstance(block.get("input"), str):
            block["input"] = _read_input(block["input"])


def _read_input(arguments: str) -> Json:
    """Return a call's input, which has to be an object."""
    given = parse_object(arguments.encode(errors="surrogatepass"), loads_exact)
    return wrap_invalid(arguments) if given is None else given
