"""Live reasoning summaries for every model, in OpenAI's format."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abridge.sidecar.app import create_app
    from abridge.sidecar.proxy.proxy import Proxy


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Pause the garbage collector while modules are imported. They make 60,000 objects, all of
    which stay: to pass over them as they become more takes 70 ms. In the end they count as old."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()


with _without_collecting():
    from abridge.attribution import attribute
    from abridge.config.review import ReviewSettings
    from abridge.config.settings import Settings
    from abridge.config.tables import (
        AttributionSettings,
        BackgroundSettings,
        ChatSettings,
        CompactionSettings,
        HistorySettings,
        LedgerSettings,
        LimitSettings,
        LogSettings,
        ModelPriceSettings,
        PriceSettings,
        PromptSettings,
        ReasoningSettings,
        ServerSettings,
        SummarizerSettings,
        SummarySettings,
        TracingSettings,
        UsageSettings,
    )
    from abridge.config.upstreams import FallbackSettings, UpstreamSettings
    from abridge.errors import (
        AbridgeError,
        RequestError,
        SettingsError,
        SummarizerError,
        UpstreamBroken,
    )
    from abridge.middleware import AbridgeMiddleware

__all__ = [
    "AbridgeError",
    "AbridgeMiddleware",
    "AttributionSettings",
    "BackgroundSettings",
    "ChatSettings",
    "CompactionSettings",
    "FallbackSettings",
    "HistorySettings",
    "LedgerSettings",
    "LimitSettings",
    "LogSettings",
    "ModelPriceSettings",
    "PriceSettings",
    "PromptSettings",
    "Proxy",
    "ReasoningSettings",
    "RequestError",
    "ReviewSettings",
    "ServerSettings",
    "Settings",
    "SettingsError",
    "SummarizerError",
    "SummarizerSettings",
    "SummarySettings",
    "TracingSettings",
    "UpstreamBroken",
    "UpstreamSettings",
    "UsageSettings",
    "attribute",
    "create_app",
]

__version__ = "0.1.0"


_OF_SIDECAR = {"create_app": "abridge.sidecar.app", "Proxy": "abridge.sidecar.proxy.proxy"}
"""Names for which a module is loaded once they are asked for: an application that only mounts the
middleware does not carry a sidecar."""


def __getattr__(name: str) -> Any:
    if name not in _OF_SIDECAR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with _without_collecting():
        found = globals()[name] = getattr(import_module(_OF_SIDECAR[name]), name)
    return found
