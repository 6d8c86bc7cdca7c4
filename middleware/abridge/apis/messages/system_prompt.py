"""The system prompt without Claude Code's line for Anthropic's billing.

The line differs in every request (`cch=…`). It says nothing to a model, and before everything else
it would keep any other upstream from finding the rest of the prompt in its cache
(sgl-project/sglang pull 29169, musistudio/claude-code-router pull 1343).
"""

from __future__ import annotations

import re
from typing import Any

from abridge.apis.json import string

_BILLING_LINE = re.compile(r"x-anthropic-billing-header:[^\n]*\n?")


def without_billing(system: Any) -> Any:
    """Return a system prompt, a text or blocks, without the line at its beginning."""
    if isinstance(system, str):
        return system[_billing_end(system) :]
    if not isinstance(system, list) or not system or not isinstance(system[0], dict):
        return system
    first, *rest = system
    text = string(first.get("text"))
    end = _billing_end(text)
    if not end:
        return system
    return [{**first, "text": text[end:]}, *rest] if text[end:].strip() else rest


def _billing_end(text: str) -> int:
    """Return where the line ends at the beginning of a text; 0 if there is none."""
    match = _BILLING_LINE.match(text)
    return match.end() if match is not None else 0
