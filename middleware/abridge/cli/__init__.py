"""The `abridge` command."""

from abridge.cli.commands import main

__all__ = ["main"]
