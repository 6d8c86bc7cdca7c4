"""What no log may hold: credentials and sealed blobs, whoever's; what scripted models think; and
words that tests plant for this.

`Watch` looks through everything that Abridge logs in this process while tests run, as text and as
JSON; `tests.support.sidecar` looks through all that its processes say.
"""

from __future__ import annotations

import logging
import os
import re

from abridge.observability.logs import TEXT_FORMAT, JsonFormatter

PLANTED = "pl4nted"
"""Stands in secrets and in prompts."""

FORBIDDEN = re.compile(
    rf"{PLANTED}"
    r"|\bsk-\w"
    r"|\b[Bb]earer \w"
    r"|\babr1\.\w+\.[\w-]{8}"
    r"|raw\[\w+/\w+/\d+:\w+\]"  # of tests.end_to_end.histories
    r"|The user asks for the sum of the first ten odd numbers"  # of tests.support.streams
    r"|consider case \d+"
)


def found(text: str) -> list[str]:
    return FORBIDDEN.findall(text)


class Watch(logging.Handler):
    """`caught` is what should not have been logged, and by which tests."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.caught: list[str] = []
        self._formats = (logging.Formatter(TEXT_FORMAT), JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        for form in self._formats:
            if found(line := form.format(record)):
                self.caught.append(f"{os.environ.get('PYTEST_CURRENT_TEST', '')}: {line}")
        record.exc_text = None  # who formats it next is to do it for himself
