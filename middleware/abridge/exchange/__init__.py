"""One engaged request, from its body to its last byte."""

from abridge.exchange.exchange import Exchange, Terms

__all__ = ["Exchange", "Terms"]
