"""Answer a request whose body was parsed."""

from abridge.answering.answering import Answering, pass_on

__all__ = ["Answering", "pass_on"]
