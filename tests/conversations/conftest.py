"""What a judgement that fails compares is shown."""

import pytest

pytest.register_assert_rewrite("tests.conversations.judge", "tests.clients.rounds")
