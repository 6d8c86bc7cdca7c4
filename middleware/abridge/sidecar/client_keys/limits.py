"""How much of its rate and its budget each key has used.

The time is passed in. A rate is this process's own. The tokens that count against a budget are
added up in a file beside that of the keys: so they outlive the process, and all processes of a
machine count together. What a process has used since it last wrote the file is its own: it is added
to what others wrote meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

from abridge.apis.json import as_object
from abridge.apis.usage import as_count
from abridge.config.client_key import ClientKey
from abridge.sidecar.client_keys.file import locked, replace_file

DAY = 86400
"""Seconds of a day, which begins at midnight UTC."""

MINUTE = 60.0

ROUNDING = 1e-6
"""Seconds by which times may be off, so that nobody waits as long as told and is refused again."""


@dataclass(slots=True)
class Allowance:
    """What one key may still use.

    The rate is a bucket of as many requests as it allows in a minute; it fills again evenly.
    """

    full_at: float = 0.0  # when the bucket is full again
    day: int = 0
    tokens: int = 0  # used on `day`, as far as this process knows
    unsaved: int = 0  # those of them that no other process knows
    has_budget: bool = False

    def wait_for_rate(self, key: ClientKey, now: float) -> int:
        """Take a request from the bucket. Return 0, or the seconds until there is one to take.

        `now` is on a clock that never goes back.
        """
        if key.rate is None:
            return 0
        interval, full_at = MINUTE / key.rate, max(self.full_at, now)
        seconds = full_at + interval - MINUTE - now
        if seconds > ROUNDING:
            return ceil(seconds - ROUNDING)
        self.full_at = full_at + interval
        return 0

    def wait_for_budget(self, key: ClientKey, now: float) -> int:
        """Return 0, or the seconds until the budget of the next day, where this day's is used up.

        `now` is in seconds since the epoch.
        """
        if key.tokens_per_day is None:
            return 0
        self.has_budget = True
        if self.used_on(int(now // DAY)) < key.tokens_per_day:
            return 0
        return max(1, ceil(DAY - now % DAY))

    def spend(self, tokens: int, now: float) -> None:
        """Add tokens to what was used on this day."""
        self._begin(int(now // DAY))
        self.tokens += tokens
        self.unsaved += tokens

    def take_unsaved(self, day: int) -> int:
        """Return the tokens of a day that are yet to be saved, as saved: those of a budget."""
        self._begin(day)
        if not self.has_budget:
            return 0
        unsaved, self.unsaved = self.unsaved, 0
        return unsaved

    def give_back(self, day: int, tokens: int) -> None:
        """Note that tokens of a day could not be saved."""
        if day == self.day:
            self.unsaved += tokens

    def learn(self, day: int, tokens: int) -> None:
        """Note how many tokens are saved of a day."""
        self._begin(day)
        self.tokens = tokens + self.unsaved

    def _begin(self, day: int) -> None:
        """Forget what was used on an earlier day."""
        if day > self.day:
            self.day, self.tokens, self.unsaved = day, 0, 0

    def used_on(self, day: int) -> int:
        return self.tokens if day == self.day else 0


SUFFIX = ".spent"
"""Is added to the name of the file of keys."""


def add_spent(keys_file: Path, day: int, unsaved: Mapping[str, int]) -> dict[str, int]:
    """Add what was used on a day to the file, and return what was used in all, by name of the key.

    Days are counted from the epoch; the file has the latest. Raises OSError.
    """
    path = keys_file.with_name(keys_file.name + SUFFIX)
    if not unsaved:
        return _read(path, day)
    with locked(path.parent):
        totals = _read(path, day)
        for name, tokens in unsaved.items():
            totals[name] = totals.get(name, 0) + tokens
        content = {"day": _date(day), "tokens": totals}
        replace_file(path, json.dumps(content, indent=1) + "\n", flush=False)
    return totals


def _read(path: Path, day: int) -> dict[str, int]:
    """Return what was used on a day. A file that has another day, or is broken, has nothing."""
    try:
        content: Any = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    if as_object(content).get("day") != _date(day):
        return {}
    counts = as_object(content.get("tokens"))
    return {name: count for name, count in counts.items() if as_count(count) is not None}


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()
