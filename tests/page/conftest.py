"""Share fixtures among the page's tests."""

from tests.page.asking import page
from tests.page.chromium import chromium

__all__ = ["chromium", "page"]
