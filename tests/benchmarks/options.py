"""The options of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Options; `litellm` is a Python with LiteLLM's proxy installed."""

    quick: bool = False
    litellm: str | None = None

    def rounds(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def seconds(self, full: float, quick: float) -> float:
        return quick if self.quick else full

    def say(self, line: str) -> None:
        print(f"  ({line})", flush=True)
