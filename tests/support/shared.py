"""Real provider traffic, reasoning, and OpenAI's own API description, beside the project.

Without them, the tests that need them are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"
RECORDINGS = SHARED / "recordings"
OPENAPI = SHARED / "spec" / "openai-openapi.json"
REASONING = SHARED / "reasoning"
HIDING = SHARED / "hiding"

needs_recordings = pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason=f"no recordings of provider traffic at {RECORDINGS}"
)
needs_openapi = pytest.mark.skipif(not OPENAPI.is_file(), reason=f"no API description at {OPENAPI}")
needs_reasoning = pytest.mark.skipif(
    not (REASONING / "score.py").is_file(), reason=f"no reasoning with a score at {REASONING}"
)
