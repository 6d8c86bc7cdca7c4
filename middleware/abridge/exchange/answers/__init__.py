"""The three ways in which an engaged response can come, decided by its first message.

A stream is woven event by event; a JSON body is gathered, woven by the same rules and sent when its
summary is there; anything else (an error, HTML, an encoding nobody here can undo) goes out as it
came.
"""

from abridge.exchange.answers.answer import Answer, Parts, json_start
from abridge.exchange.answers.begin import begin
from abridge.exchange.answers.stream import Stream
from abridge.exchange.answers.unread import Refused

__all__ = ["Answer", "Parts", "Refused", "Stream", "begin", "json_start"]
