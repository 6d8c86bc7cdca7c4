"""Reorder a request's messages into a form that every API accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from abridge.turn.question import Foreign, Part, Speech, Text, Thought, ToolCall, ToolOutput, Unfit


def told(speeches: Iterable[Speech]) -> list[Speech]:
    """Return the messages in the order that all APIs but Responses require.

    Drops unknown parts, merges what the assistant said without interruption into one message, and
    puts the outputs of its calls right after it. Reasoning stays with what the assistant says next;
    if somebody else speaks next, or nobody, it is left out.
    """
    ordered: list[Speech] = []
    outputs: dict[str, Speech] = {}
    for speech in _joined(speeches):
        if speech.role != "tool":
            ordered.append(speech)
            if calls := [part.id for part in speech.parts if isinstance(part, ToolCall)]:
                ordered.append(Speech("tool"))
                outputs.update(dict.fromkeys(calls, ordered[-1]))
            continue
        astray = replace(speech, parts=[])
        for part in speech.parts:
            call = part.call if isinstance(part, ToolOutput) else ""
            outputs.get(call, astray).parts.append(part)
        ordered.append(astray)
    return [speech for speech in ordered if speech.parts or speech.role != "tool"]


def _joined(speeches: Iterable[Speech]) -> Iterator[Speech]:
    run: Speech | None = None
    for speech in speeches:
        parts: list[Part] = [part for part in speech.parts if not isinstance(part, Foreign)]
        if speech.role == "assistant":
            run = run or replace(speech, parts=[])
            run.parts.extend(parts)
            continue
        yield from _settled(run)
        run = None
        if parts or not speech.parts:
            yield replace(speech, parts=parts)
    yield from _settled(run)


def foreign(speeches: Iterable[Speech]) -> list[Unfit]:
    """List the parts that exist in the client's API only."""
    return [
        Unfit(part.param, part.message or _unknown(part), part.matters)
        for speech in speeches
        for part in speech.parts
        if isinstance(part, Foreign)
    ]


def as_one(parts: Iterable[Part]) -> list[Part]:
    """Merge adjacent texts: a message's text may come in any number of pieces."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + part.text)
        else:
            joined.append(part)
    return joined


def untold(part: Part) -> Unfit:
    """Report that an API cannot express a part."""
    param = getattr(part, "param", "")
    return Unfit(param, f"This model's API has no way to take {param}.", matters=True)


def _settled(run: Speech | None) -> Iterator[Speech]:
    if run is None:
        return
    while run.parts and isinstance(run.parts[-1], Thought):
        run.parts.pop()
    if run.parts:
        yield run


def _unknown(part: Foreign) -> str:
    kind = part.spelled.get("type") or part.spelled.get("role")
    told = f"{kind!r:.80}" if kind else "This"
    return f"{told} is unknown to this model's API."
