"""Fixtures that all tests share."""

from tests.forms import form
from tests.redis import redis_server

__all__ = ["form", "redis_server"]
