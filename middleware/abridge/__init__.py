"""Live reasoning summaries for every model, in OpenAI's format."""

from abridge.app import create_app
from abridge.attribution import attribute
from abridge.config.settings import Settings
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
    "Proxy",
    "RequestError",
    "Settings",
    "SettingsError",
    "SummarizerError",
    "UpstreamBroken",
    "attribute",
    "create_app",
]

__version__ = "0.1.0"
