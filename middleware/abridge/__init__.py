"""Live reasoning summaries for every model, in OpenAI's format."""

from abridge.app import create_app
from abridge.attribution import attribute
from abridge.config.review import ReviewSettings
from abridge.config.settings import Settings
from abridge.config.tables import (
    AttributionSettings,
    ChatSettings,
    HistorySettings,
    LimitSettings,
    LogSettings,
    PromptSettings,
    ReasoningSettings,
    ServerSettings,
    SummarizerSettings,
    SummarySettings,
    TracingSettings,
    UsageSettings,
)
from abridge.config.upstreams import UpstreamSettings
from abridge.errors import (
    AbridgeError,
    RequestError,
    SettingsError,
    SummarizerError,
    UpstreamBroken,
)
from abridge.middleware import AbridgeMiddleware
from abridge.proxy.proxy import Proxy

__all__ = [
    "AbridgeError",
    "AbridgeMiddleware",
    "AttributionSettings",
    "ChatSettings",
    "HistorySettings",
    "LimitSettings",
    "LogSettings",
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
