"""How `abridge serve` logs."""

from __future__ import annotations

import logging

from abridge.settings import Log

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up(settings: Log) -> None:
    """Log to standard error, as `abridge serve` does."""
    logging.basicConfig(format=TEXT, level=logging.WARNING)
    logging.getLogger("abridge").setLevel(logging.INFO)
