"""Log probabilities of the tokens of a text, where raw reasoning is hidden.

Servers list them for all that a model wrote, thinking included. So they stay only where their
tokens are the text that is shown, one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from abridge.apis.json import as_object, objects, string
from abridge.apis.shapes import DROPPED, DropCount, Shape, each, fields, number
from abridge.core.conversation import Json

MAX_TOKEN_BYTES = 32
"""Bytes of a token that is no whole characters."""

_ALTERNATIVE = re.compile(r"\s*\S{0,64}\s*")
"""A token that might have come instead: a word, or a piece of one."""

_NO_CHARACTERS = re.compile(r"bytes:|\\x|�")
"""How servers write a token that is no whole characters."""


def _token(value: Any, drops: DropCount) -> Any:
    return value if isinstance(value, str) else drops.drop(value)


def _alternative(value: Any, drops: DropCount) -> Any:
    is_token = isinstance(value, str) and _ALTERNATIVE.fullmatch(value)
    return value if is_token else drops.drop(value)


def _entry(token: Shape, more: dict[str, Shape]) -> Shape:
    shape = fields({"token": token, "logprob": number, "bytes": lambda value, _: value, **more})

    def rebuild_entry(value: Any, drops: DropCount) -> Any:
        entry = shape(value, drops)
        if not isinstance(entry, dict) or "token" not in entry:
            return DROPPED
        return {**entry, "bytes": list(spelled(entry))} if "bytes" in entry else entry

    return rebuild_entry


def spelled(entry: Json) -> bytes:
    """Return the bytes of a token: those given only where the token itself has no characters."""
    token, given = string(entry.get("token")), entry.get("bytes")
    whole = token.encode(errors="surrogatepass")
    if not isinstance(given, list) or _NO_CHARACTERS.search(token) is None:
        return whole
    is_valid = len(given) <= MAX_TOKEN_BYTES and all(
        isinstance(byte, int) and 0 <= byte < 256 for byte in given
    )
    return bytes(given) if is_valid else whole


def spells(entries: Iterable[Json], text: str) -> bool:
    """Return whether these are the tokens of just this text; none are of any."""
    tokens = list(map(spelled, entries))
    return not tokens or b"".join(tokens) == text.encode(errors="surrogatepass")


LOGPROBS = each(_entry(_token, {"top_logprobs": each(_entry(_alternative, {}))}))
"""The entries of a list, each with the tokens that might have come instead."""


def with_logprobs(shape: Shape, *texts: str) -> Shape:
    """An object whose log probabilities are of just its text, which is under one of these keys."""

    def rebuild_both(value: Any, drops: DropCount) -> Any:
        rebuilt = shape(value, drops)
        said = as_object(rebuilt)
        text = next((string(said[key]) for key in texts if key in said), "")
        if spells(objects(said.get("logprobs")), text):
            return rebuilt
        drops.drop(said["logprobs"])
        return {**said, "logprobs": []}

    return rebuild_both


def without_logprobs(value: Json) -> Json:
    """Return an object, or a part in it, without log probabilities: its text is another now."""
    part = value.get("part")
    if isinstance(part, dict) and part.get("logprobs"):
        return {**value, "part": {**part, "logprobs": []}}
    return {**value, "logprobs": []} if value.get("logprobs") else value


class ShownLogprobs:
    """The log probabilities of one text that streams, each once its token is shown."""

    def __init__(self) -> None:
        self.waiting: list[Json] = []
        self._shown = b""  # the beginning of a token

    def take(self, shown: str) -> list[Json]:
        """Return the entries for more text that is shown; none, and forget those that wait, if they
        are not for just this text."""
        if not shown:
            return []
        text, place, count = self._shown + shown.encode(errors="surrogatepass"), 0, 0
        for token in map(spelled, self.waiting):
            if not text.startswith(token, place) or place == len(text):
                break
            place, count = place + len(token), count + 1
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        self._shown = text[place:]
        follows = spelled(self.waiting[0]) if self.waiting else b""
        if not follows.startswith(self._shown):
            self.waiting, self._shown, taken = [], b"", []
        return taken
