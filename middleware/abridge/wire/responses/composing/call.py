"""Write a call of one of the client's own tools."""

from __future__ import annotations

from io import StringIO

from abridge.turn.events import Called
from abridge.turn.question import Tool
from abridge.wire.codec import Json, read_object, string
from abridge.wire.mint import Mint
from abridge.wire.responses.asking.tools import spell_call
from abridge.wire.responses.composing.item import Composed, Status
from abridge.wire.responses.spoken import Spoken

PREFIXES = {"custom": "ctc_", "local_shell": "lsh_", "tool_search": "tsc_"}
LATE = ("local_shell", "tool_search")
"""Kinds of tools whose calls have no events for their arguments."""


class ComposedCall(Composed):
    """Writes one call.

    Stream arguments as they come, unless the tool is offered to upstream as a function: then what
    they are for the client is known once they are whole.
    """

    def __init__(self, event: Called, tool: Tool | None, index: int, mint: Mint) -> None:
        if tool is None and event.custom:
            tool = Tool(event.name, "custom", own=event.name)
        self._kind = tool.kind if tool is not None else "function"
        super().__init__(mint(PREFIXES.get(self._kind, "fc_")), index)
        self.number = event.call  # among the calls of the answer
        self.late = self._kind in LATE
        self._tool = tool
        self._custom = event.custom
        self._call_id = event.id or mint("call_")
        self._name = event.name
        self._arguments = StringIO()
        self._last = ""

    @property
    def whole(self) -> bool:
        """Return whether the arguments are complete JSON. Free text never counts as complete.

        Parse them only if the last fragment can end an object, since they may be long.
        """
        if self._custom or not self._last.rstrip().endswith("}"):
            return False
        return read_object(self._text.encode(errors="surrogatepass")) is not None

    def added(self) -> Json:
        return self._spelled(self._text if self.late else "", "in_progress")

    def say(self, arguments: str) -> Spoken:
        self._arguments.write(arguments)
        self._last = arguments or self._last
        if arguments and self._streams:
            yield f"{self._event}.delta", {**self.at, "delta": arguments}

    def end(self) -> Spoken:
        if self.late:
            return
        item = self.done("completed")
        if self._kind != "custom":
            name, arguments = string(item["name"]), item["arguments"]
            yield f"{self._event}.done", {**self.at, "name": name, "arguments": arguments}
            return
        if item["input"] and not self._streams:
            yield f"{self._event}.delta", {**self.at, "delta": item["input"]}
        yield f"{self._event}.done", {**self.at, "input": item["input"]}

    def done(self, status: Status) -> Json:
        return self._spelled(self._text, status)

    def _spelled(self, arguments: str, status: str) -> Json:
        return spell_call(self._tool, self._call_id, self._name, arguments, self.id, status=status)

    @property
    def _text(self) -> str:
        return self._arguments.getvalue()

    @property
    def _streams(self) -> bool:
        return self._kind == "function" or (self._kind == "custom" and self._custom)

    @property
    def _event(self) -> str:
        custom = self._kind == "custom"
        return "response." + ("custom_tool_call_input" if custom else "function_call_arguments")
