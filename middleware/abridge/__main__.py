"""`python -m abridge`."""

from __future__ import annotations

from abridge.cli import main

main()
