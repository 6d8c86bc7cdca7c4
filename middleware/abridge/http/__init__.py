"""The outgoing transport, behind httpx's interface and stateless."""

from abridge.http.transport import Transport

__all__ = ["Transport"]
