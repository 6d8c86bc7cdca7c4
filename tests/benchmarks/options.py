"""The options of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """Options; `litellm` is a Python with LiteLLM's proxy installed, `portkey` a folder into which
    npm installed Portkey's gateway, `tree` another checkout whose sidecar is measured instead of
    this one's, `beside` whether other proxies are measured too."""

    quick: bool = False
    litellm: str | None = None
    portkey: str | None = None
    tree: Path | None = None
    beside: bool = True

    def rounds(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def seconds(self, full: float, quick: float) -> float:
        return quick if self.quick else full

    def say(self, line: str) -> None:
        print(f"  ({line})", flush=True)
