"""The `abridge` command."""

from abridge.sidecar.cli.commands import main

__all__ = ["main"]
