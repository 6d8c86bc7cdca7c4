"""`python -m abridge`."""

from __future__ import annotations

from abridge.sidecar.cli.commands import main

if __name__ == "__main__":  # worker processes import this module, too
    main()
