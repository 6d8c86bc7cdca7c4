"""Read Google's figures of usage, under the names of either of its APIs."""

from __future__ import annotations

from typing import NamedTuple

from abridge.apis.usage import as_count
from abridge.core.conversation import Json
from abridge.core.usage import NO_TOKENS, Tokens


class GoogleUsage(NamedTuple):
    """The names of the figures.

    Thoughts are counted beside the answer, and results of the provider's own tools beside the
    prompt. The total is the sum of the four by definition (google-genai, `UsageMetadata`).
    """

    prompt: str
    tool_results: str
    answer: str
    thoughts: str
    total: str
    cached: str

    def read(self, usage: Json) -> Tokens | None:
        """Return the figures reported; None if there are none. The sums are exact, and in a stream
        a later figure replaces an earlier one."""
        figures = {key: as_count(value) for key, value in usage.items()}
        prompt, results = figures.get(self.prompt), figures.get(self.tool_results)
        answer, thoughts = figures.get(self.answer), figures.get(self.thoughts)
        tokens = Tokens(
            None if prompt is None else prompt + (results or 0),
            None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0),
            figures.get(self.total),
            thoughts,
            figures.get(self.cached),
        )
        return None if tokens == NO_TOKENS else tokens


GEMINI_USAGE = GoogleUsage(
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "totalTokenCount",
    "cachedContentTokenCount",
)

INTERACTIONS_USAGE = GoogleUsage(
    "total_input_tokens",
    "total_tool_use_tokens",
    "total_output_tokens",
    "total_thought_tokens",
    "total_tokens",
    "total_cached_tokens",
)
