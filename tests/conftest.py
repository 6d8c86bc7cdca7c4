"""Fixtures that all tests share."""

from hypothesis import settings

from tests.forms import form
from tests.redis import redis_server

__all__ = ["form", "redis_server"]

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
