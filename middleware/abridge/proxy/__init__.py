"""Forward requests to upstreams; knows nothing of reasoning."""

from abridge.proxy.calls import log_in_one_line
from abridge.proxy.proxy import Proxy

__all__ = ["Proxy", "log_in_one_line"]
