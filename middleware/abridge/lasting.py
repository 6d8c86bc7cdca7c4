"""What outlasts a change of settings.

A change makes the middleware and the proxy anew, from immutable settings. What they know of the
world is handed on: who needs such a thing asks for it by its key, and gets the same one as whoever
asked before. A key names all settings on which the thing depends, so that another setting makes
another thing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

T = TypeVar("T")


class Lasting:
    """Holds each thing for as long as anybody uses it."""

    def __init__(self) -> None:
        self._things: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the thing under this key, made now if there is none; None is not kept."""
        thing = self._things.get(key)
        if thing is None and (thing := make()) is not None:
            self._things[key] = thing
        return cast(T, thing)
