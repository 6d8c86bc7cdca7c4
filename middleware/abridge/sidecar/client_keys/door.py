"""Admit requests by the keys that their clients send, and count what each key uses.

The files of the keys and of what they have used are looked at once a second at most, by the first
request after that: in a thread, since a disk may be slow. Requests wait for that a moment, so that
no key is good for one more request after it was revoked, or its budget was used up elsewhere. A
file of keys that cannot be read leaves the last keys that could be in force.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from math import inf
from pathlib import Path

from prometheus_client import CollectorRegistry
from starlette.types import Scope

from abridge.apis.credentials import Header
from abridge.config.client_key import CLIENT_KEY, KEY_PREFIX, MAX_KEYS, ClientKey, digest
from abridge.config.settings import Settings
from abridge.errors import RequestError, SettingsError
from abridge.observability.metrics import Metrics, metrics_for
from abridge.observability.record import Record
from abridge.sidecar.client_keys.file import (
    KEYS_FILE_SETTING,
    Loaded,
    Stamp,
    current_stamp,
    load_keys,
)
from abridge.sidecar.client_keys.limits import DAY, SUFFIX, Allowance, add_spent, tokens_of

LOOK_SECONDS = 1.0
"""Seconds between two looks at the file."""

PATIENCE_SECONDS = 0.5
"""Seconds for which a request waits for a look that takes long."""

MAX_KEY_CHARS = 128

BEARER, BASIC = b"bearer", b"basic"

REALM = b'realm="Abridge"'

_log = logging.getLogger(__name__)


def open_keys(settings: Settings, registry: CollectorRegistry | None = None) -> ClientKeys | None:
    """Return the keys that clients need; None if they need none. Raises SettingsError if the file
    cannot be read, or other settings contradict it."""
    path = settings.server.keys_file
    if path is None:
        return None
    check_with_keys(settings)
    try:
        return ClientKeys(Path(path), metrics_for(registry))
    except SettingsError as error:
        raise SettingsError(f"{KEYS_FILE_SETTING}: {error}") from None


def check_with_keys(settings: Settings) -> None:
    """Raise SettingsError if other settings contradict the file of keys."""
    if settings.server.keys_file is None:
        return
    for route in settings.routes:
        if route.client_credential:
            raise SettingsError(
                f"upstreams: credential of {route.upstream.name!r}: 'client' would send it the "
                f"keys of {KEYS_FILE_SETTING}; must be none, or left out with api_key_env"
            )
        if route.history.tenant != "credential":
            raise SettingsError(
                f"history.tenant: must be left out with {KEYS_FILE_SETTING}, where each key is a "
                "tenant"
            )


class ClientKeys:
    """The keys of a file. Raises SettingsError if that cannot be read.

    `now` is the time in seconds since the epoch, `monotonic` a clock that never goes back.
    """

    def __init__(
        self,
        path: Path,
        metrics: Metrics,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._metrics = metrics
        self._now, self._monotonic = now, monotonic
        self._keys, self._stamp = load_keys(path)
        self._allowances: dict[str, Allowance] = {}
        self._labels: set[str] = set()
        self._looked_at = -inf  # what was used today is yet to be read
        self._look: asyncio.Task[None] | None = None
        self._problems: dict[str, str | None] = {}

    async def aclose(self) -> None:
        """Save what was used."""
        await self._save()

    async def admit(self, scope: Scope, record: Record) -> None:
        """Put a request's key into its scope and record. Raises RequestError for a request that
        comes without one, or exceeds its limits."""
        key = await self.authenticate(scope)
        scope[CLIENT_KEY] = key
        record.key = key.name
        allowance = self._allowance_of(key.name)
        if seconds := allowance.wait_for_budget(key, self._now()):
            raise _budget_used_up(key, seconds)
        if seconds := allowance.wait_for_rate(key, self._monotonic()):
            raise _too_many_requests(key, seconds)

    async def authenticate(self, scope: Scope, *, from_browser: bool = False) -> ClientKey:
        """Return the key that a request comes with. Raises RequestError for one without.

        With `from_browser`, it may be the password by which a browser asks its user.
        """
        if self._look is not None or self._monotonic() - self._looked_at >= LOOK_SECONDS:
            await self._look_at_files()
        schemes = (BEARER, BASIC) if from_browser else (BEARER,)
        sent = False
        for text in _credentials(scope["headers"], schemes):
            sent = True
            key = self._find(text)
            if key is not None:
                if key.has_expired(self._now()):
                    raise _unauthorized("This API key has expired.", schemes)
                return key
        raise _unauthorized(UNKNOWN_KEY if sent else NO_KEY, schemes)

    def count(self, record: Record) -> None:
        """Count what a request used. This is a sink."""
        if record.key is None:
            return
        tokens, label = tokens_of(record), self._label(record.key)
        self._metrics.key_requests.labels(label, record.outcome).inc()
        if tokens:
            self._metrics.key_tokens.labels(label).inc(tokens)
            allowance = self._allowances.get(record.key)
            if allowance is not None:
                allowance.spend(tokens, self._now())

    def _find(self, text: str) -> ClientKey | None:
        if not text.startswith(KEY_PREFIX) or len(text) > MAX_KEY_CHARS:
            return None
        return self._keys.get(digest(text))

    def _allowance_of(self, name: str) -> Allowance:
        allowance = self._allowances.get(name)
        if allowance is None:
            allowance = self._allowances[name] = Allowance()
        return allowance

    def _label(self, name: str) -> str:
        """Return the name as a label. Beyond `MAX_KEYS` names, in the time of this process, it is
        `other`."""
        if name not in self._labels:
            if len(self._labels) >= MAX_KEYS:
                return "other"
            self._labels.add(name)
        return name

    async def _look_at_files(self) -> None:
        """Take over what has changed in the files, and wait for that a moment, also where another
        request has it done."""
        if self._look is None:
            self._looked_at = self._monotonic()
            self._look = asyncio.create_task(self._bring_up_to_date())
        patience = self._looked_at + PATIENCE_SECONDS - self._monotonic()
        if patience > 0:
            await asyncio.wait((self._look,), timeout=patience)

    async def _bring_up_to_date(self) -> None:
        try:
            await self._reload()
            await self._save()
        finally:
            self._look = None

    async def _reload(self) -> None:
        """Take over the keys from the file, if that has changed."""
        try:
            loaded = await asyncio.to_thread(_load_changed, self._path, self._stamp)
        except SettingsError as error:
            self._report("file", f"{error}; the keys that were read before stay in force")
            return
        self._report("file", None)
        if loaded is not None:
            self._keys, self._stamp = loaded
            _log.info("read %d keys from %s", len(self._keys), self._path)

    async def _save(self) -> None:
        """Save what was used today, and learn what other processes have used."""
        day = int(self._now() // DAY)
        budgeted = [key.name for key in self._keys.values() if key.tokens_per_day is not None]
        taken = [(name, each, each.take_unsaved(day)) for name, each in self._allowances.items()]
        unsaved = {name: tokens for name, _, tokens in taken if tokens}
        for name in self._allowances.keys() - {key.name for key in self._keys.values()}:
            del self._allowances[name]
        if not (budgeted or unsaved):
            return
        try:
            totals = await asyncio.to_thread(add_spent, self._path, day, unsaved)
        except OSError as error:
            for _, allowance, tokens in taken:
                allowance.give_back(day, tokens)
            reason = f"{self._path}{SUFFIX}: cannot be used: {error.strerror}"
            self._report("spent", f"{reason}; each process counts budgets for itself")
            return
        self._report("spent", None)
        for name in budgeted:
            self._allowance_of(name).learn(day, totals.get(name, 0))

    def _report(self, subject: str, problem: str | None) -> None:
        """Log a problem, once for as long as it lasts."""
        if problem is not None and problem != self._problems.get(subject):
            _log.error("%s", problem)
        self._problems[subject] = problem


def _load_changed(path: Path, stamp: Stamp) -> Loaded | None:
    """Read a file if it is not as it was. Raises SettingsError."""
    return load_keys(path) if current_stamp(path) != stamp else None


def _credentials(headers: Iterable[Header], schemes: tuple[bytes, ...]) -> Iterator[str]:
    """Yield what may be a key in these headers, of the given schemes of `Authorization`."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.strip().partition(b" ")
            scheme = scheme.lower()
            if scheme in schemes:
                yield (_password(token) if scheme == BASIC else token.strip().decode("latin-1"))
        elif name == b"x-api-key":
            yield value.strip().decode("latin-1")


