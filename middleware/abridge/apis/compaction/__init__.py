"""Compactions: how each API that has them is asked for one, and tells it."""
