"""The page at `/abridge`, which shows requests as they are served."""

from abridge.page.page import Page

__all__ = ["Page"]
