"""`abridge check`: what the settings come to, and whether what they name is there."""

from abridge.check.effective import effective
from abridge.check.run import Check

__all__ = ["Check", "effective"]
