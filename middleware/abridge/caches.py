"""Every cache that outlives a request, and how many entries it holds.

Keys are what clients and upstreams write: paths, ids, names of models. One that is longer than
`MAX_KEY_CHARS` is not kept, but worked out each time. So the memory of a cache has a ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

MAX_KEY_CHARS = 256
"""The longest key that is kept, in characters, or bytes if it is of bytes."""

MAX_ARGUMENTS_CHARS = 500
"""The longest arguments of a call that are kept in canonical form, in characters."""

PATHS = 1024
"""Paths of requests: the API that each belongs to."""

CALL_IDS = 4096
"""Ids of tool calls: whether each is random, and whether each only counts."""

CALL_ARGUMENTS = 4096
"""Arguments of tool calls, in canonical form."""

MODELS = 1024
"""Models for which an upstream's API, or whether it takes a field, was found out."""

LEARNED_MODELS = 256
"""Models of which something was learned, for each upstream."""

OWNER_KEYS = 1024
"""Tenants' keys for the marks of summaries; their keys are digests."""

SEALING_KEYS = 1024
"""Keys derived for sealed values, for each salt that a process has used."""

OPENED_BLOB_BYTES = 16 << 20
"""Bytes of opened blobs, at least 1 KiB each: so 16,384 at most."""

OPENED_BLOB_SECONDS = 600
"""How long an opened blob is used again, in seconds: then it is opened anew."""

GLOBS = 256
"""Groups of globs of models, which only settings change: the pattern of each."""

INSTRUCTIONS = 16
"""Instructions to summarizer models, which only settings change: the word sequences of each."""

MARKS = 100_000
"""Marks of summaries; their keys are digests, and they have no values."""

LOOKUPS = 1024
"""Names of upstreams' hosts: the addresses of each."""

HOSTS = 64
"""Host headers: whether each is valid, and whether it is allowed."""

CONTENT_TYPES = 64
"""Content types: whether each is JSON, and in a charset that can be read."""

CLIENTS = 1024
"""Addresses of clients: what all addresses of one have in common."""

SCRIPTS_OF_LETTERS = 4096
"""Characters: the script that each is of."""

METRIC_LABELS = 4096
"""Children of one metric; their keys are closed sets, and `NameLabels`."""

F = TypeVar("F", bound=Callable[..., Any])


def is_short(key: str) -> bool:
    """Return whether a key is short enough to be kept."""
    return len(key) <= MAX_KEY_CHARS


def cached(size: int, *, longest: int = MAX_KEY_CHARS) -> Callable[[F], F]:
    """Keep the latest `size` results of a function of strings, for keys of `longest` characters at
    most."""

    def decorate(function: F) -> F:
        remember = lru_cache(size)(function)

        @wraps(function)
        def call(*keys: Any) -> Any:
            return remember(*keys) if sum(map(len, keys)) <= longest else function(*keys)

        @wraps(function)
        def call_with_one(key: Any) -> Any:  # in half the time
            return remember(key) if len(key) <= longest else function(key)

        is_of_one = function.__code__.co_argcount == 1
        return cast(F, call_with_one if is_of_one else call)

    return decorate
