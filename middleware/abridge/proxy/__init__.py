"""Forward requests to upstreams, unaware of reasoning."""

from abridge.proxy.failures import in_one_line
from abridge.proxy.proxy import Proxy

__all__ = ["Proxy", "in_one_line"]
