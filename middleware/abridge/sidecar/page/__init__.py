"""The page at `/abridge`, which shows requests as they are served."""

from abridge.sidecar.page.page import Page

__all__ = ["Page"]
