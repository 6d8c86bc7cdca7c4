"""How a request whose body was read is answered."""

from abridge.answering.answering import Answering, pass_on

__all__ = ["Answering", "pass_on"]
