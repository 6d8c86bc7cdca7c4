"""Read and write a structured output's schema, which both of OpenAI's APIs describe alike."""

from __future__ import annotations

from abridge.turn.question import Format
from abridge.wire.asking.require import an_object
from abridge.wire.codec import Json, string


def read_schema(said: Json, param: str) -> Format:
    """Read a schema; `param` is the client's name of it."""
    name, told = string(said.get("name")), string(said.get("description"))
    schema = {} if said.get("schema") is None else an_object(said["schema"], f"{param}.schema")
    return Format(schema, name, told, said.get("strict"))


def spell_schema(format_: Format) -> Json:
    """Write a schema. The API requires a name; the answer does not show it."""
    said: Json = {"name": format_.name or "answer", "schema": format_.schema}
    if format_.description:
        said["description"] = format_.description
    if format_.strict is not None:
        said["strict"] = format_.strict
    return said
