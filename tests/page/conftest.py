"""Share fixtures among the page's tests."""

from tests.page.chromium import chromium

__all__ = ["chromium"]
