"""The outgoing HTTP transport: httpx's interface, no state between requests."""

from abridge.http.transport import Transport

__all__ = ["Transport"]
