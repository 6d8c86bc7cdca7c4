"""Admit requests by the keys that their clients send, and count what each key and team uses.

The file of the keys is looked at once a second at most, by the first request after that: in a
thread, since a disk may be slow. Requests wait for that a moment, so that no key is good for one
more request after it was revoked. A file that cannot be read leaves the last keys that could be in
force.
"""

from __future__ import annotations

import asyncio
import logging
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from math import inf
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter
from starlette.types import Scope

from abridge.apis.credentials import Header
from abridge.config.client_key import CLIENT_KEY, KEY_PREFIX, MAX_KEYS, ClientKey, Limits, digest
from abridge.config.settings import Settings
from abridge.errors import RequestError, SettingsError
from abridge.observability.metrics import Metrics, NameLabels, metrics_for
from abridge.observability.record import Record
from abridge.observability.spending import Prices, tokens_of
from abridge.sidecar.client_keys.accounts import ALONE_SECONDS, Accounts, LimitReached
from abridge.sidecar.client_keys.books import open_book
from abridge.sidecar.client_keys.file import (
    KEYS_FILE_SETTING,
    Loaded,
    Stamp,
    current_stamp,
    load_keys,
)
from abridge.sidecar.client_keys.limits import NANO

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
    if not Path(path).exists():
        raise SettingsError(
            f"{KEYS_FILE_SETTING}: {path} does not exist; `abridge keys add NAME --file {path}` "
            "makes it"
        )
    try:
        return ClientKeys(Path(path), settings, metrics_for(registry))
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
        settings: Settings,
        metrics: Metrics,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._metrics = metrics
        self._now, self._monotonic = now, monotonic
        self._keys, self._stamp = load_keys(path)
        self._accounts = Accounts(
            open_book(settings, path, now),
            metrics,
            processes=settings.server.workers,
            now=now,
            monotonic=monotonic,
        )
        self.prices = Prices(settings)
        self._key_labels, self._team_labels = NameLabels(MAX_KEYS), NameLabels(MAX_KEYS)
        self._looked_at = -inf
        self._look: asyncio.Task[None] | None = None
        self._problem: str | None = None

    async def aclose(self) -> None:
        """Write what was used."""
        await self._accounts.aclose()

    async def admit(self, scope: Scope, record: Record) -> None:
        """Put a request's key into its scope and record. Raises RequestError for a request that
        comes without one, or exceeds its limits."""
        key = await self.authenticate(scope)
        scope[CLIENT_KEY] = key
        record.key, record.team = key.name, key.team
        try:
            record.admission = await self._accounts.admit(_limits_of(key))
        except LimitReached as limit:
            self._metrics.limit_refusals.labels(limit.holder, limit.kind.name).inc()
            raise _refused(limit, key, self.prices.currency) from None

    async def authenticate(self, scope: Scope, *, from_browser: bool = False) -> ClientKey:
        """Return the key that a request comes with. Raises RequestError for one without.

        With `from_browser`, it may be the password by which a browser asks its user.
        """
        if self._look is not None or self._monotonic() - self._looked_at >= LOOK_SECONDS:
            await self._look_at_file()
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
        """Count what a request used, and end its admission. This is a sink."""
        if record.key is None:
            return
        tokens, price = tokens_of(record), self.prices.price_of(record) or Decimal()
        for name, (requests, used, cost) in self._counters(record):
            requests.labels(name, record.outcome).inc()
            if tokens:
                used.labels(name).inc(tokens)
            if price:
                cost.labels(name, self.prices.currency).inc(float(price))
        money = round(price * NANO)
        if record.admission is not None:
            record.admission.end(tokens, money)
        elif tokens:  # a background response, which was admitted when it began
            for key in self._keys.values():
                if key.name == record.key:
                    self._accounts.charge(_limits_of(key), tokens, money)

    def _counters(self, record: Record) -> Iterator[tuple[str, tuple[Counter, Counter, Counter]]]:
        """Yield the labels of a request's key and team, each with its counters."""
        of = self._metrics
        for name, known, counters in (
            (record.key, self._key_labels, (of.key_requests, of.key_tokens, of.key_cost)),
            (record.team, self._team_labels, (of.team_requests, of.team_tokens, of.team_cost)),
        ):
            if name is not None:
                yield known.label(name), counters

    def _find(self, text: str) -> ClientKey | None:
        if not text.startswith(KEY_PREFIX) or len(text) > MAX_KEY_CHARS:
            return None
        return self._keys.get(digest(text))

    async def _look_at_file(self) -> None:
        """Take over what has changed in the file, and wait for that a moment, also if another
        request began it."""
        if self._look is None:
            self._looked_at = self._monotonic()
            self._look = asyncio.create_task(self._reload())
        patience = self._looked_at + PATIENCE_SECONDS - self._monotonic()
        if patience > 0:
            await asyncio.wait((self._look,), timeout=patience)

    async def _reload(self) -> None:
        """Take over the keys from the file, if that has changed. Log a problem, once for as long as
        it lasts."""
        try:
            loaded = await asyncio.to_thread(_load_changed, self._path, self._stamp)
        except SettingsError as error:
            if str(error) != self._problem:
                _log.error("%s; the keys that were read before stay in force", error)
            self._problem = str(error)
        else:
            self._problem = None
            if loaded is not None:
                self._keys, self._stamp = loaded
                _log.info("%s read; keys: %d", self._path, len(self._keys))
        finally:
            self._look = None


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


def _limits_of(key: ClientKey) -> dict[str, Limits]:
    """Return the limits that count for a key, by the names of their accounts."""
    limits: dict[str, Limits] = {f"key:{key.name}": key}
    if key.team_limits is not None:
        limits[f"team:{key.team}"] = key.team_limits
    return limits


def _refused(reached: LimitReached, key: ClientKey, currency: str | None) -> RequestError:
    """Return the error for a limit. Clients that know the header `x-should-retry` do not try again
    before the next day or month."""
    kind, seconds = reached.kind, reached.seconds
    is_teams = reached.holder == "team"
    holder = f"team {key.team!r}" if is_teams else f"API key {key.name!r}"
    value = getattr(key.team_limits if is_teams else key, kind.name)
    unit = (currency or "units of money") if kind.unit == "money" else kind.unit
    amount = f"{value:.15g} {unit}"
    headers = [(b"retry-after", b"%d" % seconds)]
    if kind.window in ("day", "month"):
        code = error = "insufficient_quota"
        message = f"The {amount} a {kind.window} of the {holder} are used up. "
        if seconds > ALONE_SECONDS:
            headers.append((b"x-should-retry", b"false"))
            message += f"The next {kind.window} begins at midnight UTC."
        else:
            message += f"Try again in {seconds} s."
    else:
        code, error = "rate_limit_exceeded", "rate_limit_error"
        what = f"{value} requests at once" if kind.window == "open" else f"{amount} a minute"
        message = f"The {holder} allows {what}. Try again in {seconds} s."
    return RequestError(message, status=429, kind=error, code=code, headers=headers)
