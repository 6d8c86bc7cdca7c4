"""`abridge check`: print the settings in force, and check that their servers can be reached."""

from abridge.check.effective import effective
from abridge.check.run import Check

__all__ = ["Check", "effective"]
