"""Forward requests to upstreams; knows nothing of reasoning."""

from abridge.sidecar.proxy.calls import log_in_one_line
from abridge.sidecar.proxy.proxy import Proxy

__all__ = ["Proxy", "log_in_one_line"]
