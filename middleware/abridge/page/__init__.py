"""The page at `/abridge`: ask something, and watch what Abridge makes of the thinking, what it
costs and what it waits for; beneath it, the last exchanges of everybody. Off unless it is wanted.

The browser's half stands in `files`, as it is served: no build, and nothing from elsewhere."""

from abridge.page.page import Page

__all__ = ["Page"]
