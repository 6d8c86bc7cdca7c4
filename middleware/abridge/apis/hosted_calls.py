"""The field that says what upstream ran itself, where an answer consists of nothing else.

No other API has a place for another provider's hosted tools, so that such an answer would be empty.
The field is for the client only: upstream does not know it and must not get it back.
"""

from __future__ import annotations

HOSTED_CALLS = "hosted_calls"


def describe_call(kind: str, name: str) -> dict[str, str]:
    """Return what is said of a call: its type, and the name of the tool unless that says it."""
    return {"type": kind, "name": name} if name else {"type": kind}
