"""What the page's tests share."""

from tests.page.chromium import chromium

__all__ = ["chromium"]
