"""Ids for what upstream gave none, in OpenAI's form.

Each says that it is ours, whoever asks and whatever was forgotten: no upstream knows it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import TypeAlias

Mint: TypeAlias = Callable[[str], str]
"""Makes an id that begins so."""

OURS = "ab71d6e0"
"""Follows the prefix of every id of ours."""

SIZE = 20
"""Bytes that follow."""

_MINTED = re.compile(rf"[a-z]+[_-]{OURS}[0-9a-f]{{{2 * SIZE}}}")


def mint(prefix: str) -> str:
    return named(prefix, secrets.token_bytes(SIZE))


def named(prefix: str, digest: bytes) -> str:
    """An id that is always the same for a digest, of which it takes the beginning."""
    return f"{prefix}{OURS}{digest[:SIZE].hex()}"


def is_minted(identity: str) -> bool:
    return _MINTED.fullmatch(identity) is not None
