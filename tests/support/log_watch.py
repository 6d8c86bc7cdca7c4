"""Find what no log may hold: credentials, sealed blobs, scripted reasoning, and planted words.

`Watch` searches everything that Abridge logs in this process, as text and as JSON;
`tests.support.sidecar` searches the output of its processes.
"""

from __future__ import annotations

import logging
import os
import re

from abridge.observability.logs import TEXT_FORMAT, JsonFormatter

PLANTED = "pl4nted"
"""A word that tests put into secrets and prompts."""

FORBIDDEN = re.compile(
    rf"{PLANTED}"
    r"|\bsk-\w"
    r"|\babr-[\w-]{8}"
    r"|\b[Bb]earer \w"
    r"|\babr1\.\w+\.[\w-]{8}"
    r"|raw=\w+/\w+/\d+:\w+="  # of tests.end_to_end.histories
    r"|The user asks for the sum of the first ten odd numbers"  # of tests.support.streams
    r"|consider case \d+"
)


def find_secrets(text: str) -> list[str]:
    return FORBIDDEN.findall(text)


class Watch(logging.Handler):
    """`caught` are the forbidden log lines, each with its test."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.caught: list[str] = []
        self._formats = (logging.Formatter(TEXT_FORMAT), JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        for form in self._formats:
            if find_secrets(line := form.format(record)):
                self.caught.append(f"{os.environ.get('PYTEST_CURRENT_TEST', '')}: {line}")
        record.exc_text = None  # the next formatter must format the exception itself
