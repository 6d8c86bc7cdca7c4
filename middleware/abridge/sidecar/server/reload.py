"""Have changed settings take effect while the server runs.

They are read again when the process is asked to, by SIGHUP, and when their file has changed. A
mounted ConfigMap changes by a link, which the file's state shows, too. A file that is being written
is not read: it must be found the same twice. What cannot be used changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from abridge.config.loading import SettingsOrigin, check_secrets
from abridge.config.reloading import changed_keys
from abridge.config.warnings import settings_warnings
from abridge.errors import SettingsError
from abridge.observability.metrics import metrics_for
from abridge.sidecar.app import Abridge
from abridge.sidecar.client_keys.file import Stamp, current_stamp

LOOK_SECONDS = 1.0
"""Seconds between two looks at the file."""

_log = logging.getLogger(__name__)


class Reloader:
    """Reads the settings of an app again."""

    def __init__(self, app: Abridge, origin: SettingsOrigin) -> None:
        self._app = app
        self._origin = origin
        self._asked = asyncio.Event()
        self._metrics = metrics_for()

    def ask(self) -> None:
        """Have the settings read again, and what they name, even if the file is as it was."""
        self._asked.set()

    async def run(self) -> None:
        """Read what has changed since the start, then wait for changes, without end."""
        read = await asyncio.to_thread(self._stamp)
        await self._reload(is_asked=False)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._asked.wait()
            before, seen = read, await asyncio.to_thread(self._stamp)
            while seen != before:  # it may be half written
                await asyncio.sleep(LOOK_SECONDS)
                before, seen = seen, await asyncio.to_thread(self._stamp)
            is_asked = self._asked.is_set()
            if is_asked or seen != read:
                self._asked.clear()
                read = seen
                await self._reload(is_asked=is_asked)

    def _stamp(self) -> Stamp | None:
        """Return the state of the file; None if it cannot be read, or there is none."""
        with suppress(SettingsError):
            return current_stamp(self._origin.file) if self._origin.file else None
        return None

    async def _reload(self, *, is_asked: bool) -> None:
        try:
            await self._apply(is_asked=is_asked)
        except SettingsError as error:
            self._refuse("; ".join(str(error).splitlines()))
        except Exception as error:  # noqa: BLE001 -- whatever it is, the server goes on
            self._refuse(type(error).__name__)
            _log.exception("settings could not be reloaded")
        else:
            self._metrics.settings_refused.set(0)

    async def _apply(self, *, is_asked: bool) -> None:
        """Raises SettingsError."""
        sources = await asyncio.to_thread(self._origin.read)
        settings = await asyncio.to_thread(sources.load_served)
        before = self._app.settings
        changed = list(changed_keys(before, settings))
        if not (changed or is_asked):
            return
        try:
            check_secrets(settings)
            kept = await self._app.reload(settings)
        except SettingsError as error:
            raise SettingsError(sources.locate(str(error))) from None
        self._report(changed, kept)
        known = set(settings_warnings(before))
        for note in settings_warnings(self._app.settings):
            if note not in known:
                _log.warning("%s", note)

    def _report(self, changed: list[str], kept: list[str]) -> None:
        self._metrics.reloads.labels("applied").inc()
        applied = [key for key in changed if key not in kept]
        _log.info("settings reloaded; changed: %s", ", ".join(applied) or "nothing")
        if kept:
            _log.warning("settings that need a restart stay as they were: %s", ", ".join(kept))

    def _refuse(self, reason: str) -> None:
        self._metrics.reloads.labels("refused").inc()
        self._metrics.settings_refused.set(1)
        _log.error("settings not reloaded, those before stay in force: %s", reason)