def _password(token: bytes) -> str:
    """Return the password of the scheme `Basic`, whoever the user is."""
    try:
        return b64decode(token.strip(), validate=True).partition(b":")[2].decode("latin-1")
    except ValueError:
        return ""


NO_KEY = (
    "An API key is required: send it as Authorization: Bearer <key>, or in the header x-api-key."
)

UNKNOWN_KEY = "This API key is not valid: it is unknown here, or was revoked."


def _unauthorized(message: str, schemes: tuple[bytes, ...]) -> RequestError:
    scheme = b"Basic" if BASIC in schemes else b"Bearer"
    return RequestError(
        message,
        status=401,
        code="invalid_api_key",
        headers=[(b"www-authenticate", b"%b %b" % (scheme, REALM))],
    )


def _too_many_requests(key: ClientKey, seconds: int) -> RequestError:
    return RequestError(
        f"The API key {key.name!r} allows {key.rate} requests a minute. Try again in {seconds} s.",
        status=429,
        kind="rate_limit_error",
        code="rate_limit_exceeded",
        headers=_retry_after(seconds),
    )


def _budget_used_up(key: ClientKey, seconds: int) -> RequestError:
    """Clients that know the header `x-should-retry` do not try again before the next day."""
    return RequestError(
        f"The {key.tokens_per_day} tokens a day of the API key {key.name!r} are used up. "
        "The next day begins at midnight UTC.",
        status=429,
        kind="insufficient_quota",
        code="insufficient_quota",
        headers=[*_retry_after(seconds), (b"x-should-retry", b"false")],
    )


def _retry_after(seconds: int) -> list[Header]:
    return [(b"retry-after", b"%d" % seconds)]
