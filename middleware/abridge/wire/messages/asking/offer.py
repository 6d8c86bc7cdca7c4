"""Writes the request's tools, and the tool choice, in Anthropic's format."""

from __future__ import annotations

from abridge.turn.question import Question, Tool, ToolChoice, Unfit
from abridge.wire.asking.disguise import as_function
from abridge.wire.asking.offer import narrowed, offered
from abridge.wire.codec import Json
from abridge.wire.messages.asking.models import Ways

NOTHING: Json = {"type": "object", "properties": {}}
FORCED = "This model does not let a tool be forced; it was left to choose."
LOOSE = "This model has no strict tools."


class Offer:
    """The tools offered upstream.

    `tools` are the tools by name, `definitions` the same in Anthropic's format. `choice` is None if
    none has to be sent. `forced`: some tool must be called.
    """

    def __init__(self, question: Question, ways: Ways) -> None:
        own, self.unfit = offered(question)
        choice, chosen = narrowed(question.choice, own)
        self.forced = False
        self.tools = {tool.name: as_function(tool) for tool in chosen}
        self.spelled = [self._spell(tool, ways) for tool in self.tools.values()]
        self.choice = self._choose(choice, question, ways) if self.tools else None

    def _spell(self, tool: Tool, ways: Ways) -> Json:
        """Write one tool. Set `strict` only if the schema allows it; otherwise do as Responses
        does, which attempts strict mode and goes on without."""
        schema = {**NOTHING, **(tool.parameters or {})}
        spelled: Json = {"name": tool.name, "input_schema": schema}
        if tool.description:
            spelled["description"] = tool.description
        if tool.strict and schema.get("additionalProperties") is False:
            if ways.structured:
                spelled["strict"] = True
            else:
                self.unfit.append(Unfit(tool.param, LOOSE, matters=False))
        return spelled

    def _choose(self, given: ToolChoice | None, question: Question, ways: Ways) -> Json | None:
        mode = given.mode if given is not None else "auto"
        alone = question.values.get("parallel_tool_calls") is False
        if mode == "none":
            return {"type": "none"}
        if mode == "required" and not ways.forced:
            param = question.params.get("tool_choice", "tool_choice")
            self.unfit.append(Unfit(param, FORCED, matters=True))
            mode = "auto"
        self.forced = mode == "required"
        choice: Json = {"type": "any" if self.forced else "auto"}
        if self.forced and given is not None and given.names:
            choice = {"type": "tool", "name": given.names[0]}
        if alone:
            choice["disable_parallel_tool_use"] = True
        return choice if alone or given is not None else None
