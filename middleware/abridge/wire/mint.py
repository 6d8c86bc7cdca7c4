"""Ids, in OpenAI's form, for what upstream gave none.

Each contains a mark by which it is recognized as Abridge's even if nothing else is known about it:
no upstream knows such an id.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import TypeAlias

Mint: TypeAlias = Callable[[str], str]
"""Returns a new id with the given prefix."""

OURS = "ab71d6e0"
"""Follows the prefix in every id of Abridge's."""

SIZE = 20
"""Number of bytes after the mark."""

_MINTED = re.compile(rf"[a-z]+[_-]{OURS}[0-9a-f]{{{2 * SIZE}}}")


def mint(prefix: str) -> str:
    return named(prefix, secrets.token_bytes(SIZE))


def named(prefix: str, digest: bytes) -> str:
    """Return the id for a digest, always the same, made of the digest's beginning."""
    return f"{prefix}{OURS}{digest[:SIZE].hex()}"


def is_minted(identity: str) -> bool:
    return _MINTED.fullmatch(identity) is not None
