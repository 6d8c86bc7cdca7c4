"""Share fixtures among the page's tests."""

from tests.sidecar.page.asking import page
from tests.sidecar.page.chromium import chromium

__all__ = ["chromium", "page"]
