"""Fixtures that all tests share."""

from tests.forms import form

__all__ = ["form"]
