"""Fixtures that all tests share."""

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.conversations.judge", "tests.clients.rounds")

from tests.forms import form  # noqa: E402 -- what is imported may not be rewritten any more
from tests.redis import redis_server  # noqa: E402

__all__ = ["form", "redis_server"]

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
