"""The ledger: an entry for each request, in Redis or PostgreSQL, for billing."""

from __future__ import annotations

from abridge.config.loading import read_secret, require_extra
from abridge.config.setting_types import SQL_SCHEMES
from abridge.config.settings import Settings
from abridge.errors import SettingsError
from abridge.observability.ledger.ledger import Ledger, LedgerBackend
from abridge.observability.metrics import Metrics

URL_SETTING, URL_ENV_SETTING = "ledger.url", "ledger.url_env"


def open_ledger(settings: Settings, metrics: Metrics) -> Ledger | None:
    """Return what writes the ledger; None if none is kept. Raises SettingsError as below."""
    backend = open_backend(settings)
    return None if backend is None else Ledger(backend, metrics, settings.ledger.waiting)


def open_backend(settings: Settings) -> LedgerBackend | None:
    """Return where the ledger is written; None if there is none. Raises SettingsError if a package
    is missing or the address is invalid. Opens no connection."""
    ledger, setting = settings.ledger, URL_SETTING
    url = settings.history.store if ledger.url == "store" else ledger.url
    if ledger.url_env is not None:
        setting = URL_ENV_SETTING
        url = read_secret(ledger.url_env, setting)
    if url is None:
        return None
    try:
        if url.partition("://")[0] in SQL_SCHEMES:
            with require_extra("postgres", setting):
                from abridge.observability.ledger.postgres import PostgresTable  # noqa: PLC0415 -- an extra
            return PostgresTable(url, ledger.retention)
        with require_extra("redis", setting):
            from abridge.observability.ledger.redis_stream import RedisStream  # noqa: PLC0415 -- an extra
        return RedisStream(url, ledger.retention)
    except ValueError as error:
        raise SettingsError(f"{setting}: {error}") from None
