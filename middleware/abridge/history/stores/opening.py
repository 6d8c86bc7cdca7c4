"""Opens the store that replicas share."""

from __future__ import annotations

from abridge.errors import SettingsError
from abridge.extras import needed
from abridge.history.keys import Keyring
from abridge.history.stores.store import Store, Watch, unwatched

SETTING = "history.store"


def shared(
    url: str,
    keys: Keyring,
    *,
    ttl: float,
    namespace: str = "abridge",
    observe: Watch = unwatched,
) -> Store:
    """Open the store at a Redis address, sealed with a ring's keys. Raise SettingsError if a
    package is missing or the address is invalid."""
    with needed("redis", SETTING):
        from abridge.history.box import Box  # noqa: PLC0415 -- an extra
        from abridge.history.stores.line import Line  # noqa: PLC0415
        from abridge.history.stores.redis import Redis  # noqa: PLC0415
    try:
        line = Line(url)
    except ValueError as error:
        raise SettingsError(f"{SETTING}: {error}") from None
    return Redis(line, Box(keys, use=b"store"), ttl=ttl, namespace=namespace, observe=observe)
