"""What a campaign says at its end."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 20


def tell(wrong: Sequence[str]) -> int:
    """Print what was wrong, a part of it if it is much; return how many things it was."""
    for text in wrong[:SHOWN]:
        print(f"WRONG: {text}")
    print(f"{len(wrong)} things were wrong")
    return len(wrong)
