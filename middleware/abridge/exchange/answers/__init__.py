"""The three kinds of engaged responses, told apart by the first message.

A stream is sequenced event by event. A JSON body is buffered, sequenced by the same rules and sent
when its summary is ready. Anything else (an error, HTML, an unknown content encoding) is passed on
as it came, or replaced by an error where nothing unread may get through.
"""

from abridge.exchange.answers.answer import Answer, Parts, json_start
from abridge.exchange.answers.begin import begin
from abridge.exchange.answers.stream import Stream
from abridge.exchange.answers.unread import Refused

__all__ = ["Answer", "Parts", "Refused", "Stream", "begin", "json_start"]
