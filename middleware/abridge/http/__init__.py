"""HTTP below everything else: ASGI messages and headers, the outgoing transport."""

from abridge.http.transport import Transport

__all__ = ["Transport"]
