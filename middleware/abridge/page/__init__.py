"""The page at `/abridge`, off by default.

Ask a model something and watch the summary of its reasoning, its cost and the time the answer
waited; below, the latest exchanges of all clients. The browser's part is in `files` and is served
as it is: no build step, and nothing loaded from other hosts.
"""

from abridge.page.page import Page

__all__ = ["Page"]
