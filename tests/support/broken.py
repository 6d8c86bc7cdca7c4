"""Summarizers and reviews as broken as a user's may be.

`SUMMARIZERS` and `REVIEWS` fail, each with what the log says of it. `CARELESS` write `TEXT` all the
same; the log says of each why its iterator could not be closed, if that is what is wrong with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from abridge.core.usage import SummarizerUsage, Tokens
from abridge.errors import SummarizerError

TEXT = "**Adding up**\n\nI add the numbers."


class Summarizer:
    """Has the `summarize` that it is given."""

    name = "broken"

    def __init__(self, summarize: Callable[[Any], Any]) -> None:
        self.summarize = summarize


class Iterator:
    """Yields `pieces`, or raises them."""

    def __init__(self, *pieces: Any) -> None:
        self._pieces = iter(pieces)

    def __aiter__(self) -> Iterator:
        return self

    async def __anext__(self) -> Any:
        for piece in self._pieces:
            return _raise(piece) if isinstance(piece, BaseException) else piece
        raise StopAsyncIteration


class Closing(Iterator):
    """Yields `TEXT`; `aclose` is as given."""

    def __init__(self, aclose: Any) -> None:
        super().__init__(TEXT)
        self.aclose = aclose


class OddIterator:
    def __init__(self, following: Any) -> None:
        self._following = following

    def __aiter__(self) -> Any:
        return self

    def __anext__(self) -> Any:
        return self._following


class OddText(str):
    """Can be looked at by what `str` itself offers."""

    __slots__ = ()

    def __getitem__(self, _: object) -> str:
        raise KeyError

    __add__ = __radd__ = __getitem__  # noqa: RUF100 -- they all fail

    def encode(self, *_: object) -> bytes:
        raise KeyError

    def strip(self, _: object = None) -> str:
        raise KeyError


class Odd(BaseException):
    pass


class Unreadable(Exception):
    def __str__(self) -> str:
        raise ValueError


class Odder(SummarizerError):
    """Fails whoever wants to know more of it."""

    def __init__(self) -> None:
        pass

    @property
    def code(self) -> str:  # type: ignore[override]
        raise asyncio.CancelledError


class Bare(SummarizerError):
    """Has neither code nor cost."""

    def __init__(self) -> None:
        pass


def _raise(error: BaseException) -> Any:
    raise error


async def _return(value: Any) -> Any:
    return value


async def _raise_later(error: BaseException) -> Any:
    raise error


async def _generate(*pieces: Any) -> AsyncIterator[Any]:
    for piece in pieces:
        yield _raise(piece) if isinstance(piece, BaseException) else piece


async def _cancel_itself(*_: Any) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def _generate_cancelled(_: Any) -> AsyncIterator[Any]:
    yield await _cancel_itself()


CANCELLED = "asyncio.exceptions.CancelledError"

FOREIGN_ERRORS: dict[str, Callable[[], BaseException]] = {
    "ValueError: out of luck": lambda: ValueError("out of\n\tluck"),
    CANCELLED: asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "tests.support.broken.Odd": Odd,
    "tests.support.broken.Unreadable: <exception str() failed>": Unreadable,
}
"""What user code may raise, by what the log says of it."""

ERRORS = {
    **FOREIGN_ERRORS,
    "it took too long": TimeoutError,
    "No. (upstream_error)": lambda: SummarizerError(["odd"], "No.", spent="much", model=7),  # type: ignore[arg-type]
    "(upstream_error)": Bare,
    "The summarizer failed. (upstream_error)": Odder,
    "SyntaxError": lambda: SyntaxError("no good", ("here", 1, "odd", "text")),  # type: ignore[arg-type]
    "TimeoutError: no answer": lambda: TimeoutError("no answer"),
    "ExceptionGroup: of tasks (2 sub-exceptions): ValueError: no good": lambda: ExceptionGroup(
        "of tasks", [ValueError("no good"), KeyError()]
    ),
}

SUMMARIZERS: dict[str, tuple[Any, str]] = {
    **{
        f"{place}: {cause}": (Summarizer(summarize), cause)
        for cause, make in ERRORS.items()
        for place, summarize in {
            "raises when called": lambda _, make=make: _raise(make()),
            "raises when iterated": lambda _, make=make: Iterator(make()),
            "raises when iterated on": lambda _, make=make: Iterator("So ", make()),
            "raises as a generator": lambda _, make=make: _generate(make()),
        }.items()
    },
    "returns None": (Summarizer(lambda _: None), "TypeError: 'NoneType' object is not"),
    "returns text": (Summarizer(lambda _: TEXT), "TypeError: 'str' object is not an async"),
    "is a coroutine": (Summarizer(lambda _: _return(TEXT)), "TypeError: 'coroutine' object is"),
    "iterates over nothing": (Summarizer(lambda _: OddIterator(None)), "TypeError: "),
    "iterates over text": (Summarizer(lambda _: OddIterator(TEXT)), "TypeError: "),
    "yields a number": (Summarizer(lambda _: Iterator(5)), "TypeError: summarize yielded int"),
    "yields None": (Summarizer(lambda _: Iterator(None)), "TypeError: summarize yielded NoneType"),
    "yields bytes": (Summarizer(lambda _: Iterator(b"So")), "TypeError: summarize yielded bytes"),
    "says that it has ended": (
        Summarizer(lambda _: _raise(StopAsyncIteration("ended"))),
        "StopAsyncIteration: ended",
    ),
    "cancels its own task": (Summarizer(_generate_cancelled), CANCELLED),
}

REVIEWS: dict[str, tuple[Any, str]] = {
    **{
        f"{place}: {cause}": (review, cause)
        for cause, make in ERRORS.items()
        for place, review in {
            "raises when called": lambda _, make=make: _raise(make()),
            "raises when awaited": lambda _, make=make: _raise_later(make()),
        }.items()
    },
    "returns a number": (lambda _: _return(5), "TypeError: the review returned int"),
    "returns bytes": (lambda _: _return(b"So"), "TypeError: the review returned bytes"),
    "is no coroutine": (
        lambda text: text,
        "TypeError: the review returned str, which cannot be awaited",
    ),
    "cancels its own task": (_cancel_itself, CANCELLED),
}

CARELESS: dict[str, tuple[Any, str]] = {
    **{
        f"{place}: {cause}": (Summarizer(summarize), cause)
        for cause, make in FOREIGN_ERRORS.items()
        for place, summarize in {
            "aclose raises when called": lambda _, make=make: Closing(lambda: _raise(make())),
            "aclose raises when awaited": lambda _, make=make: Closing(
                lambda: _raise_later(make())
            ),
        }.items()
    },
    "yields odd text": (Summarizer(lambda _: Iterator(OddText(TEXT))), ""),
    "aclose is a number": (Summarizer(lambda _: Closing(5)), "TypeError: 'int' object is not"),
    "aclose returns a number": (
        Summarizer(lambda _: Closing(lambda: 5)),
        "TypeError: aclose returned",
    ),
    "aclose cancels its own task": (Summarizer(lambda _: Closing(_cancel_itself)), CANCELLED),
    **{
        f"says that it spent {what}": (
            Summarizer(lambda _, usage=usage: Iterator(TEXT, SummarizerUsage(*usage))),  # type: ignore[misc]
            "",
        )
        for what, usage in {
            "text": ("much", "mini"),
            "several things": (Tokens("much", [1], 1.5), 7),  # type: ignore[arg-type]
            "less than nothing": (Tokens(-5, -5, -10), "\ud800"),
            "more than there is": (Tokens(10**400, 10**400, 10**400), ""),
        }.items()
    },
}
