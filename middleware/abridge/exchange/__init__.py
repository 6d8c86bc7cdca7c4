"""One engaged request, from its body to its last byte."""

from abridge.exchange.exchange import Exchange, Keep, Terms

__all__ = ["Exchange", "Keep", "Terms"]
